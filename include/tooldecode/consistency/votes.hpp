/// \file
/// Votes on a call's parameters: what each candidate says, who wins, and when no vote can change
/// it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/core/types.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/tools/canonical_json.hpp>
#include <tooldecode/tools/tool_call.hpp>

namespace tooldecode {

/// What a candidate's vote weighs. Equal weights are told apart by the mean log-probability of the
/// choice's tokens, then by the lowest order.
enum class VoteRule : std::uint8_t {
  majority,         ///< each candidate counts one
  log_probability,  ///< the geometric mean of the probabilities of the value's tokens
  first_order,      ///< the lowest order alone counts
};

/// An argument as one candidate has it.
struct CandidateValue {
  std::string key;
  JsonValue value;
  double log_probability = 0;  ///< mean over the tokens that wrote it
};

/// One call as it came out under one order of its parameters.
struct Candidate {
  std::size_t order = 0;
  std::vector<CandidateValue> values{};  ///< as written; those that came to their end
  bool is_complete       = false;        ///< the call was closed: what is not there was left out
  double log_probability = 0;            ///< of the token that closed the call
  std::vector<TokenId> tokens{};         ///< from the opening of the arguments on
};

/// One of the things that candidates say of a parameter.
struct Choice {
  std::optional<JsonValue> value{};  ///< nothing: the parameter is left out
  std::size_t votes      = 0;
  double weight          = 0;
  double log_probability = 0;  ///< mean over the votes
  std::size_t order      = 0;  ///< the lowest that says so
};

/// All that candidates say of one parameter, the winner first.
struct ParameterVote {
  std::string key;
  std::vector<Choice> choices{};

  /// The winner's share of all weight.
  [[nodiscard]] double agreement() const noexcept;
};

namespace detail {

// Candidates by order, so that sums do not depend on how they are given.
std::vector<const Candidate*> by_order(std::span<const Candidate> candidates);

// The votes on a key, or on one that no candidate knows of.
ParameterVote tally(const std::vector<const Candidate*>& candidates,
                    const std::optional<std::string>& key, VoteRule rule);

}  // namespace detail

/// Counts the votes, parameter by parameter.
///
/// Values are equal by what they mean and not by how they are written. A candidate that was cut
/// short votes on the values that it ended, and on nothing else. The result does not depend on the
/// order in which the candidates are given.
///
/// \param candidates  with distinct orders
/// \param keys        the documented parameters; others that candidates have come after them
/// \par Shapes      one vote per key; none for a key on which no candidate says anything
/// \par Complexity  O(candidates x values x choices)
/// \par Errors      Error{malformed_call} for numbers that are not finite
/// \par Source      Tool Decoding, order consistency; Wang et al., self-consistency,
///                  arXiv:2203.11171, of which the per-parameter vote is the finer form
[[nodiscard]] std::vector<ParameterVote> vote(std::span<const Candidate> candidates,
                                              std::span<const std::string> keys,
                                              VoteRule rule = VoteRule::majority);

/// The fewest further candidates after which no others could change a winner; 0 where that is so
/// already.
///
/// \param remaining  how many candidates are still to come
/// \par Complexity  as `vote`
/// \par Errors      as `vote`
[[nodiscard]] std::size_t votes_needed(std::span<const Candidate> candidates,
                                       std::span<const std::string> keys, VoteRule rule,
                                       std::size_t remaining);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/consistency/votes.ipp>
#endif
