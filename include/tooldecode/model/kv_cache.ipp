#pragma once

#include <algorithm>

#include <tooldecode/model/kv_cache.hpp>

namespace tooldecode::model {

TOOLDECODE_INLINE RowsView<const float> KvCache::keys(std::size_t layer, std::size_t first,
                                                      std::size_t count) const noexcept {
  return {at(2 * layer, first), count, width_, width_};
}

TOOLDECODE_INLINE RowsView<const float> KvCache::values(std::size_t layer, std::size_t first,
                                                        std::size_t count) const noexcept {
  return {at(2 * layer + 1, first), count, width_, width_};
}

TOOLDECODE_INLINE std::span<float> KvCache::key(std::size_t layer, std::size_t slot) noexcept {
  TOOLDECODE_ASSERT(slot >= length_);
  return {at(2 * layer, slot), width_};
}

TOOLDECODE_INLINE std::span<float> KvCache::value(std::size_t layer, std::size_t slot) noexcept {
  TOOLDECODE_ASSERT(slot >= length_);
  return {at(2 * layer + 1, slot), width_};
}

TOOLDECODE_INLINE void KvCache::open(std::size_t count) {
  nodes_                   = 0;
  const std::size_t blocks = (length_ + count + block_size - 1) / block_size;
  while (blocks_.size() < blocks) blocks_.push_back(new_block());
}

TOOLDECODE_INLINE void KvCache::close(std::size_t count) noexcept {
  length_ += count;
  nodes_ = 0;
}

TOOLDECODE_INLINE std::size_t KvCache::open_nodes(std::size_t count) {
  const std::size_t before = nodes_;
  open(before + count);
  nodes_ = before + count;
  return length_ + before;
}

TOOLDECODE_INLINE void KvCache::commit(std::span<const std::size_t> path) noexcept {
  for (std::size_t i = 0; i < path.size(); ++i) {
    TOOLDECODE_ASSERT(path[i] < nodes_ && (i == 0 || path[i] > path[i - 1]));
    // A target never lies past its source, so copying in ascending order in place is safe.
    if (path[i] == i) continue;
    for (std::size_t plane = 0; plane < 2 * layers_; ++plane) {
      std::copy_n(at(plane, length_ + path[i]), width_, at(plane, length_ + i));
    }
  }
  close(path.size());
}

TOOLDECODE_INLINE void KvCache::truncate(std::size_t length) {
  TOOLDECODE_ASSERT(length <= length_);
  const std::size_t full = length / block_size;
  // A full block may be shared, so its remaining tokens move to a new block.
  if (length % block_size != 0 && full < length_ / block_size) {
    blocks_[full] = copy_of(*this, full, length % block_size);
  }
  blocks_.resize((length + block_size - 1) / block_size);
  length_ = length;
  nodes_  = 0;
}

TOOLDECODE_INLINE KvCache KvCache::fork() const {
  KvCache other(layers_, width_);
  const std::size_t full = length_ / block_size;
  other.blocks_.assign(blocks_.begin(), blocks_.begin() + static_cast<std::ptrdiff_t>(full));
  if (length_ % block_size != 0) {
    other.blocks_.push_back(copy_of(*this, full, length_ % block_size));
  }
  other.length_ = length_;
  return other;
}

TOOLDECODE_INLINE KvCache::Block KvCache::new_block() const {
  return Block(new float[2 * layers_ * block_size * width_]);
}

TOOLDECODE_INLINE float* KvCache::at(std::size_t plane, std::size_t slot) const noexcept {
  return blocks_[slot / block_size].get() + (plane * block_size + slot % block_size) * width_;
}

TOOLDECODE_INLINE KvCache::Block KvCache::copy_of(const KvCache& cache, std::size_t block,
                                                  std::size_t slots) {
  Block copy = cache.new_block();
  for (std::size_t plane = 0; plane < 2 * cache.layers_; ++plane) {
    std::copy_n(cache.at(plane, block * block_size), slots * cache.width_,
                copy.get() + plane * block_size * cache.width_);
  }
  return copy;
}

}  // namespace tooldecode::model
