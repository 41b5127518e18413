#include <algorithm>
#include <cstdint>
#include <cstdio>

#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/device_buffer.cuh>

#include "data.cuh"
#include "measure.hpp"
#include "peers.hpp"

namespace cuda_benchmark {

namespace {

constexpr int threads = 512, loads = 8;

// Each thread has eight loads of 16 bytes in flight.
__global__ void read_all(const uint4* from, std::int64_t count, std::uint32_t* out) {
  constexpr int tile = threads * loads;
  std::uint32_t sum  = 0;
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * tile; first + tile <= count;
       first += static_cast<std::int64_t>(gridDim.x) * tile) {
    uint4 words[loads];
#pragma unroll
    for (int i = 0; i < loads; ++i) words[i] = from[first + i * threads + threadIdx.x];
#pragma unroll
    for (int i = 0; i < loads; ++i) sum ^= words[i].x ^ words[i].y ^ words[i].z ^ words[i].w;
  }
  if (sum == 0x9E3779B9U) *out = sum;  // so that the compiler keeps the loads
}

// Copies in the same way: faster than the driver's copy on some devices.
__global__ void copy_all(const uint4* from, std::int64_t count, uint4* to) {
  constexpr int tile = threads * loads;
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * tile; first + tile <= count;
       first += static_cast<std::int64_t>(gridDim.x) * tile) {
    uint4 words[loads];
#pragma unroll
    for (int i = 0; i < loads; ++i) words[i] = __ldcs(from + first + i * threads + threadIdx.x);
#pragma unroll
    for (int i = 0; i < loads; ++i) __stcs(to + first + i * threads + threadIdx.x, words[i]);
  }
}

}  // namespace

Ceilings measure_ceilings(const Setup& setup) {
  namespace cuda          = tooldecode::cuda;
  const std::size_t bytes = setup.is_small ? std::size_t{1} << 20 : std::size_t{2} << 30;
  Ceilings ceilings;
  {
    const DeviceBuffer<float> from = normal_numbers<float>(bytes / sizeof(float), 1, 1);
    const DeviceBuffer<float> to(from.size());
    const DeviceBuffer<std::uint32_t> out(1);
    const Timing copy     = time_calls(setup, 1, [&](int, cudaStream_t stream) {
      cuda::check(cudaMemcpyAsync(to.data(), from.data(), bytes, cudaMemcpyDeviceToDevice, stream));
    });
    const auto blocks     = static_cast<unsigned>(4 * cuda::device_traits().multiprocessors);
    const Timing own_copy = time_calls(setup, 1, [&](int, cudaStream_t stream) {
      cuda::launch(copy_all, {.grid = blocks, .block = threads}, stream,
                   reinterpret_cast<const uint4*>(from.data()),
                   static_cast<std::int64_t>(bytes / sizeof(uint4)),
                   reinterpret_cast<uint4*>(to.data()));
    });
    const Timing read     = time_calls(setup, 1, [&](int, cudaStream_t stream) {
      cuda::launch(read_all, {.grid = blocks, .block = threads}, stream,
                       reinterpret_cast<const uint4*>(from.data()),
                       static_cast<std::int64_t>(bytes / sizeof(uint4)), out.data());
    });
    ceilings.copy_bandwidth =
        2 * static_cast<double>(bytes) / std::min(copy.microseconds, own_copy.microseconds);
    std::printf("copies of 2 GiB: the driver's %.0f GB/s, a kernel's %.0f GB/s\n",
                2e-3 * static_cast<double>(bytes) / copy.microseconds,
                2e-3 * static_cast<double>(bytes) / own_copy.microseconds);
    ceilings.read_bandwidth = static_cast<double>(bytes) / read.microseconds;
  }
  if (Cublas::is_available()) {
    const int size   = setup.is_small ? 64 : 8192;
    const auto count = static_cast<std::size_t>(size) * static_cast<std::size_t>(size);
    const auto a     = normal_numbers<__nv_bfloat16>(count, 1, 2);
    const auto b     = normal_numbers<__nv_bfloat16>(count, 1, 3);
    const DeviceBuffer<__nv_bfloat16> c(count);
    Cublas cublas;
    const Timing product = time_calls(setup, 1, [&](int, cudaStream_t stream) {
      cublas.multiply_square(a.data(), b.data(), c.data(), size, stream);
    });
    ceilings.matmul_rate = 2.0 * size * size * size / product.microseconds;
  }
  return ceilings;
}

}  // namespace cuda_benchmark
