/// \file
/// PagePool: pages of a KV cache in device memory, which sequences share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <cuda_runtime.h>

#include <tooldecode/core/error.hpp>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/key_values.cuh>
#include <tooldecode/cuda/number.cuh>

namespace tooldecode::cuda {

/// The sizes of a pool.
struct PagePoolShape {
  int pages     = 0;
  int page_size = 64;  ///< slots
  int layers    = 0;
  int key_heads = 0;
  int head_size = 0;  ///< a multiple of 8

  /// Numbers of one page, of all layers.
  [[nodiscard]] std::size_t page_numbers() const {
    return std::size_t{2} * static_cast<std::size_t>(page_size) * static_cast<std::size_t>(layers) *
           static_cast<std::size_t>(key_heads) * static_cast<std::size_t>(head_size);
  }
};

/// A page of a pool. Copies are the same page; it returns to the pool with the last one, which the
/// pool itself need not outlive.
class CachePage {
 public:
  [[nodiscard]] int index() const noexcept { return *index_; }
  /// Whether only this value refers to the page, so that it may be written.
  [[nodiscard]] bool is_exclusive() const noexcept { return index_.use_count() == 1; }

 private:
  template <HalfNumber T>
  friend class PagePool;
  explicit CachePage(std::shared_ptr<const int> index) : index_(std::move(index)) {}

  std::shared_ptr<const int> index_;
};

/// Pages in device memory, each with the keys and values of all layers.
///
/// \par Shapes      [pages, layers, 2, page_size, key_heads, head_size]
/// \par Complexity  O(1) to take a page
/// \par Threads     members may run concurrently
/// \par Errors      Error{device_failure} from the constructor; `take`: Error{limit_exceeded}
template <HalfNumber T>
class PagePool {
 public:
  explicit PagePool(const PagePoolShape& shape)
      : shape_(shape), numbers_(static_cast<std::size_t>(shape.pages) * shape.page_numbers()) {
    for (int page = shape.pages; page > 0; --page) free_->indices.push_back(page - 1);
  }

  [[nodiscard]] const PagePoolShape& shape() const noexcept { return shape_; }

  [[nodiscard]] CachePage take() {
    const std::lock_guard lock(free_->mutex);
    if (free_->indices.empty()) {
      throw Error(Errc::limit_exceeded, "cache",
                  std::to_string(static_cast<std::int64_t>(shape_.pages) * shape_.page_size) +
                      " tokens of all sequences: there is no room for more");
    }
    auto index = std::make_unique<int>(free_->indices.back());
    free_->indices.pop_back();
    return CachePage(std::shared_ptr<const int>(index.release(), [free = free_](const int* page) {
      const std::lock_guard inner(free->mutex);
      free->indices.push_back(*page);
      delete page;
    }));
  }

  /// Copies all slots of a page to another one.
  void copy(const CachePage& from, const CachePage& to, cudaStream_t stream) const {
    const std::size_t numbers = shape_.page_numbers();
    const auto at             = [&](const CachePage& page) {
      return numbers_.data() + static_cast<std::size_t>(page.index()) * numbers;
    };
    check(cudaMemcpyAsync(at(to), at(from), numbers * sizeof(T), cudaMemcpyDeviceToDevice, stream));
  }

  /// Views of all layers for sequences whose pages a table has.
  ///
  /// \param pages      [B, max_pages] in device memory
  [[nodiscard]] std::vector<KeyValues<T>> views(const std::int32_t* pages, int max_pages) const {
    std::vector<KeyValues<T>> views;
    const std::int64_t slot = std::int64_t{shape_.key_heads} * shape_.head_size;
    for (int layer = 0; layer < shape_.layers; ++layer) {
      T* const keys = numbers_.data() + 2 * slot * shape_.page_size * layer;
      views.push_back({.keys        = keys,
                       .values      = keys + slot * shape_.page_size,
                       .slot_stride = slot,
                       .head_stride = shape_.head_size,
                       .page_stride = static_cast<std::int64_t>(shape_.page_numbers()),
                       .pages       = pages,
                       .page_size   = shape_.page_size,
                       .max_pages   = max_pages});
    }
    return views;
  }

 private:
  struct Free {
    std::mutex mutex;
    std::vector<int> indices;
  };

  PagePoolShape shape_;
  DeviceBuffer<T> numbers_;
  std::shared_ptr<Free> free_ = std::make_shared<Free>();
};

}  // namespace tooldecode::cuda
