#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/decode/model_ref.hpp>
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

static_assert(td::BatchTreeModel<td::ModelRef> && td::BatchModel<td::ModelRef>);
static_assert(td::StateTreeModel<td::ModelRef> && !td::HostHeadModel<td::ModelRef>);
static_assert(!std::is_constructible_v<td::ModelRef, RandomModel>);  // a temporary
static_assert(!std::is_convertible_v<int, td::ModelRef>);

TEST_CASE("ModelRef::abilities says what the model can do") {
  const td::LlamaModel llama = td::test::random_llama(1);
  const auto& all            = td::ModelRef(llama).abilities();
  CHECK((all.batch && all.tree && all.head && all.host_head && all.head_tree && all.batch_tree &&
         all.headless));
  CHECK(td::ModelRef(llama).context_length() == llama.context_length());

  const RandomModel hashed{50};
  const auto& some = td::ModelRef(hashed).abilities();
  CHECK((some.batch && some.tree && some.head));
  CHECK_FALSE((some.host_head || some.head_tree || some.batch_tree));
  CHECK(td::ModelRef(hashed).context_length() == std::numeric_limits<std::size_t>::max());

  CHECK_FALSE((all.state_tree || some.state_tree));
  CHECK(all.gives_drafters_states());
  CHECK_FALSE(some.gives_drafters_states());

  const td::test::StatesBesideLogits beside{llama};
  const auto& logits_too = td::ModelRef(beside).abilities();
  CHECK((logits_too.tree && logits_too.state_tree && logits_too.gives_drafters_states()));
  CHECK_FALSE((logits_too.head || logits_too.host_head || logits_too.gives_tree_states()));

  const td::test::OneByOne one{hashed};
  const auto& none = td::ModelRef(one).abilities();
  CHECK_FALSE((none.batch || none.tree || none.head || none.host_head || none.headless));
}

TEST_CASE("ModelRef gives the model's logits, in a line, in a tree and by its head") {
  const td::LlamaModel llama = td::test::random_llama(2);
  const td::ModelRef any{llama};
  const std::size_t width = llama.vocabulary_size();
  auto cache              = any.make_cache();
  auto own                = llama.make_cache();
  Floats row(width), expected(width);
  any.forward(cache, Tokens{1, 2, 3}, row);
  llama.forward(own, Tokens{1, 2, 3}, expected);
  CHECK(row == expected);
  CHECK(any.length(cache) == 3);

  auto branch = any.fork(cache);
  any.truncate(branch, 1);
  CHECK(any.length(branch) == 1);
  CHECK(any.length(cache) == 3);

  const Tokens tree{4, 5};
  const std::vector<std::uint64_t> ancestors{1, 3};
  Floats rows(2 * width), expected_rows(2 * width);
  any.forward_tree(cache, tree, ancestors, rows);
  llama.forward_tree(own, tree, ancestors, expected_rows);
  CHECK(rows == expected_rows);
  any.commit(cache, std::vector<std::size_t>{0, 1});
  CHECK(any.length(cache) == 5);

  Floats states(2 * llama.hidden_size()), made(2 * width);
  auto third = any.make_cache();
  any.forward_hidden(third, Tokens{1, 2}, states);
  REQUIRE(any.lm_head().width() == llama.hidden_size());
  any.lm_head().fill_all(states, made);
  llama.forward(own = llama.make_cache(), Tokens{1, 2}, expected);
  CHECK(Floats(made.begin() + static_cast<std::ptrdiff_t>(width), made.end()) == expected);
}

TEST_CASE("ModelRef::forward_batch runs sequences one after another where the model has no batch") {
  const RandomModel hashed{50};
  const td::test::OneByOne one{hashed};
  Floats expected(2 * 50);
  for (const td::ModelRef& any : {td::ModelRef(hashed), td::ModelRef(one)}) {
    auto a = any.make_cache(), b = any.make_cache();
    const Tokens first{1, 2}, second{3};
    const std::vector<td::ModelRef::Cache*> caches{&a, &b};
    const std::vector<std::span<const td::TokenId>> tokens{first, second};
    Floats rows(2 * 50);
    CHECK(any.forward_batch(caches, tokens, rows) == (any.abilities().batch ? 1 : 2));
    if (any.abilities().batch) expected = rows;
    CHECK(rows == expected);
    CHECK(any.forward_batch({}, {}, {}) == 0);
  }
}

TEST_CASE("ModelRef is a model that Decoder takes") {
  const RandomModel hashed{50, {.seed = 5}};
  const td::ModelRef any{hashed};
  const Tokens prompt{1, 2, 3};
  CHECK(td::Decoder{any}(prompt, {.max_tokens = 20}).tokens ==
        td::Decoder{hashed}(prompt, {.max_tokens = 20}).tokens);
}

TEST_CASE("ModelRef refers to a model that is itself made over a ModelRef") {
  const td::LlamaModel llama = td::test::random_llama(3);
  const td::ModelRef inner{llama};
  const td::test::OneByOne<td::ModelRef> outer{inner};
  const td::ModelRef any{outer};
  auto cache = any.make_cache();
  auto own   = llama.make_cache();
  Floats row(any.vocabulary_size()), expected(row.size());
  any.forward(cache, Tokens{1, 2, 3}, row);
  llama.forward(own, Tokens{1, 2, 3}, expected);
  CHECK(row == expected);
  CHECK(any.length(cache) == 3);
  auto fork = any.fork(cache);
  any.truncate(fork, 2);
  CHECK(any.length(fork) == 2);
  CHECK(any.length(cache) == 3);
}
