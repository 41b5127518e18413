/// \file
/// BlockType: how a GGUF tensor type packs weights into blocks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace tooldecode::model {

/// A tensor type: a block of `bytes` bytes holds `weights` weights.
///
/// \par Complexity  widen: O(weights)
/// \par Source      ggml-org/ggml, src/ggml-common.h, the structures of blocks
struct BlockType {
  std::uint32_t id = 0;  ///< as files write it
  std::string_view name;
  std::size_t weights = 0;
  std::size_t bytes   = 0;
  /// Writes the weights of `count` blocks as floats.
  void (*widen)(const std::uint8_t* blocks, std::size_t count, float* weights) = nullptr;
};

namespace detail {

template <class T>
T number_at(const std::uint8_t* bytes) {
  T result;
  std::memcpy(&result, bytes, sizeof result);
  return result;
}
float half_at(const std::uint8_t* bytes);

void widen_f32(const std::uint8_t* block, float* weights);
void widen_f16(const std::uint8_t* block, float* weights);
void widen_bf16(const std::uint8_t* block, float* weights);

// Blocks of 32 weights: a scale; a minimum in types that end with 1; the fifth bits of all weights
// in types of 5 bits; then one byte for each weight, or for the lower and upper half of two.

void widen_q8_0(const std::uint8_t* block, float* weights);

template <int Bits, bool HasMinimum>
void widen_small_block(const std::uint8_t* block, float* weights) {
  const float scale = half_at(block);
  const float shift = HasMinimum ? half_at(block + 2) : 0.0F;
  const int zero    = HasMinimum ? 0 : 1 << (Bits - 1);
  block += HasMinimum ? 4 : 2;
  const std::uint32_t fifths = Bits == 5 ? number_at<std::uint32_t>(block) : 0;
  block += Bits == 5 ? 4 : 0;
  for (std::size_t i = 0; i < 32; ++i) {
    const unsigned four  = i < 16 ? block[i] & 15U : block[i - 16] >> 4U;
    const unsigned fifth = (fifths >> i & 1U) << 4U;
    weights[i] = scale * static_cast<float>(static_cast<int>(four | fifth) - zero) + shift;
  }
}

// Blocks of 256 weights: parts with their own scales, which a scale of the block multiplies.

/// The 6 bits of a part's scale; those of its minimum are four bytes further on.
unsigned part_scale(const std::uint8_t* scales, std::size_t part);
unsigned part_minimum(const std::uint8_t* scales, std::size_t part);

template <int Bits>
void widen_large_block(const std::uint8_t* block, float* weights) {
  const float scale          = half_at(block);
  const float minimum        = half_at(block + 2);
  const std::uint8_t* scales = block + 4;
  const std::uint8_t* fifths = scales + 12;
  const std::uint8_t* fours  = fifths + (Bits == 5 ? 32 : 0);
  for (std::size_t part = 0; part < 8; ++part) {
    const float part_step  = scale * static_cast<float>(part_scale(scales, part));
    const float part_shift = minimum * static_cast<float>(part_minimum(scales, part));
    for (std::size_t i = 0; i < 32; ++i) {
      const unsigned four    = fours[part / 2 * 32 + i] >> (part % 2 * 4) & 15U;
      const unsigned fifth   = Bits == 5 ? (fifths[i] >> part & 1U) << 4U : 0;
      weights[part * 32 + i] = part_step * static_cast<float>(four | fifth) - part_shift;
    }
  }
}

void widen_q6_k(const std::uint8_t* block, float* weights);

template <std::size_t Weights, std::size_t Bytes, auto WidenOne>
constexpr BlockType block_type(std::uint32_t id, std::string_view name) {
  return {id, name, Weights, Bytes,
          [](const std::uint8_t* blocks, std::size_t count, float* weights) {
            for (std::size_t i = 0; i < count; ++i)
              WidenOne(blocks + i * Bytes, weights + i * Weights);
          }};
}

inline constexpr std::array block_types{
    block_type<1, 4, widen_f32>(0, "F32"),
    block_type<1, 2, widen_f16>(1, "F16"),
    block_type<32, 18, widen_small_block<4, false>>(2, "Q4_0"),
    block_type<32, 20, widen_small_block<4, true>>(3, "Q4_1"),
    block_type<32, 22, widen_small_block<5, false>>(6, "Q5_0"),
    block_type<32, 24, widen_small_block<5, true>>(7, "Q5_1"),
    block_type<32, 34, widen_q8_0>(8, "Q8_0"),
    block_type<256, 144, widen_large_block<4>>(12, "Q4_K"),
    block_type<256, 176, widen_large_block<5>>(13, "Q5_K"),
    block_type<256, 210, widen_q6_k>(14, "Q6_K"),
    block_type<1, 2, widen_bf16>(30, "BF16"),
};

}  // namespace detail

/// The type with this number; null if its weights are not supported.
[[nodiscard]] const BlockType* find_block_type(std::uint32_t id);

}  // namespace tooldecode::model

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/model/block_type.ipp>
#endif
