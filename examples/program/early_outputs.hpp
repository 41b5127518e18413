/// \file
/// EarlyOutputs: tool outputs that were announced before the request that they are for.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <program/openai.hpp>

namespace program {

/// How much is kept for responses that are not known yet, and for how long.
struct EarlyOptions {
  std::size_t entries = 1024;
  std::size_t bytes   = std::size_t{8} << 20;
  double seconds      = 60;
};

/// Outputs by the id of a response that nobody has asked for yet: a tool that is fast, or a client
/// that has both under way at once, may be ahead of the request. The oldest make place for others,
/// so that no number of ids takes more than the options say; who is forgotten costs its client a
/// turn, and changes no answer.
///
/// \par Complexity  O(entries) per member
/// \par Threads     one thread at a time
class EarlyOutputs {
 public:
  using Clock = std::chrono::steady_clock;

  /// What an entry takes beside its texts, about.
  static constexpr std::size_t entry_bytes = 512;

  struct Entry {
    CachedOutput output;
    Clock::time_point end;  ///< of the time that its client keeps it alive
  };

  explicit EarlyOutputs(const EarlyOptions& options) : options_(options) {}

  /// Keeps an output; false where it does not fit or not live. An older one of the same call is
  /// gone even then.
  bool keep(const std::string& id, CachedOutput output, Clock::duration keep_alive) {
    const auto now = sweep();
    for (auto kept = kept_.begin(); kept != kept_.end();) {
      const CachedOutput& older = kept->entry.output;
      const bool is_same        = kept->id == id && older.call == output.call &&
                           older.any_arguments == output.any_arguments;
      kept = is_same ? erase(kept) : std::next(kept);
    }
    const std::size_t bytes = entry_bytes + id.size() + output.call.name.size() +
                              output.call.arguments.dump().size() + output.output.size();
    const auto most = std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(options_.seconds));
    if (options_.entries == 0 || bytes > options_.bytes ||
        std::min(most, keep_alive) <= Clock::duration::zero()) {
      return false;
    }
    kept_.push_back(
        {id, {std::move(output), now + keep_alive}, bytes, now + std::min(most, keep_alive)});
    bytes_ += bytes;
    while (kept_.size() > options_.entries || bytes_ > options_.bytes) drop(kept_.begin());
    return true;
  }

  /// What was announced for a response, the earliest first; it is kept no longer.
  [[nodiscard]] std::vector<Entry> take(std::string_view id) {
    sweep();
    std::vector<Entry> taken;
    for (auto kept = kept_.begin(); kept != kept_.end();) {
      if (kept->id != id) {
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
  /// How many were forgotten.
  [[nodiscard]] std::size_t dropped() const noexcept { return dropped_; }

 private:
  struct Kept {
    std::string id;
    Entry entry;
    std::size_t bytes;
    Clock::time_point until;
  };
  using Place = std::list<Kept>::iterator;

  Place erase(Place kept) {
    bytes_ -= kept->bytes;
    return kept_.erase(kept);
  }
  Place drop(Place kept) {
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
  std::list<Kept> kept_;  // the oldest first
  std::size_t bytes_   = 0;
  std::size_t dropped_ = 0;
};

}  // namespace program
