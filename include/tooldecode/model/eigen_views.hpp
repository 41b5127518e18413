/// \file
/// Heads of Eigen's matrices, and matrices of Eigen's from heads: the one header for users that
/// includes Eigen.
#pragma once

#include <optional>

#include <Eigen/Core>

#include <tooldecode/model/head_view.hpp>
#include <tooldecode/model/row_weight.hpp>

namespace tooldecode {

/// Matrices of these weights are heads as well.
template <>
inline constexpr std::optional<WeightType> model::weight_type_of<Eigen::bfloat16> =
    WeightType::bfloat16;
static_assert(sizeof(Eigen::bfloat16) == sizeof(BFloat16));

/// A head as Eigen sees it.
template <class W>
using EigenHead =
    Eigen::Map<const Eigen::Matrix<W, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>, 0,
               Eigen::OuterStride<>>;  // [V, H]

/// Refers to the same weights, which must be of this type.
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
