/// \file
/// StopFinder: the text of an answer up to a text that ends it, in pieces that may be shown.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/config.hpp>

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

  [[nodiscard]] std::string push(std::string_view text);
  /// The rest, when the text has ended.
  [[nodiscard]] std::string finish() { return std::exchange(held_, {}); }
  /// The one that was there, or null.
  [[nodiscard]] const std::string* found() const noexcept;

 private:
  std::vector<std::string> stops_;
  std::string held_;
  std::optional<std::size_t> which_;
};

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/stop_finder.ipp>
#endif
