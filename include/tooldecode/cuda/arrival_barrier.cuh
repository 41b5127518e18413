/// \file
/// ArrivalBarrier: some threads of a block arrive, others wait until all have (mbarrier).
///
/// Needs code for compute capability 9.0 or later. In older code the functions are empty, and no
/// kernel calls them.
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

#include <tooldecode/core/config.hpp>

namespace tooldecode::cuda {

/// A barrier in shared memory. When all its arrivals have come, its phase ends and the next begins,
/// so that a buffer is handed to and fro without a barrier of the block.
///
/// \par Threads     one thread calls `begin`, a barrier of the block follows
/// \par Source      PTX ISA, mbarrier
struct ArrivalBarrier {
  std::uint64_t state;

  /// Phase 0 begins, which ends with that many arrivals; so does each later phase.
  __device__ void begin([[maybe_unused]] int arrivals) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.init.shared.b64 [%0], %1;\n" ::"r"(address()), "r"(arrivals) : "memory");
#endif
  }
  /// What the thread did before is seen by those that have waited for the phase.
  __device__ void arrive() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile(
        "{\n.reg .b64 state;\nmbarrier.arrive.shared.b64 state, [%0];\n}\n" ::"r"(address())
        : "memory");
#endif
  }
  /// The same once all copies of `copy_async` have come that the thread started; does not wait.
  __device__ void arrive_after_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];\n" ::"r"(address()) : "memory");
#endif
  }
  /// Waits until the last phase of that parity has ended: the current one, or the one before.
  __device__ void wait([[maybe_unused]] int parity) const {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    int has_ended = 0;
    do {
      asm volatile(
          "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared.b64 p, [%1], %2;\n"
          "selp.b32 %0, 1, 0, p;\n}\n"
          : "=r"(has_ended)
          : "r"(address()), "r"(parity)
          : "memory");
    } while (has_ended == 0);
#endif
  }

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900

 private:
  [[nodiscard]] __device__ std::uint32_t address() const {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(this));
  }
#endif
};

}  // namespace tooldecode::cuda
