/// \file
/// ClientTurn: what came of a turn that a client has speculated on.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/execute/client_models.hpp>
#include <tooldecode/execute/tool_result.hpp>
#include <tooldecode/execute/turn_times.hpp>
#include <tooldecode/tools/tool_call.hpp>

namespace tooldecode {

/// What speculation did in a turn, or in several. Calls that were started were hit, resident or
/// wasted; calls of the model were hits, residents or misses; speculators said something, threw, or
/// were too late.
struct SpeculationCounts {
  std::size_t proposed  = 0;  ///< different calls, in time
  std::size_t started   = 0;
  std::size_t hits      = 0;  ///< calls of the model that the client answered by a started one
  std::size_t residents = 0;  ///< calls of the model whose results its engine had in the cache
  std::size_t misses    = 0;  ///< the other calls of the model that were run
  std::size_t wasted    = 0;  ///< started for nothing
  std::size_t cancelled = 0;  ///< those of them that had not come to their end
  std::size_t errors    = 0;  ///< speculators that threw, in time
  std::size_t late      = 0;  ///< speculators that had not come to their end by the reply
  std::string first_error{};  ///< what the first that threw had to say

  /// Adds what came later.
  SpeculationCounts& operator+=(const SpeculationCounts& other);
};

/// What a run of a tool was good for.
enum class RunFate : std::uint8_t {
  hit,       ///< begun before the model called it
  resident,  ///< the same, and its result was in the engine's cache when the call ended
  miss,      ///< begun when the model called it
  wasted,    ///< never called
};

/// The fate's name, as written in messages and in machine-readable output.
[[nodiscard]] constexpr std::string_view name(RunFate fate) noexcept {
  switch (fate) {
    case RunFate::hit:
      return "hit";
    case RunFate::resident:
      return "resident";
    case RunFate::miss:
      return "miss";
    case RunFate::wasted:
      return "wasted";
  }
  return "unknown";
}

/// A run of a tool. Times are since the turn's begin.
struct ToolRun {
  ToolCall call;
  RunFate fate      = RunFate::wasted;
  ToolStatus status = ToolStatus::cancelled;
  std::optional<Seconds> begin{};  ///< none where it never began
  std::optional<Seconds> asked{};  ///< when the model called it
  Seconds time{};                  ///< for how long it ran
};

/// What the runs of calls that were asked for together had behind them by then: how much later the
/// last of them would have ended, had all begun only when they were asked for.
///
/// \par Complexity  O(runs)
[[nodiscard]] Seconds saved_time(std::span<const ToolRun> runs);

/// A turn: the main model's reply and what came of its calls.
struct ClientTurn {
  Reply reply{};
  std::vector<ToolResult> results{};  ///< one per call of the reply, in the order of the calls
  SpeculationCounts counts{};
  Seconds generation{};         ///< until the reply
  Seconds tools{};              ///< from the reply until the last result
  std::vector<ToolRun> runs{};  ///< of all tools, as their fate became known
  Seconds saved{};              ///< see saved_time, of all calls of the model
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/execute/client_turn.ipp>
#endif
