/// \file
/// Races: accesses to device and shared memory by threads of a kernel without a barrier between
/// them.
///
/// A barrier of the block or the cluster orders what its threads did before and after it;
/// `__syncwarp` does so for the lanes of its mask, an arrival for those that wait for it. Shuffles, votes, fences and the order of atomics
/// order nothing. If two threads access one byte without an order and one of them writes, there is
/// a Fault, unless both accesses are atomic.
///
/// Accesses are seen only if the kernels are compiled with -fsanitize=thread; races.cpp defines the
/// functions that this calls.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

#include <sys/mman.h>

namespace simt {

enum class Access { read, write, atomic };

/// The last accesses to each byte, and the order established since.
class Races {
 public:
  struct Thread {
    std::uint8_t rank = 0, warp = 0, lane = 0;
  };

  /// Whether accesses are seen; races.cpp sets it.
  bool is_watching = false;
  /// Current accesses belong to an atomic.
  bool is_atomic = false;
  Thread running;

  /// Registers memory of kernels. A block's own memory starts anew with each block.
  void watch(const void* memory, std::size_t bytes, bool is_blocks = false) {
    if (!is_watching || bytes == 0) return;
    void* cells = mmap(nullptr, bytes * sizeof(Cell), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (cells == MAP_FAILED) return;
    regions_[address_of(memory) + bytes] = {address_of(memory), bytes, static_cast<Cell*>(cells),
                                            is_blocks};
    last_                                = {};
    lowest_                              = std::min(lowest_, address_of(memory));
    highest_                             = std::max(highest_, address_of(memory) + bytes);
  }
  void forget(const void* memory) {
    const auto at = regions_.upper_bound(address_of(memory));
    if (at == regions_.end() || at->second.begin != address_of(memory)) return;
    munmap(at->second.cells, at->second.bytes * sizeof(Cell));
    regions_.erase(at);
    last_ = {};
  }

  void launch_begins() { launch_began_ = ++tick_; }
  void blocks_begin() {
    run_began_ = cluster_began_ = ++tick_;
    block_began_.fill(tick_);
  }
  void block_barrier(unsigned rank) { block_began_[rank] = ++tick_; }
  void cluster_barrier() {
    cluster_began_ = ++tick_;
    block_began_.fill(tick_);
  }
  /// Called for the lanes of a mask.
  void warp_barrier(unsigned rank, unsigned warp, std::uint32_t mask) {
    if (!is_watching) return;
    auto& seen = seen_[rank][warp];
    ++tick_;
    std::array<std::uint32_t, 32> all{};
    for (unsigned lane = 0; lane < 32; ++lane) {
      if ((mask >> lane & 1) == 0) continue;
      for (unsigned other = 0; other < 32; ++other) {
        all[other] = std::max(all[other], seen[lane][other]);
      }
      all[lane] = tick_;
    }
    for (unsigned lane = 0; lane < 32; ++lane) {
      if ((mask >> lane & 1) == 0) continue;
      for (unsigned other = 0; other < 32; ++other) {
        seen[lane][other] = (mask >> other & 1) != 0 ? tick_ : all[other];
      }
    }
  }

  /// For each thread of a block, the tick before which what it did is known.
  using Clock = std::vector<std::uint32_t>;
  /// Adds what the running thread did, and knows of others.
  void tell(Clock& clock) {
    if (!is_watching) return;
    ++tick_;
    clock.resize(block_threads);
    const Clock& mine = known_[running.rank][index_of(running)];
    for (std::size_t i = 0; i < mine.size(); ++i) clock[i] = std::max(clock[i], mine[i]);
    for (std::uint8_t lane = 0; lane < 32; ++lane) {
      auto& one = clock[index_of({running.rank, running.warp, lane})];
      one       = std::max(one, seen_[running.rank][running.warp][running.lane][lane]);
    }
    clock[index_of(running)] = tick_;
  }
  /// What other threads told precedes what the running thread does from now on.
  void learn(const Clock& clock) {
    if (!is_watching) return;
    Clock& mine = known_[running.rank][index_of(running)];
    mine.resize(block_threads);
    for (std::size_t i = 0; i < clock.size(); ++i) mine[i] = std::max(mine[i], clock[i]);
  }

  /// Records an access of the running thread; false if it races with an earlier one.
  [[nodiscard]] bool access(const void* memory, std::size_t bytes, Access kind) {
    Cell* cell = find(memory, bytes);
    if (cell == nullptr) return true;
    if (is_atomic) kind = Access::atomic;
    const Cell before = cell[0];
    bool is_ordered   = touch(cell[0], kind);
    for (std::size_t i = 1; i < bytes; ++i) {  // usually all bytes have the same history
      if (std::memcmp(&cell[i], &before, sizeof before) == 0) {
        cell[i] = cell[0];
      } else {
        is_ordered = touch(cell[i], kind) && is_ordered;
      }
    }
    return is_ordered;
  }

 private:
  struct One {
    std::uint32_t tick;
    Thread thread;
    std::uint8_t unused;  // so that equal entries have equal bytes
  };
  struct Lanes {
    std::uint32_t tick, lanes;
    std::uint8_t rank, warp;
    std::uint8_t unused[2];
  };
  struct Cell {
    One written, changed;  // by a plain write, by an atomic
    Lanes read[2];         // of the warps that read it last
  };
  struct Region {
    std::uintptr_t begin = 0;
    std::size_t bytes    = 0;
    Cell* cells          = nullptr;
    bool is_blocks       = false;
  };

  static constexpr std::size_t block_threads = 1024;
  static std::size_t index_of(const Thread& thread) {
    return std::size_t{32} * thread.warp + thread.lane;
  }

  static std::uintptr_t address_of(const void* memory) {
    return reinterpret_cast<std::uintptr_t>(memory);
  }

  Cell* find(const void* memory, std::size_t bytes) {
    const std::uintptr_t address = address_of(memory);
    if (address - last_.begin >= last_.bytes) {
      if (address - lowest_ >= highest_ - lowest_) return nullptr;
      const auto at = regions_.upper_bound(address);
      if (at == regions_.end() || address < at->second.begin) return nullptr;
      last_ = at->second;
    }
    return address - last_.begin + bytes <= last_.bytes ? last_.cells + (address - last_.begin)
                                                        : nullptr;
  }

  /// Whether an access at a tick of a thread precedes the running thread.
  [[nodiscard]] bool is_before(std::uint32_t tick, const Thread& thread) const {
    if (tick < launch_began_) return true;
    if (tick < run_began_) return last_.is_blocks;  // by another block of this launch
    if (thread.rank != running.rank) return tick < cluster_began_;
    if (tick < block_began_[running.rank]) return true;
    const Clock& known = known_[running.rank][index_of(running)];
    if (!known.empty() && tick < known[index_of(thread)]) return true;
    if (thread.warp != running.warp) return false;
    return thread.lane == running.lane ||
           tick < seen_[running.rank][running.warp][running.lane][thread.lane];
  }
  [[nodiscard]] bool is_before(const One& one) const { return is_before(one.tick, one.thread); }
  [[nodiscard]] bool is_before(const Lanes& some) const { return lanes_left(some) == 0; }
  /// The lanes whose accesses do not precede.
  [[nodiscard]] std::uint32_t lanes_left(const Lanes& some) const {
    std::uint32_t left = 0;
    for (std::uint32_t lanes = some.lanes; lanes != 0; lanes &= lanes - 1) {
      const auto lane = static_cast<std::uint8_t>(std::countr_zero(lanes));
      if (!is_before(some.tick, {some.rank, some.warp, lane})) left |= 1U << lane;
    }
    return left;
  }

  bool touch(Cell& cell, Access kind) {
    bool is_ordered = is_before(cell.written);
    if (kind != Access::atomic) is_ordered = is_ordered && is_before(cell.changed);
    if (kind == Access::read) {
      add_reader(cell);
      return is_ordered;
    }
    for (const Lanes& some : cell.read) is_ordered = is_ordered && is_before(some);
    (kind == Access::write ? cell.written : cell.changed) = {tick_, running, 0};
    return is_ordered;
  }
  void add_reader(Cell& cell) {
    const auto me     = std::uint32_t{1} << running.lane;
    const auto is_own = [&](const Lanes& some) {
      return some.rank == running.rank && some.warp == running.warp && some.tick >= run_began_;
    };
    Lanes& mine = is_own(cell.read[0])                               ? cell.read[0]
                  : is_own(cell.read[1]) || !is_before(cell.read[0]) ? cell.read[1]
                                                                     : cell.read[0];
    if (is_own(mine) && mine.tick == tick_) {
      mine.lanes |= me;
      return;
    }
    const std::uint32_t left = is_own(mine) ? lanes_left(mine) : 0;
    mine = {left == 0 ? tick_ : mine.tick, left | me, running.rank, running.warp, {}};
  }

  std::map<std::uintptr_t, Region> regions_;  // by their ends
  Region last_;
  std::uintptr_t lowest_ = ~std::uintptr_t{0}, highest_ = 0;
  std::uint32_t tick_ = 1, launch_began_ = 1, run_began_ = 1, cluster_began_ = 1;
  std::array<std::uint32_t, 8> block_began_{};
  std::array<std::array<Clock, block_threads>, 8> known_;
  // [rank][warp][lane][other]: the lane comes after what the other did before that tick
  std::array<std::array<std::array<std::array<std::uint32_t, 32>, 32>, 32>, 8> seen_{};
};
inline Races races;

/// Marks the running thread's accesses until the end of the scope as atomic.
class AtomicAccess {
 public:
  AtomicAccess() { set(true); }
  AtomicAccess(const AtomicAccess&)            = delete;
  AtomicAccess& operator=(const AtomicAccess&) = delete;
  ~AtomicAccess() { set(false); }

 private:
  /// Compilers assume that reporting an access reads nothing, and would move both.
  static void set(bool is_atomic) {
    asm volatile("" ::: "memory");
    races.is_atomic = is_atomic;
    asm volatile("" ::: "memory");
  }
};

}  // namespace simt
