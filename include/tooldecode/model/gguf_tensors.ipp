#pragma once

#include <algorithm>
#include <bit>

#include <tooldecode/model/block_type.hpp>
#include <tooldecode/model/gguf_tensors.hpp>

namespace tooldecode::model {

TOOLDECODE_INLINE GgufTensors::GgufTensors(std::string_view bytes)
    : bytes_(bytes), metadata_(bytes) {
  vocabulary::GgufCursor cursor(bytes, metadata_.size_bytes());
  for (std::uint64_t i = 0; i < metadata_.tensor_count(); ++i) read_tensor(cursor);
  const std::size_t alignment  = read_alignment();
  const std::size_t data_begin = (cursor.position() + alignment - 1) / alignment * alignment;
  for (auto& [name, tensor] : tensors_) place_tensor(name, tensor, data_begin, alignment);
}

TOOLDECODE_INLINE const std::map<std::string, GgufTensors::Tensor, std::less<>>&
GgufTensors::tensors() const noexcept {
  return tensors_;
}

TOOLDECODE_INLINE std::vector<float> GgufTensors::floats(std::string_view name,
                                                         std::span<const std::size_t> shape) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) {
    throw Error(Errc::malformed_file, place_of(name), "is not in the file");
  }
  const Tensor& tensor = found->second;
  if (!std::ranges::equal(shape, tensor.shape)) {
    throw Error(Errc::shape_mismatch, place_of(name),
                "has shape " + written(tensor.shape) + ", must have " + written(shape));
  }
  const BlockType* type = find_block_type(tensor.type);
  if (type == nullptr) {
    throw Error(Errc::unknown_format, place_of(name),
                "has type " + name_of_type(tensor.type) + ", weights must be " + known_types());
  }
  std::size_t size = 1;
  for (const std::size_t extent : shape) size *= extent;
  std::vector<float> result(size);
  type->widen(reinterpret_cast<const std::uint8_t*>(bytes_.data()) + tensor.begin,
              size / type->weights, result.data());
  return result;
}

TOOLDECODE_INLINE std::string GgufTensors::place_of(std::string_view tensor) {
  return "tensor \"" + std::string(tensor) + '"';
}

TOOLDECODE_INLINE std::string GgufTensors::written(std::span<const std::size_t> shape) {
  std::string text;
  for (const std::size_t extent : shape) text += (text.empty() ? "" : ",") + std::to_string(extent);
  return '[' + text + ']';
}

TOOLDECODE_INLINE std::string GgufTensors::name_of_type(std::uint32_t id) {
  for (const auto& [number, name] : other_types) {
    if (number == id) return std::string(name);
  }
  return "number " + std::to_string(id);
}

TOOLDECODE_INLINE std::string GgufTensors::known_types() {
  std::string text;
  for (const BlockType& type : detail::block_types) {
    text += (text.empty()                           ? ""
             : &type == &detail::block_types.back() ? " or "
                                                    : ", ") +
            std::string(type.name);
  }
  return text;
}

TOOLDECODE_INLINE void GgufTensors::read_tensor(vocabulary::GgufCursor& cursor) {
  std::string name   = cursor.string();
  const auto extents = cursor.read<std::uint32_t>();
  if (extents < 1 || extents > 4) {
    cursor.fail(std::to_string(extents) + " dimensions: must be from 1 to 4");
  }
  Tensor tensor;
  for (std::uint32_t i = 0; i < extents; ++i) tensor.shape.push_back(cursor.read<std::uint64_t>());
  std::ranges::reverse(tensor.shape);
  tensor.type  = cursor.read<std::uint32_t>();
  tensor.begin = cursor.read<std::uint64_t>();
  if (!tensors_.try_emplace(name, std::move(tensor)).second) {
    throw Error(Errc::malformed_file, place_of(name), "is there twice");
  }
}

TOOLDECODE_INLINE std::size_t GgufTensors::read_alignment() const {
  const char* key = "general.alignment";
  if (!metadata_.has(key)) return 32;
  const double given = metadata_.value<double>(key);
  const auto result  = given >= 1 && given <= 65536 ? static_cast<std::size_t>(given) : 0;
  if (!std::has_single_bit(result) || static_cast<double>(result) != given) {
    throw Error(Errc::malformed_file, key, given, "must be a power of two from 1 to 65536");
  }
  return result;
}

TOOLDECODE_INLINE void GgufTensors::place_tensor(const std::string& name, Tensor& tensor,
                                                 std::size_t data_begin,
                                                 std::size_t alignment) const {
  const auto require = [&](bool met, const std::string& what) {
    if (!met) throw Error(Errc::malformed_file, place_of(name), what);
  };
  require(tensor.begin % alignment == 0, "begins at byte " + std::to_string(tensor.begin) +
                                             " of the data, must begin at a multiple of " +
                                             std::to_string(alignment));
  const BlockType* type = find_block_type(tensor.type);
  if (type == nullptr) return;  // its size is unknown; `floats` throws for it
  require(tensor.shape.back() % type->weights == 0,
          "has rows of " + std::to_string(tensor.shape.back()) + ", of type " +
              std::string(type->name) + " they must be multiples of " +
              std::to_string(type->weights));
  const std::size_t data_size = bytes_.size() - std::min(bytes_.size(), data_begin);
  const std::size_t blocks    = (data_size - std::min(data_size, tensor.begin)) / type->bytes;
  std::size_t size            = 1;  // elements; at most what the file can hold
  for (const std::size_t extent : tensor.shape) {
    require(extent > 0, "has shape " + written(tensor.shape) + ", must not be empty");
    require(size <= blocks * type->weights / extent,
            "has shape " + written(tensor.shape) + ", the file is cut short: it has " +
                std::to_string(data_size) + " bytes of data");
    size *= extent;
  }
  tensor.begin += data_begin;
}

}  // namespace tooldecode::model
