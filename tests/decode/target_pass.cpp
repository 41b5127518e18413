#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/decode/target_pass.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/model/llama_model.hpp>

#include <support/catch.hpp>
#include <support/one_by_one.hpp>
#include <support/random_llama.hpp>
#include <support/random_model.hpp>
#include <support/states_beside_logits.hpp>

namespace td = tooldecode;
using td::test::RandomModel;
using Tokens = std::vector<td::TokenId>;
using Floats = std::vector<float>;

static_assert(td::HostHeadModel<td::LlamaModel>);
static_assert(!td::HostHeadModel<RandomModel>);  // its head has no shape and gives other logits

namespace {

struct Tree {
  Tokens tokens;
  std::vector<std::uint64_t> ancestors;
};

Tree random_tree(std::size_t count, std::size_t size, std::mt19937& random) {
  Tree tree{{0}, {1}};
  for (std::size_t i = 1; i < count; ++i) {
    tree.tokens.push_back(static_cast<td::TokenId>(random() % size));
    tree.ancestors.push_back(tree.ancestors[random() % i] | std::uint64_t{1} << i);
  }
  return tree;
}

/// Requires the allowed part of a row that a pass fills to be that of the model's own logits.
void require_row(const td::decode::TargetPass& pass, std::size_t i, std::span<const float> expected,
                 std::mt19937& random) {
  for (const std::size_t share : {1U, 2U, 9U, 1000U}) {
    td::TokenMask mask(expected.size());
    for (std::size_t t = 0; t < expected.size(); ++t) {
      if (random() % share == 0) mask.insert(static_cast<td::TokenId>(t));
    }
    Floats row(expected.size(), std::numeric_limits<float>::quiet_NaN());
    pass.fill_row(i, std::as_const(mask).words(), row);
    for (std::size_t t = 0; t < expected.size(); ++t) {
      if (mask.contains(static_cast<td::TokenId>(t))) REQUIRE(row[t] == expected[t]);
    }
  }
}

/// Runs a pass and the model itself side by side: prompt, tree, commit, and tokens after it.
template <class M>
void compare(const M& model, std::mt19937& random) {
  const std::size_t size = model.vocabulary_size();
  const auto tokens_of   = [&](std::size_t count) {
    Tokens tokens(count);
    for (auto& token : tokens) token = static_cast<td::TokenId>(random() % size);
    return tokens;
  };
  const td::ModelRef any{model};
  td::decode::TargetPass pass{any};
  auto cache = any.make_cache();
  auto own   = model.make_cache();
  Floats expected(size);
  const auto read = [&](const Tokens& tokens) {
    pass.read(cache, tokens);
    model.forward(own, tokens, expected);
    REQUIRE(any.length(cache) == model.length(own));
    require_row(pass, 0, expected, random);
  };
  read(tokens_of(1 + random() % 70));
  read(tokens_of(1));
  if constexpr (td::TreeModel<M>) {
    for (const std::size_t count : {1U, 17U, 64U}) {
      const Tree tree = random_tree(count, size, random);
      Floats rows(count * size);
      pass.read_tree(cache, tree.tokens, tree.ancestors);
      model.forward_tree(own, tree.tokens, tree.ancestors, rows);
      for (std::size_t i = 0; i < count; ++i) {
        require_row(pass, i, std::span(rows).subspan(i * size, size), random);
      }
      std::vector<std::size_t> path;
      for (std::size_t i = 0; i < count; ++i) {
        if ((tree.ancestors.back() >> i & 1) != 0) path.push_back(i);
      }
      any.commit(cache, path);
      model.commit(own, path);
      read(tokens_of(1 + random() % 5));
    }
  }
}

}  // namespace

TEST_CASE(
    "TargetPass gives the model's logits of allowed tokens bit for bit, in a line and in a tree") {
  for (unsigned seed = 0; seed < 8; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    auto config           = td::test::random_llama_config();
    config.tied_head      = seed % 2 == 0;
    config.context_length = 400;
    const td::LlamaModel llama{config, td::test::random_llama_weights(config, seed)};
    const RandomModel hashed{50, {.seed = seed}};
    compare(llama, random);
    compare(hashed, random);
    compare(td::test::OneByOne<td::LlamaModel>{llama}, random);
    compare(td::test::StatesBesideLogits<td::LlamaModel>{llama}, random);
    CHECK(td::ModelRef(llama).abilities().gives_states());
    CHECK_FALSE(td::ModelRef(hashed).abilities().gives_states());
  }
}

TEST_CASE("TargetPass::make_rows gives together the same bits as each row alone") {
  const auto model        = td::test::random_llama(5);
  const std::size_t width = model.vocabulary_size();
  std::mt19937 random{6};
  const Tree tree = random_tree(12, width, random);
  td::decode::TargetPass pass{model};
  CHECK_FALSE(pass.makes_rows());
  auto cache = td::ModelRef(model).make_cache();
  pass.read(cache, Tokens{5, 6, 7});
  pass.read_tree(cache, tree.tokens, tree.ancestors);
  REQUIRE(pass.makes_rows());
  for (const std::vector<std::size_t>& which :
       {std::vector<std::size_t>{4}, {0, 3, 11}, {2, 1, 0, 9, 8}, {0, 1, 2, 3, 4, 5, 6, 7, 8}}) {
    Floats rows(which.size() * width);
    pass.make_rows(which, rows);
    for (std::size_t i = 0; i < which.size(); ++i) {
      require_row(pass, which[i], std::span(rows).subspan(i * width, width), random);
    }
  }
}

TEST_CASE("TargetPass::hidden gives the hidden states of the last pass's tokens") {
  const auto model        = td::test::random_llama(3);
  const bool keeps_logits = GENERATE(false, true);
  const td::test::StatesBesideLogits beside{model};
  const td::ModelRef any = keeps_logits ? td::ModelRef(beside) : td::ModelRef(model);
  const std::size_t size = model.vocabulary_size();
  std::mt19937 random{4};
  const Tree tree = random_tree(20, 61, random);
  const Tokens prompt{5, 6, 7};
  const std::size_t width = model.hidden_size();
  td::decode::TargetPass pass{any, true};
  auto cache                = any.make_cache();
  auto own                  = model.make_cache();
  const auto require_hidden = [&](const Floats& expected) {
    for (std::size_t i = 0; i * width < expected.size(); ++i) {
      const auto state = pass.hidden(i);
      REQUIRE(state.size() == width);
      REQUIRE(std::equal(state.begin(), state.end(), expected.data() + i * width));
    }
  };
  Floats expected(prompt.size() * width);
  pass.read(cache, prompt);
  model.forward_hidden(own, prompt, expected);
  require_hidden(expected);
  expected.resize(tree.tokens.size() * width);
  pass.read_tree(cache, tree.tokens, tree.ancestors);
  model.forward_tree_hidden(own, tree.tokens, tree.ancestors, expected);
  require_hidden(expected);
  CHECK(pass.makes_rows() != keeps_logits);
  Floats rows(tree.tokens.size() * size);
  model.forward_tree(own, tree.tokens, tree.ancestors, rows);
  for (std::size_t i = 0; i < tree.tokens.size(); ++i) {
    require_row(pass, i, std::span(rows).subspan(i * size, size), random);
  }
}
