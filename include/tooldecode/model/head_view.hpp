/// \file
/// HeadView: a view of an LM head with weights of any type.
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>

#include <tooldecode/core/config.hpp>
#include <tooldecode/model/fixed_order.hpp>
#include <tooldecode/model/row_weight.hpp>

namespace tooldecode {

/// A matrix in memory, such as Eigen's matrices and maps, or a HeadView.
template <class V>
concept HeadMatrix = requires(const V& view) {
  *view.data();
  { view.rows() } -> std::convertible_to<std::size_t>;
  { view.cols() } -> std::convertible_to<std::size_t>;
};

/// A row-major LM head in host memory, one row per token: the type of LlamaModel::lm_head() and the
/// source of every draft head.
///
/// `HeadView{matrix}` accepts anything with `data()`, `rows()` and `cols()`, and `outerStride()` if
/// rows are further apart than they are long, such as an Eigen matrix or map. The matrix must
/// outlive the view.
///
/// \par Shapes      [V, H]
/// \par Complexity  O(1)
class HeadView {
 public:
  HeadView() = default;

  template <model::HeadWeight W>
  HeadView(model::RowsView<const W> view) noexcept
      : data_(view.data),
        rows_(view.rows),
        cols_(view.cols),
        stride_(view.stride),
        type_(*model::weight_type_of<W>) {}

  template <HeadMatrix V>
  HeadView(const V& view) noexcept
      : data_(view.data()),
        rows_(static_cast<std::size_t>(view.rows())),
        cols_(static_cast<std::size_t>(view.cols())),
        stride_(cols_) {
    using Weight        = std::remove_cvref_t<decltype(*view.data())>;
    constexpr auto type = model::weight_type_of<Weight>;
    static_assert(
        type && type != WeightType::scaled_byte,
        "HeadView: a head's weights must be float or tooldecode::BFloat16; for Eigen::bfloat16 include <tooldecode/model/eigen_views.hpp>");
    if constexpr (type) type_ = *type;
    if constexpr (requires { V::IsRowMajor; }) {
      static_assert(V::IsRowMajor, "HeadView: a head must be row-major: one row per token");
    }
    if constexpr (requires { view.outerStride(); }) {
      TOOLDECODE_ASSERT(view.innerStride() == 1);
      stride_ = static_cast<std::size_t>(view.outerStride());
    }
  }

  [[nodiscard]] const void* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::size_t cols() const noexcept { return cols_; }
  /// Number of weights from one row to the next.
  [[nodiscard]] std::size_t stride() const noexcept { return stride_; }
  [[nodiscard]] WeightType type() const noexcept { return type_; }

  [[nodiscard]] const void* row(std::size_t i) const noexcept {  // [H]
    const std::size_t bytes = type_ == WeightType::bfloat16 ? sizeof(BFloat16) : sizeof(float);
    return static_cast<const std::byte*>(data_) + i * stride_ * bytes;
  }

  /// A typed view: `as<float>().row(2)[3]`. W must be the type of the weights.
  template <model::HeadWeight W>
  [[nodiscard]] model::RowsView<const W> as() const noexcept {
    TOOLDECODE_ASSERT(type_ == model::weight_type_of<W>);
    return {static_cast<const W*>(data_), rows_, cols_, stride_};
  }

 private:
  const void* data_   = nullptr;
  std::size_t rows_   = 0;
  std::size_t cols_   = 0;
  std::size_t stride_ = 0;
  WeightType type_    = WeightType::float32;
};
static_assert(std::is_trivially_copyable_v<HeadView>);

}  // namespace tooldecode
