/// \file
/// ConstrainedHead: computes the logits of allowed tokens only.
#pragma once

#include <cstddef>
#include <span>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/diagnose.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/model/head_view.hpp>

namespace tooldecode {

/// Multiplies only those rows of a model's head that a mask allows.
///
/// With twelve allowed tokens of 150,000 the head costs nearly nothing. The allowed logits are
/// bit-identical to the whole product if the model's product is `fill_products`, as LlamaModel's
/// is; the decoded text is then the same.
///
/// \par Shapes      hidden [n, H], one mask [ceil(V / 32)] -> logits [n, V]
/// \par Complexity  O(n H) per allowed token, whose row is read once; O(n V) to clear the rest; the
///                  head is not copied
/// \par Threads     const members may run concurrently; the model must outlive the head
/// \par Source      Tool Decoding, appendix C, proposes the constraint in the head
class ConstrainedHead {
 public:
  explicit ConstrainedHead(HeadView head) noexcept : head_(head) {}
  template <class M>
    requires(!HeadMatrix<M>)
  explicit ConstrainedHead(const M& model) : head_(model.lm_head()) {
    static_assert(diagnose::is_head_model<M>());
  }
  template <class M>
    requires(!HeadMatrix<M>)
  explicit ConstrainedHead(const M&& model) = delete;

  [[nodiscard]] std::size_t vocabulary_size() const noexcept { return head_.rows(); }
  [[nodiscard]] std::size_t hidden_size() const noexcept { return head_.cols(); }

  void fill_logits(std::span<const float> hidden, ConstMaskView mask,
                   std::span<float> logits) const;

 private:
  HeadView head_;  // [V, H]
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/model/constrained_head.ipp>
#endif
