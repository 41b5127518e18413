// How many passes a drafter needs for a known answer. What is accepted does not depend on running
// the passes, so only the drafter costs time.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/drafter.hpp>
#include <tooldecode/mask/token_mask.hpp>

#include "ways.hpp"

namespace fr_spec {

// An answer with the states of the target and of the constraint along it.
template <tooldecode::ConstraintPolicy C>
struct Answer {
  static constexpr tooldecode::TokenId end = -1;  // in no tree: it is chosen at its parent

  std::vector<tooldecode::TokenId> tokens;    // [n], with `end` if it ended
  std::vector<typename C::State> constraint;  // [n], before each token
  std::vector<bool> is_forced;                // [n]: the only allowed token, which takes no pass
  std::vector<float> states;  // [L + n, H], of the prompt and all tokens but the last
  std::size_t max_tokens = 0;

  Answer(const C& rules, std::vector<tooldecode::TokenId> answer, bool ended, std::size_t most)
      : tokens(std::move(answer)), max_tokens(most) {
    tooldecode::TokenMask mask(rules.vocabulary_size());
    std::optional<typename C::State> state = rules.initial();
    if (ended) tokens.push_back(end);
    for (const tooldecode::TokenId token : tokens) {
      constraint.push_back(*state);
      rules.fill_mask(*state, mask.words());
      is_forced.push_back(mask.count() == 1);
      if (token != end) state = rules.advance(*state, token);
    }
  }
};

// Follows decode::SpeculativeSequence with a greedy verifier, pass by pass.
template <class D, tooldecode::ConstraintPolicy C>
void replay(const D& drafter, const C& rules, std::span<const tooldecode::TokenId> prompt,
            const Answer<C>& answer, std::size_t hidden_size, Run& run) {
  constexpr std::size_t max_unread = 16;  // as in SpeculativeSequence
  typename D::Request request      = drafter.begin(prompt);
  const std::span tokens(answer.tokens);
  const std::span states(answer.states);
  std::size_t read = 0, told = 0;  // tokens of prompt and answer: by the target, by the drafter
  for (std::size_t at = 0; at < tokens.size();) {
    if (answer.is_forced[at]) {
      ++at;
      continue;
    }
    const std::size_t unread = prompt.size() + at - read;
    ++run.passes;
    if (read == 0 || unread > max_unread) {
      read += unread;
      ++at;
      continue;
    }
    const tooldecode::DraftContext<C> context{
        .constraint = rules,
        .state      = answer.constraint[at],
        .prompt     = prompt,
        .generated  = tokens.first(at),
        .unread     = unread,
        .hidden     = states.subspan(told * hidden_size, (read - told) * hidden_size),
        .max_depth  = answer.max_tokens - at - 1,
        .max_nodes  = tooldecode::DraftTree::max_nodes - (unread - 1)};
    const tooldecode::DraftTree tree = tooldecode::draft_tree(drafter, request, context);
    told                             = read;
    run.rounds += tree.size() > 1;
    run.drafted += tree.size() - 1;
    read += unread;
    for (std::optional<std::size_t> node = 0; node && at < tokens.size();) {
      node = tree.find_child(*node, tokens[at++]);
      if (node && at < tokens.size()) ++read;
    }
  }
  run.tokens += tokens.size();
}

// Drafts nothing: as many passes as plain decoding.
struct NoDrafter {
  static constexpr bool reads_hidden = false;
  struct Request {};
  [[nodiscard]] static std::size_t budget() { return 1; }
  [[nodiscard]] static double min_probability() { return 0; }
  [[nodiscard]] static Request begin(std::span<const tooldecode::TokenId>) { return {}; }
  template <class C>
  static void propose(Request&, const tooldecode::DraftContext<C>&,
                      tooldecode::DraftCandidates<C>&) {}
};

}  // namespace fr_spec
