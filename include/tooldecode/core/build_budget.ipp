#pragma once

#include <tooldecode/core/build_budget.hpp>

namespace tooldecode {

TOOLDECODE_INLINE BuildBudget::BuildBudget(BuildLimits limits, const char* option)
    : limits_(limits), option_(option), outer_(current_) {
  if (outer_ == nullptr) current_ = this;
}

TOOLDECODE_INLINE BuildBudget::~BuildBudget() {
  if (outer_ == nullptr) current_ = nullptr;
}

TOOLDECODE_INLINE BuildBudget::Pause::~Pause() {
  current_ = paused_;
}

TOOLDECODE_INLINE BuildLimits BuildBudget::spent() const noexcept {
  return outer_ == nullptr ? spent_ : outer_->spent_;
}

TOOLDECODE_INLINE void BuildBudget::spend(std::uint64_t steps, std::uint64_t bytes) {
  if (current_ != nullptr) current_->take(steps, bytes);
}

TOOLDECODE_INLINE void BuildBudget::spend_at(const std::string& place, std::uint64_t steps,
                                             std::uint64_t bytes) {
  try {
    spend(steps, bytes);
  } catch (const Error& error) {
    throw error.under(place);
  }
}

TOOLDECODE_INLINE void BuildBudget::require_room(std::uint64_t bytes) {
  if (current_ == nullptr) return;
  current_->require_wanted();
  const BuildLimits& limits = current_->limits_;
  if (bytes > limits.bytes || current_->spent_.bytes > limits.bytes - bytes) {
    current_->exceeded("bytes", limits.bytes);
  }
}

TOOLDECODE_INLINE void BuildBudget::take(std::uint64_t steps, std::uint64_t bytes) {
  require_wanted();
  // Saturating sums: an exceeded budget stays exceeded, even if a caller catches the error.
  spent_.steps = steps > ~spent_.steps ? ~std::uint64_t{0} : spent_.steps + steps;
  spent_.bytes = bytes > ~spent_.bytes ? ~std::uint64_t{0} : spent_.bytes + bytes;
  if (spent_.steps > limits_.steps) exceeded("steps", limits_.steps);
  if (spent_.bytes > limits_.bytes) exceeded("bytes", limits_.bytes);
}

TOOLDECODE_INLINE void BuildBudget::require_wanted() const {
  if (limits_.cancelled == nullptr || !limits_.cancelled->load(std::memory_order_relaxed)) return;
  throw Error(Errc::cancelled, "", "building this was cancelled");
}

TOOLDECODE_INLINE void BuildBudget::exceeded(const char* what, std::uint64_t limit) const {
  throw Error(Errc::limit_exceeded, "",
              "building this takes more than " + std::to_string(limit) + ' ' + what +
                  "; the option " + option_ + '.' + what + " raises that");
}

}  // namespace tooldecode
