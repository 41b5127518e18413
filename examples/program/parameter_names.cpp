#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/text/value_reader.hpp>

#include <program/parameter_names.hpp>

namespace program {

namespace {

// Of every API.
constexpr std::string_view common_read[]    = {"model",
                                               "temperature",
                                               "top_p",
                                               "top_k",
                                               "min_p",
                                               "repetition_penalty",
                                               "presence_penalty",
                                               "frequency_penalty",
                                               "logit_bias",
                                               "seed",
                                               "stop",
                                               "stop_token_ids",
                                               "stream",
                                               "stream_options",
                                               "structured_outputs",
                                               "guided_json",
                                               "guided_regex",
                                               "guided_choice",
                                               "guided_grammar",
                                               "grammar",
                                               "json_schema",
                                               "regex",
                                               "ebnf",
                                               "structural_tag"};
constexpr std::string_view common_ignored[] = {"user", "priority", "prompt_cache_key",
                                               "guided_decoding_backend"};

constexpr std::string_view chat_read[] = {"messages",
                                          "tools",
                                          "tool_choice",
                                          "parallel_tool_calls",
                                          "tool_enforcement",
                                          "max_tokens",
                                          "max_completion_tokens",
                                          "response_id",
                                          "tool_wait",
                                          "consistency",
                                          "n",
                                          "logprobs",
                                          "top_logprobs",
                                          "reasoning_effort",
                                          "chat_template_kwargs",
                                          "response_format",
                                          "modalities",
                                          "ignore_eos",
                                          "include_stop_str_in_output"};

// Parameters without effect here.
constexpr std::string_view chat_ignored[] = {
    "store",     "metadata",   "service_tier",          "safety_identifier",
    "verbosity", "prediction", "prompt_cache_retention"};

constexpr UnsupportedParameter chat_unsupported[] = {
    {"functions", "give tools"},
    {"function_call", "give tool_choice"},
    {"audio", "answers are text"},
    {"web_search_options", "the server has no such tool"},
    {"moderation", "the server has no moderation"},
    {"best_of", "give n, and choose among the answers by their logprobs", "1"},
    {"use_beam_search", "", "false"},
    {"length_penalty", "", "1"},
    {"min_tokens", "", "0"},
    {"echo", "", "false"},
    {"suffix"},
    {"typical_p", "", "1"},
    {"bad_words", "give logit_bias", "[]"},
    {"allowed_token_ids", "give logit_bias"},
    {"prompt_logprobs"},
    {"return_tokens_as_token_ids", "", "false"},
    {"return_token_ids", "", "false"},
    {"skip_special_tokens", "", "true"},
    {"spaces_between_special_tokens", "", "true"},
    {"truncate_prompt_tokens"},
    {"add_generation_prompt", "", "true"},
    {"continue_final_message", "", "false"},
    {"add_special_tokens", "", "false"},
    {"include_reasoning", "", "true"},
    {"documents", "tell them in a message"},
    {"chat_template"},
    {"thinking", "give reasoning_effort, or chat_template_kwargs"},
    {"enable_thinking", "give chat_template_kwargs.enable_thinking"},
    {"reasoning", "give reasoning_effort"},
    {"mm_processor_kwargs"},
    {"logits_processors"},
    {"guided_whitespace_pattern", "start the server with --whitespace"},
    {"cache_salt"},
};

constexpr std::string_view response_read[] = {"input",
                                              "instructions",
                                              "tools",
                                              "tool_choice",
                                              "parallel_tool_calls",
                                              "tool_enforcement",
                                              "max_output_tokens",
                                              "text",
                                              "reasoning",
                                              "include",
                                              "background",
                                              "truncation"};

constexpr std::string_view response_ignored[] = {"store",
                                                 "metadata",
                                                 "service_tier",
                                                 "safety_identifier",
                                                 "prompt_cache_retention",
                                                 "prompt_cache_options",
                                                 "max_tool_calls"};

constexpr std::string_view keeps_nothing =
    "the server keeps no responses: send the earlier items in input";
constexpr std::string_view ask_chat                   = "ask /v1/chat/completions";
constexpr UnsupportedParameter response_unsupported[] = {
    {"previous_response_id", keeps_nothing},
    {"conversation", keeps_nothing},
    {"context_management", keeps_nothing},
    {"prompt", "give instructions and input"},
    {"moderation", "the server has no moderation"},
    {"messages", "give input"},
    {"response_format", "give text.format"},
    {"reasoning_effort", "give reasoning.effort"},
    {"chat_template_kwargs", ask_chat},
    {"max_tokens", "give max_output_tokens"},
    {"max_completion_tokens", "give max_output_tokens"},
    {"logprobs", ask_chat},
    {"top_logprobs", ask_chat, "0"},
    {"guided_whitespace_pattern", "start the server with --whitespace"},
    {"n", ask_chat},
    {"response_id", ask_chat},
    {"tool_wait", ask_chat},
    {"consistency", ask_chat},
};

constexpr std::string_view completion_read[] = {
    "prompt",         "max_tokens", "n",
    "logprobs",       "echo",       "best_of",
    "suffix",         "ignore_eos", "include_stop_str_in_output",
    "response_format"};

constexpr UnsupportedParameter completion_unsupported[] = {
    {"messages", ask_chat},
    {"tools", ask_chat},
    {"tool_choice", ask_chat},
    {"response_id", ask_chat},
    {"tool_wait", ask_chat},
    {"consistency", ask_chat},
    {"chat_template_kwargs", ask_chat},
    {"top_logprobs", "give logprobs, a number"},
    {"max_completion_tokens", "give max_tokens"},
    {"min_tokens", "", "0"},
    {"use_beam_search", "", "false"},
    {"length_penalty", "", "1"},
    {"skip_special_tokens", "", "true"},
    {"spaces_between_special_tokens", "", "true"},
    {"add_special_tokens", "", "true"},
    {"return_tokens_as_token_ids", "", "false"},
    {"return_token_ids", "", "false"},
    {"prompt_logprobs"},
    {"truncate_prompt_tokens"},
    {"guided_whitespace_pattern", "start the server with --whitespace"},
};

bool contains(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool asks_for_one(const Fields& request) {
  const Json* count = request.find("n");
  return count == nullptr || *count == 1;
}

}  // namespace

const ParameterNames& chat_parameters() {
  static constexpr ParameterNames names{chat_read, chat_ignored, chat_unsupported};
  return names;
}

const ParameterNames& response_parameters() {
  static constexpr ParameterNames names{response_read, response_ignored, response_unsupported};
  return names;
}

const ParameterNames& completion_parameters() {
  static constexpr ParameterNames names{completion_read, {}, completion_unsupported};
  return names;
}

std::vector<std::string> read_names(const Json& body, const Fields& request,
                                    const ParameterNames& names) {
  std::vector<std::string> ignored;
  for (const auto& [name, value] : body.items()) {
    if (value.is_null() || contains(common_read, name) || contains(names.read, name)) continue;
    if (contains(common_ignored, name) || contains(names.ignored, name)) {
      if (name == "store" && value == false) continue;  // the same as here
      ignored.push_back(name);
      continue;
    }
    const auto unsupported =
        std::ranges::find(names.unsupported, name, &UnsupportedParameter::name);
    if (unsupported != names.unsupported.end()) {
      const auto& [_, instead, usual] = *unsupported;
      // A best_of below n would choose among fewer answers than there should be.
      const bool is_moot = name != "best_of" || asks_for_one(request);
      if (!usual.empty() && is_moot && value == tooldecode::text::parse_json(usual)) continue;
      const std::string why = instead.empty() ? "" : ": " + std::string(instead);
      request.fail(name, "is not supported" + why, "unsupported_parameter");
    }
    std::vector<std::string_view> known;
    using Names = std::span<const std::string_view>;
    for (const Names some :
         {Names(common_read), names.read, Names(common_ignored), names.ignored}) {
      known.insert(known.end(), some.begin(), some.end());
    }
    request.fail(name, "is no parameter that is known" + nearest_hint(name, known),
                 "unknown_parameter");
  }
  // Without tools, parallel_tool_calls has no effect.
  const bool has_tools = request.find("tools") != nullptr && !request.at("tools").empty();
  if (!has_tools && request.find("parallel_tool_calls") != nullptr) {
    ignored.push_back("parallel_tool_calls");
  }
  return ignored;
}

}  // namespace program
