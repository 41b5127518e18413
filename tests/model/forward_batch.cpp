#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <tooldecode/model/forward_batch.hpp>
#include <tooldecode/model/llama_model.hpp>

#include <support/catch.hpp>
#include <support/one_by_one.hpp>
#include <support/random_llama.hpp>
#include <support/random_model.hpp>

using namespace tooldecode;
using namespace tooldecode::model;

TEST_CASE(
    "forward_batch gives the same rows for a model without batches in one pass per sequence") {
  const test::RandomModel model(11);
  const test::OneByOne single{model};
  static_assert(!BatchModel<test::OneByOne<test::RandomModel>>);
  std::vector<test::RandomModel::Cache> a(3), b(3);
  std::vector<test::RandomModel::Cache*> to_a{&a[0], &a[1], &a[2]}, to_b{&b[0], &b[1], &b[2]};
  const std::vector<std::vector<TokenId>> tokens{{1}, {2, 3}, {4, 5, 6}};
  const std::vector<std::span<const TokenId>> views(tokens.begin(), tokens.end());
  std::vector<float> rows_a(33), rows_b(33);
  CHECK(forward_batch(model, to_a, views, rows_a) == 1);
  CHECK(forward_batch(single, to_b, views, rows_b) == 3);
  CHECK(rows_a == rows_b);
  CHECK(b[2].tokens == tokens[2]);
  CHECK(forward_batch(model, {}, {}, {}) == 0);
}

namespace {

// A LlamaModel without its functions for batches.
struct TreesOneByOne : test::OneByOne<LlamaModel> {
  [[nodiscard]] std::size_t hidden_size() const { return model.hidden_size(); }
  [[nodiscard]] auto lm_head() const { return model.lm_head(); }
  void commit(Cache& cache, std::span<const std::size_t> path) const { model.commit(cache, path); }
  void forward_tree(Cache& cache, std::span<const TokenId> tokens,
                    std::span<const std::uint64_t> ancestors, std::span<float> logits) const {
    model.forward_tree(cache, tokens, ancestors, logits);
  }
  void forward_hidden(Cache& cache, std::span<const TokenId> tokens,
                      std::span<float> hidden) const {
    model.forward_hidden(cache, tokens, hidden);
  }
  void forward_tree_hidden(Cache& cache, std::span<const TokenId> tokens,
                           std::span<const std::uint64_t> ancestors,
                           std::span<float> hidden) const {
    model.forward_tree_hidden(cache, tokens, ancestors, hidden);
  }
};
static_assert(HeadTreeModel<TreesOneByOne> && !BatchTreeModel<TreesOneByOne>);

}  // namespace

TEST_CASE("forward_batch_hidden gives the same states for a model without batches of trees") {
  const LlamaModel model = test::random_llama(6);
  const TreesOneByOne single{{model}};
  std::vector<LlamaModel::Cache> a, b;
  for (int i = 0; i < 3; ++i) a.push_back(model.make_cache()), b.push_back(model.make_cache());
  std::vector<LlamaModel::Cache*> to_a{&a[0], &a[1], &a[2]}, to_b{&b[0], &b[1], &b[2]};
  const std::vector<std::vector<TokenId>> tokens{{1}, {2, 3, 4}, {4, 5, 6}};
  const std::vector<std::vector<std::uint64_t>> trees{{}, {0b1, 0b11, 0b101}, {}};
  const std::vector<std::span<const TokenId>> views(tokens.begin(), tokens.end());
  const std::vector<std::span<const std::uint64_t>> ancestors(trees.begin(), trees.end());
  std::vector<float> states_a(7 * model.hidden_size()), states_b(states_a.size());
  CHECK(forward_batch_hidden(model, to_a, views, ancestors, states_a) == 1);
  CHECK(forward_batch_hidden(single, to_b, views, ancestors, states_b) == 3);
  CHECK(states_a == states_b);
  for (int i = 0; i < 3; ++i) {
    CHECK(a[static_cast<std::size_t>(i)].length() == b[static_cast<std::size_t>(i)].length());
  }
  CHECK(a[1].nodes() == 3);
  CHECK(a[2].length() == 3);
  CHECK(forward_batch_hidden(model, {}, {}, {}, {}) == 0);
}
