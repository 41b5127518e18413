/// \file
/// ToolCache: tool calls with their results, or futures of them, by response.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <limits>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/execute/tool_runtime.hpp>
#include <tooldecode/tools/tool_call.hpp>

namespace tooldecode {

/// A call that has run or is running.
struct CachedCall {
  ToolCall call;
  std::string key;  ///< see call_key; if `any_arguments`, the cache sets it
  std::shared_future<ToolResult> result{};
  bool any_arguments = false;  ///< only the call's name counts: the result answers any arguments
};

/// Counters since construction, and the current contents.
struct ToolCacheStatistics {
  std::size_t hits     = 0;
  std::size_t misses   = 0;
  std::size_t inserted = 0;
  std::size_t expired  = 0;  ///< removed after their time was over
  std::size_t evicted  = 0;  ///< removed for lack of room, for others or for their own output
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
/// A response has one entry per key; inserting a key again replaces the entry. It may also have one
/// entry for any arguments of a tool, which is used if no entry has the exact key. An entry may be
/// pending; the caller that finds it decides whether to wait. An entry takes `entry_bytes`, its
/// response id, twice its key (the call has a copy) and, once it is there, its output. The least
/// recently used entry is evicted first.
///
/// \par Complexity  insert and find O(log entries + pending entries); find_tool O(entries of the
///                  response)
/// \par Threads     every member may run concurrently
/// \par Errors      Error{invalid_option} for a call without a future
/// \par Source      Nichols et al., arXiv:2512.15834, the tool cache of Algorithm 5
class ToolCache {
 public:
  using Clock = std::chrono::steady_clock;

  /// Approximate size of an entry without its texts.
  static constexpr std::size_t entry_bytes = 512;

  explicit ToolCache(ToolCacheOptions options = {}) : options_(std::move(options)) {}

  /// \param keep_alive  replaces the default of the options
  /// \return number of entries made: 1, or 0 if the entry does not fit or would expire at once; in
  ///         any case an older result of the same call is removed
  std::size_t insert(std::string_view response_id, CachedCall call,
                     std::optional<Clock::duration> keep_alive = {});

  /// The entry of a key, pending or done, else the tool's entry for any arguments. Counts as a hit
  /// or a miss.
  [[nodiscard]] std::optional<CachedCall> find(std::string_view response_id, std::string_view key);
  /// As find, without counting: for polling.
  [[nodiscard]] std::optional<CachedCall> peek(std::string_view response_id, std::string_view key);

  /// The entries of a tool, including the one for any arguments, latest insertion first; the
  /// latest `most` of them.
  [[nodiscard]] std::vector<CachedCall> find_tool(
      std::string_view response_id, std::string_view tool,
      std::size_t most = std::numeric_limits<std::size_t>::max());

  /// Removes a response; returns the number of its entries.
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

  // Removes expired entries. Every member calls this first.
  Clock::time_point update();

  // Adds the sizes of outputs that have arrived, then enforces the limit.
  void trim();
  static std::size_t output_bytes(const std::shared_future<ToolResult>& result);
  void evict(Iterator entry);

  ToolCacheOptions options_;
  std::mutex mutex_;          // guards the members below
  std::list<Entry> entries_;  // most recently used first
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
