#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/tools/delimited_call.hpp>
#include <tooldecode/tools/harmony_call.hpp>
#include <tooldecode/tools/json_call.hpp>
#include <tooldecode/tools/positional_call.hpp>
#include <tooldecode/tools/python_call.hpp>
#include <tooldecode/tools/xml_call.hpp>

#include <program/formats.hpp>

namespace program {
namespace {

// A format as functions.
template <class F>
Format make_format(std::string name, F format,
                   tooldecode::tools::ReasoningDelimiters reasoning = {},
                   std::vector<CallDelimiter> further_marks         = {}) {
  further_marks.push_back({std::string(format.trigger()), format.only_at_start()});
  return {std::move(name),
          std::move(further_marks),
          std::move(reasoning),
          [format](std::span<const tooldecode::ToolCall> calls, const tooldecode::ToolSet& tools) {
            return tooldecode::write_calls(format, calls, tools);
          },
          [format](std::string_view text, const tooldecode::ToolSet& tools) {
            return format.parse(text, tools);
          },
          [format](const tooldecode::VocabularyIndex& cache, const tooldecode::ToolSet& tools,
                   const tooldecode::ChoiceOptions& choice) {
            return tooldecode::ToolCallFSM(cache, tools, format, choice);
          }};
}

}  // namespace

const std::vector<Format>& formats() {
  using tooldecode::HarmonyCall, tooldecode::JsonCall, tooldecode::DelimitedCall;
  using tooldecode::PositionalCall, tooldecode::PythonCall, tooldecode::XmlCall;
  static const std::vector<Format> all{
      make_format("python", PythonCall{}),
      make_format("hermes", JsonCall::hermes()),
      make_format("llama", JsonCall::llama(), {}, {{"{", true}}),
      make_format("mistral", JsonCall::mistral()),
      make_format("json", JsonCall::bare()),
      make_format("json-list", JsonCall::bare_list()),
      make_format("mistral-args", DelimitedCall::mistral(), {"[THINK]", "[/THINK]"}),
      make_format("deepseek-v3", DelimitedCall::deepseek_v3()),
      make_format("deepseek-v3.1", DelimitedCall::deepseek_v3_1()),
      make_format("kimi-k2", DelimitedCall::kimi_k2(), {}, {{"<|tool_call_begin|>"}}),
      make_format("harmony", HarmonyCall{}, HarmonyCall::analysis()),
      make_format("react", DelimitedCall::react()),
      make_format("qwen3-coder", XmlCall::qwen3_coder(), {}, {{"<function="}}),
      make_format("glm", XmlCall::glm()),
      make_format("toolken", PositionalCall::toolken()),
      make_format("tooldec", PositionalCall::tool_dec()),
  };
  return all;
}

}  // namespace program
