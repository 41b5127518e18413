/// \file
/// ToolResult: the outcome of running a tool, failures included, as a value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <tooldecode/core/config.hpp>

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

}  // namespace tooldecode
