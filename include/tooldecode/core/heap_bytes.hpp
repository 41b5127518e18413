/// \file
/// heap_bytes: what the heap takes for a block of memory, and for what a container holds.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace tooldecode::core {

/// What malloc takes for a block of this size, as glibc does on 64-bit systems; other allocators
/// take about as much. A small block takes up to four times its size.
///
/// \par Complexity  O(1)
[[nodiscard]] constexpr std::size_t heap_bytes(std::size_t size) noexcept {
  constexpr std::size_t head = 8, unit = 16, least = 32;
  return size == 0 ? 0 : std::max(least, (size + head + unit - 1) / unit * unit);
}

/// The block of a vector, without what its elements hold.
template <class T, class Allocator>
[[nodiscard]] std::size_t heap_bytes(const std::vector<T, Allocator>& vector) noexcept {
  return heap_bytes(vector.capacity() * sizeof(T));
}

/// The block of a string; 0 if it is short.
[[nodiscard]] inline std::size_t heap_bytes(const std::string& text) noexcept {
  static const std::size_t inside = std::string().capacity();
  return text.capacity() <= inside ? 0 : heap_bytes(text.capacity() + 1);
}

/// The buckets and nodes of a hash map of numbers, without what its elements hold.
template <class Map>
  requires requires(const Map& map) { map.bucket_count(); }
[[nodiscard]] std::size_t heap_bytes(const Map& map) noexcept {
  constexpr std::size_t node = heap_bytes(sizeof(void*) + sizeof(typename Map::value_type));
  return heap_bytes(map.bucket_count() * sizeof(void*)) + node * map.size();
}

/// The block that std::make_shared allocates for a T.
template <class T>
[[nodiscard]] constexpr std::size_t shared_bytes() noexcept {
  return heap_bytes(sizeof(T) + 2 * sizeof(void*));
}

}  // namespace tooldecode::core
