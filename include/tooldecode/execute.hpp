/// \file
/// Tool execution, with speculative calls: executors, a cache of results, and speculators.
///
/// A ToolExecutor runs calls within limits. ClientSpeculator and EngineSpeculator run guessed calls
/// early, where a SpeculationPolicy allows it and a SpeculationGate expects a gain.
#pragma once

#include <tooldecode/core/error.hpp>
#include <tooldecode/execute/client_speculator.hpp>
#include <tooldecode/execute/client_turn.hpp>
#include <tooldecode/execute/engine_speculator.hpp>
#include <tooldecode/execute/speculation_gate.hpp>
#include <tooldecode/execute/speculation_policy.hpp>
#include <tooldecode/execute/tool_cache.hpp>
#include <tooldecode/execute/tool_executor.hpp>
#include <tooldecode/execute/tool_runtime.hpp>
#include <tooldecode/execute/tool_submitter.hpp>
#include <tooldecode/execute/turn_times.hpp>
#include <tooldecode/tools/call_key.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>
