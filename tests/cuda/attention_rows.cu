#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include <tooldecode/cuda/attention_rows.cuh>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/shared_memory.cuh>
#include <tooldecode/cuda/warp.cuh>

#include <support/catch.hpp>
#include <support/device.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

namespace {

constexpr int head_size = 64;
constexpr int tiles     = 3;
constexpr int slots     = tiles * AttentionTile<head_size>::slots;

__global__ void load_both_ways(std::uint32_t* out) {
  auto* const rows = &shared<__half>();  // [32, 8], numbers with consecutive bits
  const int lane   = lane_index();
  for (int i = 0; i < 8; ++i) {
    reinterpret_cast<std::uint16_t*>(rows)[8 * lane + i] = static_cast<std::uint16_t>(8 * lane + i);
  }
  __syncthreads();
  std::uint32_t straight[4], transposed[4];
  load_matrices(straight, rows + 8 * lane);
  load_transposed_matrices(transposed, rows + 8 * lane);
  for (int i = 0; i < 4; ++i) {
    out[8 * lane + i]     = straight[i];
    out[8 * lane + 4 + i] = transposed[i];
  }
}

/// Each row attends to slots s with s % 3 < 2; rows past 30 attend to none.
__global__ void attend(const __half* queries, const __half* keys, const __half* values, float scale,
                       __half* out, float* parts, float* log_sums) {
  using Tile            = AttentionTile<head_size>;
  using Rows            = AttentionRows<__half, head_size>;
  __half* const memory  = &shared<__half>();
  constexpr int numbers = Tile::rows * head_size;
  const int lane = lane_index(), g = lane / 4, t = lane % 4;
  const auto copy = [&](__half* to, const __half* from) {
    for (int i = lane; i < numbers; i += warp_size) {
      to[Tile::place(i / head_size, i % head_size / 8) + i % 8] = from[i];
    }
  };
  copy(memory, queries);
  Rows state(scale);
  for (int tile = 0; tile < tiles; ++tile) {
    __syncthreads();
    copy(memory + numbers, keys + tile * numbers);
    copy(memory + 2 * numbers, values + tile * numbers);
    __syncthreads();
    Rows::Scores scores = {};
    state.multiply_keys(scores, memory, memory + numbers);
    for (int b = 0; b < Tile::blocks; ++b) {
      for (int n = 0; n < Tile::slots / 8; ++n) {
        for (int i = 0; i < 4; ++i) {
          const int row = 16 * b + i / 2 * 8 + g, slot = tile * Tile::slots + 8 * n + 2 * t + i % 2;
          if (slot % 3 == 2 || row > 30) scores[b][n][i] = -INFINITY;
        }
      }
    }
    state.rescale(state.follow(scores));
    state.weigh(scores);
    state.add_values(scores, memory + 2 * numbers);
  }
  for (int b = 0; b < Tile::blocks; ++b) {
    for (int half = 0; half < 2; ++half) {
      const int row = 16 * b + 8 * half + g;
      state.sum_weights(b, half);
      state.write(b, half, row != 0, out + row * head_size);
      state.write_part(b, half, row != 0, parts + row * head_size, log_sums + row);
    }
  }
}

}  // namespace

TEST_CASE("load_matrices and load_transposed_matrices load four matrices of 8 x 8") {
  test::on_device([] {
    const DeviceBuffer<std::uint32_t> out(256);
    launch(load_both_ways, {.grid = 1, .block = 32, .shared_bytes = 512}, nullptr, out.data());
    const std::vector<std::uint32_t> got = out.download();
    for (unsigned lane = 0; lane < 32; ++lane) {
      const unsigned g = lane / 4, t = lane % 4;
      for (unsigned matrix = 0; matrix < 4; ++matrix) {
        const auto number = [matrix](unsigned row, unsigned column) {
          return 64 * matrix + 8 * row + column;
        };
        CHECK(got[8 * lane + matrix] == (number(g, 2 * t + 1) << 16 | number(g, 2 * t)));
        CHECK(got[8 * lane + 4 + matrix] == (number(2 * t + 1, g) << 16 | number(2 * t, g)));
      }
    }
  });
}

TEST_CASE("AttentionRows over several tiles equals softmax attention") {
  test::on_device([] {
    std::mt19937 random(1);
    const auto queries = test::normal_numbers<__half>(32 * head_size, random);
    const auto keys    = test::normal_numbers<__half>(slots * head_size, random);
    const auto values  = test::normal_numbers<__half>(slots * head_size, random);
    const DeviceBuffer<__half> q(queries), k(keys), v(values), out(queries.size());
    const DeviceBuffer<float> parts(queries.size()), log_sums(32);
    for (const float scale : {0.1F, -3.0F}) {
      INFO("scale " << scale);
      launch(attend, {.grid = 1, .block = 32, .shared_bytes = 3 * 32 * head_size * 2}, nullptr,
             q.data(), k.data(), v.data(), scale, out.data(), parts.data(), log_sums.data());
      const auto got       = out.download();
      const auto got_parts = parts.download(), got_sums = log_sums.download();
      double error = 0;
      for (std::size_t row = 0; row < 32; ++row) {
        std::vector<double> weights(slots), expected(head_size);
        double sum = 0;
        for (std::size_t s = 0; s < slots && row > 0 && row <= 30; ++s) {
          if (s % 3 == 2) continue;
          double score = 0;
          for (std::size_t d = 0; d < head_size; ++d) {
            score += static_cast<double>(to_float(queries[head_size * row + d])) *
                     static_cast<double>(to_float(keys[head_size * s + d]));
          }
          sum += weights[s] = std::exp2(score * static_cast<double>(scale));
        }
        for (std::size_t s = 0; s < slots; ++s) {
          for (std::size_t d = 0; d < head_size && sum > 0; ++d) {
            expected[d] +=
                weights[s] / sum * static_cast<double>(to_float(values[head_size * s + d]));
          }
        }
        for (std::size_t d = 0; d < head_size; ++d) {
          const double off =
              std::abs(static_cast<double>(to_float(got[head_size * row + d])) - expected[d]);
          error = off <= error || std::isnan(error) ? error : off;
          if (sum > 0) {
            CHECK(to_float(from_float<__half>(got_parts[head_size * row + d])) ==
                  to_float(got[head_size * row + d]));
          }
        }
        if (sum > 0) {
          CHECK(std::abs(static_cast<double>(got_sums[row]) - std::log2(sum)) < 1e-4);
        } else {
          CHECK(got_sums[row] == -INFINITY);
        }
      }
      CHECK(error < 2e-3 * 3);
    }
  });
}

TEST_CASE("AttentionRows writes NaN for a row that attends to NaN") {
  test::on_device([] {
    std::mt19937 random(2);
    const auto queries = test::normal_numbers<__half>(32 * head_size, random);
    auto keys          = test::normal_numbers<__half>(slots * head_size, random);
    const auto values  = test::normal_numbers<__half>(slots * head_size, random);
    keys[0]            = from_float<__half>(NAN);
    const DeviceBuffer<__half> q(queries), k(keys), v(values), out(queries.size());
    const DeviceBuffer<float> parts(queries.size()), log_sums(32);
    launch(attend, {.grid = 1, .block = 32, .shared_bytes = 3 * 32 * head_size * 2}, nullptr,
           q.data(), k.data(), v.data(), 0.1F, out.data(), parts.data(), log_sums.data());
    const auto got      = out.download();
    const auto got_sums = log_sums.download();
    for (std::size_t row = 1; row <= 30; ++row) {
      INFO("row " << row);
      CHECK(std::isnan(to_float(got[head_size * row])));
      CHECK(std::isnan(got_sums[row]));
    }
  });
}
