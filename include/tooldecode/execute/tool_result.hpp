/// \file
/// ToolResult: what came of running a tool, failures included, as a value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <tooldecode/core/config.hpp>

namespace tooldecode {

/// How the run of a tool ended.
enum class ToolStatus : std::uint8_t {
  ok,         ///< the tool answered
  failed,     ///< it could not, or could not be run
  timed_out,  ///< its answer was not waited for any longer
  cancelled,  ///< nobody wanted its answer any longer
};

/// The status's name, as written in messages and in machine-readable output.
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

/// What came of running a tool. A failure is a result like any other: the model reads it and goes
/// on, so that nothing that a tool does ends a session.
struct ToolResult {
  ToolStatus status = ToolStatus::ok;
  std::string output{};  ///< the tool's text, or one sentence on what went wrong

  friend bool operator==(const ToolResult&, const ToolResult&) = default;
};

}  // namespace tooldecode
