/// \file
/// RowWeight: the types of weights in rows of an LM head, and how a row is stored.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include <tooldecode/model/bfloat16.hpp>

namespace tooldecode {

/// Storage type of the weights in an LM head's rows.
enum class WeightType : std::uint8_t {
  float32,
  bfloat16,
  scaled_byte,  ///< 8 bits; a four-byte scale ends each row
};

}  // namespace tooldecode

namespace tooldecode::model {

/// A type that the weights of an LM head may have.
template <class W>
concept HeadWeight = std::same_as<W, float> || std::same_as<W, BFloat16>;

/// A weight in 8 bits; the weight is `value` times the scale that ends its row.
///
/// A draft only needs likely tokens, so rounding its rows costs at most acceptance: the verifier
/// decides with the target's head.
struct ScaledByte {
  std::int8_t value = 0;
};
static_assert(sizeof(ScaledByte) == 1);

/// A type that the weights of a stored row may have.
template <class W>
concept RowWeight = HeadWeight<W> || std::same_as<W, ScaledByte>;

/// The weight type of numbers of type T; empty if they cannot be weights. You may specialise it for
/// a type of another library with the same bits, as eigen_views.hpp does.
template <class T>
inline constexpr std::optional<WeightType> weight_type_of =
    std::same_as<T, float>        ? std::optional(WeightType::float32)
    : std::same_as<T, BFloat16>   ? std::optional(WeightType::bfloat16)
    : std::same_as<T, ScaledByte> ? std::optional(WeightType::scaled_byte)
                                  : std::nullopt;

/// Calls `use.template operator()<W>()`, where W is the C++ type of the weights.
template <class Use>
constexpr decltype(auto) with_weights(WeightType type, Use&& use) {
  switch (type) {
    case WeightType::bfloat16:
      return use.template operator()<BFloat16>();
    case WeightType::scaled_byte:
      return use.template operator()<ScaledByte>();
    case WeightType::float32:
      break;
  }
  return use.template operator()<float>();
}

/// The number of weights that a row of n takes, its scale included.
template <RowWeight W>
[[nodiscard]] constexpr std::size_t stored_size(std::size_t n) noexcept {
  return std::same_as<W, ScaledByte> ? n + sizeof(float) : n;
}

/// The number of bytes that a row of n takes, its scale included.
[[nodiscard]] constexpr std::size_t stored_bytes(WeightType type, std::size_t n) noexcept {
  return with_weights(type, [n]<class W>() { return stored_size<W>(n) * sizeof(W); });
}

/// The factor of the sums of a row of n.
template <RowWeight W>
[[nodiscard]] float scale_of([[maybe_unused]] const W* row,
                             [[maybe_unused]] std::size_t n) noexcept {
  float scale = 1;
  if constexpr (std::same_as<W, ScaledByte>) std::memcpy(&scale, row + n, sizeof scale);
  return scale;
}

/// Weight i of a row of n, as products use it.
template <RowWeight W>
[[nodiscard]] float weight_at(const W* row, std::size_t n, std::size_t i) noexcept {
  if constexpr (std::same_as<W, ScaledByte>) {
    return static_cast<float>(row[i].value) * scale_of(row, n);
  } else {
    return static_cast<float>(row[i]);
  }
}

/// Appends a row converted to another type of weights. In 8 bits the greatest magnitude of the row
/// becomes 127 and each weight is off by at most half a step. Weights must be finite.
///
/// \par Complexity  O(n)
template <RowWeight W, HeadWeight From, class Allocator>
void append_row(std::span<const From> row, std::vector<W, Allocator>& rows) {
  if constexpr (std::same_as<W, ScaledByte>) {
    float greatest = 0;
    for (const From weight : row) {
      greatest = std::max(greatest, std::abs(static_cast<float>(weight)));
    }
    const float scale = greatest / 127;
    for (const From weight : row) {
      const float steps = scale > 0 ? static_cast<float>(weight) / scale : 0;
      rows.push_back({static_cast<std::int8_t>(std::clamp(std::round(steps), -127.0F, 127.0F))});
    }
    ScaledByte stored[sizeof scale];
    std::memcpy(static_cast<void*>(stored), &scale, sizeof scale);
    rows.insert(rows.end(), std::begin(stored), std::end(stored));
  } else {
    for (const From weight : row) rows.push_back(static_cast<W>(weight));
  }
}

}  // namespace tooldecode::model
