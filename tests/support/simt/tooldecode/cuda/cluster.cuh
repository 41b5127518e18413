/// \file
/// Clusters of blocks, which the emulator runs together.
#pragma once

#include <cstring>
#include <type_traits>

#include <cuda_runtime.h>

namespace tooldecode::cuda {

inline constexpr bool code_has_clusters = true;
inline constexpr int max_cluster_blocks = static_cast<int>(simt::max_cluster_blocks);

inline void cluster_barrier(SIMT_SITE) {
  simt::Block::active().cluster_barrier(file, line);
}

inline void cluster_arrive() {}
inline void cluster_arrive_relaxed() {}
inline void cluster_wait(SIMT_SITE) {
  cluster_barrier(file, line);
}

template <class T>
[[nodiscard]] T load_from_block(const T* own, int rank, SIMT_SITE) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % 4 == 0);
  T value;
  std::memcpy(&value, simt::Block::active().in_block(static_cast<unsigned>(rank), own, file, line),
              sizeof value);
  return value;
}

}  // namespace tooldecode::cuda
