/// \file
/// ToolExecutor: runs tool calls on a bounded thread pool; every failure is a result.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/execute/tool_runtime.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>

namespace tooldecode {

/// Bounds of a ToolExecutor.
struct ExecutorOptions {
  std::size_t threads     = 8;  ///< calls that run at the same time
  std::size_t queue_limit = 256;
  /// Limit of the time in the queue, and again of the running time.
  std::chrono::milliseconds timeout = std::chrono::seconds(30);
  /// Replaces `timeout` for tools, by name.
  std::map<std::string, std::chrono::milliseconds> tool_timeouts{};
};

namespace detail {

struct ToolTask {
  using Clock = std::chrono::steady_clock;

  ToolCall call;
  std::string key{};
  std::promise<ToolResult> promise{};
  std::shared_future<ToolResult> result = promise.get_future().share();
  std::stop_source stop{};
  std::chrono::milliseconds timeout{};
  // Guarded by the pool's mutex; `begin` and `time` may also be read after the result is seen.
  bool has_left       = false;  // the runtime has returned
  bool is_done        = false;
  std::size_t holders = 1;
  std::optional<Clock::time_point> begin{};
  Clock::time_point deadline{};
  Clock::duration time{};
  std::vector<std::function<void(const ToolResult&)>> listeners{};

  void finish(ToolResult value);
};

// Shared by threads, executions and callbacks, which keep it alive. The executor owns the threads.
class ToolPool : public std::enable_shared_from_this<ToolPool> {
 public:
  using Clock = ToolTask::Clock;
  using Task  = std::shared_ptr<ToolTask>;

  ToolPool(AnyToolRuntime runtime, const ExecutorOptions& options)
      : runtime_(std::move(runtime)), options_(options) {}

  // How a call is started.
  enum class Mode {
    shared,       // joins an equal call, or starts at once, or queues
    unshared,     // never joins another call
    speculative,  // joins an equal call, or starts at once
    concurrent,   // no other call matters
  };

  // Null if a speculative call would have to wait.
  Task start(ToolCall call, std::string key, Mode mode);

  void release(const Task& task);

  void listen(const Task& task, std::function<void(const ToolResult&)> listener);

  // False if the stop came first.
  bool wait(const Task& task, std::stop_token stop);

  void work();

  // Makes results `timed_out` on time, whatever the runtime does.
  void watch();

  void close();

 private:
  // A runtime's callback. Frees the slot when there is a result, or when none can come any more.
  struct Ticket {
    std::weak_ptr<ToolPool> pool;
    Task task;

    Ticket(std::weak_ptr<ToolPool> from, Task of) : pool(std::move(from)), task(std::move(of)) {}
    Ticket(const Ticket&)            = delete;
    Ticket& operator=(const Ticket&) = delete;
    ~Ticket();

    void leave(ToolResult result) const;
  };

  static Clock::time_point deadline(const ToolTask& task);

  // The first call that may begin; equal calls begin one after another.
  std::deque<Task>::iterator next();

  void run(const Task& task);

  void leave(const Task& task, ToolResult result);

  // Calls the listeners without the lock, once a result is there.
  void tell(const Task& task);

  // False if there is a result already.
  bool settle(const Task& task, ToolResult result);

  AnyToolRuntime runtime_;
  ExecutorOptions options_;
  std::mutex mutex_;  // guards the members below; no callback runs under it
  std::condition_variable work_, timer_;
  std::condition_variable_any done_;
  bool closing_ = false;
  std::vector<Task> live_;  // tasks without a result
  std::deque<Task> queue_;  // live tasks that have not begun
  std::map<std::string, Task> joinable_;
  std::set<std::string> inside_;  // keys of calls whose runtime has not returned
  std::uint64_t concurrent_ = 0;  // calls that were started as concurrent
};

}  // namespace detail

/// A share in a running call. When the last share is released before there is a result, the call is
/// cancelled.
///
/// \par Complexity  O(1)
/// \par Threads     one thread at a time; may outlive its executor
/// \par Errors      none; a failure is a result
class Execution {
 public:
  Execution(Execution&& other) noexcept = default;
  Execution& operator=(Execution&& other) noexcept;
  ~Execution();

  [[nodiscard]] const std::string& key() const noexcept { return task_->key; }
  /// Becomes `cancelled` once all executions of the call are released without a result.
  [[nodiscard]] std::shared_future<ToolResult> result() const { return task_->result; }
  [[nodiscard]] bool is_done() const;
  /// How long the tool ran; zero while it runs, and if it never began.
  [[nodiscard]] std::chrono::steady_clock::duration time() const;
  /// When the tool began; known once there is a result; empty if it never began.
  [[nodiscard]] std::optional<std::chrono::steady_clock::time_point> begin() const;
  /// Calls `listener` with the result, on the thread that brings it, or at once if it is there. The
  /// listener must be quick and must not throw.
  void on_result(std::function<void(const ToolResult&)> listener) const;
  /// Waits for the result. If the stop is requested first, releases the call and returns
  /// `cancelled`. Does not wait after a release.
  [[nodiscard]] ToolResult get(std::stop_token stop = {});
  /// Releases the share; the call's data stay readable.
  void release() noexcept;

 private:
  friend class ToolExecutor;
  Execution(detail::ToolPool::Task task, std::weak_ptr<detail::ToolPool> pool)
      : task_(std::move(task)), pool_(std::move(pool)) {}

  detail::ToolPool::Task task_;
  std::weak_ptr<detail::ToolPool> pool_;
};

/// Runs calls on a ToolRuntime. Two calls with the same key never run at the same time, unless one is
/// started as concurrent: the second joins the first or, if it is unshared, waits for its end.
///
/// Exceptions, timeouts, a full queue and calls that cannot be written as a key all become results.
/// A runtime that ignores its stop token keeps its thread until it returns, but the result arrives
/// on time. Sessions that share an executor share the results of equal calls that run at the same
/// time.
///
/// \par Complexity  start: O(size of the arguments + log calls), and O(calls) to leave the queue
/// \par Threads     every member may run concurrently; the destructor cancels all calls and waits
///                  for runtimes that return their result, not for those that use a callback
/// \par Errors      constructor: Error{invalid_option}; none afterwards
class ToolExecutor {
 public:
  template <class R>
  ToolExecutor(R runtime, ToolSet tools, const ExecutorOptions& options = {})
      : tools_(std::move(tools)),
        pool_(std::make_shared<detail::ToolPool>(make_tool_runtime(std::move(runtime)), options)),
        closer_{*pool_} {
    if (options.threads == 0)
      throw Error(Errc::invalid_option, "threads", options.threads, "must be 1 or more");
    auto min = options.timeout;
    for (const auto& [tool, timeout] : options.tool_timeouts) min = std::min(min, timeout);
    if (min <= std::chrono::milliseconds::zero()) {
      throw Error(Errc::invalid_option, "timeout", min.count(),
                  "must be 1 or more, in milliseconds");
    }
    threads_.emplace_back([pool = pool_.get()] { pool->watch(); });
    for (std::size_t i = 0; i < options.threads; ++i) {
      threads_.emplace_back([pool = pool_.get()] { pool->work(); });
    }
  }

  /// Runs a call, or joins an equal one that runs or waits.
  [[nodiscard]] Execution start(const ToolCall& call);
  /// Runs a call for this caller only, once no equal call runs: for tools with effects.
  [[nodiscard]] Execution start_unshared(const ToolCall& call);
  /// Runs a call for this caller only, beside equal ones.
  [[nodiscard]] Execution start_concurrent(const ToolCall& call);
  /// Runs a call or joins an equal one, only if that needs no waiting. One more thread must be
  /// free, so that speculative calls do not block needed ones.
  [[nodiscard]] std::optional<Execution> try_start(const ToolCall& call);

  /// The executor's key of a call.
  ///
  /// \par Errors      as `call_key`
  [[nodiscard]] std::string key(const ToolCall& call) const;

 private:
  // Ends the threads' loops. It is declared after them, so it is destroyed first.
  struct Closer {
    detail::ToolPool& pool;
    ~Closer();
  };

  std::optional<Execution> begin(const ToolCall& call, detail::ToolPool::Mode mode);

  ToolSet tools_;
  std::shared_ptr<detail::ToolPool> pool_;
  std::vector<std::jthread> threads_;
  Closer closer_;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/execute/tool_executor.ipp>
#endif
