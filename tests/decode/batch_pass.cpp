#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/decode/batch_pass.hpp>
#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/decode/target_pass.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/model/llama_model.hpp>

#include <support/catch.hpp>
#include <support/one_by_one.hpp>
#include <support/random_llama.hpp>
#include <support/states_beside_logits.hpp>

namespace td = tooldecode;
using td::test::random_tokens;
using Tokens = std::vector<td::TokenId>;
using Floats = std::vector<float>;

namespace {

/// One sequence of a pass.
struct Part {
  Tokens before, tokens;
  std::vector<std::uint64_t> ancestors;
  std::size_t row = 0;
  td::TokenMask mask{61};
};

Part random_part(std::mt19937& random) {
  Part part;
  part.before = random_tokens(random() % 40, random);
  if (random() % 2 == 0) {
    part.tokens = random_tokens(1 + random() % 90, random);
    part.row    = part.tokens.size() - 1;
  } else {
    part.tokens = random_tokens(1 + random() % 40, random);
    part.ancestors.push_back(1);
    for (std::size_t i = 1; i < part.tokens.size(); ++i) {
      part.ancestors.push_back(part.ancestors[random() % i] | std::uint64_t{1} << i);
    }
    part.row = random() % part.tokens.size();
  }
  const unsigned share = random() % 2 == 0 ? 1 + random() % 2 : 9;
  for (td::TokenId token = 0; token < 61; ++token) {
    if (random() % share == 0) part.mask.insert(token);
  }
  return part;
}

}  // namespace

TEST_CASE("BatchPass over several sequences gives the states and rows of a pass over each") {
  const td::LlamaModel model = td::test::random_llama(3);
  std::size_t rows = 0, left = 0;
  for (unsigned seed = 0; seed < 30; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    std::vector<Part> parts;
    const td::ModelRef any{model};
    CHECK(any.abilities().gives_tree_states());
    std::vector<td::ModelRef::Cache> caches, alone;
    for (auto count = 1 + random() % 8; count > 0; --count) {
      parts.push_back(random_part(random));
      caches.push_back(any.make_cache());
      Floats ignored(model.vocabulary_size());
      if (!parts.back().before.empty()) {
        any.forward(caches.back(), parts.back().before, ignored);
      }
      alone.push_back(any.fork(caches.back()));
    }
    std::vector<td::decode::BatchReading> readings;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      readings.push_back({&caches[i], parts[i].tokens, parts[i].ancestors, parts[i].row,
                          std::as_const(parts[i].mask).words()});
    }
    td::decode::BatchPass pass{model};
    REQUIRE(pass.run(readings) == 1);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Part& part = parts[i];
      td::decode::TargetPass own{model};
      part.ancestors.empty() ? own.read(alone[i], part.tokens)
                             : own.read_tree(alone[i], part.tokens, part.ancestors);
      for (std::size_t t = 0; t < part.tokens.size(); ++t) {
        REQUIRE(std::ranges::equal(own.hidden(t), pass.states(i).subspan(t * 36, 36)));
      }
      Floats expected(model.vocabulary_size());
      own.fill_row(part.ancestors.empty() ? 0 : part.row, std::as_const(part.mask).words(),
                   expected);
      const std::span<float> row = pass.row(i);
      ++(row.empty() ? left : rows);
      for (std::size_t t = 0; t < row.size(); ++t) {
        if (part.mask.contains(static_cast<td::TokenId>(t))) REQUIRE(row[t] == expected[t]);
      }
      // Trees are committed like those of separate passes.
      if (!part.ancestors.empty()) {
        const std::vector<std::size_t> path{0};
        any.commit(caches[i], path);
        any.commit(alone[i], path);
      }
      Floats next(model.vocabulary_size()), expected_next(model.vocabulary_size());
      any.forward(caches[i], Tokens{5}, next);
      any.forward(alone[i], Tokens{5}, expected_next);
      REQUIRE(next == expected_next);
    }
  }
  CHECK(rows > 30);
  CHECK(left > 30);
}

TEST_CASE("BatchPass under masks of fewer tokens than the model's multiplies only allowed rows") {
  auto config            = td::test::random_llama_config();
  config.vocabulary_size = 150;  // five words of mask, of which the masks below have two
  const td::LlamaModel model{config, td::test::random_llama_weights(config, 6)};
  const td::ModelRef any{model};
  auto cache = any.make_cache();
  // On the heap without a byte to spare, so that a sanitizer sees what is read behind it.
  const std::vector<std::uint32_t> mask(2, ~std::uint32_t{0});
  std::vector<std::uint32_t> many(4, ~std::uint32_t{0});
  const Tokens tokens{1, 2, 3};
  td::decode::BatchPass pass{model};
  Floats expected(150);
  auto alone = model.make_cache();
  model.forward(alone, tokens, expected);
  for (const td::ConstMaskView words : {td::ConstMaskView(mask), td::ConstMaskView(many)}) {
    auto fresh = any.make_cache();
    const std::vector<td::decode::BatchReading> readings{{&fresh, tokens, {}, 2, words}};
    REQUIRE(pass.run(readings) == 1);
    const std::span<float> row = pass.row(0);
    CHECK(row.empty() == (words.count() < 75));
    for (std::size_t t = 0; t < row.size(); ++t) {
      if (words.contains(static_cast<td::TokenId>(t))) REQUIRE(row[t] == expected[t]);
    }
  }
}

TEST_CASE("BatchPass over a model without states gives rows; a pass that fails changes no cache") {
  const td::LlamaModel model = td::test::random_llama(4);
  const td::test::OneByOne one{model};
  const td::ModelRef any{one};
  CHECK_FALSE(any.abilities().gives_tree_states());
  std::vector<td::ModelRef::Cache> caches;
  for (int i = 0; i < 2; ++i) caches.push_back(any.make_cache());
  td::TokenMask mask(61);
  const auto reading = [&](std::size_t i, const Tokens& tokens) {
    return td::decode::BatchReading{
        &caches[i], tokens, {}, tokens.size() - 1, std::as_const(mask).words()};
  };
  const Tokens first{1, 2, 3}, second{4}, wrong{61};
  td::decode::BatchPass pass{one};
  CHECK_THROWS_AS(pass.run(std::vector{reading(0, first), reading(1, wrong)}), td::Error);
  CHECK(any.length(caches[0]) == 0);
  CHECK(pass.run(std::vector{reading(0, first), reading(1, second)}) == 2);
  CHECK(pass.states(0).empty());
  Floats expected(61);
  auto alone = model.make_cache();
  model.forward(alone, first, expected);
  CHECK(std::ranges::equal(pass.row(0), expected));
}

TEST_CASE(
    "BatchPass over a model that computes logits gives its rows, and states if any are kept") {
  const td::LlamaModel model = td::test::random_llama(5);
  const td::test::StatesBesideLogits beside{model};
  const td::test::BatchStatesBesideLogits in_one_pass{model};
  const bool is_batch    = GENERATE(false, true);
  const td::ModelRef any = is_batch ? td::ModelRef(in_one_pass) : td::ModelRef(beside);
  const td::ModelRef by_head{model};
  const std::size_t size = model.vocabulary_size(), width = model.hidden_size();
  std::size_t trees = 0, lines = 0, plain = 0;
  for (unsigned seed = 0; seed < 30; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    std::vector<Part> parts;
    std::vector<td::ModelRef::Cache> caches, alone;
    std::vector<bool> keeps;
    for (auto count = 1 + random() % 6; count > 0; --count) {
      parts.push_back(random_part(random));
      keeps.push_back(random() % 4 == 0);
      caches.push_back(any.make_cache());
      alone.push_back(by_head.make_cache());
      Floats ignored(size);
      if (parts.back().before.empty()) continue;
      any.forward(caches.back(), parts.back().before, ignored);
      by_head.forward(alone.back(), parts.back().before, ignored);
    }
    std::vector<td::decode::BatchReading> readings;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      readings.push_back({&caches[i], parts[i].tokens, parts[i].ancestors, parts[i].row,
                          std::as_const(parts[i].mask).words(), keeps[i]});
    }
    const bool has_states = std::ranges::find(keeps, true) != keeps.end();
    td::decode::BatchPass pass{any};
    REQUIRE(pass.run(readings) == (is_batch ? 1 : parts.size()));
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Part& part   = parts[i];
      const bool is_tree = !part.ancestors.empty();
      Floats hidden(part.tokens.size() * width), rows(is_tree ? part.tokens.size() * size : size);
      auto copy = by_head.fork(alone[i]);
      if (is_tree) {
        by_head.forward_tree(copy, part.tokens, part.ancestors, rows);
        by_head.forward_tree_hidden(alone[i], part.tokens, part.ancestors, hidden);
      } else {
        by_head.forward(copy, part.tokens, rows);
        by_head.forward_hidden(alone[i], part.tokens, hidden);
      }
      if (has_states) {
        REQUIRE(std::ranges::equal(pass.states(i), hidden));
      } else {
        REQUIRE(pass.states(i).empty());
      }
      REQUIRE(std::ranges::equal(pass.row(i),
                                 std::span(rows).subspan(is_tree ? part.row * size : 0, size)));
      REQUIRE(pass.draft_rows(i).size() == (is_tree ? rows.size() : 0));
      if (is_tree) REQUIRE(std::ranges::equal(pass.draft_rows(i), rows));
      ++(is_tree ? trees : has_states ? lines : plain);
    }
  }
  CHECK(trees > 20);
  CHECK(lines > 10);
  CHECK(plain > 10);
}
