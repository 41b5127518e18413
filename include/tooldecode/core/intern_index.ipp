/// \file
/// What intern_index.hpp declares.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

#include <tooldecode/core/config.hpp>
#include <tooldecode/core/id.hpp>
#include <tooldecode/core/intern_index.hpp>

namespace tooldecode::core {

TOOLDECODE_INLINE InternIndex::Table::Table(std::size_t slots)
    : size(slots), slots_(static_cast<Slot*>(std::calloc(slots, sizeof(Slot)))) {
  if (!slots_) throw std::bad_alloc();
}

TOOLDECODE_INLINE void InternIndex::insert(const Slot& slot) noexcept {
  std::size_t i = slot.hash & (table_.size - 1);
  while (table_[i].number != 0) i = (i + 1) & (table_.size - 1);
  table_[i] = slot;
}

TOOLDECODE_INLINE void InternIndex::move_some() noexcept {
  for (int i = 0; i < 8 && moved_ < old_.size; ++i, ++moved_) {
    if (old_[moved_].number != 0) insert(old_[moved_]);
  }
  if (moved_ == old_.size) old_ = Table();
}

TOOLDECODE_INLINE void InternIndex::grow() {
  while (old_.size != 0) move_some();
  Table larger(2 * table_.size);
  old_   = std::exchange(table_, std::move(larger));
  moved_ = 0;
}

}  // namespace tooldecode::core
