/// \file
/// A GPU's execution model on one processor thread: a fiber per thread, block by block.
///
/// Threads hand over only at collectives and atomics, in an order that a schedule picks, so a
/// kernel that needs a barrier and lacks it computes something else under one of them. Shared
/// memory is filled with NaN before each block. What hardware leaves undefined is a Fault: barriers
/// that not all threads reach, lanes that name different masks, a shuffle from a lane outside the
/// mask. Not modelled: the memory model's weak ordering and time.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <support/simt/fiber.hpp>

/// Three numbers, as grids and indices have them.
struct uint3 {
  unsigned x = 1, y = 1, z = 1;
};

// What the running thread sees.
inline uint3 threadIdx, blockIdx, blockDim, gridDim;

// The running block's shared memory, under the name that kernels declare; what lies past the size
// asked for may not be touched.
namespace tooldecode::cuda {
alignas(1024) inline unsigned char shared_memory[256 * 1024];
}  // namespace tooldecode::cuda

namespace simt {

/// What a kernel did that hardware leaves undefined.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Which of the threads that can go on goes on.
enum class Schedule {
  lockstep,  ///< all in turn, as if warps ran together
  skewed,    ///< one warp as far as it gets, then the next, the last first
  random,    ///< any, by a seed; blocks too
};

/// How kernels are run from now on.
struct Options {
  Schedule schedule        = Schedule::lockstep;
  std::uint64_t seed       = 1;
  std::size_t shared_limit = 227 * 1024;  ///< bytes of shared memory that a block can ask for
};
inline Options options;

/// Bytes of shared memory that there are.
inline constexpr std::size_t most_shared_bytes = sizeof tooldecode::cuda::shared_memory;

/// Called before each block.
inline std::vector<std::function<void()>> block_starts;

/// What the lanes of a warp do together.
enum class Collective { sync, shuffle, ballot, all, any };

/// A line of a kernel.
struct Site {
  const char* file = "";
  int line         = 0;
  [[nodiscard]] std::string text() const {
    const std::string name = file;
    return name.substr(name.rfind('/') + 1) + ":" + std::to_string(line);
  }
  friend bool operator==(const Site& a, const Site& b) {
    return a.line == b.line && std::strcmp(a.file, b.file) == 0;
  }
};

/// Runs the threads of one block.
class Block {
  struct Failure {
    const char* what = nullptr;
    Site where, other;
  };

 public:
  static constexpr unsigned warp_size = 32;

  /// Runs `body` in every thread of the block whose index is set.
  void run(const std::function<void()>& body) {
    const unsigned count = blockDim.x * blockDim.y * blockDim.z;
    while (threads_.size() < count) threads_.push_back(std::make_unique<Thread>());
    body_  = &body;
    count_ = alive_ = count;
    arrived_        = 0;
    barrier_        = {};
    failure_        = {};
    for (auto& points : warps_) points.clear();
    ready_.clear();
    waiting_.clear();
    for (unsigned t = 0; t < count; ++t) {
      Thread& thread = *threads_[t];
      thread.index   = {t % blockDim.x, t / blockDim.x % blockDim.y, t / (blockDim.x * blockDim.y)};
      thread.done    = false;
      thread.fiber.start(&Block::enter);
      ready_.push_back(t);
    }
    head_   = 0;
    active_ = this;
    leave_to(main_);
    if (failure_.what != nullptr) throw Fault(failure());
    if (alive_ > 0) throw Fault(deadlock());
  }

  static Block& active() { return *active_; }

  /// Of all threads of the block; gives the sum of the values.
  std::uint64_t barrier(std::uint64_t value, const char* file, int line) {
    const Site site{file, line};
    if (arrived_ == 0) {
      barrier_     = site;
      barrier_sum_ = 0;
    } else if (!(barrier_ == site)) {
      fail("threads wait at different barriers", barrier_, site);
    }
    barrier_sum_ += value;
    if (alive_ != count_) fail("a barrier that threads which have ended cannot reach", site);
    waiting_.push_back(current_);
    threads_[current_]->place = site;
    if (++arrived_ == count_) {
      arrived_ = 0;
      // Threads leave in the order of their index, whatever the order they came in.
      std::sort(waiting_.begin(), waiting_.end());
      for (const unsigned t : waiting_) {
        threads_[t]->result = barrier_sum_;
        ready_.push_back(t);
      }
      waiting_.clear();
    }
    suspend();
    return threads_[current_]->result;
  }

  /// Of the lanes of a mask; `source` is the lane whose value a shuffle gives.
  std::uint64_t collective(Collective kind, std::uint32_t mask, std::uint64_t value,
                           unsigned source, const char* file, int line) {
    const Site site{file, line};
    const unsigned lane = current_ % warp_size;
    auto& points        = warps_[current_ / warp_size];
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
        const unsigned t = current_ / warp_size * warp_size + other;
        if ((mask >> other & 1) != 0 && (t >= count_ || threads_[t]->done)) {
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
      complete(*point, current_ / warp_size * warp_size);
      points.erase(points.begin() + (point - points.data()));
    }
    suspend();
    return threads_[current_]->result;
  }

  /// Lets others run; what atomics do first, since their order is nobody's promise.
  void yield() {
    if (options.schedule != Schedule::random) return;
    ready_.push_back(current_);
    suspend();
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

  /// Ends the block's run with a fault. The thread's stack is left as it is, so nothing on it may
  /// own memory: the sentence is made later.
  [[noreturn]] void fail(const char* what, Site where, Site other = {}) {
    failure_ = {what, where, other};
    threads_[current_]->fiber.switch_to(main_);
    std::abort();
  }
  [[nodiscard]] std::string failure() const {
    std::string text = std::string(failure_.what) + ": " + failure_.where.text();
    if (failure_.other.line != 0) text += " and " + failure_.other.text();
    return text + " (block " + std::to_string(blockIdx.x) + "," + std::to_string(blockIdx.y) + "," +
           std::to_string(blockIdx.z) + ", thread " + std::to_string(current_) + ")";
  }

  static void enter() {
    Block& block = *active_;
    block.threads_[block.current_]->fiber.arrive();
    (*block.body_)();
    Thread& thread = *block.threads_[block.current_];
    thread.done    = true;
    --block.alive_;
    if (block.arrived_ > 0) {
      block.fail("a thread ended while others wait at a barrier", block.barrier_);
    }
    for (const Point& point : block.warps_[block.current_ / warp_size]) {
      if ((point.mask >> block.current_ % warp_size & 1) != 0) {
        block.fail("a lane ended while others wait for it", point.site);
      }
    }
    block.leave_to(thread.fiber);
    std::abort();
  }

  void complete(const Point& point, unsigned first) {
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

  /// Hands over; returns when the current thread is picked again.
  void suspend() { leave_to(threads_[current_]->fiber); }

  void leave_to(Fiber& from) {
    if (head_ == ready_.size()) {
      if (&from != &main_) from.switch_to(main_);
      return;
    }
    unsigned next = 0;
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
    threadIdx      = thread.index;
    if (&from != &thread.fiber) from.switch_to(thread.fiber);
  }

  [[nodiscard]] std::string deadlock() const {
    std::string text = "no thread can go on; waiting:";
    int shown        = 0;
    for (unsigned t = 0; t < count_ && shown < 4; ++t) {
      if (!threads_[t]->done && (shown == 0 || !(threads_[t]->place == threads_[t - 1]->place))) {
        text += " thread " + std::to_string(t) + " at " + threads_[t]->place.text();
        ++shown;
      }
    }
    return text;
  }

  static inline Block* active_ = nullptr;

  std::vector<std::unique_ptr<Thread>> threads_;
  std::array<std::vector<Point>, 32> warps_;
  std::vector<unsigned> ready_;  // lockstep takes from `head_` on
  std::size_t head_ = 0;
  std::vector<unsigned> waiting_;
  Fiber main_;
  const std::function<void()>* body_ = nullptr;
  Failure failure_;
  std::mt19937_64 random_;
  Site barrier_;
  std::uint64_t barrier_sum_ = 0;
  unsigned count_ = 0, alive_ = 0, arrived_ = 0, current_ = 0;
};

/// Runs a grid of blocks, one after another: in order, the last first, or in any order.
inline void run_grid(uint3 grid, uint3 block, std::size_t shared_bytes,
                     const std::function<void()>& body) {
  static Block runner;
  gridDim  = grid;
  blockDim = block;
  runner.seed(options.seed);
  const std::uint64_t count = std::uint64_t{grid.x} * grid.y * grid.z;
  std::vector<std::uint64_t> order(count);
  for (std::uint64_t i = 0; i < count; ++i) order[i] = i;
  if (options.schedule == Schedule::skewed) std::reverse(order.begin(), order.end());
  if (options.schedule == Schedule::random)
    std::shuffle(order.begin(), order.end(), runner.random());
#if defined(SIMT_ADDRESS_SANITIZER)
  __asan_unpoison_memory_region(tooldecode::cuda::shared_memory, most_shared_bytes);
  __asan_poison_memory_region(tooldecode::cuda::shared_memory + shared_bytes,
                              most_shared_bytes - shared_bytes);
#endif
  for (const std::uint64_t i : order) {
    blockIdx = {static_cast<unsigned>(i % grid.x), static_cast<unsigned>(i / grid.x % grid.y),
                static_cast<unsigned>(i / (std::uint64_t{grid.x} * grid.y))};
    std::memset(tooldecode::cuda::shared_memory, 0xFF, shared_bytes);
    for (const auto& start : block_starts) start();
    runner.run(body);
  }
}

}  // namespace simt
