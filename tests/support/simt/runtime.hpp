/// \file
/// The host side of the emulator: devices, memory, streams, graphs and launches. A part of its
/// cuda_runtime.h.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include <support/simt/simt.hpp>

enum cudaError_t {
  cudaSuccess                       = 0,
  cudaErrorInvalidValue             = 1,
  cudaErrorMemoryAllocation         = 2,
  cudaErrorInvalidConfiguration     = 9,
  cudaErrorNoDevice                 = 100,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorInvalidClusterSize       = 912,
};
enum cudaMemcpyKind {
  cudaMemcpyHostToHost,
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice,
  cudaMemcpyDefault,
};
enum cudaDeviceAttr {
  cudaDevAttrMultiProcessorCount          = 16,
  cudaDevAttrComputeCapabilityMajor       = 75,
  cudaDevAttrComputeCapabilityMinor       = 76,
  cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
struct cudaFuncAttributes {
  std::size_t sharedSizeBytes   = 0;
  int maxDynamicSharedSizeBytes = 0;
  int ptxVersion                = 0;
  int binaryVersion             = 0;
  int maxThreadsPerBlock        = 0;
};
enum cudaStreamCaptureMode {
  cudaStreamCaptureModeGlobal,
  cudaStreamCaptureModeThreadLocal,
  cudaStreamCaptureModeRelaxed
};

namespace simt {
struct Graph {
  std::vector<std::function<void()>> nodes;
};
struct Stream {
  Graph* captured = nullptr;
};
inline Stream default_stream;
inline Stream* capturing      = nullptr;
inline int multiprocessors    = 4;
inline int compute_capability = 90;
inline int code_capability    = 90;  ///< that kernels were compiled for; at most the device's

/// What other host threads do just before a launch.
inline std::function<void()> before_launch;
inline int shared_limit_calls = 0;
inline int active_clusters    = 1;  ///< that can run at once; 0: no cluster of several blocks can
inline int allocated          = 0;  ///< blocks of device memory
inline bool copies_fail       = false;  ///< copies and fills return an error
inline int by_default         = 0;      ///< launches, copies and fills on the default stream

/// A device with another amount of shared memory is another device.
inline int device_number() {
  static std::vector<std::size_t> seen;
  const auto at = std::find(seen.begin(), seen.end(), options.shared_limit);
  if (at != seen.end()) return static_cast<int>(at - seen.begin());
  seen.push_back(options.shared_limit);
  return static_cast<int>(seen.size()) - 1;
}
/// Bytes of shared memory that a kernel may request on the current device.
inline std::size_t& shared_limit_of(const void* kernel) {
  static std::map<std::pair<int, const void*>, std::size_t> limits;
  return limits.try_emplace({device_number(), kernel}, 48 * 1024).first->second;
}
template <class Work>
cudaError_t enqueue(Stream* stream, Work work) {
  Stream& on = stream == nullptr ? default_stream : *stream;
  if (on.captured != nullptr) {
    on.captured->nodes.push_back(work);
    return cudaSuccess;
  }
  if (capturing != nullptr && stream == nullptr) return cudaErrorStreamCaptureUnsupported;
  if (stream == nullptr) ++by_default;
  work();
  return cudaSuccess;
}
}  // namespace simt

using cudaStream_t    = simt::Stream*;
using cudaGraph_t     = simt::Graph*;
using cudaGraphExec_t = simt::Graph*;

enum cudaLaunchAttributeID {
  cudaLaunchAttributeClusterDimension                = 4,
  cudaLaunchAttributeProgrammaticStreamSerialization = 6,
};
union cudaLaunchAttributeValue {
  uint3 clusterDim;
  int programmaticStreamSerializationAllowed;
};
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id     = cudaLaunchAttributeClusterDimension;
  cudaLaunchAttributeValue val = {};
};
struct cudaLaunchConfig_t {
  dim3 gridDim;
  dim3 blockDim;
  std::size_t dynamicSmemBytes = 0;
  cudaStream_t stream          = nullptr;
  cudaLaunchAttribute* attrs   = nullptr;
  unsigned numAttrs            = 0;
};

inline const char* cudaGetErrorString(cudaError_t status) {
  switch (status) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case cudaErrorInvalidClusterSize:
      return "cluster misconfiguration";
  }
  return "unknown error";
}
inline cudaError_t cudaGetLastError() {
  return cudaSuccess;
}
inline cudaError_t cudaGetDevice(int* device) {
  *device = simt::device_number();
  return cudaSuccess;
}
inline cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
      *value = simt::multiprocessors;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
      *value = simt::compute_capability / 10;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
      *value = simt::compute_capability % 10;
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(simt::options.shared_limit);
      return cudaSuccess;
  }
  return cudaErrorInvalidValue;
}

template <class T>
cudaError_t cudaMalloc(T** memory, std::size_t bytes) {
  if (simt::capturing != nullptr) return cudaErrorStreamCaptureUnsupported;
  // Exactly as long as requested, so that the sanitizer sees an access of one byte too many.
  void* block = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (block == nullptr) return cudaErrorMemoryAllocation;
  std::memset(block, 0xFF, bytes);
#if defined(SIMT_ADDRESS_SANITIZER)
  __asan_poison_memory_region(static_cast<char*>(block) + bytes, (bytes + 255) / 256 * 256 - bytes);
#endif
  simt::races.watch(block, bytes);
  ++simt::allocated;
  *memory = static_cast<T*>(block);
  return cudaSuccess;
}
inline cudaError_t cudaFree(void* memory) {
  simt::races.forget(memory);
  if (memory != nullptr) --simt::allocated;
  std::free(memory);
  return cudaSuccess;
}
template <class T>
cudaError_t cudaMallocHost(T** memory, std::size_t bytes) {
  if (simt::capturing != nullptr) return cudaErrorStreamCaptureUnsupported;
  *memory = static_cast<T*>(std::malloc(bytes));
  return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
inline cudaError_t cudaFreeHost(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                                   cudaStream_t stream) {
  if (simt::copies_fail) return cudaErrorInvalidValue;
  return simt::enqueue(stream, [=] {
    if (bytes > 0) std::memmove(to, from, bytes);  // of nothing both may be null
  });
}
inline cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  if (simt::capturing != nullptr) return cudaErrorStreamCaptureUnsupported;
  return cudaMemcpyAsync(to, from, bytes, kind, nullptr);
}
inline cudaError_t cudaMemsetAsync(void* memory, int byte, std::size_t bytes, cudaStream_t stream) {
  if (simt::copies_fail) return cudaErrorInvalidValue;
  return simt::enqueue(stream, [=] {
    if (bytes > 0) std::memset(memory, byte, bytes);
  });
}
inline cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  *stream = new simt::Stream;
  return cudaSuccess;
}
inline constexpr unsigned cudaStreamNonBlocking = 1;
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new simt::Stream;
  return cudaSuccess;
}
inline cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t) {
  return simt::capturing != nullptr ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}
inline cudaError_t cudaDeviceSynchronize() {
  return cudaStreamSynchronize(nullptr);
}

inline cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (stream == nullptr || simt::capturing != nullptr) return cudaErrorStreamCaptureUnsupported;
  stream->captured = new simt::Graph;
  simt::capturing  = stream;
  return cudaSuccess;
}
inline cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  if (simt::capturing != stream) return cudaErrorStreamCaptureUnsupported;
  *graph          = std::exchange(stream->captured, nullptr);
  simt::capturing = nullptr;
  return cudaSuccess;
}
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                        unsigned long long = 0) {
  *executable = new simt::Graph(*graph);
  return cudaSuccess;
}
inline cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  if (simt::capturing != nullptr) return cudaErrorStreamCaptureUnsupported;
  return simt::enqueue(stream, [executable] {
    for (const auto& node : executable->nodes) node();
  });
}
inline cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return cudaSuccess;
}

template <class... P>
cudaError_t cudaFuncSetAttribute(void (*kernel)(P...), cudaFuncAttribute, int bytes) {
  if (bytes < 0 || static_cast<std::size_t>(bytes) > simt::options.shared_limit) {
    return cudaErrorInvalidValue;
  }
  simt::shared_limit_of(reinterpret_cast<const void*>(kernel)) = static_cast<std::size_t>(bytes);
  ++simt::shared_limit_calls;
  return cudaSuccess;
}
template <class... P>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, void (*kernel)(P...)) {
  const auto bytes = simt::shared_limit_of(reinterpret_cast<const void*>(kernel));
  *attributes      = {.sharedSizeBytes           = 0,
                      .maxDynamicSharedSizeBytes = static_cast<int>(bytes),
                      .ptxVersion    = std::min(simt::code_capability, simt::compute_capability),
                      .binaryVersion = simt::compute_capability,
                      .maxThreadsPerBlock =
                     std::min(simt::code_capability, simt::compute_capability) == 90 ? 1024 : 32};
  return cudaSuccess;
}
template <class... P>
cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, void (*kernel)(P...),
                                           const cudaLaunchConfig_t* launch) {
  if (simt::compute_capability < 90) return cudaErrorInvalidConfiguration;
  const std::size_t limit = simt::shared_limit_of(reinterpret_cast<const void*>(kernel));
  *clusters               = launch->dynamicSmemBytes > limit ? 0 : simt::active_clusters;
  return cudaSuccess;
}
template <class... P, class... A>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* launch, void (*kernel)(P...),
                               A&&... arguments) {
  if (simt::before_launch) std::exchange(simt::before_launch, nullptr)();
  const dim3 block       = launch->blockDim;
  const dim3 grid        = launch->gridDim;
  const unsigned threads = block.x * block.y * block.z;
  if (threads == 0 || threads > 1024 || grid.x == 0 || grid.y == 0 || grid.z == 0 ||
      grid.y > 65535 || grid.z > 65535 ||
      launch->dynamicSmemBytes > simt::shared_limit_of(reinterpret_cast<const void*>(kernel))) {
    return cudaErrorInvalidConfiguration;
  }
  unsigned cluster = 1;
  for (unsigned i = 0; i < launch->numAttrs; ++i) {
    if (launch->attrs[i].id == cudaLaunchAttributeProgrammaticStreamSerialization) {
      if (simt::compute_capability < 90) return cudaErrorInvalidConfiguration;
      continue;  // kernels run one after another
    }
    const uint3 blocks = launch->attrs[i].val.clusterDim;
    cluster            = blocks.x;
    if (cluster > 1 && simt::active_clusters == 0) return cudaErrorInvalidClusterSize;
    if (simt::compute_capability < 90 || cluster == 0 || cluster > simt::max_cluster_blocks ||
        grid.x % cluster != 0 || blocks.y != 1 || blocks.z != 1) {
      return cudaErrorInvalidConfiguration;
    }
    if (cluster > 1 && simt::code_capability < 90) {
      throw simt::Fault("a cluster of blocks whose code, compiled for less, does without them");
    }
  }
  const std::size_t bytes = launch->dynamicSmemBytes;
  const std::tuple<P...> values(static_cast<P>(std::forward<A>(arguments))...);
  return simt::enqueue(launch->stream, [=] {
    simt::run_grid(grid, block, cluster, bytes, [&] { std::apply(kernel, values); });
  });
}
