#pragma once

#include <algorithm>
#include <iterator>

#include <tooldecode/execute/tool_cache.hpp>
#include <tooldecode/tools/call_key.hpp>

namespace tooldecode {

TOOLDECODE_INLINE std::size_t ToolCache::insert(std::string_view response_id, CachedCall call,
                                                std::optional<Clock::duration> keep_alive) {
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
  entry->deadline      = deadlines_.emplace(forever ? Clock::time_point::max() : now + life, entry);
  responses_[entry->response_id].emplace(entry->call.key, entry);
  pending_.push_back(entry);
  statistics_.bytes += bytes;
  ++statistics_.inserted;
  trim();
  return !entries_.empty() && entries_.front().serial == serial_ ? 1 : 0;
}

TOOLDECODE_INLINE std::optional<CachedCall> ToolCache::find(std::string_view response_id,
                                                            std::string_view key) {
  const std::lock_guard lock(mutex_);
  auto found = look_up(response_id, key);
  ++(found ? statistics_.hits : statistics_.misses);
  return found;
}

TOOLDECODE_INLINE std::optional<CachedCall> ToolCache::peek(std::string_view response_id,
                                                            std::string_view key) {
  const std::lock_guard lock(mutex_);
  return look_up(response_id, key);
}

TOOLDECODE_INLINE std::vector<CachedCall> ToolCache::find_tool(std::string_view response_id,
                                                               std::string_view tool,
                                                               std::size_t most) {
  const std::lock_guard lock(mutex_);
  update();
  std::vector<Iterator> found;
  if (const auto response = responses_.find(response_id); response != responses_.end()) {
    for (const auto& [key, entry] : response->second) {
      if (entry->call.call.name == tool) found.push_back(entry);
    }
  }
  const auto kept = found.begin() + static_cast<std::ptrdiff_t>(std::min(most, found.size()));
  std::partial_sort(found.begin(), kept, found.end(),
                    [](Iterator a, Iterator b) { return a->serial > b->serial; });
  found.erase(kept, found.end());
  for (auto entry = found.rbegin(); entry != found.rend(); ++entry) touch(*entry);
  std::vector<CachedCall> calls;
  for (const Iterator entry : found) calls.push_back(entry->call);
  return calls;
}

TOOLDECODE_INLINE std::size_t ToolCache::erase(std::string_view response_id) {
  const std::lock_guard lock(mutex_);
  update();
  const auto response = responses_.find(response_id);
  if (response == responses_.end()) return 0;
  std::vector<Iterator> entries;
  for (const auto& [key, entry] : response->second) entries.push_back(entry);
  for (const Iterator entry : entries) remove(entry);
  return entries.size();
}

TOOLDECODE_INLINE ToolCacheStatistics ToolCache::statistics() {
  const std::lock_guard lock(mutex_);
  update();
  ToolCacheStatistics result = statistics_;
  result.entries             = entries_.size();
  return result;
}

TOOLDECODE_INLINE ToolCache::Iterator ToolCache::entry_of(std::string_view response_id,
                                                          std::string_view key) {
  const auto response = responses_.find(response_id);
  if (response == responses_.end()) return entries_.end();
  const auto found = response->second.find(key);
  return found == response->second.end() ? entries_.end() : found->second;
}

TOOLDECODE_INLINE std::optional<CachedCall> ToolCache::look_up(std::string_view response_id,
                                                               std::string_view key) {
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

TOOLDECODE_INLINE void ToolCache::remove(Iterator entry) {
  const auto response = responses_.find(entry->response_id);
  response->second.erase(entry->call.key);
  if (response->second.empty()) responses_.erase(response);
  deadlines_.erase(entry->deadline);
  std::erase(pending_, entry);
  statistics_.bytes -= entry->bytes;
  entries_.erase(entry);
}

TOOLDECODE_INLINE ToolCache::Clock::time_point ToolCache::update() {
  const Clock::time_point now = options_.now();
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    remove(deadlines_.begin()->second);
    ++statistics_.expired;
  }
  trim();
  return now;
}

TOOLDECODE_INLINE void ToolCache::trim() {
  const auto first = std::stable_partition(pending_.begin(), pending_.end(), [](Iterator entry) {
    return entry->call.result.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
  });
  const std::vector<Iterator> arrived(first, pending_.end());
  pending_.erase(first, pending_.end());
  for (const Iterator entry : arrived) {
    const std::size_t output = output_bytes(entry->call.result);
    entry->bytes += output;
    statistics_.bytes += output;
    // An entry that can never fit must not evict all others first.
    if (entry->bytes > options_.max_bytes) evict(entry);
  }
  while (statistics_.bytes > options_.max_bytes) evict(std::prev(entries_.end()));
}

TOOLDECODE_INLINE std::size_t ToolCache::output_bytes(
    const std::shared_future<ToolResult>& result) {
  try {
    return result.get().output.size();
  } catch (...) {  // a future may hold an exception, which is not counted
    return 0;
  }
}

TOOLDECODE_INLINE void ToolCache::evict(Iterator entry) {
  remove(entry);
  ++statistics_.evicted;
}

}  // namespace tooldecode
