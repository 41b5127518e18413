/// \file
/// ToolCache: tool calls with their results, or the futures of them, by the reply they answer.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <iterator>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/execute/tool_result.hpp>
#include <tooldecode/tools/call_key.hpp>
#include <tooldecode/tools/tool_call.hpp>

namespace tooldecode {

/// A call that somebody has run, or is running.
struct CachedCall {
  ToolCall call;
  std::string key;  ///< see call_key; for any arguments the cache writes its own
  std::shared_future<ToolResult> result{};
  bool any_arguments = false;  ///< of the call only the name counts: the result answers all of them
};

/// What a cache has seen since it was made, and what it holds now.
struct ToolCacheStatistics {
  std::size_t hits     = 0;
  std::size_t misses   = 0;
  std::size_t inserted = 0;
  std::size_t expired  = 0;  ///< gone because their time was over
  std::size_t evicted  = 0;  ///< gone because others needed the bytes, or their own output did
  std::size_t entries  = 0;
  std::size_t bytes    = 0;
};

/// How much a cache holds, and for how long.
struct ToolCacheOptions {
  std::size_t max_bytes                          = std::size_t{64} << 20;
  std::chrono::steady_clock::duration keep_alive = std::chrono::minutes(5);  ///< from insertion on
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
};

/// Calls and their results, found by (response id, key) and by (response id, tool).
///
/// A response has one entry per key: inserting a key again replaces what was there. It has one,
/// too, for any arguments of a tool, which is found where there is none of the very key. An entry
/// may be pending; whoever finds it decides whether to wait. It takes `entry_bytes`, its response
/// id, twice its key (once for the call that the key stands for) and, once it is there, its output.
/// What is found is used, and the least recently used goes first.
///
/// \par Complexity  insert and find O(log entries + pending entries); find_tool O(entries of the
///                  response)
/// \par Threads     every member may run concurrently
/// \par Errors      Error{invalid_option} for a call without a future
/// \par Source      Nichols et al., arXiv:2512.15834, the tool cache of Algorithm 5
class ToolCache {
 public:
  using Clock = std::chrono::steady_clock;

  /// What an entry takes beside its texts, about.
  static constexpr std::size_t entry_bytes = 512;

  explicit ToolCache(ToolCacheOptions options = {}) : options_(std::move(options)) {}

  /// \param keep_alive  instead of the options' own
  /// \return the entries that this made: 1, or 0 where it would not fit or not live; an older
  ///         result of the same call is gone even then
  std::size_t insert(std::string_view response_id, CachedCall call,
                     std::optional<Clock::duration> keep_alive = {}) {
    if (!call.result.valid()) {
      throw Error(Errc::invalid_option, "", "a cached call must have the future of its result");
    }
    if (call.any_arguments) call.key = any_arguments_key(call.call.name);
    const Clock::duration life = keep_alive.value_or(options_.keep_alive);
    const std::lock_guard lock(mutex_);
    const Clock::time_point now = update();
    if (const Iterator older = entry_of(response_id, call.key); older != entries_.end()) {
      remove(older);
    }
    const std::size_t bytes = entry_bytes + response_id.size() + 2 * call.key.size();
    if (bytes > options_.max_bytes || life <= Clock::duration::zero()) return 0;
    const bool forever = life >= Clock::time_point::max() - now;
    entries_.push_front({std::string(response_id), std::move(call), bytes, ++serial_});
    const Iterator entry = entries_.begin();
    entry->deadline = deadlines_.emplace(forever ? Clock::time_point::max() : now + life, entry);
    responses_[entry->response_id].emplace(entry->call.key, entry);
    pending_.push_back(entry);
    statistics_.bytes += bytes;
    ++statistics_.inserted;
    trim();
    return !entries_.empty() && entries_.front().serial == serial_ ? 1 : 0;
  }

  /// The call of a key, pending or done; else what its tool has for any arguments. Counts as a hit
  /// or a miss.
  [[nodiscard]] std::optional<CachedCall> find(std::string_view response_id, std::string_view key) {
    const std::lock_guard lock(mutex_);
    auto found = look_up(response_id, key);
    ++(found ? statistics_.hits : statistics_.misses);
    return found;
  }
  /// The same, and counts as nothing: for who asks over and over.
  [[nodiscard]] std::optional<CachedCall> peek(std::string_view response_id, std::string_view key) {
    const std::lock_guard lock(mutex_);
    return look_up(response_id, key);
  }

  /// The calls of a tool, and what it has for any arguments, the latest insertion first.
  [[nodiscard]] std::vector<CachedCall> find_tool(std::string_view response_id,
                                                  std::string_view tool) {
    const std::lock_guard lock(mutex_);
    update();
    std::vector<Iterator> found;
    if (const auto response = responses_.find(response_id); response != responses_.end()) {
      for (const auto& [key, entry] : response->second) {
        if (entry->call.call.name == tool) found.push_back(entry);
      }
    }
    std::sort(found.begin(), found.end(),
              [](Iterator a, Iterator b) { return a->serial < b->serial; });
    for (const Iterator entry : found) touch(entry);
    std::vector<CachedCall> calls;
    for (auto entry = found.rbegin(); entry != found.rend(); ++entry) {
      calls.push_back((*entry)->call);
    }
    return calls;
  }

  /// Forgets a response; the number of its entries.
  std::size_t erase(std::string_view response_id) {
    const std::lock_guard lock(mutex_);
    update();
    const auto response = responses_.find(response_id);
    if (response == responses_.end()) return 0;
    std::vector<Iterator> entries;
    for (const auto& [key, entry] : response->second) entries.push_back(entry);
    for (const Iterator entry : entries) remove(entry);
    return entries.size();
  }

  [[nodiscard]] ToolCacheStatistics statistics() {
    const std::lock_guard lock(mutex_);
    update();
    ToolCacheStatistics result = statistics_;
    result.entries             = entries_.size();
    return result;
  }

 private:
  struct Entry;
  using Iterator  = std::list<Entry>::iterator;
  using Deadlines = std::multimap<Clock::time_point, Iterator>;
  struct Entry {
    std::string response_id;
    CachedCall call;
    std::size_t bytes    = 0;
    std::uint64_t serial = 0;
    Deadlines::iterator deadline{};
  };

  Iterator entry_of(std::string_view response_id, std::string_view key) {
    const auto response = responses_.find(response_id);
    if (response == responses_.end()) return entries_.end();
    const auto found = response->second.find(key);
    return found == response->second.end() ? entries_.end() : found->second;
  }

  std::optional<CachedCall> look_up(std::string_view response_id, std::string_view key) {
    update();
    Iterator found = entry_of(response_id, key);
    if (found == entries_.end()) {
      if (const auto any = any_arguments_part(key); !any.empty()) {
        found = entry_of(response_id, any);
      }
    }
    if (found == entries_.end()) return std::nullopt;
    touch(found);
    return found->call;
  }

  void touch(Iterator entry) { entries_.splice(entries_.begin(), entries_, entry); }

  void remove(Iterator entry) {
    const auto response = responses_.find(entry->response_id);
    response->second.erase(entry->call.key);
    if (response->second.empty()) responses_.erase(response);
    deadlines_.erase(entry->deadline);
    std::erase(pending_, entry);
    statistics_.bytes -= entry->bytes;
    entries_.erase(entry);
  }

  // Lets go what is over. Every member begins with this, so that none sees what should be gone.
  Clock::time_point update() {
    const Clock::time_point now = options_.now();
    while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
      remove(deadlines_.begin()->second);
      ++statistics_.expired;
    }
    trim();
    return now;
  }

  // Weighs the outputs that have arrived, then keeps the bound.
  void trim() {
    const auto first = std::stable_partition(pending_.begin(), pending_.end(), [](Iterator entry) {
      return entry->call.result.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
    });
    const std::vector<Iterator> arrived(first, pending_.end());
    pending_.erase(first, pending_.end());
    for (const Iterator entry : arrived) {
      const std::size_t output = output_bytes(entry->call.result);
      entry->bytes += output;
      statistics_.bytes += output;
      // What fits nowhere must not drive out all others first.
      if (entry->bytes > options_.max_bytes) evict(entry);
    }
    while (statistics_.bytes > options_.max_bytes) evict(std::prev(entries_.end()));
  }
  static std::size_t output_bytes(const std::shared_future<ToolResult>& result) {
    try {
      return result.get().output.size();
    } catch (...) {  // a future may hold an exception, which takes no bytes of ours
      return 0;
    }
  }
  void evict(Iterator entry) {
    remove(entry);
    ++statistics_.evicted;
  }

  ToolCacheOptions options_;
  std::mutex mutex_;          // guards what follows
  std::list<Entry> entries_;  // the most recently used first
  std::map<std::string, std::map<std::string, Iterator, std::less<>>, std::less<>> responses_;
  Deadlines deadlines_;
  std::vector<Iterator> pending_;
  std::uint64_t serial_ = 0;
  ToolCacheStatistics statistics_;
};

}  // namespace tooldecode
