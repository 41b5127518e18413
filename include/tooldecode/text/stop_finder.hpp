/// \file
/// StopFinder: streams an answer up to a stop text.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/config.hpp>

namespace tooldecode::text {

/// Looks for stop texts in a streamed answer. For each piece it returns the text that can be shown,
/// holding back bytes that may begin a stop text. The first stop text to be complete ends the
/// answer before it; if several end together, the longest counts. The result does not depend on the
/// pieces.
///
/// \par Complexity  O(bytes x bytes of the stops) in the worst case, in total
/// \par Threads     a value; one thread at a time
class StopFinder {
 public:
  /// \param stops  must not be empty strings
  explicit StopFinder(std::vector<std::string> stops = {}) : stops_(std::move(stops)) {}

  [[nodiscard]] std::string push(std::string_view text);
  /// The held-back rest, when the text has ended.
  [[nodiscard]] std::string finish() { return std::exchange(held_, {}); }
  /// The stop text that was found, or null.
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
