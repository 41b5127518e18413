/// \file
/// The handles of tooldecode.h, and how its functions accept and return them.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/adapters/c_constraint.hpp>
#include <tooldecode/adapters/c_errors.hpp>
#include <tooldecode/adapters/tooldecode.h>
#include <tooldecode/constraint/call_stream.hpp>
#include <tooldecode/constraint/completions.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/thread_pool.hpp>

namespace tooldecode::c_interface {

/// A background compilation, shared by the handle and the thread that builds it.
///
/// \par Threads     every member may run concurrently; call `run` once
class Compilation {
 public:
  Compilation(std::shared_ptr<const Tokens> tokens, const td_specification* specification)
      : tokens_(std::move(tokens)), specification_(specification) {}

  void run() noexcept {
    std::optional<Constrained> built;
    Failure failure;
    try {
      built.emplace(tokens_, specification_.build(tokens_->index, &is_cancelled_));
    } catch (...) {
      try {
        failure = current_failure();
      } catch (...) {
        failure.code = TD_ERROR_OUT_OF_MEMORY;
      }
    }
    {
      const std::lock_guard lock(mutex_);
      built_     = std::move(built);
      failure_   = std::move(failure);
      has_ended_ = true;
    }
    ended_.notify_all();
  }
  void cancel() noexcept { is_cancelled_ = true; }

  /// The constraint, or null after the timeout; throws what building threw.
  [[nodiscard]] const Constrained* wait(std::int64_t milliseconds) const {
    constexpr std::int64_t year = std::int64_t{365} * 24 * 3600 * 1000;
    std::unique_lock lock(mutex_);
    const auto is_over = [this] { return has_ended_; };
    if (milliseconds < 0) {
      ended_.wait(lock, is_over);
    } else if (!ended_.wait_for(lock, std::chrono::milliseconds(std::min(milliseconds, year)),
                                is_over)) {
      return nullptr;
    }
    if (!built_) throw failure_;
    return &*built_;
  }

 private:
  std::shared_ptr<const Tokens> tokens_;
  Specification specification_;
  std::atomic<bool> is_cancelled_ = false;
  mutable std::mutex mutex_;  // guards the members below
  mutable std::condition_variable ended_;
  bool has_ended_ = false;
  std::optional<Constrained> built_;
  Failure failure_;
};

/// A thread pool and the compilations on it.
class Pool {
 public:
  explicit Pool(std::size_t threads)
      : threads_(threads == 0 ? ThreadPool::usual_threads() : threads) {}
  ~Pool() {
    for (const auto& one : compilations_) {
      if (const auto running = one.lock()) running->cancel();
    }
  }
  Pool(const Pool&)            = delete;
  Pool& operator=(const Pool&) = delete;

  [[nodiscard]] ThreadPool& threads() noexcept { return threads_; }

  void start(const std::shared_ptr<Compilation>& compilation) {
    {
      const std::lock_guard lock(mutex_);
      std::erase_if(compilations_, [](const auto& one) { return one.expired(); });
      compilations_.push_back(compilation);
    }
    threads_.submit([compilation] { compilation->run(); });
  }

 private:
  std::mutex mutex_;  // guards the members below
  std::vector<std::weak_ptr<Compilation>> compilations_;
  ThreadPool threads_;  // destroyed first
};

/// A stream, and the events that its caller holds.
class Events {
 public:
  explicit Events(const ToolCallFSM& calls) : stream_(calls) {}

  [[nodiscard]] CallStream& stream() noexcept { return stream_; }
  /// Drops the events that the caller holds.
  void clear() noexcept {
    kept_.clear();
    shown_.clear();
  }
  void add(std::vector<StreamEvent> events) {
    for (StreamEvent& event : events) kept_.push_back(std::move(event));
  }
  /// All events since the last `clear`.
  [[nodiscard]] std::span<const td_event> show() {
    for (const StreamEvent& event : kept_) {
      shown_.push_back({static_cast<std::int32_t>(event.kind) + TD_EVENT_TEXT,
                        event.call,
                        {event.text.data(), event.text.size()}});
    }
    return shown_;
  }

 private:
  CallStream stream_;
  std::deque<StreamEvent> kept_;  // a deque, so that texts do not move
  std::vector<td_event> shown_;
};
static_assert(static_cast<int>(StreamEvent::Kind::answer_end) + TD_EVENT_TEXT ==
              TD_EVENT_ANSWER_END);

}  // namespace tooldecode::c_interface

/// See tooldecode.h.
struct td_error {
  tooldecode::c_interface::Failure failure;
};
/// See tooldecode.h.
struct td_vocabulary {
  std::shared_ptr<const tooldecode::c_interface::Tokens> tokens;
};
/// See tooldecode.h.
struct td_constraint {
  tooldecode::c_interface::Constrained shared;
};
/// See tooldecode.h.
struct td_refusal {
  std::size_t at;
  std::string text, json;
};
/// See tooldecode.h.
struct td_pool {
  tooldecode::c_interface::Pool shared;
};
/// See tooldecode.h.
struct td_call_stream {
  tooldecode::c_interface::Events shared;
};
/// See tooldecode.h.
struct td_completions {
  tooldecode::c_interface::Constrained shared;
  tooldecode::Completions found{shared.constraint()};
};
/// See tooldecode.h.
struct td_compilation {
  std::shared_ptr<tooldecode::c_interface::Compilation> shared;
};

namespace tooldecode::c_interface {

/// Runs the body and converts exceptions to a code.
template <class Body>
td_code call(td_error** error, const Body& body) noexcept {
  if (error != nullptr) *error = nullptr;
  Failure failure;
  try {
    try {
      return body();
    } catch (const Failure& known) {
      failure = known;
    } catch (...) {
      failure = current_failure();
    }
  } catch (...) {  // out of memory: no text
    failure.code = TD_ERROR_OUT_OF_MEMORY;
  }
  const td_code code = failure.code;
  if (error != nullptr) *error = new (std::nothrow) td_error{std::move(failure)};
  return code;
}
/// As call, for functions that make a handle.
template <class Handle, class Make>
td_code make(Handle** out, td_error** error, const Make& make_handle) noexcept {
  if (out != nullptr) *out = nullptr;
  return call(error, [&] {
    require(out, "out");
    *out = make_handle();
    return TD_OK;
  });
}

/// The constraint of a handle.
inline const Constrained& shared_of(const td_constraint* constraint) {
  require(constraint, "constraint");
  return constraint->shared;
}
/// The vocabulary of a handle.
inline const Tokens& tokens_of(const td_vocabulary* vocabulary) {
  require(vocabulary, "vocabulary");
  return *vocabulary->tokens;
}
/// Converts a caller's state.
inline Constrained::State state_of(const Constrained& constraint, const td_state* state) {
  require(state, "state");
  return constraint.take(*state);
}
/// Converts a state that a struct of the caller's holds.
///
/// \param place  gives the field's name, and the index in it, for an error
template <class Place>
Constrained::State state_in(const Constrained& constraint, const td_state& state,
                            const Place& place) {
  try {
    return constraint.take(state);
  } catch (const Error& error) {
    throw error.within(place());
  }
}
/// Calls `body(constraint, state)`.
template <class Body>
td_code call_at(const td_constraint* constraint, const td_state* state, td_error** error,
                const Body& body) {
  return call(error, [&] {
    const Constrained& shared = shared_of(constraint);
    return body(shared, state_of(shared, state));
  });
}

/// A caller's words of one mask.
inline MaskView mask_from(const Constrained& constraint, std::uint32_t* words, std::size_t count) {
  require_array(words, count, "words");
  if (count != constraint.words()) {
    throw Refusal(TD_ERROR_SHAPE_MISMATCH, "word_count",
                  "must be " + std::to_string(constraint.words()));
  }
  return std::span(words, count);
}

/// Writes what fits and sets `count` to the total.
///
/// \param argument  the name of `to` in tooldecode.h
template <class T>
td_code give_all(std::span<const T> all, T* to, std::size_t capacity, std::size_t* count,
                 const char* argument) {
  require(count, "count");
  *count = all.size();
  require_array(to, capacity, argument);
  std::copy_n(all.begin(), std::min(all.size(), capacity), to);
  if (all.size() <= capacity) return TD_OK;
  throw Refusal(TD_ERROR_BUFFER_TOO_SMALL, "capacity", "must be " + std::to_string(all.size()));
}

/// Tokens given by a caller.
inline std::span<const std::int32_t> tokens_from(const std::int32_t* tokens, std::size_t count,
                                                 const char* argument = "tokens") {
  require_array(tokens, count, argument);
  return {tokens, count};
}

/// Returns the events that `read` adds to a stream.
template <class Read>
td_code give_events(td_call_stream* stream, const td_event** events, std::size_t* count,
                    td_error** error, const Read& read) noexcept {
  return call(error, [&] {
    require(stream, "stream");
    require(events, "events");
    require(count, "event_count");
    *events = nullptr;
    *count  = 0;
    stream->shared.clear();
    const auto show = [&] {
      const auto all = stream->shared.show();
      *events        = all.data();
      *count         = all.size();
    };
    try {
      read(stream->shared);
    } catch (...) {
      show();  // of the tokens before the one that is refused
      throw;
    }
    show();
    return TD_OK;
  });
}

/// Runs a job on a pool, or on this thread if there is none.
template <class Task>
void run(td_pool* pool, std::size_t count, const Task& task) {
  if (pool != nullptr) {
    pool->shared.threads()(count, task);
  } else {
    for (std::size_t i = 0; i < count; ++i) task(i);
  }
}

}  // namespace tooldecode::c_interface
