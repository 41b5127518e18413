/// \file
/// InternIndex: finds the number of an interned value by hash and equality.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

#include <tooldecode/core/heap_bytes.hpp>
#include <tooldecode/core/id.hpp>

namespace tooldecode::core {

/// Mixes a value into a 64-bit hash. The result is equal on every machine.
[[nodiscard]] constexpr std::uint64_t hash_combine(std::uint64_t hash,
                                                   std::uint64_t value) noexcept {
  value *= 0x9E3779B97F4A7C15ULL;
  value ^= value >> 32;
  hash = (hash ^ value) * 0xD6E8FEB86659FD93ULL;
  return hash ^ hash >> 32;
}
/// Mixes an id into a hash.
template <class Owner>
[[nodiscard]] constexpr std::uint64_t hash_combine(std::uint64_t hash, Id<Owner> id) noexcept {
  return hash_combine(hash, id.number());
}

/// An open-addressing hash table of numbers whose values are stored elsewhere.
///
/// It grows incrementally: each new number moves a few entries of the old table, so no single call
/// is slow.
///
/// \par Complexity  O(1) per call, expected; 8 bytes per slot, at most 3/4 full
/// \par Threads     one at a time
class InternIndex {
 public:
  /// Returns the number with this hash that `equals(number)` accepts, or else the new one that
  /// `make()` returns.
  template <class Equals, class Make>
  std::uint32_t intern(std::uint64_t mixed, Equals equals, Make make) {
    const auto hash = static_cast<std::uint32_t>(mixed);  // enough: numbers have 32 bits
    if (const Slot* known = find(table_, hash, equals)) return known->number - 1;
    if (old_.size != 0) {
      if (const Slot* known = find(old_, hash, equals)) return known->number - 1;
      move_some();
    }
    if ((count_ + 1) * 4 > table_.size * 3) grow();
    const std::uint32_t number = make();
    insert({hash, number + 1});
    ++count_;
    return number;
  }

  /// The tables.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return heap_bytes(table_.size * sizeof(Slot)) + heap_bytes(old_.size * sizeof(Slot));
  }

 private:
  struct Slot {
    std::uint32_t hash   = 0;
    std::uint32_t number = 0;  // plus one; 0 in a free slot
  };
  // calloc: the system zeroes pages on first touch, so a large table is cheap until it is used.
  struct Free {
    void operator()(Slot* slots) const noexcept { std::free(slots); }
  };
  struct Table {
    explicit Table(std::size_t slots);
    Table() = default;
    [[nodiscard]] Slot& operator[](std::size_t i) const noexcept { return slots_.get()[i]; }
    std::size_t size = 0;
    std::unique_ptr<Slot, Free> slots_{};
  };

  template <class Equals>
  static const Slot* find(const Table& table, std::uint32_t hash, const Equals& equals) {
    for (std::size_t i = hash & (table.size - 1); table[i].number != 0;
         i             = (i + 1) & (table.size - 1)) {
      if (table[i].hash == hash && equals(table[i].number - 1)) return &table[i];
    }
    return nullptr;
  }
  void insert(const Slot& slot) noexcept;
  // The old table has half as many slots, so it is empty long before the new one is full.
  void move_some() noexcept;
  void grow();

  Table table_{64};
  Table old_;
  std::size_t moved_ = 0;  // slots of the old table that were already copied
  std::size_t count_ = 0;
};

inline InternIndex::Table::Table(std::size_t slots)
    : size(slots), slots_(static_cast<Slot*>(std::calloc(slots, sizeof(Slot)))) {
  if (!slots_) throw std::bad_alloc();
}

inline void InternIndex::insert(const Slot& slot) noexcept {
  std::size_t i = slot.hash & (table_.size - 1);
  while (table_[i].number != 0) i = (i + 1) & (table_.size - 1);
  table_[i] = slot;
}

inline void InternIndex::move_some() noexcept {
  for (int i = 0; i < 8 && moved_ < old_.size; ++i, ++moved_) {
    if (old_[moved_].number != 0) insert(old_[moved_]);
  }
  if (moved_ == old_.size) old_ = Table();
}

inline void InternIndex::grow() {
  while (old_.size != 0) move_some();
  Table larger(2 * table_.size);
  old_   = std::exchange(table_, std::move(larger));
  moved_ = 0;
}

}  // namespace tooldecode::core
