/// \file
/// SafeTensors: named tensors read from a safetensors file.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>

namespace tooldecode {

/// Converts the 16 bits of a half-precision float; NaN stays NaN.
[[nodiscard]] constexpr float half_to_float(std::uint16_t half) noexcept {
  const std::uint32_t sign     = static_cast<std::uint32_t>(half & 0x8000U) << 16;
  const std::uint32_t exponent = half >> 10 & 31U;
  const std::uint32_t mantissa = half & 0x3ffU;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  const std::uint32_t widened = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | widened << 23 | mantissa << 13);
}

/// The tensors of one file. Reading it checks that the header lies within the file, every shape
/// equals its byte range, and the ranges are contiguous up to the end.
///
/// \par Shapes      as in the file; `floats` returns a tensor in row-major order
/// \par Complexity  O(file) memory: the file is kept as read; floats O(elements)
/// \par Threads     immutable
/// \par Errors      Error{file_unreadable}, {malformed_file}, {malformed_json}, {unknown_format}
///                  with the file and the tensor as place; `floats`: {shape_mismatch}
/// \par Source      github.com/huggingface/safetensors, README, "Format"
class SafeTensors {
 public:
  /// The greatest accepted header, as in the format's reference implementation.
  static constexpr std::size_t header_limit_bytes = 100'000'000;

  /// A tensor's type as in the file ("BF16"), its shape and its bytes.
  struct Tensor {
    std::string type;
    std::vector<std::size_t> shape;
    std::size_t begin = 0;  ///< offsets into the data after the header
    std::size_t end   = 0;
  };

  [[nodiscard]] static SafeTensors load(const std::filesystem::path& path);

  /// Parses the bytes of a file; `place` names it in errors.
  [[nodiscard]] static SafeTensors parse(std::string bytes, std::string place = "safetensors");

  [[nodiscard]] const std::map<std::string, Tensor, std::less<>>& tensors() const noexcept;
  [[nodiscard]] bool contains(std::string_view name) const { return tensors_.contains(name); }

  /// A tensor of F32, F16 or BF16 as floats. It must exist and have exactly this shape.
  [[nodiscard]] std::vector<float> floats(std::string_view name,
                                          std::span<const std::size_t> shape) const;
  /// A tensor of I64. It must exist and have exactly this shape.
  [[nodiscard]] std::vector<std::int64_t> integers(std::string_view name,
                                                   std::span<const std::size_t> shape) const;

 private:
  static_assert(std::endian::native == std::endian::little, "the format is little-endian");

  // Reads the header; defined elsewhere, so that no public header includes a JSON library.
  class HeaderReader;

  SafeTensors(std::string bytes, std::string place)
      : bytes_(std::move(bytes)), place_(std::move(place)) {}

  [[nodiscard]] const char* data() const noexcept { return bytes_.data() + data_begin_; }

  [[nodiscard]] const Tensor& find(std::string_view name, std::span<const std::size_t> shape) const;
  template <class T>
  [[nodiscard]] std::vector<T> copied(const Tensor& tensor) const;
  template <class Widen>
  [[nodiscard]] std::vector<float> widened(const Tensor& tensor, Widen widen) const;

  [[nodiscard]] std::string place_of(std::string_view tensor) const;
  [[nodiscard]] static std::string written(std::span<const std::size_t> shape);

  std::string bytes_;
  std::string place_;
  std::size_t data_begin_ = 0;
  std::map<std::string, Tensor, std::less<>> tensors_;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/model/safetensors.ipp>
#endif
