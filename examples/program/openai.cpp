#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <program/openai.hpp>

namespace program {

bool ChatRequest::streams_calls() const noexcept {
  return stream && response_id.empty() && tool_wait == 0;
}

TemplateVariables ChatRequest::template_variables() const {
  TemplateVariables variables;
  if (reasoning_effort) variables.emplace(reasoning_effort_key, *reasoning_effort);
  return variables;
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
    const Json& id          = (*list)[i];
    if (!id.is_number_integer()) request.fail(place, "must be an integer", "invalid_type");
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= vocabulary_size) {
      request.fail(place, "is no token's id");
    }
    tokens.push_back(static_cast<tooldecode::TokenId>(id.get<std::uint64_t>()));
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
  try {
    const tooldecode::LogitsPipeline pipeline{options.logits()};
  } catch (const tooldecode::Error& error) {
    throw ApiError(400, "invalid_value", error.where(), error.what());
  }
  return options;
}

namespace {

constexpr std::string_view read_parameters[] = {"model",
                                                "messages",
                                                "tools",
                                                "tool_choice",
                                                "parallel_tool_calls",
                                                "tool_enforcement",
                                                "temperature",
                                                "top_p",
                                                "top_k",
                                                "min_p",
                                                "repetition_penalty",
                                                "seed",
                                                "max_tokens",
                                                "max_completion_tokens",
                                                "presence_penalty",
                                                "frequency_penalty",
                                                "logit_bias",
                                                "stream",
                                                "stream_options",
                                                "response_id",
                                                "tool_wait",
                                                "consistency",
                                                "n",
                                                "logprobs",
                                                "top_logprobs",
                                                "reasoning_effort",
                                                "response_format",
                                                "modalities",
                                                "stop",
                                                "stop_token_ids",
                                                "ignore_eos",
                                                "include_stop_str_in_output"};

// Parameters without effect here.
constexpr std::string_view ignored_parameters[] = {"store",
                                                   "metadata",
                                                   "user",
                                                   "service_tier",
                                                   "safety_identifier",
                                                   "prompt_cache_key",
                                                   "verbosity",
                                                   "prediction",
                                                   "priority",
                                                   "prompt_cache_retention"};

// Unsupported parameters that would change an answer, of OpenAI's API and similar ones, and what to
// use instead.
struct UnsupportedParameter {
  std::string_view name;
  std::string_view instead = "";
};
constexpr UnsupportedParameter unsupported_parameters[] = {
    {"functions", "give tools"},
    {"function_call", "give tool_choice"},
    {"audio", "answers are text"},
    {"web_search_options", "the server runs no tools of its own"},
    {"moderation", "the server has no moderation"},
    {"best_of", "give n, and choose among the answers by their logprobs"},
    {"use_beam_search"},
    {"length_penalty"},
    {"min_tokens"},
    {"echo"},
    {"suffix"},
    {"typical_p"},
    {"bad_words", "give logit_bias"},
    {"allowed_token_ids", "give logit_bias"},
    {"prompt_logprobs"},
    {"return_tokens_as_token_ids"},
    {"return_token_ids"},
    {"skip_special_tokens"},
    {"spaces_between_special_tokens"},
    {"truncate_prompt_tokens"},
    {"add_generation_prompt"},
    {"continue_final_message"},
    {"add_special_tokens"},
    {"documents", "tell them in a message"},
    {"chat_template"},
    {"chat_template_kwargs", "of a template's variables reasoning_effort alone can be given"},
    {"thinking", "give reasoning_effort"},
    {"enable_thinking", "give reasoning_effort"},
    {"reasoning", "give reasoning_effort"},
    {"mm_processor_kwargs"},
    {"logits_processors"},
    {"cache_salt"},
    {"grammar", "give response_format, or a custom tool"},
    {"json_schema", "give response_format"},
    {"guided_json", "give response_format"},
    {"guided_regex", "give a custom tool"},
    {"guided_choice", "give response_format, with an enum"},
    {"guided_grammar", "give a custom tool"},
    {"guided_decoding_backend"},
    {"structured_outputs", "give response_format"},
};

template <class Range>
bool contains(const Range& range, std::string_view name) {
  return std::find(std::begin(range), std::end(range), name) != std::end(range);
}

}  // namespace

std::vector<std::string> read_names(const Json& body, const Fields& request) {
  std::vector<std::string> ignored;
  for (const auto& [name, value] : body.items()) {
    if (value.is_null() || contains(read_parameters, name)) continue;
    if (contains(ignored_parameters, name)) {
      if (name == "store" && value == false) continue;  // the same as here
      ignored.push_back(name);
      continue;
    }
    for (const auto& [known, instead] : unsupported_parameters) {
      if (name != known) continue;
      const std::string why = instead.empty() ? "" : ": " + std::string(instead);
      request.fail(name, "is not supported" + why, "unsupported_parameter");
    }
    std::vector<std::string_view> names(std::begin(read_parameters), std::end(read_parameters));
    names.insert(names.end(), std::begin(ignored_parameters), std::end(ignored_parameters));
    request.fail(name, "is no parameter that is known" + nearest_hint(name, names),
                 "unknown_parameter");
  }
  // Without tools, parallel_tool_calls has no effect.
  const bool has_tools = request.find("tools") != nullptr && !request.at("tools").empty();
  if (!has_tools && request.find("parallel_tool_calls") != nullptr) {
    ignored.push_back("parallel_tool_calls");
  }
  return ignored;
}

std::size_t read_top_log_probabilities(const Fields& request) {
  constexpr const char* key = "top_logprobs";
  constexpr int most        = 20;
  const std::int64_t count  = request.find_integer(key, 0).value_or(0);
  if (count > most) request.fail(key, "must be at most " + std::to_string(most));
  if (count > 0 && !request.flag("logprobs")) request.fail(key, "needs logprobs");
  return static_cast<std::size_t>(count);
}

std::optional<std::string> read_reasoning_effort(const Fields& request) {
  if (request.find(reasoning_effort_key) == nullptr) return std::nullopt;
  const std::string& effort            = request.text(reasoning_effort_key);
  constexpr std::string_view efforts[] = {"none", "minimal", "low", "medium", "high", "xhigh"};
  if (!contains(efforts, effort)) {
    request.fail(reasoning_effort_key, "must be none, minimal, low, medium, high or xhigh");
  }
  return effort;
}

std::optional<std::size_t> read_max_orders(const Fields& request) {
  if (request.find("consistency") == nullptr) return std::nullopt;
  const Fields consistency = request.object("consistency");
  consistency.allow({"max_orders"});
  const std::int64_t orders = consistency.find_integer("max_orders", 1).value_or(6);
  if (orders > most_orders) {
    consistency.fail("max_orders", "must be at most " + std::to_string(most_orders));
  }
  return static_cast<std::size_t>(orders);
}

}  // namespace program::detail

namespace program {

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
    const bool has_schemas = key == "tools" || key == "response_format";
    if (!has_schemas) value = tooldecode::text::ExactNumber::rounded(std::move(value));
  }
  return object;
}

ChatRequest parse_chat(const Json& body, const Format& format, std::size_t vocabulary_size) {
  const Fields request(body, "");
  ChatRequest chat;
  chat.ignored = detail::read_names(body, request);
  request.allow_only("modalities", Json::array({"text"}));
  request.allow_only("ignore_eos", false);
  request.allow_only("include_stop_str_in_output", false);
  chat.model = request.text("model");
  if (request.find("response_id") != nullptr) {
    chat.response_id = request.text("response_id");
    if (!is_response_id(chat.response_id)) {
      request.fail("response_id", "must be 1 to 128 letters, digits, '-', '_' and '.'");
    }
    if (chat.response_id.starts_with(server_id_prefix)) {
      request.fail("response_id",
                   "must not begin as the server's own ids do: " + std::string(server_id_prefix));
    }
  }
  const std::int64_t choices = request.find_integer("n", 1).value_or(1);
  if (choices > max_choices) request.fail("n", "must be at most " + std::to_string(max_choices));
  chat.choices = static_cast<std::size_t>(choices);
  if (chat.choices > 1 && !chat.response_id.empty()) {
    request.fail("n", "must be 1 where response_id names the one response");
  }
  chat.log_probabilities      = request.flag("logprobs");
  const std::size_t likeliest = detail::read_top_log_probabilities(request);
  chat.reasoning_effort       = detail::read_reasoning_effort(request);
  chat.schema                 = read_response_format(request);
  chat.stops                  = read_stop(request);
  chat.tool_wait              = request.find_number("tool_wait", 0, 3600).value_or(0);
  chat.stream                 = request.flag("stream");
  if (request.find("stream_options") != nullptr) {
    if (!chat.stream) request.fail("stream_options", "needs stream");
    const Fields options = request.object("stream_options");
    options.allow_only("include_obfuscation", false);
    options.allow({"include_usage", "include_obfuscation"});
    chat.include_usage = options.flag("include_usage");
  }
  chat.tools      = read_tools(request);
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
  }
  if (const auto seed = request.find_integer("seed", std::numeric_limits<std::int64_t>::min())) {
    chat.seed = static_cast<std::uint64_t>(*seed);
  }
  Dialogue dialogue(format, chat.tools.all);
  for (const Fields& message : request.objects("messages")) dialogue.add(message);
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
    cached.call.arguments = tooldecode::text::ExactNumber::rounded(entry.at("params"));
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
