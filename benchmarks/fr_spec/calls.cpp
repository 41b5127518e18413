// Answers that are calls of the prompt's functions and nothing else.
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/tools/tool_set.hpp>

#include "bench.hpp"

fr_spec::Measured fr_spec::Bench::measure_calls(const Prompt& prompt, bool is_timed) {
  const td::ToolSet tools = td::ToolSet::from_json(prompt.functions);
  return measure(
      prompt, is_timed,
      td::ToolCallFSM(masks_, tools, td::PythonCall{}, {.choice = td::ToolChoice::required}));
}
