/// \file
/// KvCache: the keys and values of one sequence, in blocks that forks share.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include <tooldecode/core/config.hpp>
#include <tooldecode/model/fixed_order.hpp>

namespace tooldecode::model {

/// Keys and values of the tokens of one sequence, and of draft nodes after them.
///
/// Tokens lie in blocks of `block_size` slots. A full block is never written again and is shared
/// with forks. The last block, if partly filled, belongs to one cache; a fork copies it. So no
/// cache sees what another one writes, on any thread.
///
/// Slots past the length hold draft nodes. `commit` keeps some of them; any other operation drops
/// them.
///
/// \par Shapes      a row is [W], the width of all key heads of a layer together
/// \par Complexity  row access O(1); fork O(blocks) and one block copied; commit O(path)
/// \par Threads     one cache belongs to one thread at a time; forks are independent
class KvCache {
 public:
  static constexpr std::size_t block_size = 32;

  KvCache(std::size_t layers, std::size_t width) : layers_(layers), width_(width) {}

  KvCache(KvCache&&) noexcept            = default;
  KvCache& operator=(KvCache&&) noexcept = default;
  KvCache(const KvCache&)                = delete;
  KvCache& operator=(const KvCache&)     = delete;
  ~KvCache()                             = default;

  [[nodiscard]] std::size_t length() const noexcept { return length_; }
  [[nodiscard]] std::size_t nodes() const noexcept { return nodes_; }

  /// Keys of the slots first, ..., first + count - 1, which must lie in one block.
  [[nodiscard]] RowsView<const float> keys(std::size_t layer, std::size_t first,
                                           std::size_t count) const noexcept;
  [[nodiscard]] RowsView<const float> values(std::size_t layer, std::size_t first,
                                             std::size_t count) const noexcept;
  /// The writable key of an open slot.
  [[nodiscard]] std::span<float> key(std::size_t layer, std::size_t slot) noexcept;
  /// The writable value of an open slot.
  [[nodiscard]] std::span<float> value(std::size_t layer, std::size_t slot) noexcept;

  /// Opens `count` slots past the length and drops draft nodes.
  void open(std::size_t count);
  /// Turns the first `count` open slots into tokens.
  void close(std::size_t count) noexcept;
  /// Turns the first `count` open slots into draft nodes.
  void close_nodes(std::size_t count) noexcept { nodes_ = count; }
  /// Opens `count` slots after the existing draft nodes and returns the first slot.
  std::size_t open_nodes(std::size_t count);

  /// Turns the draft nodes of an ascending path into tokens and drops the others.
  void commit(std::span<const std::size_t> path) noexcept;

  /// Drops draft nodes and all tokens past a length.
  void truncate(std::size_t length);

  [[nodiscard]] KvCache fork() const;

 private:
  using Block = std::shared_ptr<float[]>;  // [layers, 2, block_size, W]

  [[nodiscard]] Block new_block() const;
  [[nodiscard]] float* at(std::size_t plane, std::size_t slot) const noexcept;
  static Block copy_of(const KvCache& cache, std::size_t block, std::size_t slots);

  std::size_t layers_;
  std::size_t width_;
  std::size_t length_ = 0;
  std::size_t nodes_  = 0;
  std::vector<Block> blocks_;
};

}  // namespace tooldecode::model

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/model/kv_cache.ipp>
#endif
