#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include <tooldecode/core/error.hpp>
#include <tooldecode/execute/turn_times.hpp>

namespace tooldecode::detail {

TOOLDECODE_INLINE void check_time(std::string_view what, Seconds time) {
  if (!(time.count() >= 0 && std::isfinite(time.count()))) {
    throw Error(Errc::invalid_option, std::string(what), time.count(),
                "must be a time in seconds: 0 or more, and finite");
  }
}

TOOLDECODE_INLINE void check_share(std::string_view what, double share) {
  if (!(share >= 0 && share <= 1)) {
    throw Error(Errc::invalid_option, std::string(what), share, "must be from 0 to 1");
  }
}

TOOLDECODE_INLINE void check_times(const TurnTimes& times) {
  check_time("generation", times.generation);
  check_time("speculation", times.speculation);
  check_time("tool", times.tool);
  check_time("overhead", times.overhead);
}

TOOLDECODE_INLINE Seconds saved_when_right(const TurnTimes& times) {
  return std::min(times.tool, times.generation - times.speculation);
}

}  // namespace tooldecode::detail

namespace tooldecode {

TOOLDECODE_INLINE double any_right(double acceptance, std::size_t speculators) {
  detail::check_share("acceptance", acceptance);
  return 1 - std::pow(1 - acceptance, static_cast<double>(speculators));
}

TOOLDECODE_INLINE Seconds time_saved(const TurnTimes& times, double acceptance,
                                     std::size_t speculators) {
  detail::check_times(times);
  return any_right(acceptance, speculators) * detail::saved_when_right(times) -
         static_cast<double>(speculators) * times.overhead;
}

}  // namespace tooldecode
