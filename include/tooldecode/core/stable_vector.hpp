/// \file
/// StableVector: an append-only array whose elements never move, with lock-free reads.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <memory>
#include <utility>

#include <tooldecode/core/config.hpp>
#include <tooldecode/core/heap_bytes.hpp>

namespace tooldecode::core {

/// Append-only storage for caches that many threads read while one thread at a time extends them.
///
/// Elements are stored in chunks of doubling size, so indices and addresses stay valid. A thread
/// may read element i after i was published to it through an atomic or a lock.
///
/// \par Complexity  O(1) per access; at most twice the memory of the elements
/// \par Threads     the caller serialises appends; reads of published elements need no lock
template <class T>
class StableVector {
 public:
  StableVector()                               = default;
  StableVector(const StableVector&)            = delete;
  StableVector& operator=(const StableVector&) = delete;
  StableVector(StableVector&&)                 = delete;
  StableVector& operator=(StableVector&&)      = delete;
  ~StableVector() {
    for (std::size_t i = size_; i-- > 0;) std::destroy_at(at(i));
    for (std::size_t c = 0; c < chunks_.size() && chunks_[c] != nullptr; ++c) {
      std::allocator<T>().deallocate(chunks_[c], first_chunk << c);
    }
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// The chunks, with room for elements to come, without what the elements hold.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  [[nodiscard]] T& operator[](std::size_t i) noexcept { return *at(i); }
  [[nodiscard]] const T& operator[](std::size_t i) const noexcept { return *at(i); }

  template <class... Arguments>
  std::size_t emplace(Arguments&&... arguments) {
    const auto [chunk, offset] = place(size_);
    // Uninitialised memory: a large chunk costs nothing until it is used.
    if (chunks_[chunk] == nullptr) {
      chunks_[chunk] = std::allocator<T>().allocate(first_chunk << chunk);
      bytes_ += heap_bytes((first_chunk << chunk) * sizeof(T));
    }
    std::construct_at(chunks_[chunk] + offset, std::forward<Arguments>(arguments)...);
    return size_++;
  }

 private:
  static constexpr std::size_t first_chunk = 64;

  static std::pair<std::size_t, std::size_t> place(std::size_t i) noexcept {
    const auto chunk = static_cast<std::size_t>(std::bit_width(i / first_chunk + 1) - 1);
    return {chunk, i - first_chunk * ((std::size_t{1} << chunk) - 1)};
  }
  T* at(std::size_t i) const noexcept {
    const auto [chunk, offset] = place(i);
    return chunks_[chunk] + offset;
  }

  std::array<T*, 48> chunks_{};
  std::size_t size_  = 0;
  std::size_t bytes_ = 0;
};

}  // namespace tooldecode::core
