#pragma once

#include <algorithm>
#include <cstddef>

#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/delimited_call.hpp>
#include <tooldecode/formats/harmony_call.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/named_format.hpp>
#include <tooldecode/formats/positional_call.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/formats/xml_call.hpp>

namespace tooldecode {

TOOLDECODE_INLINE const std::vector<NamedFormat>& named_formats() {
  static const std::vector<NamedFormat> all{
      {"python", PythonCall{}},
      {"hermes", JsonCall::hermes()},
      {"qwen-2.5", JsonCall::qwen_2_5()},
      {"llama", JsonCall::llama()},
      {"lfm2", PythonCall::lfm2()},
      {"llama-4", PythonCall::llama_4()},
      {"olmo-3", PythonCall::olmo_3()},
      {"mistral", JsonCall::mistral()},
      {"json", JsonCall::bare()},
      {"json-list", JsonCall::bare_list()},
      {"json-fence", JsonCall::fence()},
      {"exaone", JsonCall::exaone()},
      {"longcat", JsonCall::longcat()},
      {"granite", JsonCall::granite()},
      {"nemotron", JsonCall::nemotron()},
      {"apriel", JsonCall::apriel(), {"Here are my reasoning steps:\n", "[BEGIN FINAL RESPONSE]"}},
      {"phi-4-mini", JsonCall::phi_4_mini()},
      {"firefunction", JsonCall::firefunction()},
      {"gigachat-3", JsonCall::gigachat_3()},
      {"gigachat-3.1", JsonCall::gigachat_3_1()},
      {"internlm", JsonCall::internlm()},
      {"apertus", JsonCall::apertus(), {"<|inner_prefix|>", "<|inner_suffix|>"}},
      {"command-r7b", JsonCall::command_r7b(), {"<|START_THINKING|>", "<|END_THINKING|>"}},
      {"command-r-plus", JsonCall::command_r_plus()},
      {"mistral-args", DelimitedCall::mistral(), {"[THINK]", "[/THINK]"}},
      {"deepseek-v3", DelimitedCall::deepseek_v3()},
      {"deepseek-v3.1", DelimitedCall::deepseek_v3_1()},
      {"kimi-k2", DelimitedCall::kimi_k2()},
      {"plamo-3",
       DelimitedCall::plamo_3(),
       {"<|plamo:begin_think:plamo|>", "<|plamo:end_think:plamo|>"}},
      {"harmony", HarmonyCall{}, HarmonyCall::analysis()},
      {"functionary-3.1", DelimitedCall::functionary_3_1()},
      {"functionary-3.2", DelimitedCall::functionary_3_2()},
      {"react", DelimitedCall::react()},
      {"qwen3-coder", XmlCall::qwen3_coder()},
      {"glm", XmlCall::glm()},
      {"glm-4.7", XmlCall::glm_4_7()},
      {"iquest-q1", XmlCall::iquest_q1()},
      {"k2-horizon", XmlCall::k2_horizon(), {"<ifm|think>", "</ifm|think>"}},
      {"hunyuan-3", XmlCall::hunyuan_3()},
      {"hunyuan-4", XmlCall::hunyuan_4()},
      {"mimo", XmlCall::mimo()},
      {"seed-oss", XmlCall::seed_oss(), {"<seed:think>", "</seed:think>"}},
      {"minimax-m2", XmlCall::minimax_m2()},
      {"minimax-m3", XmlCall::minimax_m3(), {"<mm:think>", "</mm:think>"}},
      {"dots", XmlCall::dots()},
      {"step-3", XmlCall::step_3()},
      {"minicpm5", XmlCall::minicpm5()},
      {"deepseek-v3.2", XmlCall::deepseek_v3_2()},
      {"deepseek-v4", XmlCall::deepseek_v4()},
      {"deepseek-v4.1", XmlCall::deepseek_v4_1()},
      {"gigachat-3.5", XmlCall::gigachat_3_5()},
      {"kimi-k3", XmlCall::kimi_k3(), {"<|open|>think<|sep|>", "<|close|>think<|sep|>"}},
      {"gemma-4", XmlCall::gemma_4(), {"<|channel>thought\n", "<channel|>"}},
      {"functiongemma", XmlCall::function_gemma()},
      {"cohere-4", XmlCall::cohere(), {"<|START_THINKING|>", "<|END_THINKING|>"}},
      {"toolken", PositionalCall::toolken()},
      {"tooldec", PositionalCall::tool_dec()},
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

TOOLDECODE_INLINE std::optional<NamedFormat> format_with_suffix(std::string_view name) {
  const std::size_t colon       = std::min(name.find(':'), name.size());
  const std::string_view family = name.substr(0, colon);
  const std::string suffix(name.substr(colon));
  const bool is_3 = family == "hunyuan-3";
  if ((!is_3 && family != "hunyuan-4") || suffix.size() < 2 ||
      suffix.find_first_of(" \t\r\n<>,") != std::string::npos) {
    return std::nullopt;
  }
  return NamedFormat{std::string(name),
                     is_3 ? XmlCall::hunyuan_3(suffix) : XmlCall::hunyuan_4(suffix),
                     {"<think" + suffix + '>', "</think" + suffix + '>'}};
}

}  // namespace tooldecode
