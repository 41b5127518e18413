/// \file
/// GgufTensors: the named tensors of a GGUF file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/vocabulary/gguf_metadata.hpp>

namespace tooldecode::model {

/// A view of a GGUF file's tensors; the bytes must outlive it. The constructor checks that all
/// tensors of a known type lie within the file.
///
/// \par Shapes      the outermost extent first, as in SafeTensors; files store the reverse
/// \par Complexity  constructor O(metadata + tensors); `floats` O(elements); nothing else is copied
/// \par Threads     immutable
/// \par Errors      Error{malformed_file} with the byte offset or the tensor; from `floats` also
///                  {shape_mismatch}, and {unknown_format} for an unsupported type
/// \par Source      ggml-org/ggml, docs/gguf.md
class GgufTensors {
 public:
  struct Tensor {
    std::uint32_t type = 0;
    std::vector<std::size_t> shape;
    std::size_t begin = 0;
  };

  explicit GgufTensors(std::string_view bytes);

  [[nodiscard]] const vocabulary::GgufMetadata& metadata() const noexcept { return metadata_; }
  [[nodiscard]] const std::map<std::string, Tensor, std::less<>>& tensors() const noexcept;
  [[nodiscard]] bool contains(std::string_view name) const { return tensors_.contains(name); }

  /// A tensor converted to floats. It must exist and have exactly this shape.
  [[nodiscard]] std::vector<float> floats(std::string_view name,
                                          std::span<const std::size_t> shape) const;

 private:
  // ggml's names of unsupported types, by number.
  static constexpr std::array<std::pair<std::uint32_t, std::string_view>, 22> other_types{
      {{9, "Q8_1"},    {10, "Q2_K"},    {11, "Q3_K"},  {15, "Q8_K"},   {16, "IQ2_XXS"},
       {17, "IQ2_XS"}, {18, "IQ3_XXS"}, {19, "IQ1_S"}, {20, "IQ4_NL"}, {21, "IQ3_S"},
       {22, "IQ2_S"},  {23, "IQ4_XS"},  {24, "I8"},    {25, "I16"},    {26, "I32"},
       {27, "I64"},    {28, "F64"},     {29, "IQ1_M"}, {34, "TQ1_0"},  {35, "TQ2_0"},
       {39, "MXFP4"},  {40, "NVFP4"}}};

  static std::string place_of(std::string_view tensor);
  static std::string written(std::span<const std::size_t> shape);
  static std::string name_of_type(std::uint32_t id);
  static std::string known_types();

  void read_tensor(vocabulary::GgufCursor& cursor);

  [[nodiscard]] std::size_t read_alignment() const;

  /// Converts a tensor's offset to a file offset, and checks that the tensor lies within the file.
  void place_tensor(const std::string& name, Tensor& tensor, std::size_t data_begin,
                    std::size_t alignment) const;

  std::string_view bytes_;
  vocabulary::GgufMetadata metadata_;
  std::map<std::string, Tensor, std::less<>> tensors_;
};

}  // namespace tooldecode::model

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/model/gguf_tensors.ipp>
#endif
