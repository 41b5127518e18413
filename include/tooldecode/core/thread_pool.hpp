/// \file
/// ThreadPool: threads that share out the indices of a job, and take tasks for later.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <tooldecode/core/config.hpp>

namespace tooldecode {

/// A fixed number of threads, for masks of many states at once and for what may be built later.
///
/// It is an executor as `fill_masks` wants one: `pool(count, task)` runs `task(0)` to
/// `task(count - 1)`, on the calling thread too, so that a job ends however busy the threads are,
/// and a task may itself run a job.
///
/// \par Complexity  a job wakes at most `count - 1` threads; an index costs one atomic addition
/// \par Threads     every member may run concurrently; the destructor runs what was submitted and
///                  not begun, then waits, and must not be called by one of the threads
/// \par Errors      std::system_error from the constructor; a job's first exception, from it
class ThreadPool {
 public:
  /// As many threads as the machine runs at once.
  [[nodiscard]] static std::size_t usual_threads() noexcept;

  /// \param threads  beside those that call; with none, everything runs where it is asked for
  explicit ThreadPool(std::size_t threads = usual_threads());
  ~ThreadPool();
  ThreadPool(const ThreadPool&)            = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] std::size_t size() const noexcept { return threads_.size(); }

  /// Runs each index once, in any order, and returns when all are done. Where a task throws, no
  /// further index is begun, and the first exception is thrown here.
  template <class Task>
  void operator()(std::size_t count, const Task& task) {
    const std::size_t helpers = count == 0 ? 0 : std::min(threads_.size(), count - 1);
    if (helpers == 0) {
      for (std::size_t i = 0; i < count; ++i) task(i);
      return;
    }
    const auto call = [](const void* erased, std::size_t i) {
      (*static_cast<const Task*>(erased))(i);
    };
    const auto job = std::make_shared<Job>(count, std::addressof(task), call);
    {
      const std::lock_guard lock(mutex_);
      // Before tasks for later: somebody waits for these.
      for (std::size_t i = 0; i < helpers; ++i) tasks_.emplace_front([job] { job->help(); });
    }
    helpers == 1 ? wake_.notify_one() : wake_.notify_all();
    job->run();
    job->finish();
  }

  /// Runs a task later, behind those submitted before it; it must not throw.
  void submit(std::function<void()> task);

 private:
  // Kept by whoever may still come to help; its task is read by those only who came in time.
  class Job {
   public:
    using Call = void (*)(const void*, std::size_t);

    Job(std::size_t count, const void* task, Call call) : count_(count), task_(task), call_(call) {}

    void run() noexcept;
    void help();
    void finish();

   private:
    std::size_t count_;
    const void* task_;
    Call call_;
    std::atomic<std::size_t> next_{0};
    std::mutex mutex_;  // guards what follows
    std::condition_variable done_;
    std::size_t helping_ = 0;
    bool is_over_        = false;
    std::exception_ptr thrown_;
  };

  void work();
  void stop() noexcept;

  std::vector<std::thread> threads_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/core/thread_pool.ipp>
#endif
