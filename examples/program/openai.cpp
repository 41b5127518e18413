#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/consistency/call_orders.hpp>

#include <program/openai.hpp>
#include <program/parameter_names.hpp>

namespace program {

bool ChatRequest::streams_calls() const noexcept {
  return stream && response_id.empty() && tool_wait == 0 && hosted.empty();
}

void ChatRequest::host(HostedTools::Labels tools_here) {
  using tooldecode::ToolChoice;
  hosted = std::move(tools_here);
  if (std::ranges::find(ignored, "max_tool_calls") != ignored.end()) {
    throw ApiError(400, "unsupported_parameter", "max_tool_calls",
                   "max_tool_calls is not supported with tools of type mcp: leave it out, or limit "
                   "the tools by allowed_tools");
  }
  if (tools.choice.choice == ToolChoice::required || tools.choice.choice == ToolChoice::named) {
    throw ApiError(400, "unsupported_value", "tool_choice",
                   "tool_choice must be auto or none with tools of type mcp: else a call would be "
                   "required after each result");
  }
  if (hosted.size() < tools.all.size()) tools.choice.parallel = false;
}

void ChatRequest::keep_variables(const std::function<bool(const std::string&)>& takes) {
  std::erase_if(variables, [&](const auto& variable) {
    if (takes(variable.first)) return false;
    ignored.push_back(std::string(variables_key) + '.' + variable.first);
    return true;
  });
  if (!reasoning_effort) return;
  const std::string thinking = "enable_thinking";
  const bool turns_off =
      *reasoning_effort == "none" && takes(thinking) && variables.emplace(thinking, false).second;
  if (takes(reasoning_effort_key)) return;
  reasoning_effort.reset();
  if (turns_off) return;
  ignored.emplace_back(api == Api::responses ? "reasoning.effort" : reasoning_effort_key);
}

TemplateVariables ChatRequest::template_variables() const {
  TemplateVariables all = variables;
  if (reasoning_effort) all.emplace(reasoning_effort_key, *reasoning_effort);
  return all;
}

std::string_view id_prefix(Api api) {
  constexpr std::string_view prefixes[] = {"chatcmpl-", "resp_", "cmpl-"};
  return prefixes[static_cast<std::size_t>(api)];
}

std::string_view dialogue_key(Api api) {
  constexpr std::string_view keys[] = {"messages", "input", "prompt"};
  return keys[static_cast<std::size_t>(api)];
}

bool is_server_id(std::string_view id) {
  for (const Api api : {Api::chat, Api::responses, Api::completions}) {
    if (id.starts_with(id_prefix(api))) return true;
  }
  return false;
}

bool is_response_id(std::string_view id) {
  return !id.empty() && id.size() <= 128 && std::all_of(id.begin(), id.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
}

}  // namespace program

namespace program::detail {

std::vector<std::pair<tooldecode::TokenId, float>> read_bias(const Fields& request,
                                                             std::size_t vocabulary_size) {
  std::vector<std::pair<tooldecode::TokenId, float>> bias;
  if (request.find("logit_bias") == nullptr) return bias;
  const Fields entries = request.object("logit_bias");
  for (const auto& [key, value] : request.at("logit_bias").items()) {
    const bool digits =
        !key.empty() && key.size() <= 9 && key.find_first_not_of("0123456789") == std::string::npos;
    if (!digits || std::stoul(key) >= vocabulary_size) entries.fail(key, "is no token's id");
    bias.emplace_back(static_cast<tooldecode::TokenId>(std::stoul(key)),
                      static_cast<float>(entries.find_number(key, -100, 100).value_or(0)));
  }
  return bias;
}

tooldecode::TokenId read_token(const Fields& request, const std::string& place, const Json& id,
                               std::size_t vocabulary_size) {
  if (!id.is_number_integer()) {
    request.fail(place, "must be an integer, a token's id", "invalid_type");
  }
  if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= vocabulary_size) {
    request.fail(place, "is no token's id");
  }
  return static_cast<tooldecode::TokenId>(id.get<std::uint64_t>());
}

std::vector<tooldecode::TokenId> read_stop_tokens(const Fields& request,
                                                  std::size_t vocabulary_size) {
  constexpr std::size_t max_tokens = 256;
  const Json* list                 = request.find("stop_token_ids");
  if (list == nullptr) return {};
  if (!list->is_array()) request.fail("stop_token_ids", "must be an array", "invalid_type");
  if (list->size() > max_tokens) {
    request.fail("stop_token_ids", "must have at most " + std::to_string(max_tokens) + " ids");
  }
  std::vector<tooldecode::TokenId> tokens;
  for (std::size_t i = 0; i < list->size(); ++i) {
    const std::string place = "stop_token_ids[" + std::to_string(i) + ']';
    tokens.push_back(read_token(request, place, (*list)[i], vocabulary_size));
  }
  return tokens;
}

tooldecode::DecodeOptions read_decode(const Fields& request, std::size_t vocabulary_size) {
  const auto number = [&](const char* key, double min, double max, double otherwise) {
    return static_cast<float>(request.find_number(key, min, max).value_or(otherwise));
  };
  const std::int64_t top_k = request.find_integer("top_k", -1).value_or(0);  // -1 also means all
  tooldecode::DecodeOptions options{
      .temperature        = number("temperature", 0, 2, 1),
      .top_k              = static_cast<std::size_t>(std::max<std::int64_t>(top_k, 0)),
      .top_p              = number("top_p", 0, 1, 1),
      .min_p              = number("min_p", 0, 1, 0),
      .repetition_penalty = number("repetition_penalty", 0, 2, 1),
      .presence_penalty   = number("presence_penalty", -2, 2, 0),
      .frequency_penalty  = number("frequency_penalty", -2, 2, 0),
      .bias               = read_bias(request, vocabulary_size),
      .end_tokens         = read_stop_tokens(request, vocabulary_size),
  };
  // Clients ask for the most likely token by values next to 0, and by a share of 0.
  if (options.temperature < tooldecode::LogitsPipeline::min_temperature) options.temperature = 0;
  options.top_p = std::max(options.top_p, std::numeric_limits<float>::min());
  try {
    const tooldecode::LogitsPipeline pipeline{options.logits()};
  } catch (const tooldecode::Error& error) {
    throw ApiError(400, "invalid_value", error.where(), error.what());
  }
  return options;
}

std::size_t read_choices(const Fields& request) {
  const std::int64_t choices = request.find_integer("n", 1).value_or(1);
  if (choices > max_choices) request.fail("n", "must be at most " + std::to_string(max_choices));
  return static_cast<std::size_t>(choices);
}

std::size_t read_top_log_probabilities(const Fields& request) {
  constexpr const char* key = "top_logprobs";
  constexpr int most        = 20;
  const std::int64_t count  = request.find_integer(key, 0).value_or(0);
  if (count > most) request.fail(key, "must be at most " + std::to_string(most));
  if (count > 0 && !request.flag("logprobs")) request.fail(key, "needs logprobs");
  return static_cast<std::size_t>(count);
}

std::optional<std::string> read_reasoning_effort(const Fields& object, const char* key) {
  if (object.find(key) == nullptr) return std::nullopt;
  const std::string& effort            = object.text(key);
  constexpr std::string_view efforts[] = {"none", "minimal", "low", "medium", "high", "xhigh"};
  if (std::find(std::begin(efforts), std::end(efforts), effort) == std::end(efforts)) {
    object.fail(key, "must be none, minimal, low, medium, high or xhigh");
  }
  return effort;
}

TemplateVariables read_variables(const Fields& request) {
  if (request.find(variables_key) == nullptr) return {};
  const Fields given = request.object(variables_key);
  // A variable would hide a constant or a function that templates use.
  constexpr std::string_view set_here[] = {"messages",     "tools",     "add_generation_prompt",
                                           "bos_token",    "eos_token", "true",
                                           "True",         "false",     "False",
                                           "none",         "None",      "raise_exception",
                                           "namespace",    "dict",      "range",
                                           "strftime_now", "tojson"};
  TemplateVariables variables;
  for (const auto& [name, value] : request.at(variables_key).items()) {
    if (value.is_null()) continue;
    if (std::find(std::begin(set_here), std::end(set_here), name) != std::end(set_here)) {
      given.fail(name, "is set by the server", "unsupported_parameter");
    }
    const bool is_name = !name.empty() && name.size() <= most_variable_name &&
                         std::all_of(name.begin(), name.end(), [](unsigned char c) {
                           return std::isalnum(c) != 0 || c == '_';
                         });
    if (!is_name) {
      given.fail(name, "is no variable's name: it must be 1 to " +
                           std::to_string(most_variable_name) + " letters, digits and '_'");
    }
    if (!value.is_boolean() && !value.is_number() && !value.is_string()) {
      given.fail(name, "must be a boolean, a number or a string", "invalid_type");
    }
    variables.emplace(name, value);
  }
  if (variables.size() > most_variables) {
    request.fail(variables_key, "must have at most " + std::to_string(most_variables) + " members");
  }
  if (variables.contains(reasoning_effort_key) && request.find(reasoning_effort_key) != nullptr) {
    given.fail(reasoning_effort_key, "excludes reasoning_effort");
  }
  return variables;
}

std::optional<std::uint64_t> read_seed(const Fields& request) {
  const auto seed = request.find_integer("seed", std::numeric_limits<std::int64_t>::min());
  if (!seed) return std::nullopt;
  return static_cast<std::uint64_t>(*seed);
}

void read_stream(const Fields& request, ChatRequest& chat) {
  chat.stream = request.flag("stream");
  if (request.find("stream_options") == nullptr) return;
  if (!chat.stream) request.fail("stream_options", "needs stream");
  const Fields options = request.object("stream_options");
  options.allow_only("include_obfuscation", false);
  if (chat.api == Api::responses) return options.allow({"include_obfuscation"});
  options.allow_only("continuous_usage_stats", false);
  options.allow({"include_usage", "include_obfuscation", "continuous_usage_stats"});
  chat.include_usage = options.flag("include_usage");
}

std::optional<std::size_t> read_max_orders(const Fields& request) {
  if (request.find("consistency") == nullptr) return std::nullopt;
  const Fields consistency = request.object("consistency");
  consistency.allow({"max_orders"});
  constexpr auto usual      = static_cast<std::int64_t>(tooldecode::usual_orders);
  const std::int64_t orders = consistency.find_integer("max_orders", 1).value_or(usual);
  if (orders > most_orders) {
    consistency.fail("max_orders", "must be at most " + std::to_string(most_orders));
  }
  return static_cast<std::size_t>(orders);
}

}  // namespace program::detail

namespace program {

void read_text_rules(const Fields& request, ChatRequest& chat) {
  TextRules rules = read_text_rules(request);
  if (rules.any()) return;
  chat.ignored.insert(chat.ignored.end(), rules.ignored.begin(), rules.ignored.end());
  if (!chat.text.any()) {
    throw ApiError(400, "invalid_value", rules.place(),
                   rules.place() + " excludes " + chat.text.place());
  }
  using tooldecode::ToolChoice;
  if (rules.grammar && !chat.tools.callable.empty() &&
      chat.tools.choice.choice != ToolChoice::none) {
    throw ApiError(
        400, "invalid_value", rules.place(),
        rules.place() +
            " excludes tools that may be called: give tool_choice none, or a JSON Schema, "
            "beside which calls can be told apart");
  }
  chat.text = std::move(rules);
}

Json parse_exact_body(std::string_view body) {
  try {
    return tooldecode::text::parse_exact_json(body);
  } catch (const tooldecode::Error& error) {
    throw ApiError(400, "invalid_json", "",
                   "the body is not JSON as required: " + std::string(error.what()));
  }
}

Json parse_body(std::string_view body) {
  Json object = parse_exact_body(body);
  if (!object.is_object()) {
    throw ApiError(400, "invalid_type", "", "the body must be a JSON object");
  }
  // Only schemas may have numbers of any size.
  for (auto& [key, value] : object.items()) {
    constexpr std::string_view with_schemas[] = {
        "tools",       "response_format", "text",          "structured_outputs",
        "guided_json", "json_schema",     "structural_tag"};
    const bool has_schemas =
        std::find(std::begin(with_schemas), std::end(with_schemas), key) != std::end(with_schemas);
    if (!has_schemas) value = tooldecode::text::ExactNumber::rounded(std::move(value));
  }
  return object;
}

ChatRequest parse_chat(const Json& body, const Format& format, std::size_t vocabulary_size) {
  const Fields request(body, "");
  ChatRequest chat;
  chat.ignored = read_names(body, request, chat_parameters());
  request.allow_only("modalities", Json::array({"text"}));
  request.allow_only("ignore_eos", false);
  request.allow_only("include_stop_str_in_output", false);
  chat.model = request.text("model");
  if (request.find("response_id") != nullptr) {
    chat.response_id = request.text("response_id");
    if (!is_response_id(chat.response_id)) {
      request.fail("response_id", "must be 1 to 128 letters, digits, '-', '_' and '.'");
    }
    if (is_server_id(chat.response_id)) {
      request.fail("response_id", "must not begin as the server's own ids do");
    }
  }
  chat.choices                = detail::read_choices(request);
  chat.log_probabilities      = request.flag("logprobs");
  const std::size_t likeliest = detail::read_top_log_probabilities(request);
  chat.reasoning_effort       = detail::read_reasoning_effort(request, reasoning_effort_key);
  chat.variables              = detail::read_variables(request);
  chat.stops                  = read_stop(request);
  chat.tool_wait              = request.find_number("tool_wait", 0, 3600).value_or(0);
  if (chat.choices > 1 && (!chat.response_id.empty() || chat.tool_wait > 0)) {
    request.fail("n", "must be 1 beside response_id and tool_wait, which are of one response");
  }
  detail::read_stream(request, chat);
  chat.tools = read_tools(request, chat.ignored);
  read_text_rules(request, chat);
  chat.max_orders = detail::read_max_orders(request);
  if (chat.max_orders && chat.tools.callable.empty()) {
    request.fail("consistency", "needs tools that may be called");
  }
  chat.decode           = detail::read_decode(request, vocabulary_size);
  chat.decode.likeliest = likeliest;
  const auto max_tokens = request.find_integer("max_tokens", 1);
  const auto max_all    = request.find_integer("max_completion_tokens", 1);
  if (max_tokens && max_all) request.fail("max_tokens", "excludes max_completion_tokens");
  if (const auto max = max_all ? max_all : max_tokens) {
    chat.max_tokens = static_cast<std::size_t>(*max);
    if (max_all) chat.max_tokens_name = "max_completion_tokens";
  }
  chat.seed = detail::read_seed(request);
  Dialogue dialogue(format, chat.tools.all);
  for (const Fields& message : request.objects("messages")) dialogue.add(message);
  chat.ignored.insert(chat.ignored.end(), dialogue.ignored().begin(), dialogue.ignored().end());
  chat.messages = dialogue.finish(request);
  return chat;
}

}  // namespace program

namespace program::detail {

CachedOutput read_cached_output(const Json& object, std::string place) {
  const Fields entry(object, place, Places::pointer);
  entry.allow({"name", "params", "output", "keep_alive"});
  CachedOutput cached{.place      = std::move(place),
                      .call       = {.name = entry.text("name")},
                      .keep_alive = entry.find_number("keep_alive", 0, 86'400)};
  cached.any_arguments = entry.find("params") == nullptr;
  if (!cached.any_arguments) {
    static_cast<void>(entry.object("params"));
    cached.call.arguments = tooldecode::text::ExactNumber::as_argument(entry.at("params"));
  }
  const auto output = object.find("output");  // null is a valid output
  if (output == object.end()) entry.fail("output", "is required", "missing_required_parameter");
  cached.output =
      output->is_string() ? output->get<std::string>() : tooldecode::text::write_json(*output);
  return cached;
}

}  // namespace program::detail

namespace program {

std::vector<CachedOutput> parse_cached_outputs(const Json& body) {
  std::vector<CachedOutput> outputs;
  if (body.is_object()) {
    outputs.push_back(detail::read_cached_output(body, ""));
  } else if (body.is_array()) {
    for (std::size_t i = 0; i < body.size(); ++i) {
      outputs.push_back(detail::read_cached_output(body[i], '/' + std::to_string(i)));
    }
  } else {
    throw ApiError(400, "invalid_type", "", "the body must be an array of objects, or one object");
  }
  return outputs;
}

}  // namespace program
