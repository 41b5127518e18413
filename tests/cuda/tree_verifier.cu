#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/tree_verifier.cuh>
#include <tooldecode/draft/draft_tree.hpp>
#include <tooldecode/verify/tree_verifier.hpp>

#include <support/catch.hpp>
#include <support/device.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

namespace {

using Verdict = tooldecode::cuda::TreeVerdict;

enum class Form { chain, star, deep, bushy };

/// A tree of tokens below `words`; siblings differ.
DraftTree random_tree(std::size_t size, Form form, unsigned words, std::mt19937& random) {
  DraftTree tree(static_cast<TokenId>(random() % words));
  for (int tries = 0; tree.size() < size && tries < 1000; ++tries) {
    std::size_t parent = 0;
    if (form == Form::chain) parent = tree.size() - 1;
    if (form == Form::deep)
      parent = tree.size() - 1 - random() % std::min<std::size_t>(tree.size(), 3);
    if (form == Form::bushy) parent = random() % tree.size();
    const auto token = static_cast<TokenId>(random() % words);
    if (!tree.find_child(parent, token)) tree.add(parent, token);
  }
  return tree;
}

/// Trees and the tokens drawn after their nodes, in device memory.
struct Trees {
  std::vector<DraftTree> trees;
  std::vector<TokenId> tokens, choices;
  std::vector<std::int32_t> parents, sizes;
  std::vector<std::uint64_t> ancestors;

  /// Padding claims to be correct, so that a kernel that reads it fails.
  void add(const DraftTree& tree, const std::vector<TokenId>& drawn) {
    trees.push_back(tree);
    sizes.push_back(static_cast<std::int32_t>(tree.size()));
    for (std::size_t i = 0; i < max_nodes; ++i) {
      const bool is_there = i < tree.size();
      tokens.push_back(is_there ? tree.token(i) : drawn[0]);
      parents.push_back(is_there ? static_cast<std::int32_t>(tree.parent(i)) : 0);
      ancestors.push_back(is_there ? tree.ancestors()[i] : std::uint64_t{1});
      choices.push_back(is_there ? drawn[i] : 0);
    }
  }
  std::vector<Verdict> verify() const {
    const DeviceBuffer<TokenId> device_tokens(tokens), device_choices(choices);
    const DeviceBuffer<std::int32_t> device_parents(parents), device_sizes(sizes);
    const DeviceBuffer<std::uint64_t> device_ancestors(ancestors);
    const DeviceBuffer<Verdict> verdicts(sizes.size());
    verify_trees({.tokens    = device_tokens.data(),
                  .parents   = device_parents.data(),
                  .ancestors = device_ancestors.data(),
                  .sizes     = device_sizes.data()},
                 device_choices.data(), verdicts.data(), static_cast<int>(sizes.size()), nullptr);
    return verdicts.download();
  }
};

/// The host's verdict if the distribution after each node leaves one token.
tooldecode::TreeVerdict verdict_of(const DraftTree& tree, const std::vector<TokenId>& drawn,
                                   std::size_t words) {
  constexpr float none = -std::numeric_limits<float>::infinity();
  std::vector<float> distribution(words);
  return TreeVerifier<>()(
      tree,
      [&](std::size_t node) {
        std::fill(distribution.begin(), distribution.end(), none);
        if (drawn[node] >= 0) distribution[static_cast<std::size_t>(drawn[node])] = 0;
        return std::span<const float>(distribution);
      },
      NoiseKey{}, 0);
}

}  // namespace

TEST_CASE("verify_trees gives the verdicts of the host") {
  test::on_device([] {
    std::mt19937 random(5);
    Trees all;
    std::vector<std::vector<TokenId>> drawn;
    std::vector<unsigned> words;
    for (int i = 0; i < 2200; ++i) {
      const std::size_t size = i < 128 ? static_cast<std::size_t>(i) / 2 + 1 : 1 + random() % 64;
      const auto form        = static_cast<Form>(random() % 4);
      words.push_back(form == Form::star ? 80 : 2 + static_cast<unsigned>(random() % 9));
      const DraftTree tree = random_tree(size, form, words.back(), random);
      const auto agree     = random() % 8;  // how often a node's token is the drawn one
      std::vector<TokenId> choices;
      for (std::size_t node = 0; node < tree.size(); ++node) {
        choices.push_back(static_cast<TokenId>(random() % (words.back() + 1)) - 1);
        const std::vector<TokenId> children = tree.children(node);
        if (!children.empty() && random() % 8 <= agree) {
          choices[node] = children[random() % children.size()];
        }
      }
      all.add(tree, choices);
      drawn.push_back(choices);
    }
    const auto got      = all.verify();
    std::size_t deepest = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      INFO("tree " << i << " of " << all.trees[i].size() << " nodes");
      const auto expected        = verdict_of(all.trees[i], drawn[i], words[i]);
      const std::size_t accepted = expected.path.size();
      deepest                    = std::max(deepest, accepted);
      REQUIRE(got[i].accepted == static_cast<int>(accepted));
      CHECK(got[i].kept == got[i].accepted + 1);
      CHECK(got[i].emitted == got[i].accepted + (expected.token ? 1 : 0));
      bool is_equal = true;
      for (std::size_t j = 0; j < max_nodes; ++j) {
        const bool is_there = j < accepted;
        const TokenId token = is_there        ? all.trees[i].token(expected.path[j])
                              : j == accepted ? expected.token.value_or(-1)
                                              : -1;
        is_equal            = is_equal && got[i].tokens[j] == token &&
                   got[i].path[j] == (is_there ? static_cast<int>(expected.path[j]) : -1);
      }
      CHECK(is_equal);
    }
    CHECK(deepest > 40);
  });
}

TEST_CASE("verify_trees handles a chain of 64 nodes, no allowed token, and no tree") {
  test::on_device([] {
    Trees trees;
    DraftTree chain(7);
    std::vector<TokenId> drawn;
    for (TokenId i = 0; i < 63; ++i) {
      chain.add(chain.size() - 1, i);
      drawn.push_back(i);
    }
    drawn.push_back(63);
    trees.add(chain, drawn);
    drawn[63] = -1;
    trees.add(chain, drawn);
    drawn[0] = -1;
    trees.add(chain, drawn);
    trees.add(DraftTree(3), {9});
    trees.add(DraftTree(3), {9});
    trees.sizes.back() = 0;
    const auto got     = trees.verify();
    CHECK(got[0].accepted == 63);
    CHECK(got[0].emitted == 64);
    CHECK(got[0].path[62] == 63);
    CHECK(got[0].path[63] == -1);
    for (TokenId i = 0; i < 64; ++i) CHECK(got[0].tokens[i] == i);
    CHECK(got[1].emitted == 63);
    CHECK(got[1].tokens[63] == -1);
    CHECK(got[2].accepted == 0);
    CHECK(got[2].kept == 1);
    CHECK(got[2].emitted == 0);
    CHECK(got[3].emitted == 1);
    CHECK(got[3].tokens[0] == 9);
    CHECK(got[4].accepted == 0);
    CHECK(got[4].kept == 0);
    CHECK(got[4].emitted == 0);
    CHECK(got[4].tokens[0] == -1);
  });
}

TEST_CASE("verify_trees accepts zero sequences and throws for null pointers") {
  test::on_device([] {
    TokenId token       = 0;
    std::int32_t number = 0;
    std::uint64_t mask  = 0;
    const DraftTreeView tree{
        .tokens = &token, .parents = &number, .ancestors = &mask, .sizes = &number};
    Verdict verdict;
    CHECK_NOTHROW(verify_trees({}, nullptr, nullptr, 0, nullptr));
    CHECK_THROWS_WITH(verify_trees({}, &token, &verdict, 1, nullptr), test::contains("tree"));
    CHECK_THROWS_WITH(verify_trees(tree, nullptr, &verdict, 1, nullptr), test::contains("choices"));
    CHECK_THROWS_WITH(verify_trees(tree, &token, nullptr, 1, nullptr), test::contains("verdicts"));
    CHECK_THROWS_WITH(verify_trees(tree, &token, &verdict, -1, nullptr),
                      test::contains("sequences"));
  });
}
