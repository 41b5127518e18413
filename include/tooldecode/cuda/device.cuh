/// \file
/// Checked CUDA calls, kernel launches, and the traits of the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <cuda_runtime.h>

#include <tooldecode/core/error.hpp>

namespace tooldecode::cuda {

/// Throws Error{device_failure} with the caller's file and line if a CUDA call failed.
inline void check(cudaError_t status, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // the next call must not report it again
  throw Error(Errc::device_failure, std::string(file) + ":" + std::to_string(line),
              cudaGetErrorString(status));
}

/// Properties of a device. Tuning depends on all but the compute capability.
struct DeviceTraits {
  int multiprocessors      = 0;
  int compute_capability   = 0;  ///< 90 is 9.0; for information: plans use `code_capability`
  std::size_t shared_bytes = 0;  ///< shared memory that one block can request
};

/// The traits of the current device.
///
/// \par Complexity  three driver calls, none of which waits for the device
/// \par Threads     may run concurrently
/// \par Errors      Error{device_failure}
[[nodiscard]] inline DeviceTraits device_traits() {
  int device = 0;
  check(cudaGetDevice(&device));
  const auto get = [device](cudaDeviceAttr attribute) {
    int value = 0;
    check(cudaDeviceGetAttribute(&value, attribute, device));
    return value;
  };
  return {.multiprocessors = get(cudaDevAttrMultiProcessorCount),
          .compute_capability =
              10 * get(cudaDevAttrComputeCapabilityMajor) + get(cudaDevAttrComputeCapabilityMinor),
          .shared_bytes = static_cast<std::size_t>(get(cudaDevAttrMaxSharedMemoryPerBlockOptin))};
}

/// The compute capability that a kernel's code was compiled for: 75 if a device of 9.0 runs code
/// that nvcc made for 7.5. A kernel may use the features of this capability only.
///
/// \par Complexity  one driver call, which does not wait for the device
/// \par Threads     may run concurrently
/// \par Errors      Error{device_failure}
template <class... P>
[[nodiscard]] int code_capability(void (*kernel)(P...)) {
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, kernel));
  return attributes.ptxVersion;
}

namespace detail {

/// Lets a kernel use all the shared memory that the current device gives a block. The limit is
/// always the device's maximum, so concurrent calls of host threads set the same value.
template <class... P>
void allow_shared_memory(void (*kernel)(P...), std::size_t bytes) {
  constexpr std::size_t without_asking = 48 * 1024;
  if (bytes <= without_asking) return;
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, kernel));
  if (static_cast<std::size_t>(attributes.maxDynamicSharedSizeBytes) >= bytes) return;
  const std::size_t maximum = device_traits().shared_bytes - attributes.sharedSizeBytes;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(maximum)));
}

}  // namespace detail

/// Number of threads of a kernel, and shared memory per block.
struct LaunchShape {
  dim3 grid                = {};
  dim3 block               = {};
  std::size_t shared_bytes = 0;
  unsigned cluster         = 1;  ///< blocks along x that run at once; more than 1 needs 9.0
  /// Whether blocks may start before the stream's previous kernel ends; needs 9.0. All of them call
  /// `wait_for_previous_launch` before they read what earlier kernels write, and before they write
  /// what these read, such as a workspace that calls share.
  bool starts_early = false;
};

/// Waits for the kernel that a launch which `starts_early` has overtaken.
__device__ inline void wait_for_previous_launch() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;\n" ::: "memory");
#endif
}
/// Lets such a launch start once all blocks have called this or ended.
__device__ inline void let_next_launch_start() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;\n" ::: "memory");
#endif
}

namespace detail {

/// A launch as the runtime takes it. It points to itself.
struct LaunchConfig {
  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t config         = {};

  LaunchConfig(const LaunchShape& shape, cudaStream_t stream) {
    config.gridDim          = shape.grid;
    config.blockDim         = shape.block;
    config.dynamicSmemBytes = shape.shared_bytes;
    config.stream           = stream;
    config.attrs            = attributes;
    if (shape.cluster > 1) {
      cudaLaunchAttribute& cluster = attributes[config.numAttrs++];
      cluster.id                   = cudaLaunchAttributeClusterDimension;
      cluster.val.clusterDim.x     = shape.cluster;
      cluster.val.clusterDim.y     = 1;
      cluster.val.clusterDim.z     = 1;
    }
    if (shape.starts_early) {
      cudaLaunchAttribute& early = attributes[config.numAttrs++];
      early.id                   = cudaLaunchAttributeProgrammaticStreamSerialization;
      early.val.programmaticStreamSerializationAllowed = 1;
    }
  }
  LaunchConfig(const LaunchConfig&)            = delete;
  LaunchConfig& operator=(const LaunchConfig&) = delete;
};

}  // namespace detail

/// The number of blocks of a grid along x.
///
/// \par Errors      Error{shape_mismatch} for more than a grid can have
[[nodiscard]] inline unsigned grid_size(std::int64_t blocks) {
  constexpr std::int64_t most = 0x7FFFFFFF;
  if (blocks < 0 || blocks > most) {
    throw Error(Errc::shape_mismatch, "grid", blocks,
                "must be at most " + std::to_string(most) + " blocks: pass fewer rows at a time");
  }
  return static_cast<unsigned>(blocks);
}

/// Whether a cluster of a launch can run on what the process has of the device: a MIG slice or a
/// limit may leave no place for the blocks of one.
///
/// \par Complexity  a few driver calls, none of which waits for the device
/// \par Threads     may run concurrently
/// \par Errors      Error{device_failure}
template <class... P>
[[nodiscard]] bool can_run_cluster(void (*kernel)(P...), const LaunchShape& shape) {
  detail::allow_shared_memory(kernel, shape.shared_bytes);
  const detail::LaunchConfig launch(shape, nullptr);
  int clusters = 0;
  check(cudaOccupancyMaxActiveClusters(&clusters, kernel, &launch.config));
  return clusters > 0;
}

/// Starts a kernel on a stream; does not wait for it.
///
/// \par Complexity  one launch; may be captured into a graph
/// \par Threads     may run concurrently
/// \par Errors      Error{device_failure} for a shape that the device cannot run
template <class... P, class... A>
void launch(void (*kernel)(P...), const LaunchShape& shape, cudaStream_t stream, A&&... arguments) {
  detail::allow_shared_memory(kernel, shape.shared_bytes);
  const detail::LaunchConfig launch(shape, stream);
  check(cudaLaunchKernelEx(&launch.config, kernel, std::forward<A>(arguments)...));
}

/// The quotient, rounded up.
[[nodiscard]] __host__ __device__ constexpr std::int64_t divide_up(std::int64_t count,
                                                                   std::int64_t size) noexcept {
  return (count + size - 1) / size;
}

}  // namespace tooldecode::cuda
