/// \file
/// MaskMemory: a Python array that masks are written to.
#pragma once

#include <cstddef>

#include <tooldecode/core/mask_view.hpp>

#include "host_array.hpp"
#include <nanobind/nanobind.h>

namespace tooldecode::python {

/// The words of an array, held as long as this lives.
///
/// \par Shapes      array [rows, ceil(V / 32)] or [ceil(V / 32)], int32 or uint32, without gaps
/// \par Threads     made and ended with the GIL; the words may be written to without it
/// \par Errors      as HostArray and dlpack_mask_words
class MaskMemory {
 public:
  MaskMemory(nanobind::handle array, std::size_t vocabulary_size);

  [[nodiscard]] std::size_t rows() const noexcept {
    return width_ == 0 ? 0 : words_.size() / width_;
  }
  /// Error{shape_mismatch} for one that there is not.
  [[nodiscard]] MaskView row(std::size_t i) const;

 private:
  HostArray array_;
  std::size_t width_;
  MaskView words_;
};

}  // namespace tooldecode::python
