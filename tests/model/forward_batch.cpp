#include <vector>

#include <tooldecode/model/forward_batch.hpp>

#include <support/catch.hpp>
#include <support/one_by_one.hpp>
#include <support/random_model.hpp>

using namespace tooldecode;
using namespace tooldecode::model;

TEST_CASE("A model without batches gives the same rows, one pass each") {
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
