/// \file
/// HostArray: a Python array in the CPU's memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace tooldecode::python {

/// What an array that offers the buffer protocol (NumPy) or DLPack (torch) is in memory, held as long
/// as this lives.
///
/// \par Shapes      any, strides in elements; a `bytearray` of 4 W bytes is [W] of uint32
/// \par Threads     made and ended with the GIL; the memory may be used without it
/// \par Errors      Error{invalid_option} for an array that is to be written to and is read-only,
///                  Error{unknown_format} for what is no array, with its name as the place; for
///                  strides and elements that are none, those
class HostArray {
 public:
  enum class Use : bool { read, write };

  /// The fields of DLPack's DLTensor.
  struct Tensor {
    void* data = nullptr;
    struct {
      int device_type = 0;
    } device{};
    int ndim = 0;
    struct {
      int code = 0, bits = 0, lanes = 1;
    } dtype{};
    const std::int64_t* shape   = nullptr;
    const std::int64_t* strides = nullptr;  // null: without gaps
    std::uint64_t byte_offset   = 0;
  };

  HostArray(nanobind::handle array, const char* name, Use use);
  ~HostArray();
  HostArray(const HostArray&)            = delete;
  HostArray& operator=(const HostArray&) = delete;

  /// Of any device, but that the host's memory which devices can reach is the CPU's.
  [[nodiscard]] const Tensor& tensor() const noexcept { return tensor_; }
  [[nodiscard]] std::int64_t extent(int axis) const { return tensor_.shape[axis]; }
  [[nodiscard]] std::int64_t stride(int axis) const;

 private:
  void read_buffer(nanobind::handle array, const char* name, Use use);
  void read_extents();

  Tensor tensor_;
  Py_buffer buffer_{};
  bool has_buffer_ = false;
  std::array<std::int64_t, PyBUF_MAX_NDIM> shape_, strides_;  // [ndim], of a buffer
  nanobind::ndarray<> array_;
};

}  // namespace tooldecode::python
