/// \file
/// TreeCosts: the cost of a pass by the number of its tokens, and which draft size is worth it.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_tree.hpp>
#include <tooldecode/model/head_products.hpp>

namespace tooldecode {

namespace draft {

/// The seconds that some work takes with a number of tokens or rows.
using MeasuredTime = std::pair<std::size_t, double>;

/// Requires times that are positive and finite, of numbers that ascend from 1 or more.
///
/// \param counted  what the numbers count, for the error's sentence
/// \par Errors     Error{invalid_option}
void require_times(std::span<const MeasuredTime> known, std::string_view counted);

/// The seconds for a number between those of two times, linearly.
[[nodiscard]] double interpolate(const MeasuredTime& below, const MeasuredTime& above,
                                 double number) noexcept;

}  // namespace draft

/// Seconds of a target's pass over 1 to 64 tokens on one machine.
///
/// A GPU takes as long for 60 tokens as for one, a CPU ten times as long or more. So the best size
/// of a tree depends on the machine and on the guesses.
///
/// \par Shapes      pass [64], seconds by tokens
/// \par Complexity  O(1) to read; best_size O(nodes), best_depth O(levels)
/// \par Errors      constructor: Error{invalid_option} for no times, or times that are not positive
///                  and finite; `measure`: those of the model
/// \par Source      Zhao et al., FR-Spec, arXiv:2502.14856, section 2: a round takes the time of
///                  the draft and of the target
class TreeCosts {
 public:
  static constexpr std::size_t max_tokens = DraftTree::max_nodes;

  /// \param known  (tokens, seconds), tokens ascending; interpolated linearly, constant outside
  explicit TreeCosts(std::span<const std::pair<std::size_t, double>> known);

  /// Costs of a machine on which a pass of 64 tokens takes as long as one of a single token, so
  /// that verifying every guess pays off.
  [[nodiscard]] static TreeCosts flat();

  /// Times passes of a model after a short text, with a few rows of logits: the minimum of several
  /// rounds for small sizes, one round for large ones; 243 tokens in all.
  ///
  /// \param text  [L], at least one token
  template <TreeModel M>
  [[nodiscard]] static TreeCosts measure(const M& model, std::span<const TokenId> text) {
    constexpr std::array<std::size_t, 11> sizes{1, 2, 3, 4, 5, 8, 10, 16, 24, 40, 64};
    constexpr int rounds        = 3;
    constexpr std::size_t brief = 10;  // longer passes are disturbed less
    auto cache                  = model.make_cache();
    std::vector<float> logits(model.vocabulary_size());
    model.forward(cache, text, logits);
    std::array<double, sizes.size()> least;
    least.fill(std::numeric_limits<double>::infinity());
    std::vector<float> rows, chosen;
    for (int round = 0; round < rounds; ++round) {
      for (std::size_t i = 0; i < sizes.size() && (round == 0 || sizes[i] <= brief); ++i) {
        const std::vector<TokenId> tokens(sizes[i], text.back());
        std::vector<std::uint64_t> ancestors;  // a chain
        for (std::size_t n = 0; n < sizes[i]; ++n) {
          ancestors.push_back(~std::uint64_t{0} >> (63 - n));
        }
        const auto start = std::chrono::steady_clock::now();
        if constexpr (HeadTreeModel<M>) {
          rows.resize(sizes[i] * model.hidden_size());
          model.forward_tree_hidden(cache, tokens, ancestors, rows);
          // As without a constraint, the head is then read for a few of the states.
          if constexpr (HostHeadModel<M>) {
            const std::size_t few = std::min(sizes[i], model::states_of_a_tile);
            chosen.resize(few * model.vocabulary_size());
            const HeadView head = model.lm_head();
            model::fill_packed_products(std::span(rows).first(few * head.cols()), head, chosen);
          }
        } else {
          rows.resize(sizes[i] * model.vocabulary_size());
          model.forward_tree(cache, tokens, ancestors, rows);
        }
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        least[i]                                 = std::min(least[i], std::max(took.count(), 1e-9));
        model.commit(cache, std::span<const std::size_t>{});
      }
    }
    std::vector<std::pair<std::size_t, double>> known;
    for (std::size_t i = 0; i < sizes.size(); ++i) known.emplace_back(sizes[i], least[i]);
    return TreeCosts(known);
  }

  /// Seconds of a pass; more than 64 tokens cost as much as 64.
  [[nodiscard]] double pass(std::size_t tokens) const noexcept;

  /// The most tokens whose pass takes at most `factor` times as long as one for a single token.
  ///
  /// \param factor  1 or more
  [[nodiscard]] std::size_t most_tokens(double factor) const noexcept;

  /// How many guesses a pass should verify for the most tokens per second.
  ///
  /// \param acceptance  of each guess, most likely first
  /// \param lead        tokens that the pass reads in any case
  /// \param spent       seconds of the round before the pass
  [[nodiscard]] std::size_t best_size(std::span<const double> acceptance, std::size_t lead,
                                      double spent) const noexcept;

  /// A chain's length, and the tokens per second that it gives.
  struct Chain {
    std::size_t levels = 0;
    double rate        = 0;
  };
  /// How many levels to draft for the most tokens per second, if one token of each level is
  /// verified.
  ///
  /// \param acceptance  of a level's token, given that the one above was accepted
  /// \param level       seconds to draft a level
  [[nodiscard]] Chain best_depth(std::span<const double> acceptance, std::size_t lead,
                                 double level) const noexcept;

  /// The least path probability at which drafting one more level below it pays off.
  ///
  /// \param chain       the average round
  /// \param acceptance  of the level's token, given that the path was accepted
  /// \param level       seconds to draft the level
  [[nodiscard]] double least_path(Chain chain, double acceptance, std::size_t lead,
                                  double level) const noexcept;

 private:
  std::array<double, max_tokens> pass_;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/draft/tree_costs.ipp>
#endif
