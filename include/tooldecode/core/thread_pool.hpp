/// \file
/// ThreadPool: runs the indices of a job in parallel, and tasks in the background.
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

/// A fixed number of threads, for batches of masks and for background builds.
///
/// It is an executor as `fill_masks` expects one: `pool(count, task)` runs `task(i)` for each i below
/// `count`. The calling thread takes part, so a job finishes even if all threads are busy, and a
/// task may itself run a job.
///
/// \par Complexity  a job wakes at most `count - 1` threads; an index costs one atomic addition
/// \par Threads     every member may run concurrently; the destructor runs all submitted tasks that
///                  have not started, then waits; none of the pool's threads may call it
/// \par Errors      std::system_error from the constructor; a job rethrows its first exception
class ThreadPool {
 public:
  [[nodiscard]] static std::size_t usual_threads() noexcept;

  /// \param threads  threads in addition to the callers; with 0, callers run everything
  explicit ThreadPool(std::size_t threads = usual_threads());
  ~ThreadPool();
  ThreadPool(const ThreadPool&)            = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] std::size_t size() const noexcept { return threads_.size(); }

  /// Runs each index once, in any order, and returns when all are done. If a task throws, no
  /// further index starts and the first exception is rethrown here.
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
      // At the front: a caller is waiting for these.
      for (std::size_t i = 0; i < helpers; ++i) tasks_.emplace_front([job] { job->help(); });
    }
    helpers == 1 ? wake_.notify_one() : wake_.notify_all();
    job->run();
    job->finish();
  }

  /// Runs a task later, after those submitted before; it must not throw.
  void submit(std::function<void()> task);

  /// True once the destructor waits for the tasks, so that a long task can end early.
  [[nodiscard]] const std::atomic<bool>& is_stopping() const noexcept { return stopping_; }

 private:
  // Helpers may hold a job after it is over; they then do not touch its task.
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
    std::mutex mutex_;  // guards the members below
    std::condition_variable done_;
    std::size_t helping_ = 0;
    bool is_over_        = false;
    std::exception_ptr thrown_;
  };

  void work();
  void stop() noexcept;

  std::vector<std::thread> threads_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  std::atomic<bool> stopping_ = false;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/core/thread_pool.ipp>
#endif
