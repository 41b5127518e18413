/// \file
/// ToolRuntime: runs a tool. ToolResult: its outcome, failures included, as a value.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include <tooldecode/core/diagnose.hpp>
#include <tooldecode/tools/tool_call.hpp>

namespace tooldecode {

/// How the run of a tool ended.
enum class ToolStatus : std::uint8_t {
  ok,
  failed,     ///< it failed, or could not be run
  timed_out,  ///< the time limit passed
  cancelled,  ///< its answer was not needed any longer
};

/// The status's name in messages and machine-readable output.
[[nodiscard]] constexpr std::string_view name(ToolStatus status) noexcept {
  switch (status) {
    case ToolStatus::ok:
      return "ok";
    case ToolStatus::failed:
      return "failed";
    case ToolStatus::timed_out:
      return "timed_out";
    case ToolStatus::cancelled:
      return "cancelled";
  }
  return "unknown";
}

/// The outcome of running a tool. A failure is a normal result: the model reads it and continues,
/// so no tool can end a session.
struct ToolResult {
  ToolStatus status = ToolStatus::ok;
  std::string output{};  ///< the tool's text, or one sentence about the failure

  friend bool operator==(const ToolResult&, const ToolResult&) = default;
};

/// Receives the result of a call, from any thread; only the first result of a call counts.
using ToolDone = std::function<void(ToolResult)>;

/// Runs a call and returns its result: a ToolResult, or the text of an `ok` result.
template <class R>
concept SyncToolRuntime = requires(R& run, const ToolCall& call, std::stop_token stop) {
  { run(call, stop) } -> std::convertible_to<ToolResult>;
} || requires(R& run, const ToolCall& call, std::stop_token stop) {
  { run(call, stop) } -> std::convertible_to<std::string>;
};

/// Starts a call and returns; later calls `done` with the result. Destroying `done` without a call
/// counts as a failure of the tool.
template <class R>
concept AsyncToolRuntime = requires(R& run, const ToolCall& call, std::stop_token stop,
                                    ToolDone done) { run(call, stop, done); };

/// Runs tools. It is called by several threads at the same time, may throw, and should end early
/// when the stop token asks for it.
template <class R>
concept ToolRuntime = SyncToolRuntime<R> || AsyncToolRuntime<R>;

namespace diagnose {

/// True if R is a ToolRuntime; otherwise a compile error with the line to write.
template <class R>
consteval bool is_tool_runtime() {
  if constexpr (!ToolRuntime<R>) {
    static_assert(
        detail::never<R>,
        "ToolRuntime: add 'ToolResult operator()(const ToolCall&, std::stop_token);', or 'void operator()(const ToolCall&, std::stop_token, ToolDone);'");
  }
  return true;
}

}  // namespace diagnose

/// Any runtime in callback form.
using AnyToolRuntime = std::function<void(const ToolCall&, std::stop_token, ToolDone)>;

/// Wraps a runtime of either kind; its exceptions pass through.
///
/// \par Complexity  O(1); the runtime is moved, and copies of the result share it
/// \par Threads     as the runtime
template <class R>
[[nodiscard]] AnyToolRuntime make_tool_runtime(R runtime) {
  static_assert(diagnose::is_tool_runtime<R>());
  return [shared = std::make_shared<R>(std::move(runtime))](const ToolCall& call,
                                                            std::stop_token stop, ToolDone done) {
    if constexpr (AsyncToolRuntime<R>) {
      (*shared)(call, std::move(stop), std::move(done));
    } else if constexpr (!SyncToolRuntime<R>) {  // diagnosed above
    } else if constexpr (std::convertible_to<decltype((*shared)(call, stop)), ToolResult>) {
      done((*shared)(call, std::move(stop)));
    } else {
      done({ToolStatus::ok, (*shared)(call, std::move(stop))});
    }
  };
}

}  // namespace tooldecode
