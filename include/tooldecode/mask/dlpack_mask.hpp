/// \file
/// dlpack_mask_words: the memory of masks that a DLPack tensor holds, for bindings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/mask_view.hpp>

namespace tooldecode {

namespace detail {
inline constexpr int dlpack_cpu          = 1;
inline constexpr int dlpack_int          = 0;
inline constexpr int dlpack_unsigned     = 1;
inline constexpr std::size_t max_extents = std::numeric_limits<std::ptrdiff_t>::max();

/// The shape for error messages: "[2, 4]".
template <class Tensor>
[[nodiscard]] std::string dlpack_shape(const Tensor& tensor) {
  std::string text = "[";
  for (int i = 0; tensor.shape != nullptr && i < tensor.ndim; ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(tensor.shape[i]);
  }
  return text + ']';
}
}  // namespace detail

/// The words of a tensor that holds one mask, [words], or several, [rows, words].
///
/// The tensor's type is DLPack's DLTensor or any type with its fields, so its header is not needed
/// here. The caller keeps ownership, and must know whether the memory is writable.
///
/// \par Shapes      tensor [rows, ceil(V / 32)] or [ceil(V / 32)] -> words [rows, ceil(V / 32)]
/// \par Complexity  O(1), nothing is copied
/// \par Threads     reads the tensor only
/// \par Errors      Error with the field as place: {invalid_option} for a device other than the CPU
///                  and for null or misaligned data, {unknown_format} for elements other than int32
///                  and uint32, {shape_mismatch} for another shape and for rows with gaps
/// \par Source      DLPack 1.3, dlpack.h
template <class Tensor>
[[nodiscard]] MaskView dlpack_mask_words(const Tensor& tensor, std::size_t vocabulary_size) {
  if (static_cast<int>(tensor.device.device_type) != detail::dlpack_cpu) {
    throw Error(Errc::invalid_option, "device", static_cast<int>(tensor.device.device_type),
                "must be the CPU, which DLPack numbers 1");
  }
  const int code = tensor.dtype.code;
  if ((code != detail::dlpack_int && code != detail::dlpack_unsigned) || tensor.dtype.bits != 32 ||
      tensor.dtype.lanes != 1) {
    throw Error(Errc::unknown_format, "dtype",
                std::to_string(tensor.dtype.bits) + " bits of code " + std::to_string(code) +
                    " in " + std::to_string(tensor.dtype.lanes) +
                    " lanes: must be int32 or uint32, in one lane");
  }
  const std::size_t width = mask_word_count(vocabulary_size);
  const int last          = tensor.ndim == 1 ? 0 : 1;
  if ((tensor.ndim != 1 && tensor.ndim != 2) || tensor.shape == nullptr || tensor.shape[0] < 0 ||
      tensor.shape[last] < 0 || static_cast<std::size_t>(tensor.shape[last]) != width) {
    throw Error(Errc::shape_mismatch, "shape",
                detail::dlpack_shape(tensor) + ": must be [rows, " + std::to_string(width) +
                    "] or [" + std::to_string(width) + "]");
  }
  const std::size_t rows = last == 0 ? 1 : static_cast<std::size_t>(tensor.shape[0]);
  if (width != 0 && rows > detail::max_extents / sizeof(std::uint32_t) / width) {
    throw Error(Errc::shape_mismatch, "shape",
                detail::dlpack_shape(tensor) + ": must have no more rows than memory can hold");
  }
  if (rows == 0 || width == 0) return {};
  if (tensor.strides != nullptr) {
    // DLPack leaves the stride of an extent of 1 undefined.
    const bool is_row_compact = width == 1 || tensor.strides[last] == 1;
    if (!is_row_compact || (rows > 1 && tensor.strides[0] != static_cast<std::int64_t>(width))) {
      throw Error(Errc::shape_mismatch, "strides",
                  "must be those of rows without gaps: [" + std::to_string(width) + ", 1]");
    }
  }
  if (tensor.data == nullptr) throw Error(Errc::invalid_option, "data", "must not be null");
  void* const begin = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  if (reinterpret_cast<std::uintptr_t>(begin) % alignof(std::uint32_t) != 0) {
    throw Error(Errc::invalid_option, "data", "must be aligned to four bytes");
  }
  return std::span(static_cast<std::uint32_t*>(begin), rows * width);
}

}  // namespace tooldecode
