#pragma once

#include <algorithm>
#include <array>
#include <string>

#include <tooldecode/core/error.hpp>
#include <tooldecode/research/performance_model.hpp>

namespace tooldecode {

TOOLDECODE_INLINE Seconds time_without(std::size_t turns, const TurnTimes& times) {
  detail::check_times(times);
  return static_cast<double>(turns) * (times.generation + times.tool);
}

TOOLDECODE_INLINE Seconds time_with(std::size_t turns, const TurnTimes& times, double acceptance) {
  return time_without(turns, times) - static_cast<double>(turns) * time_saved(times, acceptance);
}

TOOLDECODE_INLINE double speedup(const TurnTimes& times, double acceptance) {
  const Seconds with = time_with(1, times, acceptance);
  return with.count() == 0 ? 1 : time_without(1, times) / with;
}

TOOLDECODE_INLINE double max_speedup(const TurnTimes& times) {
  detail::check_times(times);
  const Seconds with = std::max(times.generation, times.speculation + times.tool);
  return with.count() == 0 ? 1 : (times.generation + times.tool) / with;
}

TOOLDECODE_INLINE double max_speedup_bound(const TurnTimes& times) {
  detail::check_times(times);
  const Seconds all = times.generation + times.speculation + times.tool;
  return all.count() == 0 ? 2 : 2 - 2 * (times.speculation / all);
}

TOOLDECODE_INLINE double speedup_bound(double acceptance) {
  detail::check_share("acceptance", acceptance);
  return 2 / (2 - acceptance);
}

TOOLDECODE_INLINE double break_even_acceptance(const TurnTimes& times) {
  detail::check_times(times);
  const Seconds saved = detail::saved_when_right(times);
  return saved.count() > 0 ? times.overhead / saved : std::numeric_limits<double>::infinity();
}

TOOLDECODE_INLINE std::size_t best_speculators(const TurnTimes& times, double acceptance,
                                               std::size_t max) {
  detail::check_times(times);
  detail::check_share("acceptance", acceptance);
  Seconds gain         = acceptance * detail::saved_when_right(times);
  std::size_t standing = 0;
  for (; standing < max && gain > times.overhead; ++standing) gain *= 1 - acceptance;
  return standing;
}

}  // namespace tooldecode

namespace tooldecode::detail {

TOOLDECODE_INLINE void check_engine(const EngineTimes& times) {
  check_times(times.turn);
  check_time("round_trip", times.round_trip);
  check_time("eviction", times.eviction);
  check_time("call", times.call);
  check_time("context_tokens", Seconds(times.context_tokens));
  check_time("result_tokens", Seconds(times.result_tokens));
  check_share("cached_share", times.cached_share);
  if (!(times.prefill_rate > 0)) {
    throw Error(Errc::invalid_option, "prefill_rate", times.prefill_rate, "must be above 0");
  }
  if (times.call > times.turn.generation) {
    throw Error(Errc::invalid_option, "call", times.call.count(),
                "must be at most the generation, of which it is a part: " +
                    std::to_string(times.turn.generation.count()));
  }
}

}  // namespace tooldecode::detail

namespace tooldecode {

TOOLDECODE_INLINE Seconds append_time(const EngineTimes& times) {
  detail::check_engine(times);
  return Seconds(times.result_tokens / times.prefill_rate);
}

TOOLDECODE_INLINE Seconds readmission_time(const EngineTimes& times) {
  return append_time(times) + times.round_trip + times.eviction +
         Seconds((1 - times.cached_share) * times.context_tokens / times.prefill_rate);
}

TOOLDECODE_INLINE TurnTimes client_times(const EngineTimes& times) {
  TurnTimes result = times.turn;
  result.generation += readmission_time(times);
  return result;
}

TOOLDECODE_INLINE Seconds time_with_cache(std::size_t turns, const EngineTimes& times,
                                          double acceptance) {
  detail::check_engine(times);
  detail::check_share("acceptance", acceptance);
  struct Start {
    Seconds written, cached;
  };
  const TurnTimes& turn = times.turn;
  const Seconds way     = times.round_trip / 2;
  const Seconds result  = turn.speculation + turn.tool;
  const std::array<Start, 2> starts{
      Start{readmission_time(times) - way + turn.generation, result + way},
      Start{append_time(times) + turn.generation, result + 2 * way}};
  Seconds total{};
  double resident = 0;
  for (std::size_t i = 0; i < turns; ++i) {
    const std::array<double, 2> chances{1 - resident, resident};
    resident = 0;
    for (std::size_t s = 0; s < starts.size(); ++s) {
      const auto [written, cached] = starts[s];
      const bool in_time           = cached <= written;
      const Seconds right          = cached <= written - times.call ? written - times.call
                                     : in_time                      ? written
                                               : std::max(written + way, cached - way);
      const Seconds wrong          = written + way + turn.tool;
      total += chances[s] * (acceptance * right + (1 - acceptance) * wrong + turn.overhead);
      if (in_time) resident += chances[s] * acceptance;
    }
  }
  return total;
}

TOOLDECODE_INLINE double speedup_with_cache(std::size_t turns, const EngineTimes& times,
                                            double acceptance) {
  const Seconds with = time_with_cache(turns, times, acceptance);
  return with.count() == 0 ? 1 : time_without(turns, client_times(times)) / with;
}

}  // namespace tooldecode

namespace tooldecode::detail {

TOOLDECODE_INLINE void check_turns(const EngineRates& rates, double prompt_tokens,
                                   std::span<const AgentTurn> turns) {
  check_time("overhead", rates.overhead);
  check_time("prefill", rates.prefill);
  check_time("decode", rates.decode);
  check_time("verify", rates.verify);
  check_time("prompt_tokens", Seconds(prompt_tokens));
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const std::string place = "turns/" + std::to_string(i);
    check_time(place + "/reasoning_tokens", Seconds(turns[i].reasoning_tokens));
    check_time(place + "/call_tokens", Seconds(turns[i].call_tokens));
    check_time(place + "/output_tokens", Seconds(turns[i].output_tokens));
    check_time(place + "/tool", turns[i].tool);
    check_time(place + "/late", turns[i].late);
  }
}

}  // namespace tooldecode::detail

namespace tooldecode {

TOOLDECODE_INLINE Seconds engine_time_with(const EngineRates& rates, double prompt_tokens,
                                           std::span<const AgentTurn> turns, double acceptance) {
  detail::check_turns(rates, prompt_tokens, turns);
  detail::check_share("acceptance", acceptance);
  Seconds total = prompt_tokens * rates.prefill;
  for (const AgentTurn& turn : turns) {
    total += (turn.call_tokens + turn.output_tokens) * rates.prefill +
             turn.reasoning_tokens * rates.decode +
             acceptance * (rates.decode + turn.call_tokens * rates.verify + turn.late) +
             (1 - acceptance) * (2 * rates.overhead + turn.call_tokens * rates.decode + turn.tool);
  }
  return total;
}

TOOLDECODE_INLINE Seconds engine_time_cached(const EngineRates& rates, double prompt_tokens,
                                             std::span<const AgentTurn> turns) {
  return engine_time_with(rates, prompt_tokens, turns, 0);
}

TOOLDECODE_INLINE Seconds engine_time_without(const EngineRates& rates, double prompt_tokens,
                                              std::span<const AgentTurn> turns) {
  detail::check_turns(rates, prompt_tokens, turns);
  Seconds total{};
  double prompt = prompt_tokens;
  for (const AgentTurn& turn : turns) {
    total += 2 * rates.overhead + prompt * rates.prefill +
             (turn.reasoning_tokens + turn.call_tokens) * rates.decode + turn.tool;
    prompt += turn.call_tokens + turn.output_tokens;
  }
  return total;
}

}  // namespace tooldecode
