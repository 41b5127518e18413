#pragma once

#include <utility>

#include <tooldecode/core/thread_pool.hpp>

namespace tooldecode {

TOOLDECODE_INLINE std::size_t ThreadPool::usual_threads() noexcept {
  return std::max<std::size_t>(1, std::thread::hardware_concurrency());
}

TOOLDECODE_INLINE ThreadPool::ThreadPool(std::size_t threads) {
  threads_.reserve(threads);
  try {
    for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  } catch (...) {
    stop();
    throw;
  }
}

TOOLDECODE_INLINE ThreadPool::~ThreadPool() {
  stop();
}

TOOLDECODE_INLINE void ThreadPool::submit(std::function<void()> task) {
  if (threads_.empty()) return task();
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
}

TOOLDECODE_INLINE void ThreadPool::Job::run() noexcept {
  try {
    for (std::size_t i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < count_;) {
      call_(task_, i);
    }
  } catch (...) {
    next_.store(count_, std::memory_order_relaxed);
    const std::lock_guard lock(mutex_);
    if (!thrown_) thrown_ = std::current_exception();
  }
}

TOOLDECODE_INLINE void ThreadPool::Job::help() {
  {
    const std::lock_guard lock(mutex_);
    if (is_over_) return;
    ++helping_;
  }
  run();
  const std::lock_guard lock(mutex_);
  if (--helping_ == 0) done_.notify_all();
}

TOOLDECODE_INLINE void ThreadPool::Job::finish() {
  std::unique_lock lock(mutex_);
  is_over_ = true;
  done_.wait(lock, [this] { return helping_ == 0; });
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

TOOLDECODE_INLINE void ThreadPool::work() {
  for (;;) {
    std::function<void()> task;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

TOOLDECODE_INLINE void ThreadPool::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace tooldecode
