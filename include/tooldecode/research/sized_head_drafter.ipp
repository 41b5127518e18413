#pragma once

#include <tooldecode/draft/tree_costs.hpp>
#include <tooldecode/research/sized_head_drafter.hpp>

namespace tooldecode::draft {

TOOLDECODE_INLINE HeadCosts::HeadCosts(std::vector<Measurement> known) : known_(std::move(known)) {
  require_times(known_, "rows");
}

TOOLDECODE_INLINE double HeadCosts::seconds(double rows) const noexcept {
  Measurement below{0, 0};
  for (const Measurement& above : known_) {
    if (rows <= static_cast<double>(above.first)) return interpolate(below, above, rows);
    below = above;
  }
  return below.second;
}

TOOLDECODE_INLINE std::size_t CoverageEstimate::rows(
    std::size_t size, std::span<const std::size_t> added) const noexcept {
  return costs_.rows(size) + (added.empty() ? 0 : added[size]);
}

TOOLDECODE_INLINE bool CoverageEstimate::has(std::size_t size, std::size_t rank,
                                             std::size_t allowed,
                                             std::span<const std::size_t> added) const noexcept {
  return rank < costs_.rows(size) || allowed < rows(size, added);
}

TOOLDECODE_INLINE void CoverageEstimate::count_token(std::size_t rank, std::size_t allowed,
                                                     std::span<const std::size_t> added) {
  const std::lock_guard lock(mutex_);
  tokens_ += 1;
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    sizes_[i].covered += has(i, rank, allowed, added) ? 1 : 0;
    sizes_[i].rows += static_cast<double>(std::min(rows(i, added), allowed));
  }
  if (tokens_ < window) return;
  tokens_ /= 2;
  for (Size& one : sizes_) one.covered /= 2, one.rows /= 2;
}

TOOLDECODE_INLINE void CoverageEstimate::count_level(std::size_t depth, bool accepted) noexcept {
  acceptance_.count_level(depth, accepted);
}

TOOLDECODE_INLINE void CoverageEstimate::count_round(std::size_t size, std::size_t levels,
                                                     double seconds) {
  const std::lock_guard lock(mutex_);
  const auto drafted = static_cast<double>(levels);
  rounds_ += 1;
  levels_ += drafted;
  rest_ += std::max(0.0, seconds - drafted * level_seconds(size));
  if (rounds_ < window) return;
  rounds_ /= 2, levels_ /= 2, rest_ /= 2;
}

TOOLDECODE_INLINE double CoverageEstimate::coverage(std::size_t size) const {
  const std::lock_guard lock(mutex_);
  return covered(size);
}

TOOLDECODE_INLINE std::size_t CoverageEstimate::best() const {
  const std::lock_guard lock(mutex_);
  std::size_t best = sizes_.size() - 1;
  if (tokens_ < enough || rounds_ < 1) return best;
  double fastest = 0;
  for (std::size_t i = sizes_.size(); i-- > 0;) {
    const double now =
        tokens_per_round(i) / (rest_ / rounds_ + levels_ / rounds_ * level_seconds(i));
    if (now > fastest) best = i, fastest = now;
  }
  return best;
}

TOOLDECODE_INLINE double CoverageEstimate::covered(std::size_t size) const noexcept {
  return tokens_ == 0 ? 1 : sizes_[size].covered / tokens_;
}

TOOLDECODE_INLINE double CoverageEstimate::level_seconds(std::size_t size) const noexcept {
  return costs_.seconds(tokens_ == 0 ? static_cast<double>(costs_.rows(size))
                                     : sizes_[size].rows / tokens_);
}

TOOLDECODE_INLINE double CoverageEstimate::tokens_per_round(std::size_t size) const noexcept {
  const double levels = levels_ / rounds_;
  double tokens = 1, path = 1;
  for (std::size_t d = 1; static_cast<double>(d - 1) < levels; ++d) {
    path *= covered(size) * acceptance_.of_level(d);
    tokens += path * std::min(1.0, levels - static_cast<double>(d - 1));
  }
  return tokens;
}

}  // namespace tooldecode::draft
