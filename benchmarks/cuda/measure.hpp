// How times are measured: medians over CUDA events of replayed graphs. Sets of buffers take turns,
// so that no call finds its inputs in the cache.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cuda_runtime.h>

namespace cuda_benchmark {

// The device's best rates, measured in this run.
struct Ceilings {
  double copy_bandwidth = 0;  // bytes read and written per microsecond
  double read_bandwidth = 0;  // bytes per microsecond
  double matmul_rate    = 0;  // BF16 operations per microsecond; 0: not measured
};

struct Setup {
  cudaStream_t stream     = nullptr;
  std::size_t cache_bytes = 0;  // of the device's L2
  bool is_small           = false;
  bool is_profile         = false;  // calls are made once, for a profiler, and not timed
  Ceilings ceilings       = {};

  // How many sets of this size exceed the cache four times; at most `max` fit.
  [[nodiscard]] int sets(std::size_t bytes_per_set, std::size_t max) const;
};

struct Timing {
  double microseconds = 0;  // median of one call
  double spread       = 0;  // interquartile range, relative to the median
};

// Enqueues its work on a stream, with the buffers of one set.
using Call = std::function<void(int set, cudaStream_t)>;

// Times many calls in one graph; the sets take turns.
Timing time_calls(const Setup& setup, int sets, const Call& call);

Ceilings measure_ceilings(const Setup& setup);

// Throws std::runtime_error unless the results agree, relative to the norm of the reference.
void require_close(std::span<const double> got, std::span<const double> reference, double tolerance,
                   std::string_view what);
void require(bool met, const std::string& what);

}  // namespace cuda_benchmark
