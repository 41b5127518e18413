#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/model/block_type.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;

namespace {

/// Bits and value of a half with few digits, so that products in float64 are exact.
struct HalfNumber {
  std::uint16_t bits = 0;
  double number      = 0;
  static HalfNumber random(std::mt19937& random) {
    const auto below = [&](unsigned count) { return static_cast<unsigned>(random() % count); };
    const unsigned exponent = 5 + below(20), mantissa = below(1024), sign = below(2);
    const double magnitude = std::ldexp(1024.0 + mantissa, static_cast<int>(exponent) - 25);
    return {static_cast<std::uint16_t>(sign << 15 | exponent << 10 | mantissa),
            sign != 0 ? -magnitude : magnitude};
  }
};

/// The bytes of a block in ggml's layout, and its weights.
struct MadeBlock {
  std::string bytes;
  std::vector<double> weights;

  void put(HalfNumber half) {
    bytes.push_back(static_cast<char>(half.bits & 255));
    bytes.push_back(static_cast<char>(half.bits >> 8));
  }
  void put(const std::vector<unsigned>& values) {
    for (const unsigned value : values) bytes.push_back(static_cast<char>(value));
  }
};

std::vector<unsigned> random_values(std::size_t count, unsigned below, std::mt19937& random) {
  std::vector<unsigned> values(count);
  for (unsigned& value : values) value = static_cast<unsigned>(random() % below);
  return values;
}

/// 32 weights of 4 or 5 bits: weight i and weight 16 + i share a byte.
MadeBlock small_block(unsigned bits, bool has_minimum, std::mt19937& random) {
  const auto values     = random_values(32, 1U << bits, random);
  const auto scale      = HalfNumber::random(random);
  const auto minimum    = HalfNumber::random(random);
  std::uint32_t highest = 0;
  std::vector<unsigned> pairs(16);
  for (unsigned i = 0; i < 32; ++i) {
    highest |= (values[i] / 16) << i;
    pairs[i % 16] += values[i] % 16 * (i < 16 ? 1 : 16);
  }
  MadeBlock block;
  block.put(scale);
  if (has_minimum) block.put(minimum);
  if (bits == 5) {
    block.put({highest & 255, highest >> 8 & 255, highest >> 16 & 255, highest >> 24});
  }
  block.put(pairs);
  for (const unsigned value : values) {
    block.weights.push_back(has_minimum
                                ? scale.number * value + minimum.number
                                : scale.number * (static_cast<int>(value) - (1 << (bits - 1))));
  }
  return block;
}

/// 256 weights of 4 or 5 bits in eight parts, two of which share 32 bytes; the parts' scales and
/// minima have six bits each, packed into twelve bytes.
MadeBlock large_block(unsigned bits, std::mt19937& random) {
  const auto values  = random_values(256, 1U << bits, random);
  const auto scales  = random_values(8, 64, random);
  const auto minima  = random_values(8, 64, random);
  const auto scale   = HalfNumber::random(random);
  const auto minimum = HalfNumber::random(random);
  std::vector<unsigned> packed(12);
  for (std::size_t part = 0; part < 4; ++part) {
    packed[part]     = scales[part] + scales[part + 4] / 16 * 64;
    packed[part + 4] = minima[part] + minima[part + 4] / 16 * 64;
    packed[part + 8] = scales[part + 4] % 16 + minima[part + 4] % 16 * 16;
  }
  std::vector<unsigned> highest(32), pairs(128);
  for (std::size_t i = 0; i < 256; ++i) {
    const std::size_t part = i / 32;
    highest[i % 32] += values[i] / 16 << part;
    pairs[i / 64 * 32 + i % 32] += values[i] % 16 * (part % 2 == 0 ? 1 : 16);
  }
  MadeBlock block;
  block.put(scale);
  block.put(minimum);
  block.put(packed);
  if (bits == 5) block.put(highest);
  block.put(pairs);
  for (std::size_t i = 0; i < 256; ++i) {
    block.weights.push_back(scale.number * scales[i / 32] * values[i] -
                            minimum.number * minima[i / 32]);
  }
  return block;
}

/// 256 weights of 6 bits in sixteen parts with scales of eight bits. In each half of 128, weights
/// i, 32 + i, 64 + i and 96 + i share a byte of upper bits; the first and third share a byte of
/// lower bits, and so do the second and fourth.
MadeBlock six_bit_block(std::mt19937& random) {
  const auto values = random_values(256, 64, random);
  const auto scales = random_values(16, 256, random);
  const auto scale  = HalfNumber::random(random);
  std::vector<unsigned> lower(128), upper(64);
  for (std::size_t half = 0; half < 2; ++half) {
    for (std::size_t i = 0; i < 32; ++i) {
      const unsigned* v         = values.data() + half * 128 + i;
      lower[half * 64 + i]      = v[0] % 16 + v[64] % 16 * 16;
      lower[half * 64 + 32 + i] = v[32] % 16 + v[96] % 16 * 16;
      upper[half * 32 + i]      = v[0] / 16 + v[32] / 16 * 4 + v[64] / 16 * 16 + v[96] / 16 * 64;
    }
  }
  MadeBlock block;
  block.put(lower);
  block.put(upper);
  block.put(scales);
  block.put(scale);
  for (std::size_t i = 0; i < 256; ++i) {
    const int part = scales[i / 16] < 128 ? static_cast<int>(scales[i / 16])
                                          : static_cast<int>(scales[i / 16]) - 256;
    block.weights.push_back(scale.number * part * (static_cast<int>(values[i]) - 32));
  }
  return block;
}

MadeBlock byte_block(std::mt19937& random) {
  const auto values = random_values(32, 256, random);
  const auto scale  = HalfNumber::random(random);
  MadeBlock block;
  block.put(scale);
  block.put(values);
  for (const unsigned value : values) {
    block.weights.push_back(scale.number *
                            (value < 128 ? value : static_cast<double>(value) - 256));
  }
  return block;
}

MadeBlock made_block(std::string_view name, std::mt19937& random) {
  if (name == "Q4_0") return small_block(4, false, random);
  if (name == "Q4_1") return small_block(4, true, random);
  if (name == "Q5_0") return small_block(5, false, random);
  if (name == "Q5_1") return small_block(5, true, random);
  if (name == "Q8_0") return byte_block(random);
  if (name == "Q4_K") return large_block(4, random);
  if (name == "Q5_K") return large_block(5, random);
  if (name == "Q6_K") return six_bit_block(random);
  MadeBlock block;
  if (name == "F16") {
    const auto half = HalfNumber::random(random);
    block.put(half);
    block.weights = {half.number};
    return block;
  }
  const auto bits = static_cast<std::uint32_t>(random() % 0x4000'0000 + 0x2000'0000) &
                    (name == "BF16" ? 0xFFFF'0000U : 0xFFFF'FFFFU);
  block.put({bits & 255, bits >> 8 & 255, bits >> 16 & 255, bits >> 24});
  if (name == "BF16") block.bytes.erase(0, 2);
  block.weights = {static_cast<double>(std::bit_cast<float>(bits))};
  return block;
}

}  // namespace

TEST_CASE("BlockType::widen equals the definition of each type rounded once") {
  std::mt19937 random{21};
  for (const auto& type : td::model::detail::block_types) {
    for (int round = 0; round < 200; ++round) {
      INFO("seed 21, " << type.name << ", round " << round);
      MadeBlock blocks = made_block(type.name, random);
      MadeBlock second = made_block(type.name, random);
      REQUIRE(blocks.bytes.size() == type.bytes);
      REQUIRE(blocks.weights.size() == type.weights);
      blocks.bytes += second.bytes;
      blocks.weights.insert(blocks.weights.end(), second.weights.begin(), second.weights.end());
      std::vector<float> weights(2 * type.weights);
      type.widen(reinterpret_cast<const std::uint8_t*>(blocks.bytes.data()), 2, weights.data());
      for (std::size_t i = 0; i < weights.size(); ++i) {
        REQUIRE(weights[i] == static_cast<float>(blocks.weights[i]));
      }
    }
  }
}

TEST_CASE("find_block_type finds types by their number in GGUF") {
  const auto name_of = [](std::uint32_t id) {
    const auto* type = td::model::find_block_type(id);
    return type == nullptr ? std::string("none") : std::string(type->name);
  };
  const std::array<const char*, 32> names{
      "F32",  "F16",  "Q4_0", "Q4_1", "none", "none", "Q5_0", "Q5_1", "Q8_0", "none", "none",
      "none", "Q4_K", "Q5_K", "Q6_K", "none", "none", "none", "none", "none", "none", "none",
      "none", "none", "none", "none", "none", "none", "none", "none", "BF16", "none"};
  for (std::uint32_t id = 0; id < names.size(); ++id) CHECK(name_of(id) == names[id]);
}
