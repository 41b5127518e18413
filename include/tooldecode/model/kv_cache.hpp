/// \file
/// KvCache: the keys and values of one sequence, in blocks that forks share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include <tooldecode/core/config.hpp>
#include <tooldecode/model/fixed_order.hpp>

namespace tooldecode::model {

/// Keys and values of the tokens of one sequence, and of draft nodes past its end.
///
/// Tokens lie in blocks of `block_size` slots. A block that is full of tokens is never written
/// again and is shared with forks; the last block, partly filled, belongs to one cache and is
/// copied by a fork. No cache can therefore see what another one writes, whatever threads they live
/// on.
///
/// Slots past the length hold draft nodes until `commit` keeps some of them or anything else
/// forgets them.
///
/// \par Shapes      a row is [W], the width of all key heads of a layer together
/// \par Complexity  row access O(1); fork O(blocks) and one block copied; commit O(path)
/// \par Threads     one cache belongs to one thread at a time; forks are independent of each other
/// \par Errors      none
class KvCache {
 public:
  /// Tokens per block.
  static constexpr std::size_t block_size = 32;

  KvCache(std::size_t layers, std::size_t width) : layers_(layers), width_(width) {}

  KvCache(KvCache&&) noexcept            = default;
  KvCache& operator=(KvCache&&) noexcept = default;
  KvCache(const KvCache&)                = delete;
  KvCache& operator=(const KvCache&)     = delete;
  ~KvCache()                             = default;

  /// Tokens, without draft nodes.
  [[nodiscard]] std::size_t length() const noexcept { return length_; }
  /// Draft nodes past the length.
  [[nodiscard]] std::size_t nodes() const noexcept { return nodes_; }

  /// Keys of the slots first, ..., first + count - 1, which lie in one block.
  [[nodiscard]] RowsView<const float> keys(std::size_t layer, std::size_t first,
                                           std::size_t count) const noexcept {
    return {at(2 * layer, first), count, width_, width_};
  }
  /// Values of such slots.
  [[nodiscard]] RowsView<const float> values(std::size_t layer, std::size_t first,
                                             std::size_t count) const noexcept {
    return {at(2 * layer + 1, first), count, width_, width_};
  }
  /// The key of a slot that is open for writing.
  [[nodiscard]] std::span<float> key(std::size_t layer, std::size_t slot) noexcept {
    TOOLDECODE_ASSERT(slot >= length_);
    return {at(2 * layer, slot), width_};
  }
  /// The value of a slot that is open for writing.
  [[nodiscard]] std::span<float> value(std::size_t layer, std::size_t slot) noexcept {
    TOOLDECODE_ASSERT(slot >= length_);
    return {at(2 * layer + 1, slot), width_};
  }

  /// Makes room past the length for `count` slots and forgets draft nodes.
  void open(std::size_t count) {
    nodes_                   = 0;
    const std::size_t blocks = (length_ + count + block_size - 1) / block_size;
    while (blocks_.size() < blocks) blocks_.push_back(new_block());
  }
  /// Makes tokens of the first `count` open slots.
  void close(std::size_t count) noexcept {
    length_ += count;
    nodes_ = 0;
  }
  /// Makes draft nodes of the first `count` open slots.
  void close_nodes(std::size_t count) noexcept { nodes_ = count; }
  /// Makes room for `count` more draft nodes behind those that are there, and gives the first slot.
  std::size_t open_nodes(std::size_t count) {
    const std::size_t before = nodes_;
    open(before + count);
    nodes_ = before + count;
    return length_ + before;
  }

  /// Makes tokens of the draft nodes of a path, which ascends, and forgets the others.
  void commit(std::span<const std::size_t> path) noexcept {
    for (std::size_t i = 0; i < path.size(); ++i) {
      TOOLDECODE_ASSERT(path[i] < nodes_ && (i == 0 || path[i] > path[i - 1]));
      // Targets never lie past their sources, so an ascending copy in place is exact.
      if (path[i] == i) continue;
      for (std::size_t plane = 0; plane < 2 * layers_; ++plane) {
        std::copy_n(at(plane, length_ + path[i]), width_, at(plane, length_ + i));
      }
    }
    close(path.size());
  }

  /// Forgets draft nodes and all tokens past a length.
  void truncate(std::size_t length) {
    TOOLDECODE_ASSERT(length <= length_);
    const std::size_t full = length / block_size;
    // A block that was full may be shared, so what is left of it moves to a block of its own.
    if (length % block_size != 0 && full < length_ / block_size) {
      blocks_[full] = copy_of(*this, full, length % block_size);
    }
    blocks_.resize((length + block_size - 1) / block_size);
    length_ = length;
    nodes_  = 0;
  }

  /// A cache with the same tokens and no draft nodes.
  [[nodiscard]] KvCache fork() const {
    KvCache other(layers_, width_);
    const std::size_t full = length_ / block_size;
    other.blocks_.assign(blocks_.begin(), blocks_.begin() + static_cast<std::ptrdiff_t>(full));
    if (length_ % block_size != 0) {
      other.blocks_.push_back(copy_of(*this, full, length_ % block_size));
    }
    other.length_ = length_;
    return other;
  }

 private:
  using Block = std::shared_ptr<float[]>;  // [layers, 2, block_size, W]

  [[nodiscard]] Block new_block() const {
    return Block(new float[2 * layers_ * block_size * width_]);
  }
  [[nodiscard]] float* at(std::size_t plane, std::size_t slot) const noexcept {
    return blocks_[slot / block_size].get() + (plane * block_size + slot % block_size) * width_;
  }
  static Block copy_of(const KvCache& cache, std::size_t block, std::size_t slots) {
    Block copy = cache.new_block();
    for (std::size_t plane = 0; plane < 2 * cache.layers_; ++plane) {
      std::copy_n(cache.at(plane, block * block_size), slots * cache.width_,
                  copy.get() + plane * block_size * cache.width_);
    }
    return copy;
  }

  std::size_t layers_;
  std::size_t width_;
  std::size_t length_ = 0;
  std::size_t nodes_  = 0;
  std::vector<Block> blocks_;
};

}  // namespace tooldecode::model
