/// \file
/// DeviceBuffer: numbers in device memory, owned; and Workspace, memory that kernels use in
/// passing.
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
/// Kernels take pointers, so that an engine's own allocator serves as well; this is for those that
/// have none.
///
/// \par Shapes      [size]
/// \par Complexity  construction allocates and waits for the device; copies wait for it as well
/// \par Threads     a value of one owner
/// \par Errors      Error{device_failure}
template <class T>
class DeviceBuffer {
  static_assert(std::is_trivially_copyable_v<T>, "DeviceBuffer: T must be trivially copyable");

 public:
  DeviceBuffer() = default;
  /// Zeros.
  explicit DeviceBuffer(std::size_t size) : size_(size) {
    if (size == 0) return;
    check(cudaMalloc(&data_, bytes()));
    check(cudaMemsetAsync(data_, 0, bytes(), nullptr));
    check(cudaStreamSynchronize(nullptr));
  }
  explicit DeviceBuffer(const std::vector<T>& values) : size_(values.size()) {
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

  /// Replaces the first numbers.
  void upload(std::span<const T> values) {
    if (values.size() > size_) {
      throw Error(Errc::shape_mismatch, "DeviceBuffer",
                  std::to_string(values.size()) + " values: must be at most its size, " +
                      std::to_string(size_));
    }
    check(cudaMemcpy(data_, values.data(), values.size_bytes(), cudaMemcpyHostToDevice));
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

/// Device memory that a call uses in passing: it may hold anything before the call, and says
/// nothing after it. Calls that cannot overlap, as those of one stream, may share one, whichever
/// functions they are of; calls that may overlap need one each.
///
/// How many bytes a function takes its header's `..._workspace_bytes` says: enough on the current
/// device for the sizes that it is told and for all smaller ones. Calls that share a workspace need
/// the greatest of their numbers.
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
/// Taken from a null pointer they only add up: one function lays out and measures.
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

/// Throws Error{shape_mismatch} where a workspace is smaller than a kernel needs.
inline void require_workspace(const Workspace& workspace, std::size_t bytes, const char* kernel) {
  if (workspace.bytes >= bytes) return;
  throw Error(
      Errc::shape_mismatch, std::string(kernel) + ": workspace",
      std::to_string(workspace.bytes) + " bytes: must be " + std::to_string(bytes) + " or more");
}

}  // namespace tooldecode::cuda
