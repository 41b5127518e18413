/// \file
/// AlignedVector: a vector whose memory is aligned for SIMD loads.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace tooldecode::core {

/// Allocates memory aligned to 64 bytes: enough for any SIMD register, and one cache line.
template <class T>
struct AlignedAllocator {
  using value_type = T;
  static constexpr std::align_val_t alignment{64};

  AlignedAllocator() = default;
  template <class U>
  AlignedAllocator(const AlignedAllocator<U>&) noexcept {}

  [[nodiscard]] T* allocate(std::size_t n) {
    if (n > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(::operator new(n * sizeof(T), alignment));
  }
  void deallocate(T* at, std::size_t) noexcept { ::operator delete(at, alignment); }

  friend bool operator==(const AlignedAllocator&, const AlignedAllocator&) = default;
};

/// A vector whose elements kernels can load with aligned instructions.
template <class T>
using AlignedVector = std::vector<T, AlignedAllocator<T>>;

}  // namespace tooldecode::core
