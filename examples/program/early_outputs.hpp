/// \file
/// EarlyOutputs: tool outputs that arrive before the request that they are for.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/tools/call_key.hpp>

#include <program/openai.hpp>

namespace program {

/// How much is kept for unknown responses, and for how long.
struct EarlyOptions {
  std::size_t entries = 1024;
  std::size_t bytes   = std::size_t{8} << 20;
  double seconds      = 60;
};

/// Outputs by the id of a response that was not requested yet. A fast tool, or a client that sends
/// both at the same time, may be ahead of the request. The oldest outputs are dropped first, so
/// that any number of ids stays within the limits. A dropped output costs its client a turn and
/// changes no answer.
///
/// \par Complexity  O(log entries) for each output; O(entries) for each call
/// \par Threads     one thread at a time
class EarlyOutputs {
 public:
  using Clock = std::chrono::steady_clock;

  /// Approximate size of an entry without its texts.
  static constexpr std::size_t entry_bytes = 512;

  struct Entry {
    CachedOutput output;
    Clock::time_point end;  ///< when its client's keep-alive time ends
  };

  explicit EarlyOutputs(const EarlyOptions& options) : options_(options) {}

  /// Takes outputs and returns how many: not those that do not fit or would expire at once. Older
  /// outputs of the same calls are removed in any case. Later outputs may replace or drop earlier
  /// ones of the same request, which count too.
  std::size_t keep(const std::string& id, std::vector<CachedOutput> outputs,
                   std::chrono::duration<double> keep_alive) {
    const auto now       = sweep();
    const double max     = options_.seconds;
    std::size_t accepted = 0;
    for (CachedOutput& output : outputs) {
      const double life = output.keep_alive.value_or(keep_alive.count());
      Key key{id, output.any_arguments ? tooldecode::any_arguments_key(output.call.name)
                                       : tooldecode::call_key(output.call, nullptr)};
      if (const auto older = by_key_.find(key); older != by_key_.end()) erase(older->second);
      const std::size_t bytes =
          entry_bytes + id.size() + 2 * key.second.size() + output.output.size();
      if (options_.entries == 0 || bytes > options_.bytes || std::min(max, life) <= 0) continue;
      kept_.push_back(
          {key, {std::move(output), after(now, life)}, bytes, after(now, std::min(max, life))});
      by_key_.emplace(std::move(key), std::prev(kept_.end()));
      bytes_ += bytes;
      ++accepted;
      while (kept_.size() > options_.entries || bytes_ > options_.bytes) drop(kept_.begin());
    }
    return accepted;
  }

  /// Removes and returns the outputs of a response, earliest first.
  [[nodiscard]] std::vector<Entry> take(std::string_view id) {
    sweep();
    std::vector<Entry> taken;
    for (auto kept = kept_.begin(); kept != kept_.end();) {
      if (kept->key.first != id) {
        ++kept;
        continue;
      }
      taken.push_back(std::move(kept->entry));
      kept = erase(kept);
    }
    return taken;
  }

  [[nodiscard]] std::size_t size() {
    sweep();
    return kept_.size();
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::size_t dropped() const noexcept { return dropped_; }

 private:
  using Key = std::pair<std::string, std::string>;  // response id, call key
  struct Kept {
    Key key;
    Entry entry;
    std::size_t bytes;
    Clock::time_point until;
  };
  using EntryIterator = std::list<Kept>::iterator;

  static Clock::time_point after(Clock::time_point now, double seconds) {
    return now +
           std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }
  EntryIterator erase(EntryIterator kept) {
    bytes_ -= kept->bytes;
    by_key_.erase(kept->key);
    return kept_.erase(kept);
  }
  EntryIterator drop(EntryIterator kept) {
    ++dropped_;
    return erase(kept);
  }
  Clock::time_point sweep() {
    const auto now = Clock::now();
    for (auto kept = kept_.begin(); kept != kept_.end();) {
      kept = kept->until <= now ? drop(kept) : std::next(kept);
    }
    return now;
  }

  EarlyOptions options_;
  std::list<Kept> kept_;  // oldest first
  std::map<Key, EntryIterator> by_key_;
  std::size_t bytes_   = 0;
  std::size_t dropped_ = 0;
};

}  // namespace program
