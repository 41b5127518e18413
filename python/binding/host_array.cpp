#include "host_array.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <tooldecode/core/error.hpp>
#include <tooldecode/mask/dlpack_mask.hpp>

namespace tooldecode::python {

namespace nb = nanobind;

namespace {

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

HostArray::HostArray(nb::handle array, const char* name, Use use) {
  if (PyObject_CheckBuffer(array.ptr()) != 0) {
    read_buffer(array, name, use);
    return;
  }
  if (!nb::hasattr(array, "__dlpack__") || !nb::try_cast(array, array_)) {
    throw Error(Errc::unknown_format, name,
                std::string("must be an array that offers the buffer protocol or DLPack") +
                    (use == Use::write ? ", and that is writable" : ""));
  }
  constexpr int cuda_host = 3, rocm_host = 11;
  const int device = array_.device_type();
  tensor_          = {.data    = array_.data(),
                      .device  = {device == cuda_host || device == rocm_host ? detail::dlpack_cpu : device},
                      .ndim    = static_cast<int>(array_.ndim()),
                      .dtype   = {array_.dtype().code, array_.dtype().bits, array_.dtype().lanes},
                      .shape   = array_.shape_ptr(),
                      .strides = array_.stride_ptr()};
}

void HostArray::read_buffer(nb::handle array, const char* name, Use use) {
  const int flags = use == Use::write ? PyBUF_RECORDS : PyBUF_RECORDS_RO;
  if (PyObject_GetBuffer(array.ptr(), &buffer_, flags) != 0) {
    PyErr_Clear();
    throw Error(Errc::invalid_option, name,
                use == Use::write ? "must be writable" : "must give its memory");
  }
  has_buffer_ = true;
  try {
    read_extents();
  } catch (...) {  // and the destructor is not called
    PyBuffer_Release(&buffer_);
    throw;
  }
  const std::string_view format = buffer_.format != nullptr ? buffer_.format : "B";
  tensor_                       = {.data    = buffer_.buf,
                                   .device  = {detail::dlpack_cpu},
                                   .ndim    = buffer_.ndim,
                                   .dtype   = {code_of(format), static_cast<int>(buffer_.itemsize * 8), 1},
                                   .shape   = shape_.data(),
                                   .strides = strides_.data()};
  if (PyByteArray_Check(array.ptr()) != 0 && shape_[0] % 4 == 0) {
    shape_[0] /= 4;
    tensor_.dtype = {detail::dlpack_unsigned, 32, 1};
  }
}

void HostArray::read_extents() {
  if (buffer_.itemsize == 0) throw Error(Errc::unknown_format, "dtype", "must have bytes");
  for (std::size_t i = 0; i < static_cast<std::size_t>(buffer_.ndim); ++i) {
    shape_[i]   = buffer_.shape[i];
    strides_[i] = buffer_.strides[i] / buffer_.itemsize;
    if (shape_[i] > 1 && buffer_.strides[i] % buffer_.itemsize != 0) {
      throw Error(Errc::shape_mismatch, "strides", "must be whole elements");
    }
  }
}

HostArray::~HostArray() {
  if (has_buffer_) PyBuffer_Release(&buffer_);
}

std::int64_t HostArray::stride(int axis) const {
  if (tensor_.strides != nullptr) return tensor_.strides[axis];
  std::int64_t elements = 1;
  for (int i = tensor_.ndim - 1; i > axis; --i) elements *= tensor_.shape[i];
  return elements;
}

}  // namespace tooldecode::python
