/// \file
/// StopFinder: the text of an answer up to a text that ends it, in pieces that may be shown.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tooldecode::text {

/// Looks for texts that end an answer. Of a text that comes in any pieces it gives what may be
/// shown so far: not what may turn out to begin one of them. The first of them to be complete ends
/// the text before it begins, of several that end together the longest. The result does not depend
/// on the pieces.
///
/// \par Complexity  O(bytes x bytes of the stops) at worst, in all
/// \par Threads     a value; one thread at a time
class StopFinder {
 public:
  /// \param stops  none of them empty
  explicit StopFinder(std::vector<std::string> stops = {}) : stops_(std::move(stops)) {}

  [[nodiscard]] std::string push(std::string_view text) {
    if (which_) return {};
    held_ += text;
    std::size_t first = std::string::npos, end = std::string::npos;
    for (std::size_t i = 0; i < stops_.size(); ++i) {
      const std::size_t at = held_.find(stops_[i]);
      if (at == std::string::npos) continue;
      const std::size_t behind = at + stops_[i].size();
      if (behind > end || (behind == end && at >= first)) continue;
      first  = at;
      end    = behind;
      which_ = i;
    }
    if (which_) return std::exchange(held_, {}).substr(0, first);
    std::size_t begun = 0;  // bytes at the end that one of them begins with
    for (const std::string& stop : stops_) {
      std::size_t length = std::min(held_.size(), stop.size() - 1);
      while (!held_.ends_with(std::string_view(stop).substr(0, length))) --length;
      begun = std::max(begun, length);
    }
    std::string known = held_.substr(0, held_.size() - begun);
    held_.erase(0, known.size());
    return known;
  }
  /// The rest, when the text has ended.
  [[nodiscard]] std::string finish() { return std::exchange(held_, {}); }
  /// The one that was there, or null.
  [[nodiscard]] const std::string* found() const noexcept {
    return which_ ? &stops_[*which_] : nullptr;
  }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  std::optional<std::size_t> which_;
};

}  // namespace tooldecode::text
