/// \file
/// HostBuffer: an array in host memory that copies to and from the device need not wait for.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

#include <cuda_runtime.h>

#include <tooldecode/cuda/device.cuh>

namespace tooldecode::cuda {

/// An array in page-locked host memory, whose contents are undefined at first.
///
/// \par Shapes      [size]
/// \par Threads     a value of one owner
/// \par Errors      Error{device_failure}
template <class T>
class HostBuffer {
  static_assert(std::is_trivially_copyable_v<T>, "HostBuffer: T must be trivially copyable");

 public:
  HostBuffer() = default;
  explicit HostBuffer(std::size_t size) : HostBuffer() {
    size_ = size;
    if (size > 0) check(cudaMallocHost(&data_, bytes()));
  }
  HostBuffer(HostBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  HostBuffer& operator=(HostBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  HostBuffer(const HostBuffer&)            = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;
  ~HostBuffer() {
    if (data_ != nullptr) static_cast<void>(cudaFreeHost(data_));
  }

  [[nodiscard]] T* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return size_ * sizeof(T); }
  [[nodiscard]] std::span<T> span() const noexcept { return {data_, size_}; }

 private:
  T* data_          = nullptr;
  std::size_t size_ = 0;
};

}  // namespace tooldecode::cuda
