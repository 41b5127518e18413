/// \file
/// Workspaces with arbitrary contents before each call, as in an engine.
#pragma once

#include <array>
#include <cstddef>

#include <tooldecode/cuda/device_buffer.cuh>

namespace tooldecode::test {

/// Memory for workspaces, filled with different garbage before each call and each replay of a
/// captured call.
class Scratch {
 public:
  explicit Scratch(std::size_t bytes = 0) : memory_(bytes) {}

  [[nodiscard]] cuda::Workspace on(cudaStream_t stream) const {
    // Small numbers, NaN, and numbers that no counter reaches.
    constexpr std::array<int, 3> garbage{0x01, 0xFF, 0xCC};
    if (memory_.size() > 0) {
      const int byte = garbage[calls_++ % garbage.size()];
      cuda::check(cudaMemsetAsync(memory_.data(), byte, memory_.bytes(), stream));
    }
    return memory_;
  }
  operator cuda::Workspace() const { return on(nullptr); }  // NOLINT: as in DeviceBuffer

 private:
  cuda::DeviceBuffer<std::byte> memory_;
  mutable std::size_t calls_ = 0;
};

}  // namespace tooldecode::test
