// The checks of the other tests find each mistake that engines have made here.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include <tooldecode/draft/draft_tree.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>
#include <tooldecode/research/acceptance_rules.hpp>
#include <tooldecode/verify/acceptance_rule.hpp>
#include <tooldecode/verify/target_distribution.hpp>
#include <tooldecode/verify/tree_verifier.hpp>

#include <support/catch.hpp>
#include <support/rule_checks.hpp>

namespace td = tooldecode;
using td::test::BranchNoise;
using td::test::NodeCase;
using td::test::ToyTarget;

namespace {

/// A distance that no rounding explains; the rules of the library stay below 1e-12.
constexpr double far = 0.01;

std::size_t index(td::TokenId token) {
  return static_cast<std::size_t>(token);
}

std::vector<double> probabilities(const td::verify::TargetDistribution& distribution) {
  std::vector<double> p(distribution.logits.size());
  distribution.fill_probabilities(p);
  return p;
}

/// q of a token, with the tokens before it taken out, as it would be renormalised or not.
double proposed(const td::ProposalDistribution& q, std::span<const td::TokenId> before,
                td::TokenId token, bool renormalised) {
  double rest = 0;
  double of   = 0;
  for (std::size_t i = 0; i < q.tokens.size(); ++i) {
    if (std::find(before.begin(), before.end(), q.tokens[i]) != before.end()) continue;
    rest += q.probabilities[i];
    if (q.tokens[i] == token) of = q.probabilities[i];
  }
  return renormalised ? of / rest : of;
}

/// Recursive rejection with one fault.
struct BrokenRejection {
  enum class Fault { none, no_residual, reused_coin, stale_proposal } fault;

  template <class Noise>
  std::optional<td::TokenId> choose(const td::verify::TargetDistribution& distribution,
                                    const td::DraftTree& tree, std::size_t node,
                                    Noise& noise) const {
    auto p              = probabilities(distribution);
    const auto children = tree.children(node);
    for (std::size_t i = 0; i < children.size(); ++i) {
      const auto before = std::span(children).first(i);
      const auto q_of   = [&](td::TokenId token) {
        return proposed(tree.proposal(node), before, token, fault != Fault::stale_proposal);
      };
      const td::TokenId x = children[i];
      if (noise.accept(index(x) < p.size() ? p[index(x)] / q_of(x) : 0)) return x;
      auto rest = p;
      for (std::size_t t = 0; t < p.size(); ++t) {
        rest[t] = std::max(p[t] - q_of(static_cast<td::TokenId>(t)), 0.0);
      }
      const double sum = std::accumulate(rest.begin(), rest.end(), 0.0);
      if (sum == 0) return noise.draw(distribution);
      for (double& w : rest) w /= sum;
      if (fault != Fault::no_residual) p = rest;
      if constexpr (requires { noise.draw_with_last_coin(p); }) {
        if (fault == Fault::reused_coin && i + 1 == children.size()) {
          return noise.draw_with_last_coin(p);
        }
      }
    }
    return noise.draw(std::span<const double>(p));
  }
};

/// Children one after another by a coin each, with the first of them in the list twice.
struct DuplicateSibling {
  template <class Noise>
  std::optional<td::TokenId> choose(const td::verify::TargetDistribution& distribution,
                                    const td::DraftTree& tree, std::size_t node,
                                    Noise& noise) const {
    auto children = tree.children(node);
    if (!children.empty()) children.insert(children.begin(), children.front());
    const auto p = probabilities(distribution);
    auto rest    = p;
    double left  = 1;
    for (const td::TokenId child : children) {
      if (index(child) >= p.size() || p[index(child)] == 0) continue;
      if (noise.accept(left > 0 ? p[index(child)] / left : 1)) return child;
      left -= p[index(child)];
      rest[index(child)] = 0;
    }
    return noise.draw(std::span<const double>(rest));
  }
};

template <class Rule>
auto with_drawn_children(Rule rule) {
  return [rule](const NodeCase& node, auto& noise) {
    return rule.choose(node.distribution(), td::test::drawn_children(node, noise), 0, noise);
  };
}

template <class Rule>
auto with_best_children(Rule rule) {
  return [rule](const NodeCase& node, auto& noise) {
    return rule.choose(node.distribution(), td::test::best_children(node, noise), 0, noise);
  };
}

/// A tree whose drawn children went through `change`, for a rule that needs them as they were.
template <class Change>
auto with_changed_draws(Change change) {
  return [change](const NodeCase& node, auto& noise) {
    const td::DraftTree drawn = td::test::drawn_children(node, noise);
    auto children             = drawn.children(0);
    change(children, [&](td::TokenId t) { return proposed(node.proposal, {}, t, true); });
    td::DraftTree tree(0);
    for (const td::TokenId child : children) tree.add(0, child);
    tree.set_proposal(0, node.proposal);
    return td::RecursiveRejection{}.choose(node.distribution(), tree, 0, noise);
  };
}

}  // namespace

TEST_CASE("worst_distance of rejection without a fault is zero") {
  using enum BrokenRejection::Fault;
  CHECK(td::test::worst_distance(with_drawn_children(BrokenRejection{none})) < 1e-12);
  CHECK(td::test::worst_distance(with_changed_draws([](auto&, auto) {})) < 1e-12);
}

TEST_CASE("worst_distance of a faulty rule is large") {
  using enum BrokenRejection::Fault;
  CHECK(td::test::worst_distance(with_drawn_children(BrokenRejection{no_residual})) > far);
  CHECK(td::test::worst_distance(with_drawn_children(BrokenRejection{reused_coin})) > far);
  CHECK(td::test::worst_distance(with_drawn_children(BrokenRejection{stale_proposal})) > far);
  CHECK(td::test::worst_distance(with_best_children(DuplicateSibling{})) > far);
}

TEST_CASE("worst_distance of a rule that is not lossless is large") {
  CHECK(td::test::worst_distance(with_best_children(td::Thresholded{.threshold_single = 0.3})) >
        far);
  CHECK(td::test::worst_distance(
            with_best_children(td::Thresholded{.threshold_accumulated = 0.9})) > far);
  CHECK(td::test::worst_distance(with_best_children(td::Typical{})) > far);
}

TEST_CASE("worst_distance of drafts that a rule does not expect is large") {
  // The most probable tokens, as if they had been drawn.
  CHECK(td::test::worst_distance(with_best_children(td::RecursiveRejection{})) > far);
  // Draws ranked by the draft, and the unlikely ones dropped: what EAGLE-2's rerank does.
  CHECK(td::test::worst_distance(with_changed_draws([](auto& children, auto q) {
          std::sort(children.begin(), children.end(),
                    [q](td::TokenId a, td::TokenId b) { return q(a) > q(b); });
        })) > far);
  CHECK(td::test::worst_distance(with_changed_draws([](auto& children, auto q) {
          std::erase_if(children, [q](td::TokenId t) { return q(t) < 0.2; });
        })) > far);
  // A fixed number of first draws keeps the distribution.
  CHECK(td::test::worst_distance(with_changed_draws([](auto& children, auto) {
          children.resize(std::min<std::size_t>(children.size(), 2));
        })) < 1e-12);
}

TEST_CASE("BoundaryNoise finds a comparison of coins that is not strict") {
  using Strict      = td::test::BoundaryNoise<std::less<double>>;
  using Loose       = td::test::BoundaryNoise<std::less_equal<double>>;
  const auto choose = with_drawn_children(td::RecursiveRejection{});
  CHECK_FALSE(td::test::leaves_support<Strict>(choose));
  CHECK(td::test::leaves_support<Loose>(choose));
}

TEST_CASE("enumerate finds a mask that is applied after truncation") {
  const std::vector<float> logits{2, 1.5F, 1, 0.5F, 0, -0.5F};
  const std::vector<std::uint32_t> words{0b101101};  // not the tokens 1 and 4
  const td::ConstMaskView mask = words;
  const td::LogitsPipeline pipeline{{.top_k = 3}};
  const std::vector<float> allowed{2, 1, 0.5F};  // the three best of the allowed: 0, 2 and 3
  const auto p = td::test::softmax({allowed, 1});
  const std::vector<double> wanted{p[0], 0, p[1], p[2], 0, 0, 0};
  const auto distribution_of = [](const std::vector<float>& row) {
    td::DraftTree tree(0);
    tree.add(0, 2);
    return td::test::enumerate(row.size(), [&](BranchNoise& noise) {
      return td::GumbelCoupling{}.choose({row, 1}, tree, 0, noise);
    });
  };

  auto right = logits;
  pipeline.apply(right, mask);
  CHECK(td::test::total_variation(distribution_of(right), wanted) < 1e-12);

  auto late = logits;
  pipeline.apply(late, {});
  for (std::size_t t = 0; t < late.size(); ++t) {
    if (!mask.contains(t)) late[t] = -std::numeric_limits<float>::infinity();
  }
  CHECK(td::test::total_variation(distribution_of(late), wanted) > far);
}

namespace {

enum class Bonus { after_the_path, of_the_parent };

/// A round as a TreeVerifier makes it, or with the last token drawn from the distribution before
/// it.
template <class Rule>
void advance(const ToyTarget& target, ToyTarget::Tokens& tokens, const td::DraftTree& tree,
             Rule rule, td::NoiseKey key, Bonus bonus = Bonus::after_the_path) {
  const ToyTarget::Tokens before = tokens;
  for (std::size_t node = 0;; ++key.position) {
    td::verify::PositionNoise noise{key};
    const bool is_wrong = bonus == Bonus::of_the_parent && node != 0 && tree.is_leaf(node);
    const auto logits   = target.logits(before, tree, is_wrong ? tree.parent(node) : node);
    const auto token    = rule.choose(td::verify::TargetDistribution{logits, 1}, tree, node, noise);
    tokens.push_back(*token);
    const auto child = tree.find_child(node, *token);
    if (!child) return;
    node = *child;
  }
}

}  // namespace

TEST_CASE("p_value of three tokens' joint distribution finds faults between nodes") {
  constexpr std::uint64_t samples = 50'000;  // a quarter of what correct rules get
  constexpr double limit          = 1e-6;
  constexpr std::array<std::size_t, 3> shape{2, 2, 1};
  const ToyTarget target(3);
  std::vector<td::DraftTree> trees;  // by the last two tokens
  for (td::TokenId a = 0; a < 6; ++a) {
    for (td::TokenId b = 0; b < 6; ++b) trees.push_back(td::test::pruned_tree(target, {a, b}));
  }
  const auto pruned = [&](auto rule, Bonus bonus = Bonus::after_the_path) {
    return target.p_value(samples, [&](ToyTarget::Tokens& tokens, td::NoiseKey key) {
      const auto place = 6 * index(tokens[tokens.size() - 2]) + index(tokens.back());
      advance(target, tokens, trees[place], rule, key, bonus);
    });
  };
  const auto drawn = [&](auto rule, td::core::NoiseStream stream = td::core::NoiseStream::drafts) {
    return target.p_value(samples, [&](ToyTarget::Tokens& tokens, td::NoiseKey key) {
      advance(target, tokens, td::test::sampled_tree(target, tokens, shape, key, stream), rule,
              key);
    });
  };
  CHECK(pruned(td::GumbelCoupling{}) > limit);
  CHECK(drawn(td::RecursiveRejection{}) > limit);

  CHECK(pruned(td::GumbelCoupling{}, Bonus::of_the_parent) < limit);
  CHECK(pruned(td::Thresholded{.threshold_single = 0.3}) < limit);
  CHECK(pruned(td::Thresholded{.threshold_accumulated = 0.9}) < limit);
  CHECK(drawn(BrokenRejection{BrokenRejection::Fault::no_residual}) < limit);
  // Drafts that depend on the noise of the next draw; only GumbelCoupling allows that.
  CHECK(drawn(td::RecursiveRejection{}, td::core::NoiseStream::target) < limit);
  CHECK(drawn(td::GumbelCoupling{}, td::core::NoiseStream::target) > limit);
}
