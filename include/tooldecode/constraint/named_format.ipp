/// \file
/// Definitions of named_format.hpp.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/constraint/named_format.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/call_format.hpp>
#include <tooldecode/formats/delimited_call.hpp>
#include <tooldecode/formats/free_text.hpp>
#include <tooldecode/formats/harmony_call.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/positional_call.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/formats/xml_call.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>

namespace tooldecode {

TOOLDECODE_INLINE std::string NamedFormat::write(std::span<const ToolCall> calls,
                                                 const ToolSet& tools) const {
  return write_for(calls, tools);
}

TOOLDECODE_INLINE NamedFormat make_named_format(std::string name, const formats::AnyFormat& format,
                                                formats::ReasoningDelimiters reasoning) {
  return {
      std::move(name), std::move(reasoning),
      [format](std::span<const ToolCall> calls, const ToolSet& tools) {
        return format.write(calls, tools);
      },
      [format](std::string_view text, const ToolSet& tools) { return format.parse(text, tools); },
      [format](const VocabularyIndex& cache, const ToolSet& tools, const ChoiceOptions& choice) {
        return ToolCallFSM(cache, tools, format, choice);
      }};
}

TOOLDECODE_INLINE const std::vector<NamedFormat>& named_formats() {
  static const std::vector<NamedFormat> all{
      make_named_format("python", PythonCall{}),
      make_named_format("hermes", JsonCall::hermes()),
      make_named_format("qwen-2.5", JsonCall::qwen_2_5()),
      make_named_format("llama", JsonCall::llama()),
      make_named_format("lfm2", PythonCall::lfm2()),
      make_named_format("llama-4", PythonCall::llama_4()),
      make_named_format("olmo-3", PythonCall::olmo_3()),
      make_named_format("mistral", JsonCall::mistral()),
      make_named_format("json", JsonCall::bare()),
      make_named_format("json-list", JsonCall::bare_list()),
      make_named_format("json-fence", JsonCall::fence()),
      make_named_format("exaone", JsonCall::exaone()),
      make_named_format("granite", JsonCall::granite()),
      make_named_format("nemotron", JsonCall::nemotron()),
      make_named_format("apriel", JsonCall::apriel(),
                        {"Here are my reasoning steps:\n", "[BEGIN FINAL RESPONSE]"}),
      make_named_format("phi-4-mini", JsonCall::phi_4_mini()),
      make_named_format("firefunction", JsonCall::firefunction()),
      make_named_format("gigachat-3", JsonCall::gigachat_3()),
      make_named_format("gigachat-3.1", JsonCall::gigachat_3_1()),
      make_named_format("internlm", JsonCall::internlm()),
      make_named_format("apertus", JsonCall::apertus(), {"<|inner_prefix|>", "<|inner_suffix|>"}),
      make_named_format("command-r7b", JsonCall::command_r7b(),
                        {"<|START_THINKING|>", "<|END_THINKING|>"}),
      make_named_format("command-r-plus", JsonCall::command_r_plus()),
      make_named_format("mistral-args", DelimitedCall::mistral(), {"[THINK]", "[/THINK]"}),
      make_named_format("deepseek-v3", DelimitedCall::deepseek_v3()),
      make_named_format("deepseek-v3.1", DelimitedCall::deepseek_v3_1()),
      make_named_format("kimi-k2", DelimitedCall::kimi_k2()),
      make_named_format("harmony", HarmonyCall{}, HarmonyCall::analysis()),
      make_named_format("functionary-3.1", DelimitedCall::functionary_3_1()),
      make_named_format("functionary-3.2", DelimitedCall::functionary_3_2()),
      make_named_format("react", DelimitedCall::react()),
      make_named_format("qwen3-coder", XmlCall::qwen3_coder()),
      make_named_format("glm", XmlCall::glm()),
      make_named_format("glm-4.7", XmlCall::glm_4_7()),
      make_named_format("mimo", XmlCall::mimo()),
      make_named_format("seed-oss", XmlCall::seed_oss(), {"<seed:think>", "</seed:think>"}),
      make_named_format("minimax-m2", XmlCall::minimax_m2()),
      make_named_format("minicpm5", XmlCall::minicpm5()),
      make_named_format("deepseek-v3.2", XmlCall::deepseek_v3_2()),
      make_named_format("deepseek-v4", XmlCall::deepseek_v4()),
      make_named_format("kimi-k3", XmlCall::kimi_k3(),
                        {"<|open|>think<|sep|>", "<|close|>think<|sep|>"}),
      make_named_format("gemma-4", XmlCall::gemma_4(), {"<|channel>thought\n", "<channel|>"}),
      make_named_format("cohere-4", XmlCall::cohere(), {"<|START_THINKING|>", "<|END_THINKING|>"}),
      make_named_format("toolken", PositionalCall::toolken()),
      make_named_format("tooldec", PositionalCall::tool_dec()),
  };
  return all;
}

TOOLDECODE_INLINE std::string format_names() {
  const auto& all = named_formats();
  std::string names;
  for (std::size_t i = 0; i < all.size(); ++i) {
    names += (i == 0 ? "" : i + 1 == all.size() ? " or " : ", ") + all[i].name;
  }
  return names;
}

TOOLDECODE_INLINE const NamedFormat& format_named(std::string_view name) {
  for (const NamedFormat& format : named_formats()) {
    if (format.name == name) return format;
  }
  throw Error(Errc::unknown_format, std::string(name),
              "no such call format; there is " + format_names());
}

}  // namespace tooldecode
