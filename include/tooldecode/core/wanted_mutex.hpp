/// \file
/// WantedMutex: a mutex whose holder can tell that others wait.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>

namespace tooldecode::core {

/// Whether any thread waits for one of the mutexes that share it.
class Waiters {
 public:
  /// For BuildLimits::cancelled: work that can be done later stops when another thread waits for it.
  [[nodiscard]] const std::atomic<bool>& are_there() const noexcept { return waiting_; }

 private:
  friend class WantedMutex;
  void add() noexcept {
    count_.fetch_add(1);
    waiting_.store(true);
  }
  void remove() noexcept {
    if (count_.fetch_sub(1) != 1) return;
    waiting_.store(false);
    if (count_.load() != 0) waiting_.store(true);  // another came in between
  }

  std::atomic<std::uint32_t> count_{0};
  std::atomic<bool> waiting_{false};
};

/// A std::mutex that counts who waits for it. The counter must outlive it.
///
/// \par Complexity  a free mutex costs what std::mutex costs
/// \par Threads     as std::mutex
class WantedMutex {
 public:
  /// While it lives, this thread waits without being counted: its work is not urgent.
  class Patience {
   public:
    Patience() : before_(std::exchange(is_patient_, true)) {}
    ~Patience() { is_patient_ = before_; }
    Patience(const Patience&)            = delete;
    Patience& operator=(const Patience&) = delete;

   private:
    bool before_;
  };

  explicit WantedMutex(Waiters& waiters) noexcept : waiters_(waiters) {}

  void lock() {
    if (mutex_.try_lock()) return;
    if (is_patient_) return mutex_.lock();
    waiters_.add();
    mutex_.lock();
    waiters_.remove();
  }
  void unlock() { mutex_.unlock(); }

 private:
  static inline thread_local bool is_patient_ = false;

  std::mutex mutex_;
  Waiters& waiters_;
};

}  // namespace tooldecode::core
