/// \file
/// StopFinder: the text of an answer up to a text that ends it, in pieces that may be shown.
#pragma once

#include <algorithm>
#include <cstddef>
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
    if (found_) return {};
    held_ += text;
    std::size_t first = std::string::npos, end = std::string::npos;
    for (const std::string& stop : stops_) {
      const std::size_t at = held_.find(stop);
      if (at == std::string::npos || at + stop.size() > end) continue;
      first = at + stop.size() == end ? std::min(first, at) : at;
      end   = at + stop.size();
    }
    if (first != std::string::npos) {
      found_ = true;
      return std::exchange(held_, {}).substr(0, first);
    }
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
  /// Whether one of them was there.
  [[nodiscard]] bool found() const noexcept { return found_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool found_ = false;
};

}  // namespace tooldecode::text
