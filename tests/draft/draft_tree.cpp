#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <tooldecode/draft/draft_tree.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;

TEST_CASE("DraftTree of the last token alone is its root") {
  const td::DraftTree tree(42);
  CHECK(tree.size() == 1);
  CHECK(tree.token(0) == 42);
  CHECK(tree.parent(0) == 0);
  CHECK(tree.depth(0) == 0);
  CHECK(tree.ancestors()[0] == 1);
  CHECK(tree.children(0).empty());
  CHECK_FALSE(tree.find_child(0, 42));
}

TEST_CASE("DraftTree with up to 64 random nodes agrees with following the parents") {
  std::mt19937 random{11};
  for (int round = 0; round < 50; ++round) {
    INFO("seed 11, round " << round);
    td::DraftTree tree(-1);
    std::vector<std::size_t> parents{0};
    std::vector<td::TokenId> tokens{-1};
    std::set<std::pair<std::size_t, td::TokenId>> held;
    while (tree.size() < (round < 25 ? 64 : 1 + random() % 64)) {
      const std::size_t parent = random() % tree.size();
      const auto token         = static_cast<td::TokenId>(random() % 8);
      const bool is_new        = held.emplace(parent, token).second;
      CHECK(tree.find_child(parent, token).has_value() != is_new);
      if (!is_new) continue;
      CHECK(tree.add(parent, token, -1.5F) == parents.size());
      parents.push_back(parent);
      tokens.push_back(token);
    }
    REQUIRE(tree.tokens().size() == tokens.size());
    for (std::size_t i = 0; i < tree.size(); ++i) {
      std::uint64_t mask = std::uint64_t{1} << i;
      std::size_t depth  = 0;
      for (std::size_t node = i; node != 0; node = parents[node]) {
        mask |= std::uint64_t{1} << parents[node];
        ++depth;
      }
      CHECK(tree.ancestors()[i] == mask);
      CHECK(tree.depth(i) == depth);
      CHECK(tree.parent(i) == parents[i]);
      CHECK(tree.token(i) == tokens[i]);
      CHECK(tree.score(i) == (i == 0 ? 0.0F : -1.5F));
      std::vector<td::TokenId> children;
      for (std::size_t j = 1; j < tree.size(); ++j) {
        if (parents[j] != i) continue;
        children.push_back(tokens[j]);
        CHECK(tree.find_child(i, tokens[j]) == j);
      }
      CHECK(tree.children(i) == children);
    }
  }
}

TEST_CASE("DraftTree::proposal is the one that was set, and empty otherwise") {
  td::DraftTree tree(0);
  tree.add(0, 7);
  tree.add(1, 8);
  CHECK(tree.proposal(2).tokens.empty());
  tree.set_proposal(1, {{8, 9}, {0.75, 0.25}});
  CHECK(tree.proposal(0).tokens.empty());
  CHECK(tree.proposal(1).tokens == std::vector<td::TokenId>{8, 9});
  CHECK(tree.proposal(1).probabilities == std::vector<double>{0.75, 0.25});
  CHECK(tree.proposal(2).tokens.empty());
}
