/// \file
/// MaskMemory: a Python array that masks are written to.
#pragma once

#include <cstddef>

#include <tooldecode/core/mask_view.hpp>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace tooldecode::python {

/// The words of an array that offers the buffer protocol (NumPy) or DLPack (torch), held as long as
/// this lives.
///
/// \par Shapes      array [rows, ceil(V / 32)] or [ceil(V / 32)], int32 or uint32, without gaps
/// \par Threads     made and ended with the GIL; the words may be written to without it
/// \par Errors      as dlpack_mask_words; Error{invalid_option} for an array that is read-only, and
///                  Error{unknown_format} for what is no array
class MaskMemory {
 public:
  MaskMemory(nanobind::handle array, std::size_t vocabulary_size);
  ~MaskMemory();
  MaskMemory(const MaskMemory&)            = delete;
  MaskMemory& operator=(const MaskMemory&) = delete;

  [[nodiscard]] std::size_t rows() const noexcept {
    return width_ == 0 ? 0 : words_.size() / width_;
  }
  /// Error{shape_mismatch} for one that there is not.
  [[nodiscard]] MaskView row(std::size_t i) const;

 private:
  void read_buffer(nanobind::handle array, std::size_t vocabulary_size);

  std::size_t width_;
  MaskView words_;
  Py_buffer buffer_{};
  bool has_buffer_ = false;
  nanobind::ndarray<> tensor_;
};

}  // namespace tooldecode::python
