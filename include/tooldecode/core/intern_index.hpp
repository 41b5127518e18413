/// \file
/// InternIndex: finds the number under which a value was interned, by hash and equality.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tooldecode {

/// Mixes a value into a 64-bit hash; the same on every machine.
[[nodiscard]] constexpr std::uint64_t hash_combine(std::uint64_t hash,
                                                   std::uint64_t value) noexcept {
  value *= 0x9E3779B97F4A7C15ULL;
  value ^= value >> 32;
  hash = (hash ^ value) * 0xD6E8FEB86659FD93ULL;
  return hash ^ hash >> 32;
}

/// An open-addressing table of numbers whose values live elsewhere.
///
/// \par Complexity  O(1) expected per call; 12 bytes per slot, at most 3/4 full
/// \par Threads     one at a time
/// \par Errors      std::bad_alloc
class InternIndex {
 public:
  /// Gives the number with this hash that `equals(number)` accepts; else `make()` gives a new one.
  template <class Equals, class Make>
  std::uint32_t intern(std::uint64_t hash, Equals equals, Make make) {
    if ((count_ + 1) * 4 > slots_.size() * 3) grow();
    std::size_t i = hash & (slots_.size() - 1);
    for (; slots_[i].number != empty; i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i].hash == hash && equals(slots_[i].number)) return slots_[i].number;
    }
    const std::uint32_t number = make();
    slots_[i]                  = {hash, number};
    ++count_;
    return number;
  }

 private:
  static constexpr std::uint32_t empty = ~std::uint32_t{0};
  struct Slot {
    std::uint64_t hash   = 0;
    std::uint32_t number = empty;
  };

  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.number == empty) continue;
      std::size_t i = slot.hash & (slots_.size() - 1);
      while (slots_[i].number != empty) i = (i + 1) & (slots_.size() - 1);
      slots_[i] = slot;
    }
  }

  std::vector<Slot> slots_ = std::vector<Slot>(64);
  std::size_t count_       = 0;
};

}  // namespace tooldecode
