#pragma once

#include <algorithm>

#include <tooldecode/text/stop_finder.hpp>

namespace tooldecode::text {

TOOLDECODE_INLINE std::string StopFinder::push(std::string_view text) {
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
  std::size_t begun = 0;  // trailing bytes that may begin a stop text
  for (const std::string& stop : stops_) {
    std::size_t length = std::min(held_.size(), stop.size() - 1);
    while (!held_.ends_with(std::string_view(stop).substr(0, length))) --length;
    begun = std::max(begun, length);
  }
  std::string known = held_.substr(0, held_.size() - begun);
  held_.erase(0, known.size());
  return known;
}

TOOLDECODE_INLINE const std::string* StopFinder::found() const noexcept {
  return which_ ? &stops_[*which_] : nullptr;
}

}  // namespace tooldecode::text
