/// \file
/// ToolExecutor: runs tool calls on a bounded pool of threads; all that may go wrong is a result.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
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
#include <tooldecode/execute/tool_result.hpp>
#include <tooldecode/execute/tool_runtime.hpp>
#include <tooldecode/tools/call_key.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>

namespace tooldecode {

/// Bounds of a ToolExecutor.
struct ExecutorOptions {
  std::size_t threads     = 8;    ///< calls that run at once
  std::size_t queue_limit = 256;  ///< calls that wait for a thread
  /// For how long a call waits for a thread, and for how long it then runs.
  std::chrono::milliseconds timeout = std::chrono::seconds(30);
  /// The same for tools that need more or less, by their names.
  std::map<std::string, std::chrono::milliseconds> tool_timeouts{};
};

namespace detail {

// One run of a tool.
struct ToolTask {
  using Clock = std::chrono::steady_clock;

  ToolCall call;
  std::string key{};
  std::promise<ToolResult> promise{};
  std::shared_future<ToolResult> result = promise.get_future().share();
  std::stop_source stop{};
  std::chrono::milliseconds timeout{};
  // Guarded by the pool's mutex; `begin` and `time` are read by those who have seen the result, too.
  bool has_left       = false;  // the runtime has come back
  bool is_done        = false;
  std::size_t holders = 1;
  std::optional<Clock::time_point> begin{};
  Clock::time_point deadline{};
  Clock::duration time{};
  std::vector<std::function<void(const ToolResult&)>> listeners{};

  void finish(ToolResult value);
};

// What threads, executions and callbacks share. Those who stay longest keep it alive; the threads
// are the executor's.
class ToolPool : public std::enable_shared_from_this<ToolPool> {
 public:
  using Clock = ToolTask::Clock;
  using Task  = std::shared_ptr<ToolTask>;

  ToolPool(AnyToolRuntime runtime, const ExecutorOptions& options)
      : runtime_(std::move(runtime)), options_(options) {}

  // How a call is begun.
  enum class Mode {
    shared,       // as an equal call that is there, or at once, or in the queue
    unshared,     // by itself
    speculative,  // as an equal call that is there, or at once
  };

  // Null where a speculative call would have to wait.
  Task start(ToolCall call, std::string key, Mode mode);

  void release(const Task& task);

  void listen(const Task& task, std::function<void(const ToolResult&)> listener);

  // False where the stop came first.
  bool wait(const Task& task, std::stop_token stop);

  void work();

  // Lets a result be timed_out on time, whatever its runtime does.
  void watch();

  void close();

 private:
  // A runtime's way back: gives up the place when there is a result, or can be none any more.
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

  // The first call that may begin: equal calls do so one after the other.
  std::deque<Task>::iterator next();

  void run(const Task& task);

  void leave(const Task& task, ToolResult result);

  // Once a result is there, by whoever brought it, without the lock.
  void tell(const Task& task);

  // False where there is a result already.
  bool settle(const Task& task, ToolResult result);

  AnyToolRuntime runtime_;
  ExecutorOptions options_;
  std::mutex mutex_;  // guards what follows; nobody else's function runs under it
  std::condition_variable work_, timer_;
  std::condition_variable_any done_;
  bool closing_ = false;
  std::vector<Task> live_;  // those without a result
  std::deque<Task> queue_;  // those of them that have not begun
  std::map<std::string, Task> joinable_;
  std::set<std::string> inside_;  // keys of calls that a runtime has not come back from
};

}  // namespace detail

/// One holder's share in a running call: who lets go last, before there is a result, cancels it.
///
/// \par Complexity  O(1)
/// \par Threads     one thread at a time; may outlive its executor
/// \par Errors      none: a failure is a result
class Execution {
 public:
  Execution(Execution&& other) noexcept = default;
  Execution& operator=(Execution&& other) noexcept;
  ~Execution();

  [[nodiscard]] const std::string& key() const noexcept { return task_->key; }
  /// Whoever holds the future alone sees `cancelled` once all executions of the call are released.
  [[nodiscard]] std::shared_future<ToolResult> result() const { return task_->result; }
  [[nodiscard]] bool is_done() const;
  /// How long the tool ran; zero while it runs, and where it never began.
  [[nodiscard]] std::chrono::steady_clock::duration time() const;
  /// When the tool began, known once there is a result; none where it never did.
  [[nodiscard]] std::optional<std::chrono::steady_clock::time_point> begin() const;
  /// Has a function told of the result, whatever it is: on the thread that brings it, or at once
  /// where it is there. It must be quick, and not throw.
  void on_result(std::function<void(const ToolResult&)> listener) const;
  /// Waits for the result; `cancelled`, and released, where the stop is asked for first. After a
  /// release it does not wait.
  [[nodiscard]] ToolResult get(std::stop_token stop = {});
  /// Lets go; what is known of the call stays readable.
  void release() noexcept;

 private:
  friend class ToolExecutor;
  Execution(detail::ToolPool::Task task, std::weak_ptr<detail::ToolPool> pool)
      : task_(std::move(task)), pool_(std::move(pool)) {}

  detail::ToolPool::Task task_;
  std::weak_ptr<detail::ToolPool> pool_;
};

/// Runs calls over a ToolRuntime. No two calls of the same key run at once: a second one joins the
/// first, or, where it has effects of its own, waits for its end.
///
/// What a tool throws, what comes too late, what does not fit into the queue and what cannot be
/// written as a key are results that say so. A runtime that ignores its stop token keeps its thread
/// until it returns, but its result is there on time. Sessions that share an executor share the
/// results of equal calls that run at the same time.
///
/// \par Complexity  start O(size of the arguments + log calls), and O(calls) to leave the queue
/// \par Threads     every member may run concurrently; the destructor cancels all calls and waits
///                  for runtimes that return their result, not for those that call back
/// \par Errors      Error{invalid_option} from the constructor, nothing afterwards
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
  /// Runs a call for this caller alone, once no equal call runs: for tools with effects.
  [[nodiscard]] Execution start_unshared(const ToolCall& call);
  /// Runs a call, or joins an equal one, where that takes no waiting: a thread is free, and another
  /// one besides, so that calls which may never be needed do not hold up those which are.
  [[nodiscard]] std::optional<Execution> try_start(const ToolCall& call);

  /// The key under which the executor knows a call.
  ///
  /// \par Errors      as `call_key`
  [[nodiscard]] std::string key(const ToolCall& call) const;

 private:
  // Ends the threads' loops; after them in the order of members, so that it is destroyed first.
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
