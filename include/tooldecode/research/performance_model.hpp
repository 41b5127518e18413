/// \file
/// The performance model of speculative tool calls: what a session takes with and without them, and
/// when they pay.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include <tooldecode/core/error.hpp>
#include <tooldecode/execute/turn_times.hpp>

namespace tooldecode {

/// The time of N turns, one after the other, without speculation: N (G + T).
///
/// \par Source  Eq. 1, T_standard
[[nodiscard]] Seconds time_without(std::size_t turns, const TurnTimes& times);

/// The expected time of N turns with a speculator on the client's side:
/// N (α max(G, g + T) + (1 - α) (G + T) + c).
///
/// \par Source  Eq. 1, T_spec, with the overhead c
[[nodiscard]] Seconds time_with(std::size_t turns, const TurnTimes& times, double acceptance);

/// Time without speculation over time with it; 1 where turns take no time at all.
///
/// Without overhead it is more than 1 if and only if α > 0, g < G and T > 0: then and only then is
/// α min(T, G - g) more than 0. (The paper's lemma takes T > 0 for granted.)
///
/// \par Source  Eq. 2 and 3, S_spec
[[nodiscard]] double speedup(const TurnTimes& times, double acceptance);

/// The speedup of a predictor that is always right and free: (G + T) / max(G, g + T); 1 where turns
/// take no time at all. For g <= G it is the greatest over α, and less than 2 where g > 0.
///
/// \par Source  Lemma 1 (2), S_max
[[nodiscard]] double max_speedup(const TurnTimes& times);

/// What `max_speedup` does not exceed: 2 (G + T) / (G + g + T) = 2 - 2 g / (G + g + T); equality
/// where G = g + T.
///
/// \par Source  Lemma 1 (3)
[[nodiscard]] double max_speedup_bound(const TurnTimes& times);

/// What no speedup exceeds: 2 / (2 - α), at most 2.
///
/// max(G, g + T) >= max(G, T) >= (G + T) / 2, so a turn takes at least (1 - α / 2) (G + T);
/// equality at T = G, g = 0. It is below 1 / (1 - α), what a tool that hides altogether would give.
[[nodiscard]] double speedup_bound(double acceptance);

/// The acceptance above which speculation pays: c / min(T, G - g). It is 0 without overhead, above
/// 1 where only more than certainty would pay, and infinite where a right prediction saves nothing
/// (g >= G or T = 0).
[[nodiscard]] double break_even_acceptance(const TurnTimes& times);

/// The number of speculators that saves most, the least of those that do; 0 where none pays.
///
/// The λ-th is worth α (1 - α)^(λ - 1) min(T, G - g), less than the one before it: λ grows until
/// that is no more than c.
///
/// \param max  how many there are to choose from
/// \par Complexity  O(most)
/// \par Errors      as `time_saved`
[[nodiscard]] std::size_t best_speculators(const TurnTimes& times, double acceptance,
                                           std::size_t max);

/// The times of a turn on an engine that batches continuously and lets a sequence go when its turn
/// ends. Contexts grow from turn to turn; their mean stands for a session.
struct EngineTimes {
  TurnTimes turn{};           ///< as the engine has them: G is decoding alone
  Seconds round_trip{};       ///< R: a response to the client and a request back, half each
  Seconds eviction{};         ///< E: leaving the batch and waiting for a place in it
  Seconds call{};             ///< C: of G, what a cached call saves that is verified as a draft
  double context_tokens = 0;  ///< L: the prompt and all turns so far
  double result_tokens  = 0;  ///< n: what a tool's result adds
  double cached_share   = 0;  ///< h: of the context, what the prefix cache still holds
  double prefill_rate   = std::numeric_limits<double>::infinity();  ///< r: tokens per second
};

namespace detail {

void check_engine(const EngineTimes& times);

}  // namespace detail

/// What a result costs that continues a sequence which is still in the batch: n / r.
[[nodiscard]] Seconds append_time(const EngineTimes& times);

/// What it costs to leave the batch and come back with a result: R + E + ((1 - h) L + n) / r.
[[nodiscard]] Seconds readmission_time(const EngineTimes& times);

/// The turn as a client of that engine sees it: to the client, coming back into the batch is part
/// of the generation. `time_without` and `time_with` of it are the baseline and client-side
/// speculation.
[[nodiscard]] TurnTimes client_times(const EngineTimes& times);

/// The expected time of N turns with a tool cache in the engine, for which the client predicts.
///
/// A turn starts at the client, or in the batch if the result before it was cached in time. The
/// call is written at w = R/2 + E + ((1 - h) L + n) / r + G after the former, n / r + G after the
/// latter; a right prediction's result is in the cache at g + T + R/2, or g + T + R as the client
/// must first hear of the turn. Then the turn takes
///   - w, and the next one starts in the batch, if the result is there by w; w - C if it is there
///   by
///     w - C, before the call begins;
///   - max(w + R/2, the client's own result, R/2 before it would be in the cache) if it is late;
///   - w + R/2 + T if the prediction was wrong.
/// The chance that a turn starts in the batch follows from turn to turn; the first does not.
///
/// \par Complexity  O(turns)
/// \par Errors      as `time_saved`; Error{invalid_option} also where the call takes longer than
///                  the generation, or the prefill rate is not positive
/// \par Source      derived here for Algorithm 5 of Nichols et al., arXiv:2512.15834
[[nodiscard]] Seconds time_with_cache(std::size_t turns, const EngineTimes& times,
                                      double acceptance);

/// Time of N turns without speculation over their time with a tool cache in the engine; 1 where
/// turns take no time at all.
[[nodiscard]] double speedup_with_cache(std::size_t turns, const EngineTimes& times,
                                        double acceptance);

/// What an engine's time is made of, whichever request it serves.
struct EngineRates {
  Seconds overhead{};  ///< o: a prompt's way to the engine and into the batch, or an answer's back
  Seconds prefill{};   ///< φ: for one token
  Seconds decode{};    ///< δ: for one token
};

/// One turn of an agent, in tokens.
struct AgentTurn {
  double reasoning_tokens = 0;  ///< R_i: decoded before the call, and not sent again
  double call_tokens      = 0;  ///< t_i: of the call
  double output_tokens    = 0;  ///< t_o,i: of the tool's output
  Seconds tool{};               ///< T_i: the tool's time
};

namespace detail {

void check_turns(const EngineRates& rates, double prompt_tokens, std::span<const AgentTurn> turns);

}  // namespace detail

/// The time of K turns with an engine that speculates, of which each is predicted right, in time,
/// with probability α: (1 - α) 2 K o + φ (X_1 + Σ (t_i + t_o,i)) + δ (α K + Σ R_i + (1 - α) Σ t_i)
/// + (1 - α) Σ T_i.
///
/// A right turn costs neither the way to the client and back nor the tool, and its call one pass in
/// place of t_i. `time_with_cache` says when a result is there in time; here it always is, so this
/// is a bound where T_i > δ R_i.
///
/// \param prompt_tokens  X_1
/// \par Complexity  O(K)
/// \par Errors      Error{invalid_option} for what is negative or not finite, and for an acceptance
///                  that is no probability; so have the two functions below
/// \par Source      Nichols et al., arXiv:2512.15834, Eq. 6
[[nodiscard]] Seconds engine_time_with(const EngineRates& rates, double prompt_tokens,
                                       std::span<const AgentTurn> turns, double acceptance);

/// The same without speculation, where the prefix cache holds all that was read before: 2 K o +
/// φ (X_1 + Σ (t_i + t_o,i)) + δ Σ (R_i + t_i) + Σ T_i. The last turn's call and output are read
/// as well, for whatever comes next.
///
/// \par Source  Eq. 5, T_cached
[[nodiscard]] Seconds engine_time_cached(const EngineRates& rates, double prompt_tokens,
                                         std::span<const AgentTurn> turns);

/// The same without a prefix cache: 2 K o + φ Σ X_i + δ Σ (R_i + t_i) + Σ T_i, where each prompt is
/// the one before it with its call and output, X_{i+1} = X_i + t_i + t_o,i. What the last turn adds
/// is not read.
///
/// \par Source  Eq. 4, T_vanilla
[[nodiscard]] Seconds engine_time_without(const EngineRates& rates, double prompt_tokens,
                                          std::span<const AgentTurn> turns);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/research/performance_model.ipp>
#endif
