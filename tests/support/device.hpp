/// \file
/// Runs one test body on the emulator, under three schedules, or on a GPU.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/number.cuh>

#include <support/catch.hpp>

namespace tooldecode::test {

#if defined(TOOLDECODE_SIMT)
template <class Body>
void on_every_schedule(Body body) {
  for (const auto schedule :
       {simt::Schedule::lockstep, simt::Schedule::skewed, simt::Schedule::random}) {
    simt::options.schedule = schedule;
    INFO("schedule " << static_cast<int>(schedule) << ", seed " << simt::options.seed);
    body();
  }
}
#endif

/// Runs `body` once per schedule of the emulator, or once on the GPU; without a GPU it reports that
/// nothing was tested. With race detection it runs one schedule, because any schedule shows the
/// races.
template <class Body>
void on_device(Body body) {
#if defined(TOOLDECODE_SIMT)
  if (simt::races.is_watching) {
    simt::options.schedule = simt::Schedule::lockstep;
    body();
  } else {
    on_every_schedule(body);
  }
#else
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
    static_cast<void>(cudaGetLastError());
    WARN("SKIPPED: no CUDA device, so that no kernel ran");
    return;
  }
  body();
#endif
}

/// Whether each access is watched for races, which takes thirty times as long.
inline bool is_watched() {
#if defined(TOOLDECODE_SIMT)
  return simt::races.is_watching;
#else
  return false;
#endif
}

/// Whether a test is left out because each access is watched, and says so; another test must launch
/// the same kernels.
inline bool is_left_out() {
  if (is_watched()) WARN("left out where races are watched: another test launches these kernels");
  return is_watched();
}

/// Numbers of the standard normal distribution times `scale`, rounded to T.
template <cuda::Number T, class Random>
std::vector<T> normal_numbers(std::size_t count, Random& random, float scale = 1) {
  std::normal_distribution<float> normal(0, scale);
  std::vector<T> numbers(count);
  for (T& x : numbers) x = cuda::from_float<T>(normal(random));
  return numbers;
}

/// A mask of V bits, each set with a probability. Bits past V are set, because they must not be
/// read.
template <class Random>
std::vector<std::uint32_t> random_mask(std::size_t vocabulary, double share, Random& random) {
  std::bernoulli_distribution allowed(share);
  std::vector<std::uint32_t> words((vocabulary + 31) / 32, ~0U);
  for (std::size_t t = 0; t < vocabulary; ++t) {
    if (!allowed(random)) words[t / 32] &= ~(1U << (t % 32));
  }
  return words;
}

/// The allowed error of T's arithmetic against float64, relative to the greatest magnitude.
template <cuda::Number T>
constexpr double tolerance() {
  if constexpr (std::is_same_v<T, float>) return 1e-5;
  return std::is_same_v<T, __half> ? 2e-3 : 1e-2;
}

}  // namespace tooldecode::test
