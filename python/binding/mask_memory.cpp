#include "mask_memory.hpp"

#include <cstddef>
#include <string>

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/mask/dlpack_mask.hpp>

#include "host_array.hpp"

namespace tooldecode::python {

MaskMemory::MaskMemory(nanobind::handle array, std::size_t vocabulary_size)
    : array_(array, "array", HostArray::Use::write),
      width_(mask_word_count(vocabulary_size)),
      words_(dlpack_mask_words(array_.tensor(), vocabulary_size)) {}

MaskView MaskMemory::row(std::size_t i) const {
  if (i >= rows()) {
    throw Error(Errc::shape_mismatch, "row", i,
                "must be below the number of rows, " + std::to_string(rows()));
  }
  return words_.subspan(i * width_, width_);
}

}  // namespace tooldecode::python
