/// \file
/// AlignedVector: a vector that begins where a register can be loaded from.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace tooldecode::core {

/// Gives memory that is aligned to any processor's registers, and to a line of its caches.
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

/// A vector of numbers that kernels load.
template <class T>
using AlignedVector = std::vector<T, AlignedAllocator<T>>;

}  // namespace tooldecode::core
