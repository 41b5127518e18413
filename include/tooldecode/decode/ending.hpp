/// \file
/// Ending: the part of a run that sees to it that answers end within their tokens.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <tooldecode/constraint/completions.hpp>
#include <tooldecode/constraint/grammar_constraint.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/unconstrained.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>

namespace tooldecode::decode {

/// Narrows masks such that an answer under a constraint ends in time, see
/// DecodeOptions::always_ends.
///
/// Known are the completions of grammars, under whatever name, of Unconstrained, and of what has a
/// function `make_completions(constraint, CompletionOptions)` beside it that gives the like.
///
/// \par Complexity  as Completions
/// \par Threads     one thread at a time
/// \par Errors      from `make`: Error{invalid_option} for another constraint
template <Constraint C>
class Ending {
 public:
  using State = typename C::State;

  static constexpr bool is_of_grammar =
      std::derived_from<C, GrammarConstraint> || requires(const C& c) {
        { c.grammar() } -> std::same_as<const GrammarConstraint&>;
      };
  static constexpr bool has_its_own =
      requires(const C& c, CompletionOptions asked) { make_completions(c, asked); };
  static constexpr bool is_known = is_of_grammar || has_its_own || std::same_as<C, Unconstrained>;

  /// Nothing where the options do not ask for one.
  [[nodiscard]] static std::shared_ptr<Ending> make(const C& constraint,
                                                    const LogitsPipeline& pipeline,
                                                    const DecodeOptions& options) {
    if (!options.always_ends) return nullptr;
    if constexpr (!is_known) {
      throw Error(Errc::invalid_option, "always_ends", options.always_ends,
                  "must be false under a constraint that is not of a grammar");
    }
    return std::make_shared<Ending>(constraint, pipeline, options);
  }

  Ending(const C& constraint, const LogitsPipeline& pipeline, const DecodeOptions& options)
      : constraint_(&constraint), end_tokens_(options.end_tokens) {
    CompletionOptions asked{.max_steps = options.max_completion_steps};
    for (const auto& [token, bias] : options.bias) {
      if (pipeline.is_banned(token)) asked.banned.push_back(token);
    }
    if constexpr (has_its_own) {
      completions_.emplace(make_completions(constraint, std::move(asked)));
    } else if constexpr (is_of_grammar) {
      completions_.emplace(grammar(), std::move(asked));
    }
  }

  /// Tokens that it takes to end behind a state, the end token included, as in Completions.
  [[nodiscard]] std::optional<std::size_t> shortest(State state, std::size_t enough) {
    if constexpr (is_of_grammar || has_its_own) {
      return completions_->shortest(state, enough);
    } else {
      return constraint_->is_finished(state) ? 0 : 1;
    }
  }

  /// Whether an answer can end behind a state within so many tokens, the end token included.
  [[nodiscard]] bool can_end(State state, std::size_t remaining) {
    const auto least = shortest(state, remaining);
    return least && *least <= remaining;
  }

  /// Takes out of a state's mask what leaves no room for the end, where so many more tokens may be
  /// chosen, the end token included.
  void narrow(State state, std::size_t remaining, MaskView words) {
    std::vector<TokenId> stops;
    if (constraint_->is_accepting(state)) {
      for (const TokenId token : end_tokens_) {
        if (token >= 0 && is_allowed(words, static_cast<std::size_t>(token)))
          stops.push_back(token);
      }
    }
    if constexpr (is_of_grammar || has_its_own) {
      completions_->narrow(state, remaining, words);
    } else if constexpr (std::same_as<C, Unconstrained>) {
      if (remaining == 1) constraint_->fill_mask({.finished = true}, words);
    }
    for (const TokenId token : stops) {
      words[static_cast<std::size_t>(token) / 32] |= std::uint32_t{1} << (token % 32);
    }
  }

  [[nodiscard]] CompletionCounts counts() const {
    return completions_ ? completions_->counts() : CompletionCounts{};
  }

 private:
  [[nodiscard]] const GrammarConstraint& grammar() const {
    if constexpr (std::derived_from<C, GrammarConstraint>) {
      return *constraint_;
    } else {
      return constraint_->grammar();
    }
  }

  // A type of one's own, where there is one.
  static auto kind() {
    if constexpr (has_its_own) {
      return std::type_identity<decltype(make_completions(std::declval<const C&>(),
                                                          CompletionOptions{}))>{};
    } else {
      return std::type_identity<Completions>{};
    }
  }

  const C* constraint_;
  std::vector<TokenId> end_tokens_;
  std::optional<typename decltype(kind())::type> completions_;  // of a grammar, or its own
};

}  // namespace tooldecode::decode
