#include "mask_memory.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <tooldecode/constraint/dlpack_mask.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/mask_view.hpp>

namespace tooldecode::python {

namespace nb = nanobind;

namespace {

// The fields of a DLTensor that dlpack_mask_words reads.
struct Tensor {
  void* data = nullptr;
  struct {
    int device_type = detail::dlpack_cpu;
  } device;
  int ndim = 0;
  struct {
    int code = 0, bits = 0, lanes = 1;
  } dtype;
  const std::int64_t* shape   = nullptr;
  const std::int64_t* strides = nullptr;
  std::uint64_t byte_offset   = 0;
};

// The kinds of elements that a buffer's format tells apart, as DLPack numbers them.
int code_of(std::string_view format) {
  if (!format.empty() && (format[0] == '@' || format[0] == '=' || format[0] == '<')) {
    format.remove_prefix(1);
  }
  constexpr std::string_view integers = "bhilqn", naturals = "BHILQN", reals = "efd";
  if (format.size() != 1) return 3;
  if (integers.find(format[0]) != std::string_view::npos) return detail::dlpack_int;
  if (naturals.find(format[0]) != std::string_view::npos) return detail::dlpack_unsigned;
  return reals.find(format[0]) != std::string_view::npos ? 2 : 3;
}

}  // namespace

MaskMemory::MaskMemory(nb::handle array, std::size_t vocabulary_size)
    : width_(mask_word_count(vocabulary_size)) {
  if (PyObject_CheckBuffer(array.ptr()) != 0) {
    try {
      read_buffer(array, vocabulary_size);
    } catch (...) {
      if (has_buffer_) PyBuffer_Release(&buffer_);
      throw;
    }
    return;
  }
  if (!nb::hasattr(array, "__dlpack__") || !nb::try_cast(array, tensor_)) {
    throw Error(Errc::unknown_format, "array",
                "must be an array that offers the buffer protocol or DLPack, and that is writable");
  }
  // The host's memory that devices can reach is the CPU's.
  constexpr int cuda_host = 3, rocm_host = 11;
  const int device = tensor_.device_type();
  Tensor tensor{
      .data    = tensor_.data(),
      .device  = {device == cuda_host || device == rocm_host ? detail::dlpack_cpu : device},
      .ndim    = static_cast<int>(tensor_.ndim()),
      .dtype   = {tensor_.dtype().code, tensor_.dtype().bits, tensor_.dtype().lanes},
      .shape   = tensor_.shape_ptr(),
      .strides = tensor_.stride_ptr()};
  words_ = dlpack_mask_words(tensor, vocabulary_size);
}

void MaskMemory::read_buffer(nb::handle array, std::size_t vocabulary_size) {
  if (PyObject_GetBuffer(array.ptr(), &buffer_, PyBUF_RECORDS) != 0) {
    PyErr_Clear();
    throw Error(Errc::invalid_option, "array", "must be writable");
  }
  has_buffer_ = true;
  std::array<std::int64_t, PyBUF_MAX_NDIM> shape, strides;  // [ndim]
  const auto ndim = static_cast<std::size_t>(buffer_.ndim);
  for (std::size_t i = 0; i < ndim; ++i) {
    shape[i]   = buffer_.shape[i];
    strides[i] = buffer_.strides[i] % buffer_.itemsize == 0 ? buffer_.strides[i] / buffer_.itemsize
                                                            : 0;  // that of no rows without gaps
  }
  const std::string_view format = buffer_.format != nullptr ? buffer_.format : "B";
  words_                        = dlpack_mask_words(
      Tensor{.data    = buffer_.buf,
                                    .device  = {},
                                    .ndim    = buffer_.ndim,
                                    .dtype   = {code_of(format), static_cast<int>(buffer_.itemsize * 8), 1},
                                    .shape   = shape.data(),
                                    .strides = strides.data()},
      vocabulary_size);
}

MaskMemory::~MaskMemory() {
  if (has_buffer_) PyBuffer_Release(&buffer_);
}

MaskView MaskMemory::row(std::size_t i) const {
  if (i >= rows()) {
    throw Error(Errc::shape_mismatch, "row", i,
                "must be below the number of rows, " + std::to_string(rows()));
  }
  return words_.subspan(i * width_, width_);
}

}  // namespace tooldecode::python
