/// \file
/// Votes on a call's parameters: what each candidate votes for, who wins, and when the result is
/// final.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tooldecode/core/types.hpp>
#include <tooldecode/text/json_value.hpp>

namespace tooldecode {

/// The weight of a candidate's vote. Ties are broken by the mean log-probability of the choice's
/// tokens, then by the lowest order.
enum class VoteRule : std::uint8_t {
  majority,
  log_probability,  ///< the geometric mean of the probabilities of the value's tokens
  first_order,      ///< only the lowest order counts
};

/// An argument in one candidate.
struct CandidateValue {
  std::string key;
  JsonValue value;
  double log_probability = 0;  ///< mean over the value's tokens
};

/// A call as decoded under one order of its parameters.
struct Candidate {
  std::size_t order = 0;
  std::vector<CandidateValue> values{};  ///< finished values, in written order
  bool is_complete       = false;        ///< the call was closed: missing parameters were left out
  double log_probability = 0;
  std::vector<TokenId> tokens{};  ///< from the opening of the arguments
};

/// One choice for a parameter.
struct Choice {
  std::optional<JsonValue> value{};  ///< empty: the parameter is left out
  std::size_t votes      = 0;
  double weight          = 0;
  double log_probability = 0;  ///< mean over the votes
  std::size_t order      = 0;  ///< the lowest order that votes for it
};

/// All choices for one parameter, the winner first.
struct ParameterVote {
  std::string key;
  std::vector<Choice> choices{};

  /// The winner's share of the total weight.
  [[nodiscard]] double agreement() const noexcept;
};

namespace detail {

// Candidates sorted by order, so that sums do not depend on the input order.
std::vector<const Candidate*> by_order(std::span<const Candidate> candidates);

// How many orders from 0 on are among the candidates without a gap.
std::size_t leading_orders(const std::vector<const Candidate*>& sorted);

// Whether another text can write an equal value.
bool has_spellings(const JsonValue& value);

// The votes on a key; without a key, on one that no candidate has.
ParameterVote tally(const std::vector<const Candidate*>& candidates,
                    const std::optional<std::string>& key, VoteRule rule);

}  // namespace detail

/// Counts the votes for each parameter.
///
/// Values are compared by meaning, not by spelling. An incomplete candidate votes only on the
/// values that it finished. The result does not depend on the order of the candidates.
///
/// \param candidates  with distinct orders
/// \param keys        the documented parameters; other keys of candidates come after them
/// \par Shapes      one vote per key; none for a key that no candidate votes on
/// \par Complexity  O(candidates x values x choices)
/// \par Errors      Error{malformed_call} for numbers that are not finite
/// \par Source      Tool Decoding, order consistency; Wang et al., self-consistency,
///                  arXiv:2203.11171, which votes on whole answers
[[nodiscard]] std::vector<ParameterVote> vote(std::span<const Candidate> candidates,
                                              std::span<const std::string> keys,
                                              VoteRule rule = VoteRule::majority);

/// The fewest further candidates after which no others could change a winner; 0 if none can now.
/// The lowest order that writes a winner spells it (1 or 1.0), so that a lower order that is missing
/// among the candidates could change it.
///
/// \param candidates  with distinct orders, counted from 0
/// \param remaining  number of candidates still to come
/// \par Complexity  as `vote`
/// \par Errors      as `vote`
[[nodiscard]] std::size_t votes_needed(std::span<const Candidate> candidates,
                                       std::span<const std::string> keys, VoteRule rule,
                                       std::size_t remaining);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/consistency/votes.ipp>
#endif
