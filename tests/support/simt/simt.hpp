/// \file
/// Emulates a GPU's execution model on one host thread, with a fiber per GPU thread. Blocks run one
/// after another; the blocks of a cluster run together.
///
/// Threads switch only at collectives and atomics, in an order that a schedule picks. So a kernel
/// that lacks a barrier computes a different result under one of the schedules. Shared memory is
/// filled with NaN before each block. What hardware leaves undefined is a Fault: barriers that not
/// all threads reach, lanes that name different masks, a shuffle from a lane outside the mask, an
/// access to the memory of a block that has ended, and, in builds that see accesses, races. Not
/// modelled: weak memory ordering and time.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <support/simt/fiber.hpp>
#include <support/simt/races.hpp>

struct uint3 {
  unsigned x = 1, y = 1, z = 1;
};

inline uint3 threadIdx, blockIdx, blockDim, gridDim;

namespace simt {

/// Maximum shared memory of a block, in bytes.
inline constexpr std::size_t max_shared_bytes = 256 * 1024;
inline constexpr unsigned max_cluster_blocks  = 8;
/// The running blocks' shared memory; bytes past the requested size must not be accessed.
alignas(1024) inline unsigned char shared_memories[max_cluster_blocks][max_shared_bytes];

inline unsigned cluster_rank = 0;

/// A kernel did something that hardware leaves undefined.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Which of the ready threads runs next.
enum class Schedule {
  lockstep,  ///< in turn, as if warps ran together
  skewed,    ///< one warp as far as it gets, then the next; the last one first
  random,    ///< random by a seed, blocks included
};

/// How kernels run from now on.
struct Options {
  Schedule schedule        = Schedule::lockstep;
  std::uint64_t seed       = 1;
  std::size_t shared_limit = 227 * 1024;  ///< bytes of shared memory that a block can request
};
inline Options options;

/// Called before that many blocks run.
inline std::vector<std::function<void(unsigned blocks)>> block_starts;

/// Joint operations of the lanes of a warp.
enum class Collective { sync, shuffle, ballot, all, any };

struct Site {
  const char* file = "";
  int line         = 0;
  [[nodiscard]] std::string text() const {
    const std::string name = file;
    return name.substr(name.rfind('/') + 1) + ":" + std::to_string(line);
  }
  friend bool operator==(const Site& a, const Site& b) {
    return a.line == b.line && (a.file == b.file || std::strcmp(a.file, b.file) == 0);
  }
};

/// Runs the threads of one block, or of all blocks of a cluster at once.
class Block {
  struct Failure {
    const char* what = nullptr;
    Site where, other;
  };

 public:
  static constexpr unsigned warp_size = 32;

  /// Runs `body` in each thread of the blocks of these indices, which form one cluster.
  void run(std::span<const uint3> blocks, const std::function<void()>& body) {
    count_  = blockDim.x * blockDim.y * blockDim.z;
    blocks_ = static_cast<unsigned>(blocks.size());
    alive_  = count_ * blocks_;
    while (threads_.size() < alive_) threads_.push_back(std::make_unique<Thread>());
    body_    = &body;
    failure_ = {};
    cluster_.waiting.clear();
    waiting_.clear();
    cluster_.is_clusters = true;
    ready_.clear();
    for (unsigned rank = 0; rank < blocks_; ++rank) {
      Part& part = parts_[rank];
      part.index = blocks[rank];
      part.alive = count_;
      part.barrier.waiting.clear();
      for (auto& points : part.warps) points.clear();
      for (unsigned t = 0; t < count_; ++t) {
        Thread& thread = *threads_[rank * count_ + t];
        thread.index = {t % blockDim.x, t / blockDim.x % blockDim.y, t / (blockDim.x * blockDim.y)};
        thread.done  = false;
        thread.fiber.start(&Block::enter);
        ready_.push_back(rank * count_ + t);
      }
    }
    head_   = 0;
    active_ = this;
    races.blocks_begin();
    leave_to(main_);
    current_ = nobody;
    if (failure_.what != nullptr) throw Fault(failure());
    if (alive_ > 0) throw Fault(deadlock());
  }

  static Block& active() { return *active_; }
  static bool is_active() { return active_ != nullptr; }

  /// Barrier of the block; returns the sum of the values.
  std::uint64_t barrier(std::uint64_t value, const char* file, int line) {
    Part& part = parts_[cluster_rank];
    return wait_at(part.barrier, count_, part.alive, value, {file, line});
  }

  void cluster_barrier(const char* file, int line) {
    wait_at(cluster_, count_ * blocks_, alive_, 0, {file, line});
  }

  /// Where the counterpart of `own` lies in another block of the cluster.
  const unsigned char* in_block(unsigned rank, const void* own, const char* file, int line) {
    const unsigned char* const memory = shared_memories[cluster_rank];
    const auto* const at              = static_cast<const unsigned char*>(own);
    const Site site{file, line};
    if (at < memory || at >= memory + max_shared_bytes) {
      fail("an address outside the block's shared memory", site);
    }
    if (rank >= blocks_) fail("a block that the cluster has not", site);
    if (parts_[rank].alive == 0) fail("a block has ended whose shared memory is read", site);
    return shared_memories[rank] + (at - memory);
  }

  /// Called by the lanes of a mask; `source` is the lane whose value a shuffle returns.
  std::uint64_t collective(Collective kind, std::uint32_t mask, std::uint64_t value,
                           unsigned source, const char* file, int line) {
    const Site site{file, line};
    const unsigned thread = current_ % count_;  // index in the block
    const unsigned lane   = thread % warp_size;
    const unsigned first  = current_ - lane;
    auto& points          = parts_[cluster_rank].warps[thread / warp_size];
    if ((mask >> lane & 1) == 0) fail("a lane is not in its mask", site);
    Point* point = nullptr;
    for (Point& one : points) {
      if (one.mask == mask) {
        point = &one;
      } else if ((one.mask & mask) != 0) {
        fail("lanes of a warp name different masks", one.site, site);
      }
    }
    if (point == nullptr) {
      points.push_back({mask, kind, site, 0, {}, {}});
      point = &points.back();
      for (unsigned other = 0; other < warp_size; ++other) {
        if ((mask >> other & 1) != 0 &&
            (thread - lane + other >= count_ || threads_[first + other]->done)) {
          fail("the mask names a lane that has ended", site);
        }
      }
    }
    if (point->kind != kind || !(point->site == site)) {
      fail("lanes of a warp are at different operations", point->site, site);
    }
    if (kind == Collective::shuffle && (source >= warp_size || (mask >> source & 1) == 0)) {
      fail("a shuffle reads a lane outside the mask", site);
    }
    threads_[current_]->place = site;
    point->values[lane]       = value;
    point->sources[lane]      = source;
    point->arrived |= 1U << lane;
    if (point->arrived == mask) {
      complete(*point, first);
      points.erase(points.begin() + (point - points.data()));
    }
    suspend();
    return threads_[current_]->result;
  }

  /// Waits until a thread notifies those that wait for an object.
  void wait_for(const void* what, const char* file, int line) {
    threads_[current_]->place = {file, line};
    waiting_.emplace_back(what, current_);
    suspend();
  }
  void notify(const void* what) {
    std::erase_if(waiting_, [&](const auto& one) {
      if (one.first == what) ready_.push_back(one.second);
      return one.first == what;
    });
  }
  [[noreturn]] void refuse(const char* what, const char* file, int line) {
    fail(what, {file, line});
  }

  /// Lets other threads run. Atomics do this first, because their order is not guaranteed.
  void yield() {
    if (options.schedule != Schedule::random) return;
    ready_.push_back(current_);
    suspend();
  }

  /// Reports a memory access of the running thread; does nothing outside kernels.
  void see_access(const void* memory, std::size_t bytes, Access kind) {
    if (current_ == nobody || races.access(memory, bytes, kind)) return;
    fail("threads race: no barrier between what two of them do with the same bytes",
         threads_[current_]->place);
  }

  void seed(std::uint64_t seed) { random_.seed(seed); }
  std::mt19937_64& random() { return random_; }

 private:
  struct Thread {
    Fiber fiber;
    uint3 index;
    std::uint64_t result = 0;
    Site place;
    bool done = false;
  };
  struct Point {
    std::uint32_t mask;
    Collective kind;
    Site site;
    std::uint32_t arrived;
    std::array<std::uint64_t, warp_size> values;
    std::array<unsigned, warp_size> sources;
  };
  struct Barrier {
    Site site;
    std::uint64_t sum = 0;
    std::vector<unsigned> waiting;
    bool is_clusters = false;
  };
  struct Part {
    uint3 index;
    unsigned alive = 0;
    Barrier barrier;
    std::array<std::vector<Point>, 32> warps;
  };

  std::uint64_t wait_at(Barrier& barrier, unsigned count, unsigned alive, std::uint64_t value,
                        const Site& site) {
    if (barrier.waiting.empty()) {
      barrier.site = site;
      barrier.sum  = 0;
    } else if (!(barrier.site == site)) {
      fail("threads wait at different barriers", barrier.site, site);
    }
    barrier.sum += value;
    if (alive != count) fail("a barrier that threads which have ended cannot reach", site);
    barrier.waiting.push_back(current_);
    threads_[current_]->place = site;
    if (barrier.waiting.size() == count) {
      if (barrier.is_clusters) {
        races.cluster_barrier();
      } else {
        races.block_barrier(cluster_rank);
      }
      // Threads leave in index order, whatever order they arrived in.
      std::sort(barrier.waiting.begin(), barrier.waiting.end());
      for (const unsigned t : barrier.waiting) {
        threads_[t]->result = barrier.sum;
        ready_.push_back(t);
      }
      barrier.waiting.clear();
    }
    suspend();
    return threads_[current_]->result;
  }

  /// Ends the run with a fault. The thread's stack is abandoned, so nothing on it may own memory;
  /// the message is made later.
  [[noreturn]] void fail(const char* what, Site where, Site other = {}) {
    failure_ = {what, where, other};
    threads_[current_]->fiber.switch_to(main_);
    std::abort();
  }
  [[nodiscard]] std::string failure() const {
    std::string text = std::string(failure_.what) + ": " + failure_.where.text();
    if (failure_.other.line != 0) text += " and " + failure_.other.text();
    return text + " (block " + std::to_string(blockIdx.x) + "," + std::to_string(blockIdx.y) + "," +
           std::to_string(blockIdx.z) + ", thread " + std::to_string(current_ % count_) + ")";
  }

  static void enter() {
    Block& block = *active_;
    block.threads_[block.current_]->fiber.arrive();
    (*block.body_)();
    Thread& thread = *block.threads_[block.current_];
    Part& part     = block.parts_[cluster_rank];
    thread.done    = true;
    --block.alive_;
    --part.alive;
    for (const Barrier* barrier : {&part.barrier, &block.cluster_}) {
      if (!barrier->waiting.empty()) {
        block.fail("a thread ended while others wait at a barrier", barrier->site);
      }
    }
    const unsigned index = block.current_ % block.count_;
    for (const Point& point : part.warps[index / warp_size]) {
      if ((point.mask >> index % warp_size & 1) != 0) {
        block.fail("a lane ended while others wait for it", point.site);
      }
    }
    block.leave_to(thread.fiber);
    std::abort();
  }

  void complete(const Point& point, unsigned first) {
    if (point.kind == Collective::sync) {
      races.warp_barrier(cluster_rank, first % count_ / warp_size, point.mask);
    }
    std::uint64_t folded = 0;
    bool started         = false;
    for (unsigned lane = 0; lane < warp_size; ++lane) {
      if ((point.mask >> lane & 1) == 0) continue;
      const std::uint64_t value = point.values[lane];
      switch (point.kind) {
        case Collective::sync:
        case Collective::shuffle:
          break;
        case Collective::ballot:
          folded |= std::uint64_t{value != 0} << lane;
          break;
        case Collective::all:
          folded = (started ? folded : 1) & std::uint64_t{value != 0};
          break;
        case Collective::any:
          folded |= std::uint64_t{value != 0};
          break;
      }
      started = true;
    }
    for (unsigned lane = 0; lane < warp_size; ++lane) {
      if ((point.mask >> lane & 1) == 0) continue;
      threads_[first + lane]->result =
          point.kind == Collective::shuffle ? point.values[point.sources[lane]] : folded;
      ready_.push_back(first + lane);
    }
  }

  /// Returns when the current thread is picked again.
  void suspend() { leave_to(threads_[current_]->fiber); }

  void leave_to(Fiber& from) {
    if (head_ == ready_.size()) {
      if (&from != &main_) from.switch_to(main_);
      return;
    }
    races.is_atomic = false;
    unsigned next   = 0;
    switch (options.schedule) {
      case Schedule::lockstep:
        next = ready_[head_++];
        if (head_ == ready_.size()) {
          ready_.clear();
          head_ = 0;
        }
        break;
      case Schedule::skewed:
        next = ready_.back();
        ready_.pop_back();
        break;
      case Schedule::random: {
        const std::size_t at = random_() % ready_.size();
        next                 = ready_[at];
        ready_[at]           = ready_.back();
        ready_.pop_back();
        break;
      }
    }
    Thread& thread = *threads_[next];
    current_       = next;
    cluster_rank   = next / count_;
    threadIdx      = thread.index;
    blockIdx       = parts_[cluster_rank].index;
    races.running  = {static_cast<std::uint8_t>(cluster_rank),
                      static_cast<std::uint8_t>(next % count_ / warp_size),
                      static_cast<std::uint8_t>(next % count_ % warp_size)};
    if (&from != &thread.fiber) from.switch_to(thread.fiber);
  }

  [[nodiscard]] std::string deadlock() const {
    std::string text = "no thread can go on; waiting:";
    int shown        = 0;
    for (unsigned t = 0; t < count_ * blocks_ && shown < 4; ++t) {
      if (!threads_[t]->done && (shown == 0 || !(threads_[t]->place == threads_[t - 1]->place))) {
        text += " thread " + std::to_string(t % count_) + " at " + threads_[t]->place.text();
        ++shown;
      }
    }
    return text;
  }

  static inline Block* active_ = nullptr;

  std::vector<std::unique_ptr<Thread>> threads_;
  std::array<Part, max_cluster_blocks> parts_;
  Barrier cluster_;
  std::vector<std::pair<const void*, unsigned>> waiting_;
  std::vector<unsigned> ready_;  // lockstep takes from `head_` on
  std::size_t head_ = 0;
  Fiber main_;
  const std::function<void()>* body_ = nullptr;
  Failure failure_;
  std::mt19937_64 random_;
  static constexpr unsigned nobody = ~0U;
  unsigned count_ = 0, blocks_ = 0;  // threads per block, blocks
  unsigned alive_ = 0, current_ = nobody;
};

inline void see_access(const void* memory, std::size_t bytes, Access kind) {
  if (Block::is_active()) Block::active().see_access(memory, bytes, kind);
}

/// Runs a grid of blocks, one cluster after another: in order, last first, or in random order.
inline void run_grid(uint3 grid, uint3 block, unsigned cluster, std::size_t shared_bytes,
                     const std::function<void()>& body) {
  static Block runner;
  gridDim  = grid;
  blockDim = block;
  runner.seed(options.seed);
  races.launch_begins();
  const std::uint64_t count = std::uint64_t{grid.x} * grid.y * grid.z / cluster;
  std::vector<std::uint64_t> order(count);
  for (std::uint64_t i = 0; i < count; ++i) order[i] = i;
  if (options.schedule == Schedule::skewed) std::reverse(order.begin(), order.end());
  if (options.schedule == Schedule::random)
    std::shuffle(order.begin(), order.end(), runner.random());
#if defined(SIMT_ADDRESS_SANITIZER)
  __asan_unpoison_memory_region(shared_memories, sizeof shared_memories);
  for (auto& memory : shared_memories) {
    __asan_poison_memory_region(memory + shared_bytes, max_shared_bytes - shared_bytes);
  }
#endif
  std::vector<uint3> blocks(cluster);
  for (const std::uint64_t first : order) {
    for (unsigned rank = 0; rank < cluster; ++rank) {
      const std::uint64_t i = first * cluster + rank;
      blocks[rank] = {static_cast<unsigned>(i % grid.x), static_cast<unsigned>(i / grid.x % grid.y),
                      static_cast<unsigned>(i / (std::uint64_t{grid.x} * grid.y))};
      std::memset(shared_memories[rank], 0xFF, shared_bytes);
    }
    for (const auto& start : block_starts) start(cluster);
    runner.run(blocks, body);
  }
}

}  // namespace simt
