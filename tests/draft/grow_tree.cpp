#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <tooldecode/decode/unconstrained.hpp>
#include <tooldecode/draft/grow_tree.hpp>

#include <support/catch.hpp>
#include <support/random_table.hpp>

namespace td = tooldecode;
using Tokens = std::vector<td::TokenId>;

namespace {

constexpr std::size_t words = 40;

/// The likeliest of some tokens, by logits of a table's row.
td::draft::TopTokens top_of(const std::vector<float>& row, const Tokens& tokens, std::size_t k) {
  td::draft::TopTokens top;
  double sum = 0;
  for (const td::TokenId token : tokens) {
    top.tokens.push_back({token, row[static_cast<std::size_t>(token)]});
    sum += std::exp(static_cast<double>(top.tokens.back().logit));
  }
  if (!tokens.empty()) top.log_sum_exp = std::log(sum);
  std::ranges::stable_sort(top.tokens,
                           [](const auto& a, const auto& b) { return a.logit > b.logit; });
  top.tokens.resize(std::min(k, top.tokens.size()));
  return top;
}

/// A head without arithmetic: a hidden state is one number, the row of a table of logits. Its own
/// tokens are the first K.
struct TableHead {
  std::vector<std::vector<float>> rows;
  std::size_t k = words;

  std::size_t vocabulary_size() const { return words; }
  std::size_t hidden_size() const { return 1; }
  std::size_t size() const { return k; }
  td::TokenId token(std::size_t i) const { return static_cast<td::TokenId>(i); }
  void fill_logits(std::span<const float>, std::span<float>) const {}
  TableHead with(std::span<const td::TokenId>) const { return *this; }
  td::draft::TokenLogits project(std::span<const float>, std::span<const std::uint32_t>) const {
    return {};
  }

  /// The tokens that are considered under a mask: all allowed ones where they are fewer than K.
  Tokens considered(td::ConstMaskView mask) const {
    Tokens allowed, own;
    for (std::size_t t = 0; t < words; ++t) {
      if ((mask[t / 32] >> (t % 32) & 1) == 0) continue;
      allowed.push_back(static_cast<td::TokenId>(t));
      if (t < k) own.push_back(static_cast<td::TokenId>(t));
    }
    return allowed.size() < k ? allowed : own;
  }
  std::vector<td::draft::TopTokens> project_topk(std::span<const float> hidden, std::size_t count,
                                                 std::span<const td::ConstMaskView> masks) const {
    REQUIRE(masks.size() == hidden.size());
    std::vector<td::draft::TopTokens> result;
    for (std::size_t i = 0; i < hidden.size(); ++i) {
      result.push_back(
          top_of(rows[static_cast<std::size_t>(hidden[i])], considered(masks[i]), count));
    }
    return result;
  }
};
static_assert(td::draft::DraftHead<TableHead>);

TableHead random_head(std::mt19937& random, std::size_t k, float sharpness) {
  TableHead head{std::vector(23, std::vector<float>(words)), k};
  for (auto& row : head.rows) {
    for (float& logit : row) logit = sharpness * static_cast<float>(random() % 64) / 64;
  }
  return head;
}

/// The row after a path of tokens.
std::size_t row_after(const Tokens& path) {
  std::size_t hash = 7;
  for (const td::TokenId token : path) hash = hash * 31 + static_cast<std::size_t>(token);
  return hash % 23;
}

template <class C>
Tokens path_to(const td::DraftCandidates<C>& candidates, std::size_t node) {
  Tokens path;
  for (; node != 0; node = candidates.parent(node)) path.push_back(candidates.token(node));
  std::ranges::reverse(path);
  return path;
}

/// A node of EAGLE-2's expansion, written out.
struct SlowNode {
  Tokens path;
  float score                            = 0;
  bool operator==(const SlowNode&) const = default;
};

/// All nodes in the order in which they are made, the root first.
template <class C>
std::vector<SlowNode> slow_expansion(const C& constraint, const TableHead& head, std::size_t depth,
                                     std::size_t width, auto children, double min) {
  std::vector<SlowNode> all{{}};
  std::vector<SlowNode> frontier{{}};
  for (std::size_t level = 0; level < depth; ++level) {
    std::vector<SlowNode> made;
    for (const SlowNode& from : frontier) {
      auto state = constraint.initial();
      for (const td::TokenId token : from.path) state = *constraint.advance(state, token);
      Tokens allowed;
      for (td::TokenId t = 0; t < static_cast<td::TokenId>(words); ++t) {
        if (constraint.advance(state, t)) allowed.push_back(t);
      }
      if (allowed.size() >= head.k) {
        std::erase_if(allowed,
                      [&](td::TokenId t) { return static_cast<std::size_t>(t) >= head.k; });
      }
      const auto top = top_of(head.rows[row_after(from.path)], allowed, children(level));
      for (std::size_t i = 0; i < top.tokens.size(); ++i) {
        const td::TokenId token = top.tokens[i].token;
        if (constraint.is_finished(*constraint.advance(state, token))) continue;
        SlowNode child = from;
        child.path.push_back(token);
        // A single token may have slightly more than probability 1, by rounding.
        child.score += std::min(
            0.0F, static_cast<float>(static_cast<double>(top.tokens[i].logit) - top.log_sum_exp));
        made.push_back(child);
      }
    }
    all.insert(all.end(), made.begin(), made.end());
    std::ranges::stable_sort(
        made, [](const SlowNode& a, const SlowNode& b) { return a.score > b.score; });
    made.resize(std::min(width, made.size()));
    std::erase_if(
        made, [&](const SlowNode& node) { return node.score < static_cast<float>(std::log(min)); });
    frontier = made;
  }
  return all;
}

/// Grows a tree whose states are the rows after its nodes' paths.
template <class C>
td::DraftCandidates<C> grown(const C& constraint, const TableHead& head, std::size_t depth,
                             std::size_t width, auto children, double min = 0) {
  td::DraftCandidates<C> candidates(constraint, constraint.initial(), 0, 64);
  std::vector<float> states;
  std::vector<std::size_t> before;
  td::draft::grow_tree(
      candidates, head, depth, width, min, children,
      [&](std::size_t level, std::span<const td::draft::FrontierNode> frontier) {
        REQUIRE(level < depth);
        states.clear();
        std::vector<std::size_t> nodes;
        for (const td::draft::FrontierNode& at : frontier) {
          REQUIRE(candidates.depth(at.node) == level);
          if (level > 0) REQUIRE(before[at.parent] == candidates.parent(at.node));
          nodes.push_back(at.node);
          states.push_back(static_cast<float>(row_after(path_to(candidates, at.node))));
        }
        before = nodes;
        return std::span<const float>(states);
      });
  return candidates;
}

template <class C>
void compare(const C& constraint, const TableHead& head, std::size_t depth, std::size_t width,
             auto children, double min) {
  const auto expected   = slow_expansion(constraint, head, depth, width, children, min);
  const auto candidates = grown(constraint, head, depth, width, children, min);
  std::vector<SlowNode> nodes;
  std::vector<std::set<std::size_t>> parents(depth + 1);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    nodes.push_back({path_to(candidates, i), candidates.score(i)});
    REQUIRE(candidates.depth(i) <= depth);
    if (i > 0) parents[candidates.depth(i)].insert(candidates.parent(i));
  }
  REQUIRE(nodes == expected);
  for (const auto& level : parents) REQUIRE(level.size() <= std::max<std::size_t>(width, 1));
}

/// Allows nothing below the root's children, and `first` tokens there.
struct DeadEnd {
  using State = int;
  int first   = 0;

  std::size_t vocabulary_size() const { return words; }
  State initial() const { return 0; }
  std::optional<State> advance(State state, td::TokenId token) const {
    return state == 0 && token < first ? std::optional(1) : std::nullopt;
  }
  void fill_mask(State state, td::MaskView mask) const {
    for (auto& word : mask) word = 0;
    if (state == 0) mask[0] = (1U << first) - 1;
  }
  bool is_accepting(State) const { return false; }
  bool is_finished(State) const { return false; }
  std::string jump_forward(State) const { return {}; }
};

}  // namespace

TEST_CASE("grow_tree gives EAGLE-2's expansion, as a slow reference writes it out") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    const std::size_t k     = seed % 3 == 0 ? words : 1 + random() % words;
    const TableHead head    = random_head(random, k, seed % 2 == 0 ? 3.0F : 40.0F);
    const std::size_t depth = random() % 6, width = 1 + random() % 5;
    const std::vector<std::size_t> choices{random() % 7, 1 + random() % 6, 1 + random() % 4};
    const auto by_level = [&](std::size_t level) { return choices[level % 3]; };
    const double min    = std::vector{0.0, 0.01, 0.3}[random() % 3];
    const auto as_width = [width](std::size_t) { return width; };
    compare(td::Unconstrained{words}, head, depth, width, as_width, min);
    compare(td::Unconstrained{words, {3, 7}}, head, depth, width, by_level, min);
    compare(td::test::RandomTable{words, seed}, head, depth, width, as_width, min);
    compare(td::test::RandomTable{words, seed}, head, depth, width, by_level, min);
  }
}

TEST_CASE("grow_tree ends a branch at an empty mask, and the tree where all branches end") {
  std::mt19937 random{5};
  const TableHead head = random_head(random, words, 3);
  const auto four      = [](std::size_t) { return std::size_t{4}; };
  CHECK(grown(DeadEnd{0}, head, 5, 4, four).size() == 1);
  const auto once = grown(DeadEnd{2}, head, 5, 4, four);
  REQUIRE(once.size() == 3);
  CHECK(once.parent(2) == 0);
  CHECK(grown(DeadEnd{9}, head, 5, 4, four).size() == 5);
}

TEST_CASE("grow_tree under a narrow mask adds allowed tokens that the head lacks") {
  std::mt19937 random{6};
  const TableHead head = random_head(random, 10, 3);
  struct Last : td::Unconstrained {
    using td::Unconstrained::Unconstrained;
    std::optional<State> advance(State state, td::TokenId token) const {
      return token >= 35 ? td::Unconstrained::advance(state, token) : std::nullopt;
    }
    void fill_mask(State, td::MaskView mask) const {
      mask[0] = 0;
      mask[1] = 0b11111000;
    }
  };
  const auto candidates =
      grown(Last{words}, head, 1, 8, [](std::size_t) { return std::size_t{8}; });
  REQUIRE(candidates.size() == 6);
  float sum = 0;  // all that may follow is there, so their probabilities add up
  for (std::size_t i = 1; i < 6; ++i) {
    CHECK(candidates.token(i) >= 35);
    sum += std::exp(candidates.score(i));
  }
  CHECK(std::abs(sum - 1) < 1e-6F);
}

TEST_CASE("grow_tree with fewer states than nodes ends after as many nodes") {
  std::mt19937 random{8};
  const TableHead head = random_head(random, words, 3);
  const td::Unconstrained any{words};
  for (const std::size_t room : {0U, 1U, 2U, 5U}) {
    td::DraftCandidates candidates(any, any.initial(), 0, 64);
    std::vector<float> states;
    std::vector<std::size_t> run;
    std::size_t left = room;
    td::draft::grow_tree(
        candidates, head, 6, 3, 0, [](std::size_t) { return std::size_t{3}; },
        [&](std::size_t level, std::span<const td::draft::FrontierNode> frontier) {
          const std::size_t count = level == 0 ? 1 : std::min(left, frontier.size());
          if (level > 0) left -= count;
          for (const auto& at : frontier.first(count)) run.push_back(at.node);
          states.assign(count, 1);
          return std::span<const float>(states);
        });
    CHECK(run.size() == room + 1);
    CHECK(candidates.size() == 1 + 3 * (room + 1));
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      CHECK(candidates.is_leaf(i) == (std::ranges::count(run, i) == 0));
    }
  }
}

TEST_CASE("grow_tree with depth 0, width 0 or no children drafts no deeper than these allow") {
  std::mt19937 random{9};
  const TableHead head = random_head(random, words, 3);
  const td::Unconstrained any{words};
  const auto three = [](std::size_t) { return std::size_t{3}; };
  CHECK(grown(any, head, 0, 3, three).size() == 1);
  CHECK(grown(any, head, 4, 0, three).size() == 4);  // the root's children get none
  CHECK(grown(any, head, 4, 3, [](std::size_t) { return std::size_t{0}; }).size() == 1);
}
