#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <Eigen/Core>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/model/constrained_head.hpp>
#include <tooldecode/model/eigen_views.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;

namespace {

/// A user's model whose head is an Eigen matrix.
struct EigenModel {
  struct Cache {};
  using Head = Eigen::Matrix<Eigen::bfloat16, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  [[nodiscard]] std::size_t vocabulary_size() const { return 9; }
  [[nodiscard]] Cache make_cache() const { return {}; }
  [[nodiscard]] std::size_t length(const Cache&) const { return 0; }
  void forward(Cache&, std::span<const td::TokenId>, std::span<float>) const {}
  [[nodiscard]] Cache fork(const Cache&) const { return {}; }
  void truncate(Cache&, std::size_t) const {}
  [[nodiscard]] std::size_t hidden_size() const { return 3; }
  void forward_hidden(Cache&, std::span<const td::TokenId>, std::span<float>) const {}
  [[nodiscard]] const Head& lm_head() const { return head; }

  Head head = Eigen::MatrixXf::Random(9, 3).cast<Eigen::bfloat16>();
};
static_assert(td::HostHeadModel<EigenModel>);

}  // namespace

TEST_CASE("HeadView views an Eigen matrix, a block and a map with a stride") {
  using Matrix           = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Matrix matrix    = Matrix::Random(5, 7);
  const td::HeadView all = matrix;
  CHECK(all.rows() == 5);
  CHECK(all.cols() == 7);
  CHECK(all.as<float>().row(2)[3] == matrix(2, 3));
  const td::HeadView part = matrix.leftCols(4);
  CHECK(part.cols() == 4);
  CHECK(part.as<float>().row(4)[1] == matrix(4, 1));
  const Eigen::Map<const Matrix, 0, Eigen::OuterStride<>> map(matrix.data(), 2, 7,
                                                              Eigen::OuterStride<>(14));
  CHECK(td::HeadView(map).as<float>().row(1)[5] == matrix(2, 5));
  CHECK(td::eigen_head<float>(part) == matrix.leftCols(4));
}

TEST_CASE("HeadView views an Eigen matrix of bfloat16 and converts back") {
  using Matrix = Eigen::Matrix<Eigen::bfloat16, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Matrix matrix     = Eigen::MatrixXf::Random(3, 6).cast<Eigen::bfloat16>();
  const td::HeadView head = matrix;
  CHECK(head.type() == td::WeightType::bfloat16);
  CHECK(head.row(2) == matrix.data() + 12);
  CHECK(td::eigen_head<Eigen::bfloat16>(head).cast<float>() == matrix.cast<float>());
}

TEST_CASE("ConstrainedHead accepts a model whose head is an Eigen matrix") {
  const EigenModel model;
  td::TokenMask mask(9);
  mask.insert(2);
  mask.insert(8);
  std::vector<float> logits(9);
  td::ConstrainedHead{model}.fill_logits(std::vector<float>{1, 0, -2}, mask.words(), logits);
  for (const Eigen::Index token : {2, 8}) {
    const auto row = model.head.row(token).cast<float>().eval();
    CHECK(logits[static_cast<std::size_t>(token)] == row[0] - 2 * row[2]);
  }
  std::vector<float> same(9);
  td::ConstrainedHead{td::HeadView(model.head)}.fill_logits(std::vector<float>{1, 0, -2},
                                                            mask.words(), same);
  CHECK(same == logits);
}

TEST_CASE("BFloat16 has the bits of Eigen's bfloat16 for all rounding cases") {
  std::size_t wrong = 0;
  for (std::uint64_t step = 0; step < (1U << 16); ++step) {
    for (const std::uint32_t low : {0x0000U, 0x0001U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU}) {
      const auto number = std::bit_cast<float>(static_cast<std::uint32_t>(step << 16) | low);
      const td::BFloat16 ours(number);
      const Eigen::bfloat16 theirs(number);
      if (ours.bits != theirs.value) ++wrong;
      const auto back = std::bit_cast<std::uint32_t>(static_cast<float>(ours));
      if (back != static_cast<std::uint32_t>(ours.bits) << 16) ++wrong;
    }
  }
  CHECK(wrong == 0);
}
