/// \file
/// TurnTimes and time_saved: what a predicted tool call saves in a turn.
#pragma once

#include <chrono>
#include <cstddef>
#include <string_view>

namespace tooldecode {

/// A time of the model; every std::chrono duration converts to it.
using Seconds = std::chrono::duration<double>;

/// The times of one turn: the model writes a call, a tool answers it.
struct TurnTimes {
  Seconds generation{};   ///< G: from the turn's start until the main model's call
  Seconds speculation{};  ///< g: from the turn's start until the predicted call
  Seconds tool{};         ///< T: from a call until its result
  Seconds overhead{};     ///< c: cost of each speculator in a turn, whether it is right or not
};

namespace detail {

void check_time(std::string_view what, Seconds time);

void check_share(std::string_view what, double share);

void check_times(const TurnTimes& times);

// What a correct prediction saves: G + T - max(G, g + T).
Seconds saved_when_right(const TurnTimes& times);

}  // namespace detail

/// The probability that at least one of λ speculators is right, each with probability α and
/// independently: 1 - (1 - α)^λ. Correlated speculators do worse.
///
/// \par Complexity  O(1)
/// \par Errors      Error{invalid_option} for an acceptance that is not a probability
[[nodiscard]] double any_right(double acceptance, std::size_t speculators);

/// The expected saving of a turn with λ speculators; negative for an expected loss.
///
/// With a correct prediction the tool starts at g instead of G, so the turn ends at max(G, g + T)
/// instead of G + T and saves min(T, G - g). A wrong prediction saves nothing, and each speculator
/// costs c: (1 - (1 - α)^λ) min(T, G - g) - λ c. For g > G the saving is negative, as in the paper,
/// whose client waits for the prediction. A client that runs the tool itself as soon as it has the
/// call loses only c.
///
/// \param acceptance  α: the probability that one speculator predicts the call
/// \par Complexity  O(1)
/// \par Errors      Error{invalid_option} for times that are negative or not finite and for an
///                  acceptance that is not a probability; the same for every function below
/// \par Source      Nichols et al., arXiv:2512.15834; the overhead c is an addition
[[nodiscard]] Seconds time_saved(const TurnTimes& times, double acceptance,
                                 std::size_t speculators = 1);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/execute/turn_times.ipp>
#endif
