/// \file
/// Converts Eigen matrices to heads and heads to Eigen matrices: the only public header that
/// includes Eigen.
#pragma once

#include <optional>

#include <Eigen/Core>

#include <tooldecode/model/head_view.hpp>
#include <tooldecode/model/row_weight.hpp>

namespace tooldecode {

/// Matrices of Eigen::bfloat16 can be heads.
template <>
inline constexpr std::optional<WeightType> model::weight_type_of<Eigen::bfloat16> =
    WeightType::bfloat16;
static_assert(sizeof(Eigen::bfloat16) == sizeof(BFloat16));

/// A head as an Eigen map.
template <class W>
using EigenHead =
    Eigen::Map<const Eigen::Matrix<W, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>, 0,
               Eigen::OuterStride<>>;  // [V, H]

/// Refers to the weights of a head, which must be of type W.
///
/// \par Complexity  O(1)
template <class W>
[[nodiscard]] EigenHead<W> eigen_head(HeadView head) noexcept {
  TOOLDECODE_ASSERT(head.type() == model::weight_type_of<W>);
  return {static_cast<const W*>(head.data()), static_cast<Eigen::Index>(head.rows()),
          static_cast<Eigen::Index>(head.cols()),
          Eigen::OuterStride<>(static_cast<Eigen::Index>(head.stride()))};
}

}  // namespace tooldecode
