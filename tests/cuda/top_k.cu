#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/number.cuh>
#include <tooldecode/cuda/shared_memory.cuh>
#include <tooldecode/cuda/top_k.cuh>
#include <tooldecode/cuda/warp.cuh>

#include <support/catch.hpp>
#include <support/device.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

namespace {

constexpr int warps = 4;

__global__ void rank(const std::uint64_t* keys, const float* numbers, int count, int k,
                     std::uint64_t* best, float* log_sum_exp) {
  WarpTopK top;
  LogSumExp sum;
  const int threads = warps * warp_size;
  for (int first = 0; first < count; first += threads) {
    const int i         = first + static_cast<int>(threadIdx.x);
    const bool is_there = i < count;
    top.add(is_there ? keys[i] : 0, k);
    if (is_there) sum.add(numbers[i]);
  }
  auto& storage = shared<BlockTopK<warps>::Storage>();
  for (int twice = 0; twice < 2; ++twice) {  // reuses the storage
    WarpTopK found  = top;
    LogSumExp total = sum;
    BlockTopK<warps>::merge(storage, found, total);
    if (warp_index() != 0) continue;
    if (lane_index() < k) best[lane_index()] = found.key();
    if (lane_index() == 0) *log_sum_exp = total.value();
  }
}

__global__ void rank_scores(const float* scores, int count, std::uint32_t* indices, float* values) {
  WarpTopK top;
  const int i = lane_index();
  top.add(i < count ? rank_key(scores[i], static_cast<std::uint32_t>(i)) : 0, count);
  if (i < count) {
    indices[i] = index_of(top.key());
    values[i]  = score_of(top.key());
  }
}

}  // namespace

TEST_CASE("BlockTopK and LogSumExp return the k greatest keys and the log-sum-exp of a block") {
  test::on_device([] {
    for (const unsigned seed : {1U, 2U}) {
      for (const int count : {0, 1, 5, 31, 32, 33, 128, 129, 700}) {
        for (const int k : {1, 2, 10, 31, 32}) {
          INFO("seed " << seed << ", count " << count << ", k " << k);
          std::mt19937_64 random(seed);
          std::vector<std::uint64_t> keys(static_cast<std::size_t>(count));
          std::vector<float> numbers(keys.size());
          std::normal_distribution<float> normal(0, 20);
          for (auto& key : keys)
            key = random() >> (seed == 1 ? 0 : 58);  // or many equal ones, and zeros
          for (auto& x : numbers) x = normal(random);
          const DeviceBuffer<std::uint64_t> from(keys), best(static_cast<std::size_t>(k));
          const DeviceBuffer<float> terms(numbers), total(1);
          launch(rank,
                 {.grid         = 1,
                  .block        = warps * warp_size,
                  .shared_bytes = sizeof(BlockTopK<warps>::Storage)},
                 nullptr, from.data(), terms.data(), count, k, best.data(), total.data());
          std::sort(keys.begin(), keys.end(), std::greater<>());
          keys.resize(static_cast<std::size_t>(k));
          CHECK(best.download() == keys);

          double sum = 0;
          for (const float x : numbers) sum += std::exp(static_cast<double>(x));
          if (count == 0) {
            CHECK(total.download()[0] == -INFINITY);
          } else {
            CHECK(std::abs(total.download()[0] - std::log(sum)) <
                  1e-5 * (1 + std::abs(std::log(sum))));
          }
        }
      }
    }
  });
}

TEST_CASE("LogSumExp counts +infinity as the greatest finite number, in any lane") {
  test::on_device([] {
    constexpr float greatest = std::numeric_limits<float>::max();
    for (const std::size_t at : {0U, 3U, 40U, 127U, 130U}) {
      for (const std::size_t other : {at, std::size_t{5}}) {
        INFO("at " << at << " and " << other);
        std::vector<float> numbers(200, 2);
        numbers[at] = numbers[other] = INFINITY;
        const DeviceBuffer<float> terms(numbers), total(1);
        const DeviceBuffer<std::uint64_t> keys(numbers.size()), best(1);
        launch(rank,
               {.grid         = 1,
                .block        = warps * warp_size,
                .shared_bytes = sizeof(BlockTopK<warps>::Storage)},
               nullptr, keys.data(), terms.data(), 200, 1, best.data(), total.data());
        CHECK(total.download()[0] == greatest);
      }
    }
  });
}

TEST_CASE("cuda::rank_key is greater for a greater score and, if equal, for a lower index") {
  test::on_device([] {
    const std::vector<float> scores{-0.0F, 3, -2, 0, 3, -INFINITY, 1e-40F, INFINITY, -2, -1e30F};
    const DeviceBuffer<float> in(scores), values(scores.size());
    const DeviceBuffer<std::uint32_t> indices(scores.size());
    launch(rank_scores, {.grid = 1, .block = warp_size}, nullptr, in.data(),
           static_cast<int>(scores.size()), indices.data(), values.data());
    CHECK(indices.download() == std::vector<std::uint32_t>{7, 1, 4, 6, 0, 3, 2, 8, 9, 5});
    const std::vector<float> got = values.download();
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == scores[indices.download()[i]]);
  });
}
