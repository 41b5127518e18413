#include <array>
#include <vector>

#include <tooldecode/model/bfloat16.hpp>
#include <tooldecode/model/head_view.hpp>
#include <tooldecode/model/row_weight.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;

namespace {

/// The smallest interface that HeadView accepts.
template <class W>
struct Matrix {
  [[nodiscard]] const W* data() const { return weights.data(); }
  [[nodiscard]] int rows() const { return 3; }
  [[nodiscard]] int cols() const { return 4; }
  std::array<W, 12> weights{};
};

}  // namespace

TEST_CASE("HeadView views any type with data, rows and columns") {
  Matrix<float> matrix;
  matrix.weights[2 * 4 + 1] = 7;
  const td::HeadView head   = matrix;
  CHECK(head.type() == td::WeightType::float32);
  CHECK(head.rows() == 3);
  CHECK(head.cols() == 4);
  CHECK(head.stride() == 4);
  CHECK(head.data() == matrix.data());
  CHECK(head.row(2) == matrix.data() + 8);
  CHECK(head.as<float>().row(2)[1] == 7);
  const td::HeadView copy = head;
  CHECK(copy.row(1) == matrix.data() + 4);

  const Matrix<td::BFloat16> narrow;
  const td::HeadView halved = narrow;
  CHECK(halved.type() == td::WeightType::bfloat16);
  CHECK(halved.row(2) == narrow.data() + 8);
}

TEST_CASE("HeadView views rows with a stride greater than their length") {
  const std::vector<float> weights{1, 2, 3, 4, 5, 6, 7, 8};
  const td::HeadView head = td::model::RowsView<const float>{weights.data(), 2, 3, 4};
  CHECK(head.stride() == 4);
  CHECK(head.row(1) == weights.data() + 4);
  CHECK(head.as<float>().row(1)[2] == 7);
}
