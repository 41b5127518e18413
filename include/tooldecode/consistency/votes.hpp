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
#include <tooldecode/tools/canonical_json.hpp>
#include <tooldecode/tools/tool_call.hpp>

#include <nlohmann/json.hpp>

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
  nlohmann::ordered_json value;
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
  std::optional<nlohmann::ordered_json> value{};  ///< nothing: the parameter is left out
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
  [[nodiscard]] double agreement() const noexcept {
    double total = 0;
    for (const Choice& choice : choices) total += choice.weight;
    return total > 0 ? choices.front().weight / total : 0;
  }
};

namespace detail {

// Candidates by order, so that sums do not depend on how they are given.
inline std::vector<const Candidate*> by_order(std::span<const Candidate> candidates) {
  std::vector<const Candidate*> sorted;
  for (const Candidate& candidate : candidates) sorted.push_back(&candidate);
  std::sort(sorted.begin(), sorted.end(),
            [](const Candidate* a, const Candidate* b) { return a->order < b->order; });
  return sorted;
}

// The votes on a key, or on one that no candidate knows of.
inline ParameterVote tally(const std::vector<const Candidate*>& candidates,
                           const std::optional<std::string>& key, VoteRule rule) {
  ParameterVote result{key.value_or("")};
  std::vector<std::string> spellings;  // canonical text of each choice; empty: left out
  bool first = true;
  for (const Candidate* candidate : candidates) {
    const auto& values = candidate->values;
    const auto found   = std::find_if(values.begin(), values.end(),
                                      [&](const CandidateValue& v) { return key && v.key == *key; });
    if (found == values.end() && !candidate->is_complete) continue;
    const bool present           = found != values.end();
    const double log_probability = present ? found->log_probability : candidate->log_probability;
    const std::string spelling   = present ? canonical_json(found->value) : "";
    const auto at                = static_cast<std::size_t>(
        std::find(spellings.begin(), spellings.end(), spelling) - spellings.begin());
    if (at == spellings.size()) {
      spellings.push_back(spelling);
      result.choices.push_back({.order = candidate->order});
      if (present) result.choices.back().value = found->value;
    }
    Choice& choice = result.choices[at];
    ++choice.votes;
    choice.log_probability += log_probability;
    switch (rule) {
      case VoteRule::majority:
        choice.weight += 1;
        break;
      case VoteRule::log_probability:
        choice.weight += std::min(1.0, std::exp(log_probability));
        break;
      case VoteRule::first_order:
        choice.weight += first ? 1 : 0;
        break;
    }
    first = false;
  }
  for (Choice& choice : result.choices) {
    choice.log_probability /= static_cast<double>(choice.votes);
  }
  std::sort(result.choices.begin(), result.choices.end(), [](const Choice& a, const Choice& b) {
    if (a.weight != b.weight) return a.weight > b.weight;
    if (a.log_probability != b.log_probability) return a.log_probability > b.log_probability;
    return a.order < b.order;
  });
  return result;
}

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
[[nodiscard]] inline std::vector<ParameterVote> vote(std::span<const Candidate> candidates,
                                                     std::span<const std::string> keys,
                                                     VoteRule rule = VoteRule::majority) {
  const auto sorted = detail::by_order(candidates);
  std::vector<std::string> all(keys.begin(), keys.end());
  for (const Candidate* candidate : sorted) {
    for (const CandidateValue& value : candidate->values) {
      if (std::find(all.begin(), all.end(), value.key) == all.end()) all.push_back(value.key);
    }
  }
  std::vector<ParameterVote> votes;
  for (const std::string& key : all) {
    ParameterVote result = detail::tally(sorted, key, rule);
    if (!result.choices.empty()) votes.push_back(std::move(result));
  }
  return votes;
}

/// The fewest further candidates after which no others could change a winner; 0 where that is so
/// already.
///
/// \param remaining  how many candidates are still to come
/// \par Complexity  as `vote`
/// \par Errors      as `vote`
[[nodiscard]] inline std::size_t votes_needed(std::span<const Candidate> candidates,
                                              std::span<const std::string> keys, VoteRule rule,
                                              std::size_t remaining) {
  if (remaining == 0) return 0;
  const auto sorted = detail::by_order(candidates);
  if (rule == VoteRule::first_order) {
    return !sorted.empty() && sorted.front()->order == 0 && sorted.front()->is_complete ? 0 : 1;
  }
  std::vector<ParameterVote> votes = vote(candidates, keys, rule);
  // A key that nobody has named yet could still come up.
  votes.push_back(detail::tally(sorted, std::nullopt, rule));
  std::size_t needed = 0;
  for (const ParameterVote& parameter : votes) {
    const auto& choices  = parameter.choices;
    const double leader  = choices.empty() ? 0 : choices[0].weight;
    const double behind  = choices.size() < 2 ? 0 : choices[1].weight;
    const double missing = behind + static_cast<double>(remaining) - leader;
    // No vote weighs more than one, and each that the leader gets is one less for the others.
    if (missing >= 0) needed = std::max(needed, static_cast<std::size_t>(missing / 2) + 1);
  }
  return std::min(needed, remaining);
}

}  // namespace tooldecode
