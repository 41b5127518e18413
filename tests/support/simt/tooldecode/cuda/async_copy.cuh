/// \file
/// Asynchronous copies that are late: they happen when the thread waits for them, so reading too
/// early gives NaN.
#pragma once

#include <array>
#include <vector>

#include <cuda_runtime.h>

namespace tooldecode::cuda {

namespace detail {

struct PendingCopy {
  void* to;
  const void* from;
  bool is_there;
  int group;
};
struct PendingCopies {
  std::vector<PendingCopy> copies;
  int group = 0;
};
// For the threads of each block of a cluster.
inline std::array<std::array<PendingCopies, 1024>, simt::max_cluster_blocks> pending_copies;
inline PendingCopies& my_copies() {
  return pending_copies[simt::cluster_rank][threadIdx.x];
}
inline const bool pending_copies_end_with_their_block = [] {
  simt::block_starts.push_back([](unsigned blocks) {
    for (unsigned rank = 0; rank < blocks; ++rank) pending_copies[rank] = {};
  });
  return true;
}();

}  // namespace detail

inline void copy_async(void* to, const void* from, bool is_there) {
  detail::PendingCopies& mine = detail::my_copies();
  simt::see_access(to, 16, simt::Access::write);  // from here until a thread waits for it
  if (is_there) simt::see_access(from, 16, simt::Access::read);
  mine.copies.push_back({to, from, is_there, mine.group});
}
inline void commit_copies() {
  ++detail::my_copies().group;
}
template <int left>
inline void wait_for_copies() {
  detail::PendingCopies& mine = detail::my_copies();
  std::vector<detail::PendingCopy> later;
  for (const detail::PendingCopy& copy : mine.copies) {
    if (copy.group >= mine.group - left) {
      later.push_back(copy);
    } else {
      *static_cast<uint4*>(copy.to) =
          copy.is_there ? *static_cast<const uint4*>(copy.from) : make_uint4(0, 0, 0, 0);
    }
  }
  mine.copies = std::move(later);
}

}  // namespace tooldecode::cuda
