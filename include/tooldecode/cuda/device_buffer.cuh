/// \file
/// DeviceBuffer, an array in device memory, and Workspace, scratch memory of kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <cuda_runtime.h>

#include <tooldecode/core/error.hpp>
#include <tooldecode/cuda/device.cuh>

namespace tooldecode::cuda {

/// An array in device memory.
///
/// Kernels take pointers, so an engine can use its own allocator instead.
///
/// \par Shapes      [size]
/// \par Complexity  construction allocates; construction and copies wait for their stream, the
///                  default one if none is given
/// \par Threads     a value of one owner
/// \par Errors      Error{device_failure}
template <class T>
class DeviceBuffer {
  static_assert(std::is_trivially_copyable_v<T>, "DeviceBuffer: T must be trivially copyable");

 public:
  DeviceBuffer() = default;
  /// Filled with zeros.
  explicit DeviceBuffer(std::size_t size) : DeviceBuffer() {
    size_ = size;
    if (size == 0) return;
    check(cudaMalloc(&data_, bytes()));
    check(cudaMemsetAsync(data_, 0, bytes(), nullptr));
    check(cudaStreamSynchronize(nullptr));
  }
  explicit DeviceBuffer(const std::vector<T>& values) : DeviceBuffer() {
    size_ = values.size();
    if (size_ == 0) return;
    check(cudaMalloc(&data_, bytes()));
    upload(values);
  }
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  DeviceBuffer(const DeviceBuffer&)            = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  ~DeviceBuffer() { static_cast<void>(cudaFree(data_)); }

  [[nodiscard]] T* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return size_ * sizeof(T); }

  void upload(std::span<const T> values) { upload(values, 0, nullptr); }
  /// Copies to the elements from an index on.
  void upload(std::span<const T> values, std::size_t at, cudaStream_t stream) {
    if (at > size_ || values.size() > size_ - at) {
      throw Error(Errc::shape_mismatch, "DeviceBuffer",
                  std::to_string(at + values.size()) + " values: must be at most its size, " +
                      std::to_string(size_));
    }
    if (values.empty()) return;
    check(cudaMemcpyAsync(data_ + at, values.data(), values.size_bytes(), cudaMemcpyHostToDevice,
                          stream));
    check(cudaStreamSynchronize(stream));
  }
  [[nodiscard]] std::vector<T> download() const {
    std::vector<T> values(size_);
    if (size_ > 0) check(cudaMemcpy(values.data(), data_, bytes(), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  T* data_          = nullptr;
  std::size_t size_ = 0;
};

/// Scratch memory on the device. Its contents before and after a call are undefined. Calls that
/// cannot overlap, such as those on one stream, may share a workspace, also across functions; calls
/// that may overlap need one each.
///
/// The `..._workspace_bytes` function of a header returns the required size: enough on the current
/// device for the given sizes and all smaller ones. Calls that share a workspace need the largest
/// of their sizes.
struct Workspace {
  void* data        = nullptr;  ///< aligned to 256 bytes
  std::size_t bytes = 0;

  Workspace() = default;
  Workspace(void* memory, std::size_t size) : data(memory), bytes(size) {}
  Workspace(const DeviceBuffer<std::byte>& buffer)  // NOLINT: a view, as spans are
      : data(buffer.data()), bytes(buffer.size()) {}
};

/// Parts of a workspace, one after another, each aligned to 256 bytes.
///
/// If it starts at a null pointer, it only adds up sizes, so one function serves for layout and for
/// measuring.
class WorkspaceLayout {
 public:
  explicit WorkspaceLayout(void* data = nullptr) : data_(static_cast<std::byte*>(data)) {}

  template <class T>
  T* take(std::size_t count) {
    std::byte* part = data_ == nullptr ? nullptr : data_ + bytes_;
    bytes_ += (count * sizeof(T) + 255) / 256 * 256;
    return reinterpret_cast<T*>(part);
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  std::byte* data_;
  std::size_t bytes_ = 0;
};

/// Throws Error{shape_mismatch} if a workspace is smaller than a kernel needs, null or not aligned.
inline void require_workspace(const Workspace& workspace, std::size_t bytes, const char* kernel) {
  const auto require = [kernel](bool met, std::size_t value, const std::string& what) {
    if (met) return;
    throw Error(Errc::shape_mismatch, std::string(kernel) + ": workspace",
                std::to_string(value) + what);
  };
  require(workspace.bytes >= bytes, workspace.bytes,
          " bytes: must be " + std::to_string(bytes) + " or more");
  if (bytes == 0) return;
  require(workspace.data != nullptr, workspace.bytes, " bytes at a null pointer: must be memory");
  const std::size_t past = reinterpret_cast<std::uintptr_t>(workspace.data) % 256;
  require(past == 0, past, " bytes past a multiple of 256: must be aligned to 256 bytes");
}

}  // namespace tooldecode::cuda
