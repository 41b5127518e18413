/// \file
/// The performance model of speculative tool calls: how long a session takes with and without them,
/// and when they pay off.
#pragma once

#include <cstddef>
#include <limits>
#include <span>

#include <tooldecode/execute/turn_times.hpp>

namespace tooldecode {

/// The time of N turns without speculation: N (G + T).
///
/// \par Source      Eq. 1, T_standard
[[nodiscard]] Seconds time_without(std::size_t turns, const TurnTimes& times);

/// The expected time of N turns with one speculator at the client: N (α max(G, g + T) + (1 - α) (G
/// + T) + c).
///
/// \par Source      Eq. 1, T_spec, with the overhead c
[[nodiscard]] Seconds time_with(std::size_t turns, const TurnTimes& times, double acceptance);

/// Time without speculation divided by time with it; 1 if turns take no time.
///
/// Without overhead it is greater than 1 if and only if α > 0, g < G and T > 0, because exactly
/// then α min(T, G - g) > 0. (The paper's lemma assumes T > 0.)
///
/// \par Source      Eq. 2 and 3, S_spec
[[nodiscard]] double speedup(const TurnTimes& times, double acceptance);

/// The speedup of a predictor that is always right and free: (G + T) / max(G, g + T); 1 if turns
/// take no time. For g <= G it is the maximum over α, and less than 2 if g > 0.
///
/// \par Source      Lemma 1 (2), S_max
[[nodiscard]] double max_speedup(const TurnTimes& times);

/// The upper bound of `max_speedup`: 2 (G + T) / (G + g + T) = 2 - 2 g / (G + g + T); equal if G =
/// g + T.
///
/// \par Source      Lemma 1 (3)
[[nodiscard]] double max_speedup_bound(const TurnTimes& times);

/// The upper bound of any speedup: 2 / (2 - α), at most 2.
///
/// max(G, g + T) >= max(G, T) >= (G + T) / 2, so a turn takes at least (1 - α / 2) (G + T), with
/// equality at T = G, g = 0. The bound is below 1 / (1 - α), the limit if a correct prediction
/// could hide a tool of any length.
[[nodiscard]] double speedup_bound(double acceptance);

/// The acceptance above which speculation pays off: c / min(T, G - g). It is 0 without overhead,
/// above 1 if even certainty would not pay off, and infinite if a correct prediction saves nothing
/// (g >= G or T = 0).
[[nodiscard]] double break_even_acceptance(const TurnTimes& times);

/// The number of speculators that saves most, the least of those that do; 0 if none pays off.
///
/// The λ-th speculator saves α (1 - α)^(λ - 1) min(T, G - g), less than the one before it, so λ
/// grows until that is at most c.
///
/// \param max  number of available speculators
/// \par Complexity  O(max)
/// \par Errors      as `time_saved`
[[nodiscard]] std::size_t best_speculators(const TurnTimes& times, double acceptance,
                                           std::size_t max);

/// The times of a turn on an engine with continuous batching, in which a sequence leaves when its
/// turn ends. Contexts grow from turn to turn; their mean represents a session.
struct EngineTimes {
  TurnTimes turn{};           ///< measured in the engine: G is decoding only
  Seconds round_trip{};       ///< R: a response to the client and a request back, half each
  Seconds eviction{};         ///< E: leaving the batch and waiting for a place
  Seconds call{};             ///< C: part of G that a cached call saves as a verified draft
  double context_tokens = 0;  ///< L: the prompt and all turns so far
  double result_tokens  = 0;  ///< n: tokens that a tool's result adds
  double cached_share   = 0;  ///< h: part of the context still in the prefix cache
  double prefill_rate   = std::numeric_limits<double>::infinity();  ///< r: tokens per second
};

namespace detail {

void check_engine(const EngineTimes& times);

}  // namespace detail

/// The cost of a result for a sequence that is still in the batch: n / r.
[[nodiscard]] Seconds append_time(const EngineTimes& times);

/// The cost of leaving the batch and returning with a result: R + E + ((1 - h) L + n) / r.
[[nodiscard]] Seconds readmission_time(const EngineTimes& times);

/// The turn as a client of that engine sees it: returning to the batch is part of the generation.
/// Use it with `time_without` for the baseline and with `time_with` for client-side speculation.
[[nodiscard]] TurnTimes client_times(const EngineTimes& times);

/// The expected time of N turns with a tool cache in the engine, for which the client predicts
/// calls.
///
/// A turn starts at the client, or in the batch if the previous result was cached in time. In the
/// first case the call is written at w = R/2 + E + ((1 - h) L + n) / r + G, in the second at w = n
/// / r + G. The result of a correct prediction is in the cache at g + T + R/2, or at g + T + R if
/// the client must first learn of the turn. The turn then takes:
/// - w, if the result is there by w; the next turn starts in the batch. If it is there by w - C,
///   before the call begins, the turn takes w - C;
/// - max(w + R/2, the client's own result, R/2 before it would be in the cache), if it is late;
/// - w + R/2 + T, if the prediction was wrong.
///
/// The probability that a turn starts in the batch is propagated from turn to turn; the first turn
/// does not start there.
///
/// \par Complexity  O(turns)
/// \par Errors      as `time_saved`; Error{invalid_option} also if the call takes longer than the
///                  generation, or the prefill rate is not positive
/// \par Source      derived here for Algorithm 5 of Nichols et al., arXiv:2512.15834
[[nodiscard]] Seconds time_with_cache(std::size_t turns, const EngineTimes& times,
                                      double acceptance);

/// Time of N turns without speculation divided by their time with a tool cache in the engine; 1 if
/// turns take no time.
[[nodiscard]] double speedup_with_cache(std::size_t turns, const EngineTimes& times,
                                        double acceptance);

/// An engine's times, independent of the request.
struct EngineRates {
  Seconds overhead{};  ///< o: a prompt's way into the batch, or an answer's way back
  Seconds prefill{};   ///< φ: for one token
  Seconds decode{};    ///< δ: for one token
  Seconds verify{};  ///< ν: what each token of a correct call adds to the pass that verifies it; 0
                     ///< in the paper
};

/// One turn of an agent, in tokens.
struct AgentTurn {
  double reasoning_tokens = 0;  ///< R_i: decoded before the call, not sent again
  double call_tokens      = 0;  ///< t_i: of the call
  double output_tokens    = 0;  ///< t_o,i: of the tool's output
  Seconds tool{};               ///< T_i: the tool's time
  Seconds late{};               ///< W_i: part of T_i that is left when a correct call is verified;
                                ///< 0 in the paper
};

namespace detail {

void check_turns(const EngineRates& rates, double prompt_tokens, std::span<const AgentTurn> turns);

}  // namespace detail

/// The time of K turns with an engine that speculates, if each turn is predicted correctly and in
/// time with probability α: (1 - α) 2 K o + φ (X_1 + Σ (t_i + t_o,i)) + δ (α K + Σ R_i + (1 - α) Σ
/// t_i) + (1 - α) Σ T_i, and α Σ (ν t_i + W_i), which the paper's equation leaves out.
///
/// A correct turn needs neither the round trip nor the tool's time, and its call takes one pass
/// instead of t_i. Without W_i its result is always there in time, so that this is a bound if T_i >
/// δ R_i; `time_with_cache` models when a result is there.
///
/// \param prompt_tokens  X_1
/// \par Complexity  O(K)
/// \par Errors      Error{invalid_option} for negative or non-finite values, and for an acceptance
///                  that is not a probability; the same for the two functions below
/// \par Source      Nichols et al., arXiv:2512.15834, Eq. 6
[[nodiscard]] Seconds engine_time_with(const EngineRates& rates, double prompt_tokens,
                                       std::span<const AgentTurn> turns, double acceptance);

/// The time without speculation, if the prefix cache holds everything read before: 2 K o + φ (X_1 +
/// Σ (t_i + t_o,i)) + δ Σ (R_i + t_i) + Σ T_i. The last turn's call and output are also read.
///
/// \par Source      Eq. 5, T_cached
[[nodiscard]] Seconds engine_time_cached(const EngineRates& rates, double prompt_tokens,
                                         std::span<const AgentTurn> turns);

/// The time without speculation and without a prefix cache: 2 K o + φ Σ X_i + δ Σ (R_i + t_i) + Σ
/// T_i. Each prompt is the previous one with its call and output, X_{i+1} = X_i + t_i + t_o,i. The
/// last turn's call and output are not read.
///
/// \par Source      Eq. 4, T_vanilla
[[nodiscard]] Seconds engine_time_without(const EngineRates& rates, double prompt_tokens,
                                          std::span<const AgentTurn> turns);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/research/performance_model.ipp>
#endif
