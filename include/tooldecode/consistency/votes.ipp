#pragma once

#include <algorithm>
#include <cmath>
#include <utility>

#include <tooldecode/consistency/votes.hpp>
#include <tooldecode/tools/canonical_json.hpp>

namespace tooldecode {

TOOLDECODE_INLINE double ParameterVote::agreement() const noexcept {
  double total = 0;
  for (const Choice& choice : choices) total += choice.weight;
  return total > 0 ? choices.front().weight / total : 0;
}

}  // namespace tooldecode

namespace tooldecode::detail {

TOOLDECODE_INLINE std::vector<const Candidate*> by_order(std::span<const Candidate> candidates) {
  std::vector<const Candidate*> sorted;
  for (const Candidate& candidate : candidates) sorted.push_back(&candidate);
  std::sort(sorted.begin(), sorted.end(),
            [](const Candidate* a, const Candidate* b) { return a->order < b->order; });
  return sorted;
}

TOOLDECODE_INLINE std::size_t leading_orders(const std::vector<const Candidate*>& sorted) {
  std::size_t count = 0;
  while (count < sorted.size() && sorted[count]->order == count) ++count;
  return count;
}

TOOLDECODE_INLINE bool has_spellings(const JsonValue& value) {
  return value.is_number() || value.is_array() || value.is_object();
}

TOOLDECODE_INLINE ParameterVote tally(const std::vector<const Candidate*>& candidates,
                                      const std::optional<std::string>& key, VoteRule rule) {
  ParameterVote result{key.value_or("")};
  std::vector<std::string> spellings;  // canonical text of each choice; empty if left out
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

}  // namespace tooldecode::detail

namespace tooldecode {

TOOLDECODE_INLINE std::vector<ParameterVote> vote(std::span<const Candidate> candidates,
                                                  std::span<const std::string> keys,
                                                  VoteRule rule) {
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

TOOLDECODE_INLINE std::size_t votes_needed(std::span<const Candidate> candidates,
                                           std::span<const std::string> keys, VoteRule rule,
                                           std::size_t remaining) {
  if (remaining == 0) return 0;
  const auto sorted = detail::by_order(candidates);
  if (rule == VoteRule::first_order) {
    return !sorted.empty() && sorted.front()->order == 0 && sorted.front()->is_complete ? 0 : 1;
  }
  std::vector<ParameterVote> votes = vote(candidates, keys, rule);
  // A key that has not occurred yet could still occur.
  votes.push_back(detail::tally(sorted, std::nullopt, rule));
  std::size_t needed = 0;
  // A lower order that is still to come would replace what the winner's lowest order wrote.
  const std::size_t known = detail::leading_orders(sorted);
  const bool is_unspelt   = std::any_of(votes.begin(), votes.end(), [&](const ParameterVote& v) {
    return !v.choices.empty() && v.choices[0].order > known && v.choices[0].value &&
           (detail::has_spellings(*v.choices[0].value) ||
            std::find(keys.begin(), keys.end(), v.key) == keys.end());
  });
  if (is_unspelt) needed = 1;
  for (const ParameterVote& parameter : votes) {
    const auto& choices  = parameter.choices;
    const double leader  = choices.empty() ? 0 : choices[0].weight;
    const double behind  = choices.size() < 2 ? 0 : choices[1].weight;
    const double missing = behind + static_cast<double>(remaining) - leader;
    // No vote weighs more than one, and each vote for the leader is one less for the others.
    if (missing >= 0) needed = std::max(needed, static_cast<std::size_t>(missing / 2) + 1);
  }
  return std::min(needed, remaining);
}

}  // namespace tooldecode
