/// \file
/// Checks that every lossless acceptance rule passes and every broken variant fails: exact
/// distributions at one node, coins at their bounds, and the joint distribution of several rounds.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include <tooldecode/core/philox.hpp>
#include <tooldecode/draft/draft_tree.hpp>
#include <tooldecode/logits/selection.hpp>
#include <tooldecode/verify/target_distribution.hpp>

#include <support/branch_noise.hpp>
#include <support/softmax.hpp>
#include <support/statistics.hpp>

namespace tooldecode::test {

/// One node: the target's distribution, the draft's, and the number of drafted children.
struct NodeCase {
  static constexpr std::size_t vocabulary_size = 6;

  std::vector<float> logits;  // [V]
  float temperature = 1;
  ProposalDistribution proposal;
  std::size_t children = 0;

  [[nodiscard]] verify::TargetDistribution distribution() const { return {logits, temperature}; }
};

/// Random nodes and extreme ones; the same at each call.
[[nodiscard]] inline const std::vector<NodeCase>& node_cases() {
  static const auto cases = [] {
    constexpr float none = -std::numeric_limits<float>::infinity();
    std::mt19937 random{5};
    std::normal_distribution<float> normal;
    std::uniform_real_distribution<double> unit;
    std::vector<NodeCase> made;
    for (std::size_t i = 0; i < 200; ++i) {
      NodeCase one;
      one.temperature = i % 8 == 7 ? 0.0F : 1.0F;
      one.children    = i % 4;
      for (std::size_t t = 0; t < NodeCase::vocabulary_size; ++t) {
        one.logits.push_back(random() % 5 == 0 ? none : 2 * normal(random));
        if (random() % 5 == 0) continue;  // a token outside the draft's vocabulary
        one.proposal.tokens.push_back(static_cast<TokenId>(t));
        one.proposal.probabilities.push_back(random() % 6 == 0 ? 0.0 : unit(random));
      }
      made.push_back(std::move(one));
    }
    const ProposalDistribution flat{{0, 1, 2, 3, 4, 5}, std::vector<double>(6, 1.0 / 6)};
    const std::vector<float> level(6, 0.0F);
    const std::vector<float> slope{0.5F, -1, 2, 0.25F, 1, -3};
    ProposalDistribution same = flat;
    same.probabilities        = softmax({slope, 1});
    made.push_back({level, 1, flat, 3});                              // p = q, uniform
    made.push_back({slope, 1, same, 3});                              // p = q up to rounding
    made.push_back({{none, none, 1, none, none, none}, 1, flat, 3});  // p one-hot
    made.push_back({slope, 1, {{4}, {1}}, 1});                        // q one-hot
    made.push_back({{none, none, none, 0, 1, 2}, 1, {{0, 1, 2}, {.2, .3, .5}}, 3});  // disjoint
    made.push_back({std::vector<float>(6, none), 1, flat, 2});    // no token possible
    made.push_back({slope, 1, {{2, 4, 9}, {.5, .3, .2}}, 3});     // a draft outside the vocabulary
    made.push_back({{-40, -30, 0, -35, -38, none}, 1, flat, 3});  // almost one-hot
    made.push_back({slope, 1, {{0, 1, 2, 3}, {1e-300, 1, 1e-9, 1e-20}}, 3});  // q almost one-hot
    for (NodeCase& one : made) {
      auto& q          = one.proposal.probabilities;
      const double sum = std::accumulate(q.begin(), q.end(), 0.0);
      for (double& x : q) x /= sum;
      const auto positive = std::count_if(q.begin(), q.end(), [](double x) { return x > 0; });
      one.children        = std::min(one.children, static_cast<std::size_t>(positive));
    }
    return made;
  }();
  return cases;
}

/// Children drawn without replacement from the proposal, as some rules require.
template <class Noise>
[[nodiscard]] DraftTree drawn_children(const NodeCase& node, Noise& noise) {
  DraftTree tree(0);
  std::vector<double> q = node.proposal.probabilities;
  for (std::size_t i = 0; i < node.children; ++i) {
    const auto drawn = noise.draw(std::span<const double>(q));
    tree.add(0, node.proposal.tokens[static_cast<std::size_t>(*drawn)]);
    q[static_cast<std::size_t>(*drawn)] = 0;
  }
  tree.set_proposal(0, node.proposal);
  return tree;
}

/// The most probable tokens of the proposal, without randomness.
template <class Noise>
[[nodiscard]] DraftTree best_children(const NodeCase& node, Noise&) {
  DraftTree tree(0);
  std::vector<std::size_t> order(node.proposal.tokens.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto& q = node.proposal.probabilities;
  std::stable_sort(order.begin(), order.end(),
                   [&q](std::size_t a, std::size_t b) { return q[a] > q[b]; });
  for (std::size_t i = 0; i < node.children; ++i) tree.add(0, node.proposal.tokens[order[i]]);
  tree.set_proposal(0, node.proposal);
  return tree;
}

/// The greatest total variation, over all cases, between the target's distribution and the exact
/// distribution of `choose(node, noise)`.
template <class Choose>
[[nodiscard]] double worst_distance(Choose choose) {
  double worst = 0;
  for (const NodeCase& node : node_cases()) {
    std::vector<double> wanted = softmax(node.distribution());
    wanted.push_back(std::accumulate(wanted.begin(), wanted.end(), 0.0) > 0 ? 0.0 : 1.0);
    const auto got = enumerate(NodeCase::vocabulary_size,
                               [&](BranchNoise& noise) { return choose(node, noise); });
    worst          = std::max(worst, total_variation(got, wanted));
  }
  return worst;
}

/// Noise whose coins take a few values, including the least and the greatest.
template <class Less = std::less<double>>
class BoundaryNoise : public BranchNoise {
 public:
  [[nodiscard]] bool accept(double probability) {
    constexpr std::array<double, 4> coins{0, 0x1p-33, 0.5, 1 - 0x1p-24};
    const std::array<double, 4> alike{1, 1, 1, 1};
    return Less{}(coins[static_cast<std::size_t>(*draw(std::span<const double>(alike)))],
                  probability);
  }
  using BranchNoise::draw;
};

/// Whether `choose(node, noise)`, over all cases and with coins at their bounds, ever returns a
/// token that the target forbids, or nothing although a token is possible.
template <class Noise, class Choose>
[[nodiscard]] bool leaves_support(Choose choose) {
  for (const NodeCase& node : node_cases()) {
    const std::vector<double> p = softmax(node.distribution());
    const auto got              = enumerate<Noise>(NodeCase::vocabulary_size,
                                      [&](Noise& noise) { return choose(node, noise); });
    const bool is_possible      = std::accumulate(p.begin(), p.end(), 0.0) > 0;
    if (is_possible && got.back() > 0) return true;
    for (std::size_t t = 0; t < p.size(); ++t) {
      if (p[t] == 0 && got[t] > 0) return true;
    }
  }
  return false;
}

/// A target whose distribution depends on the last two tokens, and a similar draft that has four of
/// the six tokens.
class ToyTarget {
 public:
  static constexpr std::size_t vocabulary_size = 6;
  static constexpr std::size_t length          = 3;  ///< of the sequences that are checked
  using Tokens = std::vector<TokenId>;  ///< a prompt of two tokens, then the emitted ones

  explicit ToyTarget(unsigned seed, float temperature = 1) {
    const float scale = temperature == 0 ? 1.0F : temperature;
    std::mt19937 random{seed};
    std::normal_distribution<float> normal;
    constexpr std::size_t v = vocabulary_size;
    for (std::size_t i = 0; i < v * v; ++i) {
      std::vector<float> draft(v);
      for (std::size_t t = 0; t < v; ++t) {
        logits_.push_back(1.2F * normal(random) / scale);
        draft[t] = logits_.back() + 0.7F * normal(random);
      }
      draft.resize(4);
      drafts_.push_back({{0, 1, 2, 3}, softmax({draft, 1})});  // one group of noise words
    }
  }

  [[nodiscard]] std::span<const float> logits(TokenId before, TokenId last) const {
    return std::span(logits_).subspan(place(before, last) * vocabulary_size, vocabulary_size);
  }
  [[nodiscard]] const ProposalDistribution& draft(TokenId before, TokenId last) const {
    return drafts_[place(before, last)];
  }
  /// The target's logits after a node of a tree that follows the last token.
  [[nodiscard]] std::span<const float> logits(const Tokens& tokens, const DraftTree& tree,
                                              std::size_t node) const {
    return logits(before(tokens, tree, node), tree.token(node));
  }
  [[nodiscard]] const ProposalDistribution& draft(const Tokens& tokens, const DraftTree& tree,
                                                  std::size_t node) const {
    return draft(before(tokens, tree, node), tree.token(node));
  }

  /// The p-value, under the target's joint distribution, of the tokens that repeated `round(tokens,
  /// key)` appends. The key is that of the first appended token.
  template <class Round>
  [[nodiscard]] double p_value(std::uint64_t samples, Round round) const {
    constexpr std::size_t v = vocabulary_size;
    std::vector<std::size_t> counts(v * v * v);
    for (std::uint64_t sample = 0; sample < samples; ++sample) {
      Tokens tokens{1, 2};
      while (tokens.size() < 2 + length) {
        round(tokens, NoiseKey{.seed = sample, .position = tokens.size()});
      }
      ++counts[(index(tokens[2]) * v + index(tokens[3])) * v + index(tokens[4])];
    }
    std::vector<double> distribution;
    for (TokenId a = 0; a < 6; ++a) {
      for (TokenId b = 0; b < 6; ++b) {
        for (TokenId c = 0; c < 6; ++c) {
          distribution.push_back(softmax({logits(1, 2), 1})[index(a)] *
                                 softmax({logits(2, a), 1})[index(b)] *
                                 softmax({logits(a, b), 1})[index(c)]);
        }
      }
    }
    return test::p_value(counts, distribution);
  }

 private:
  static std::size_t index(TokenId token) { return static_cast<std::size_t>(token); }
  static std::size_t place(TokenId before, TokenId last) {
    return index(before) * vocabulary_size + index(last);
  }
  static TokenId before(const Tokens& tokens, const DraftTree& tree, std::size_t node) {
    return node == 0 ? tokens[tokens.size() - 2] : tree.token(tree.parent(node));
  }

  std::vector<float> logits_;                 // [V V, V]
  std::vector<ProposalDistribution> drafts_;  // [V V]
};

/// EAGLE-2's tree: the most probable nodes of a draft's expansion.
[[nodiscard]] inline DraftTree pruned_tree(const ToyTarget& target,
                                           const ToyTarget::Tokens& tokens) {
  constexpr std::size_t nodes = 8;
  DraftTree whole(tokens.back());
  std::vector<double> scores{1};
  for (std::size_t node = 0; node < whole.size() && whole.depth(node) < 3; ++node) {
    const ProposalDistribution& q = target.draft(tokens, whole, node);
    for (std::size_t i = 0; i < q.tokens.size() && whole.size() < DraftTree::max_nodes; ++i) {
      whole.add(node, q.tokens[i]);
      scores.push_back(scores[node] * q.probabilities[i]);
    }
  }
  std::vector<std::size_t> order(whole.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  std::sort(order.begin(), order.begin() + nodes);
  DraftTree tree(tokens.back());
  std::vector<std::size_t> places(whole.size());
  for (std::size_t i = 1; i < nodes; ++i) {
    places[order[i]] = tree.add(places[whole.parent(order[i])], whole.token(order[i]));
  }
  return tree;
}

/// A tree of fixed shape whose nodes are drawn without replacement, with the noise of a stream.
[[nodiscard]] inline DraftTree sampled_tree(const ToyTarget& target,
                                            const ToyTarget::Tokens& tokens,
                                            std::span<const std::size_t> shape, NoiseKey key,
                                            core::NoiseStream stream = core::NoiseStream::drafts) {
  DraftTree tree(tokens.back());
  for (std::size_t node = 0; node < tree.size() && tree.depth(node) < shape.size(); ++node) {
    const ProposalDistribution& q = target.draft(tokens, tree, node);
    const auto words = core::noise_words(key.seed, key.position + tree.depth(node), 0, stream);
    std::array<std::pair<double, TokenId>, 4> order;  // by exponential clocks
    for (std::size_t i = 0; i < order.size(); ++i) {
      order[i] = {-std::log(core::unit_interval(words[i])) / q.probabilities[i], q.tokens[i]};
    }
    std::sort(order.begin(), order.end());
    for (std::size_t i = 0; i < shape[tree.depth(node)]; ++i) tree.add(node, order[i].second);
    tree.set_proposal(node, q);
  }
  return tree;
}

}  // namespace tooldecode::test
