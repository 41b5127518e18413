// Random numbers in device memory, and copies of parts to the host.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/number.cuh>
#include <tooldecode/cuda/philox.cuh>

namespace cuda_benchmark {

using tooldecode::cuda::DeviceBuffer;

// Standard normal numbers times `scale`, by Box and Muller.
template <tooldecode::cuda::Number T>
__global__ void fill_normal(T* numbers, std::int64_t count, float scale, std::uint64_t seed) {
  const auto threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const auto thread  = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (std::int64_t i = 2 * thread; i < count; i += 2 * threads) {
    const uint4 words  = tooldecode::cuda::noise_words(seed, static_cast<std::uint64_t>(i), 0);
    const float radius = sqrtf(-2.0F * logf((static_cast<float>(words.x) + 1.0F) * 0x1p-32F));
    const float angle  = 6.2831853F * static_cast<float>(words.y) * 0x1p-32F;
    numbers[i]         = tooldecode::cuda::from_float<T>(scale * radius * cosf(angle));
    if (i + 1 < count) {
      numbers[i + 1] = tooldecode::cuda::from_float<T>(scale * radius * sinf(angle));
    }
  }
}

template <tooldecode::cuda::Number T>
DeviceBuffer<T> normal_numbers(std::size_t count, float scale, std::uint64_t seed) {
  DeviceBuffer<T> numbers(count);
  const auto blocks = std::min<std::int64_t>(
      1024, tooldecode::cuda::divide_up(static_cast<std::int64_t>(count), 512));
  tooldecode::cuda::launch(fill_normal<T>, {.grid = static_cast<unsigned>(blocks), .block = 256},
                           nullptr, numbers.data(), static_cast<std::int64_t>(count), scale, seed);
  tooldecode::cuda::check(cudaDeviceSynchronize());
  return numbers;
}

// Random bits; three of four are set.
std::vector<std::uint32_t> random_words(std::size_t count, std::uint64_t seed);

// Fills a buffer so that what a call does not write reads as NaN or -1.
template <class T>
void poison(const DeviceBuffer<T>& buffer) {
  tooldecode::cuda::check(cudaMemsetAsync(buffer.data(), 0xFF, buffer.bytes(), nullptr));
  tooldecode::cuda::check(cudaDeviceSynchronize());
}

template <class T>
std::vector<T> download(const T* from, std::size_t count) {
  std::vector<T> values(count);
  tooldecode::cuda::check(
      cudaMemcpy(values.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost));
  return values;
}

}  // namespace cuda_benchmark
