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
                     std::optional<Clock::duration> keep_alive = {});

  /// The call of a key, pending or done; else what its tool has for any arguments. Counts as a hit
  /// or a miss.
  [[nodiscard]] std::optional<CachedCall> find(std::string_view response_id, std::string_view key);
  /// The same, and counts as nothing: for who asks over and over.
  [[nodiscard]] std::optional<CachedCall> peek(std::string_view response_id, std::string_view key);

  /// The calls of a tool, and what it has for any arguments, the latest insertion first.
  [[nodiscard]] std::vector<CachedCall> find_tool(std::string_view response_id,
                                                  std::string_view tool);

  /// Forgets a response; the number of its entries.
  std::size_t erase(std::string_view response_id);

  [[nodiscard]] ToolCacheStatistics statistics();

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

  Iterator entry_of(std::string_view response_id, std::string_view key);

  std::optional<CachedCall> look_up(std::string_view response_id, std::string_view key);

  void touch(Iterator entry) { entries_.splice(entries_.begin(), entries_, entry); }

  void remove(Iterator entry);

  // Lets go what is over. Every member begins with this, so that none sees what should be gone.
  Clock::time_point update();

  // Weighs the outputs that have arrived, then keeps the bound.
  void trim();
  static std::size_t output_bytes(const std::shared_future<ToolResult>& result);
  void evict(Iterator entry);

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

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/execute/tool_cache.ipp>
#endif
