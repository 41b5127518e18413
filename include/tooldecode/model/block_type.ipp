#pragma once

#include <algorithm>

#include <tooldecode/model/bfloat16.hpp>
#include <tooldecode/model/block_type.hpp>
#include <tooldecode/model/safetensors.hpp>

namespace tooldecode::model::detail {

TOOLDECODE_INLINE float half_at(const std::uint8_t* bytes) {
  return half_to_float(number_at<std::uint16_t>(bytes));
}

TOOLDECODE_INLINE void widen_f32(const std::uint8_t* block, float* weights) {
  *weights = number_at<float>(block);
}

TOOLDECODE_INLINE void widen_f16(const std::uint8_t* block, float* weights) {
  *weights = half_at(block);
}

TOOLDECODE_INLINE void widen_bf16(const std::uint8_t* block, float* weights) {
  *weights = static_cast<float>(number_at<BFloat16>(block));
}

TOOLDECODE_INLINE void widen_q8_0(const std::uint8_t* block, float* weights) {
  const float scale = half_at(block);
  for (std::size_t i = 0; i < 32; ++i) {
    weights[i] = scale * static_cast<float>(number_at<std::int8_t>(block + 2 + i));
  }
}

TOOLDECODE_INLINE unsigned part_scale(const std::uint8_t* scales, std::size_t part) {
  if (part < 4) return scales[part] & 63U;
  const unsigned upper = scales[part - 4];
  return (scales[part + 4] & 15U) | upper >> 6U << 4U;
}

TOOLDECODE_INLINE unsigned part_minimum(const std::uint8_t* scales, std::size_t part) {
  if (part < 4) return scales[part + 4] & 63U;
  const unsigned lower = scales[part + 4], upper = scales[part];
  return lower >> 4U | upper >> 6U << 4U;
}

TOOLDECODE_INLINE void widen_q6_k(const std::uint8_t* block, float* weights) {
  const float scale = half_at(block + 208);
  for (std::size_t i = 0; i < 256; ++i) {
    const std::size_t half = i / 128, quarter = i / 32 % 4, column = i % 32;
    const unsigned four = block[half * 64 + quarter % 2 * 32 + column] >> (quarter / 2 * 4) & 15U;
    const unsigned two  = block[128 + half * 32 + column] >> (quarter * 2) & 3U;
    const float step    = scale * static_cast<float>(number_at<std::int8_t>(block + 192 + i / 16));
    weights[i]          = step * static_cast<float>(static_cast<int>(four | two << 4U) - 32);
  }
}

}  // namespace tooldecode::model::detail

namespace tooldecode::model {

TOOLDECODE_INLINE const BlockType* find_block_type(std::uint32_t id) {
  const auto found = std::find_if(detail::block_types.begin(), detail::block_types.end(),
                                  [&](const BlockType& type) { return type.id == id; });
  return found == detail::block_types.end() ? nullptr : &*found;
}

}  // namespace tooldecode::model
