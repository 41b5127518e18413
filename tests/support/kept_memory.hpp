/// \file
/// kept_memory: the bytes that an operation allocates and keeps.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <thread>

#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
#include <malloc.h>
#endif

namespace tooldecode::test {

/// Bytes of all allocated blocks, with what malloc needs for each; nothing where malloc does not
/// say, as under sanitizers, whose malloc is another one.
[[nodiscard]] inline std::optional<std::size_t> allocated_bytes() {
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
  const auto bytes = [] {
    const auto info = mallinfo2();
    return info.uordblks + info.hblkhd;
  };
  const std::size_t before    = bytes();
  constexpr std::size_t large = 100'000;
  const std::unique_ptr<char[]> probe(new char[large]);
  *static_cast<volatile char*>(probe.get()) = 0;  // or compilers leave the block out
  if (bytes() >= before + large) return before;
#endif
  return std::nullopt;
}

/// What `operation()` keeps, while no other thread allocates. It runs in a separate thread, which
/// gives back at its end the freed blocks that malloc holds for a thread and counts as allocated.
template <class Operation>
[[nodiscard]] std::optional<std::size_t> kept_memory(const Operation& operation) {
  std::thread([] {}).join();
  const auto before = allocated_bytes();
  std::thread(operation).join();
  const auto after = allocated_bytes();
  if (!before || !after) return std::nullopt;
  return *after - *before;
}

}  // namespace tooldecode::test
