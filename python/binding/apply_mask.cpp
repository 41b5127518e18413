#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/mask/dlpack_mask.hpp>

#include "handles.hpp"
#include "host_array.hpp"
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

namespace tooldecode::python {
namespace {

using namespace nb::literals;

constexpr int dlpack_float = 2, dlpack_bfloat = 4;

// Rows of elements that lie side by side.
struct Rows {
  const HostArray::Tensor* tensor = nullptr;
  std::size_t count               = 0;  // rows
  std::size_t width               = 0;  // elements of one
  std::ptrdiff_t stride           = 0;  // elements from one to the next

  template <class Element>
  [[nodiscard]] Element* row(std::size_t i) const {
    return static_cast<Element*>(tensor->data) + static_cast<std::ptrdiff_t>(i) * stride;
  }
};

// Error where an array is not rows in the CPU's memory.
Rows rows_of(const HostArray& array, const std::string& name) {
  const HostArray::Tensor& tensor = array.tensor();
  if (tensor.device.device_type != detail::dlpack_cpu) {
    throw Error(Errc::invalid_option, name + "/device", tensor.device.device_type,
                "must be the CPU, which DLPack numbers 1");
  }
  if (tensor.ndim != 1 && tensor.ndim != 2) {
    throw Error(Errc::shape_mismatch, name + "/shape",
                detail::dlpack_shape(tensor) + ": must be " +
                    (name == "mask" ? "[rows, W] or [W]" : "[rows, V] or [V]"));
  }
  const int last = tensor.ndim - 1;
  Rows rows{&tensor, 1, static_cast<std::size_t>(array.extent(last)), 0};
  if (last == 1) {
    rows.count  = static_cast<std::size_t>(array.extent(0));
    rows.stride = static_cast<std::ptrdiff_t>(array.stride(0));
  }
  if (rows.count == 0 || rows.width == 0) return rows;
  if (rows.width > 1 && array.stride(last) != 1) {
    throw Error(Errc::shape_mismatch, name + "/strides", "must be those of rows without gaps");
  }
  const auto size = static_cast<std::uintptr_t>(tensor.dtype.bits / 8);
  if (tensor.data == nullptr || reinterpret_cast<std::uintptr_t>(tensor.data) % size != 0) {
    throw Error(Errc::invalid_option, name + "/data", "must be aligned to its elements");
  }
  return rows;
}

constexpr auto bits_of_word = [] {
  std::array<std::uint32_t, 32> bits{};
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = std::uint32_t{1} << i;
  return bits;
}();

// A row's elements that the words do not allow become `removed`, those past the words too.
template <class Element>
void remove_from(Element* row, std::size_t width, const std::uint32_t* words, std::size_t count,
                 Element removed) {
  const auto blend = [removed](Element* at, std::uint32_t word, std::size_t last) {
    for (std::size_t i = 0; i < last; ++i) {
      at[i] = (word & bits_of_word[i]) != 0 ? at[i] : removed;
    }
  };
  std::size_t t = 0;
  for (std::size_t w = 0; w < count && t < width; ++w, t += 32) {
    const std::uint32_t word = words[w];
    if (word == ~std::uint32_t{0}) continue;
    const std::size_t last = std::min<std::size_t>(32, width - t);
    if (word == 0) {
      std::fill_n(row + t, last, removed);
    } else if (last == 32) {  // a number that the compiler knows, so that it makes vectors of it
      blend(row + t, word, 32);
    } else {
      blend(row + t, word, last);
    }
  }
  if (t < width) std::fill_n(row + t, width - t, removed);
}

// Minus infinity as each type of elements has it, by its bits.
template <class Element>
void apply(const Rows& logits, const Rows& masks, bool is_shared,
           const std::vector<std::size_t>& rows, Element minus_infinity) {
  for (const std::size_t row : rows) {
    remove_from(logits.row<Element>(row), logits.width,
                masks.row<const std::uint32_t>(is_shared ? 0 : row), masks.width, minus_infinity);
  }
}

void apply_mask(nb::handle logits_array, nb::handle mask_array,
                const std::optional<std::vector<std::size_t>>& chosen) {
  const HostArray logits_memory(logits_array, "logits", HostArray::Use::write);
  const HostArray mask_memory(mask_array, "mask", HostArray::Use::read);
  const auto dtype = logits_memory.tensor().dtype;
  // NumPy has no bfloat16: an array of them is one of uint16.
  const bool is_bfloat =
      dtype.bits == 16 && (dtype.code == dlpack_bfloat || dtype.code == detail::dlpack_unsigned);
  const bool is_float =
      dtype.code == dlpack_float && (dtype.bits == 16 || dtype.bits == 32 || dtype.bits == 64);
  if (dtype.lanes != 1 || (!is_bfloat && !is_float)) {
    throw Error(Errc::unknown_format, "logits/dtype",
                std::to_string(dtype.bits) + " bits of code " + std::to_string(dtype.code) +
                    ": must be float16, float32, float64, or bfloat16, of NumPy as uint16");
  }
  const auto words = mask_memory.tensor().dtype;
  if ((words.code != detail::dlpack_int && words.code != detail::dlpack_unsigned) ||
      words.bits != 32 || words.lanes != 1) {
    throw Error(Errc::unknown_format, "mask/dtype",
                std::to_string(words.bits) + " bits of code " + std::to_string(words.code) +
                    ": must be int32 or uint32");
  }
  const Rows logits    = rows_of(logits_memory, "logits");
  const Rows masks     = rows_of(mask_memory, "mask");
  const bool is_shared = mask_memory.tensor().ndim == 1;
  if (logits.count > 1 && static_cast<std::size_t>(std::abs(logits.stride)) < logits.width) {
    throw Error(Errc::shape_mismatch, "logits/strides", "must be those of rows that lie apart");
  }
  if (!chosen && !is_shared && masks.count != logits.count) {
    throw Error(Errc::shape_mismatch, "mask/shape",
                detail::dlpack_shape(mask_memory.tensor()) + ": must be as many rows as logits, " +
                    std::to_string(logits.count) + ", or one mask without rows");
  }
  std::vector<std::size_t> rows(chosen ? 0 : logits.count);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = i;
  std::vector<bool> is_taken(logits.count);
  for (std::size_t i = 0; chosen && i < chosen->size(); ++i) {
    const std::size_t row = (*chosen)[i];
    if (row >= logits.count || (!is_shared && row >= masks.count)) {
      throw Error(Errc::shape_mismatch, "rows/" + std::to_string(i), row,
                  "must be below the number of rows, of logits and of masks");
    }
    if (is_taken[row]) {
      throw Error(Errc::invalid_option, "rows/" + std::to_string(i), "must be named once");
    }
    is_taken[row] = true;
    rows.push_back(row);
  }
  const nb::gil_scoped_release release;
  if (is_bfloat) return apply<std::uint16_t>(logits, masks, is_shared, rows, 0xFF80);
  if (dtype.bits == 16) return apply<std::uint16_t>(logits, masks, is_shared, rows, 0xFC00);
  if (dtype.bits == 32) return apply<std::uint32_t>(logits, masks, is_shared, rows, 0xFF800000);
  return apply<std::uint64_t>(logits, masks, is_shared, rows, 0xFFF0'0000'0000'0000);
}

}  // namespace

void bind_apply_mask(nb::module_& module) {
  module.def("apply_mask", &apply_mask, "logits"_a.none(), "mask"_a.none(), "rows"_a = nb::none(),
             nb::sig("def apply_mask(logits: typing.Any, mask: typing.Any, rows: "
                     "collections.abc.Sequence[int] | None = None) -> None"),
             "See tooldecode.apply_mask; of arrays in the CPU's memory.");
}

}  // namespace tooldecode::python
