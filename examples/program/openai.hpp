/// \file
/// Requests of OpenAI's chat completions, read from the wire into values.
#pragma once

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

#include <tooldecode/core/error.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>
#include <tooldecode/text/exact_number.hpp>
#include <tooldecode/tools/call_format.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/tools/value_reader.hpp>
#include <tooldecode/tools/value_writer.hpp>

#include <program/dialogue.hpp>
#include <program/fields.hpp>
#include <program/formats.hpp>
#include <program/prompt.hpp>
#include <program/response_format.hpp>

namespace program {

/// A request for a chat completion.
struct ChatRequest {
  std::string model;
  std::string response_id;  ///< empty where the server is to choose one
  std::vector<Message> messages;
  Json documents = Json::array();  ///< of the tools
  tooldecode::ToolSet tools;
  tooldecode::ChoiceOptions choice;
  tooldecode::DecodeOptions decode;       ///< all but `max_tokens` and `seed`
  std::optional<std::size_t> max_tokens;  ///< of the answer
  std::optional<std::uint64_t> seed;
  std::optional<Json> schema;      ///< that the text of an answer conforms to
  std::vector<std::string> stops;  ///< texts that end the text of an answer, before them
  std::size_t choices    = 1;      ///< answers, each with a seed of its own
  bool log_probabilities = false;  ///< of each answer's tokens
  bool stream            = false;
  bool include_usage     = false;  ///< a stream's last chunk tells it
  double tool_wait       = 0;      ///< seconds that outputs of its calls are waited for

  /// Whether calls are streamed while they are written: where no output of them can be in the
  /// cache, for then the client has no use for them.
  [[nodiscard]] bool streams_calls() const noexcept {
    return stream && response_id.empty() && tool_wait == 0;
  }
};

/// The most answers of one request.
inline constexpr std::int64_t max_choices = 16;

/// A name that a client may give a response.
inline bool is_response_id(std::string_view id) {
  return !id.empty() && id.size() <= 128 && std::all_of(id.begin(), id.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
}

namespace detail {

inline tooldecode::ChoiceOptions read_choice(const Fields& request, bool has_tools) {
  using tooldecode::ToolChoice;
  tooldecode::ChoiceOptions options{.choice = has_tools ? ToolChoice::automatic : ToolChoice::none};
  if (const Json* parallel = request.find("parallel_tool_calls"); parallel != nullptr) {
    options.parallel = request.flag("parallel_tool_calls");
  }
  const Json* choice = request.find("tool_choice");
  if (choice == nullptr) return options;
  if (*choice == "none") {
    options.choice = ToolChoice::none;
  } else if (*choice == "required") {
    options.choice = ToolChoice::required;
  } else if (choice->is_object()) {
    const Fields named = request.object("tool_choice");
    if (named.text("type") != "function") named.fail("type", "is supported as function only");
    named.allow({"type", "function"});
    named.object("function").allow({"name"});
    options.choice = ToolChoice::named;
    options.name   = named.object("function").text("name");
  } else if (*choice != "auto") {
    request.fail("tool_choice", "must be none, auto, required or a function's name in an object");
  }
  const bool calls = options.choice == ToolChoice::required || options.choice == ToolChoice::named;
  if (calls && !has_tools) request.fail("tool_choice", "needs tools");
  return options;
}

inline std::vector<std::pair<tooldecode::TokenId, float>> read_bias(const Fields& request,
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

inline tooldecode::DecodeOptions read_decode(const Fields& request, std::size_t vocabulary_size) {
  const auto number = [&](const char* key, double min, double max, double otherwise) {
    return static_cast<float>(request.find_number(key, min, max).value_or(otherwise));
  };
  tooldecode::DecodeOptions options{
      .temperature       = number("temperature", 0, 2, 1),
      .top_p             = number("top_p", 0, 1, 1),
      .presence_penalty  = number("presence_penalty", -2, 2, 0),
      .frequency_penalty = number("frequency_penalty", -2, 2, 0),
      .bias              = read_bias(request, vocabulary_size),
  };
  try {
    const tooldecode::LogitsPipeline pipeline{options.logits()};
  } catch (const tooldecode::Error& error) {
    throw ApiError(400, "invalid_value", error.where(), error.what());
  }
  return options;
}

inline void read_tools(const Fields& request, ChatRequest& chat) {
  if (request.find("tools") == nullptr) return;
  for (const Fields& tool : request.objects("tools")) {
    if (tool.text("type") != "function") tool.fail("type", "is supported as function only");
    tool.allow({"type", "function"});
    static_cast<void>(tool.object("function").text("name"));
  }
  chat.documents = request.at("tools");
  try {
    chat.tools = tooldecode::ToolSet::from_json(chat.documents);
    // What is shown to the model is what the request's other readers would show.
    chat.documents = tooldecode::text::ExactNumber::rounded(std::move(chat.documents));
  } catch (const tooldecode::Error& error) {
    throw ApiError(400, "invalid_tool", "tools", "tools: " + std::string(error.what()));
  }
}

}  // namespace detail

/// What a body is in JSON, with every number as it is written; ApiError where it is no JSON.
inline Json parse_exact_body(std::string_view body) {
  try {
    return tooldecode::tools::parse_exact_json(body);
  } catch (const tooldecode::Error& error) {
    throw ApiError(400, "invalid_json", "",
                   "the body is not JSON as required: " + std::string(error.what()));
  }
}

/// The object that a body is; ApiError where it is none.
inline Json parse_body(std::string_view body) {
  Json object = parse_exact_body(body);
  if (!object.is_object()) {
    throw ApiError(400, "invalid_type", "", "the body must be a JSON object");
  }
  // Only schemas have numbers of any size.
  for (auto& [key, value] : object.get_ref<Json::object_t&>()) {
    const bool has_schemas = key == "tools" || key == "response_format";
    if (!has_schemas) value = tooldecode::text::ExactNumber::rounded(std::move(value));
  }
  return object;
}

/// Reads a request for a chat completion; ApiError names what is wrong with it and where. What
/// changes the answer and is not supported is refused; what never does (`user`, `metadata`, ...)
/// is let through.
inline ChatRequest parse_chat(const Json& body, const Format& format, std::size_t vocabulary_size) {
  const Fields request(body, "");
  request.allow_only("top_logprobs", 0);
  request.allow_only("store", false);
  request.allow_only("modalities", Json::array({"text"}));
  request.allow({"model",
                 "messages",
                 "tools",
                 "tool_choice",
                 "parallel_tool_calls",
                 "temperature",
                 "top_p",
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
                 "n",
                 "logprobs",
                 "top_logprobs",
                 "store",
                 "response_format",
                 "modalities",
                 "stop",
                 "user",
                 "metadata",
                 "service_tier",
                 "safety_identifier",
                 "prompt_cache_key"});
  ChatRequest chat;
  chat.model = request.text("model");
  if (request.find("response_id") != nullptr) {
    chat.response_id = request.text("response_id");
    if (!is_response_id(chat.response_id)) {
      request.fail("response_id", "must be 1 to 128 letters, digits, '-', '_' and '.'");
    }
  }
  const std::int64_t choices = request.find_integer("n", 1).value_or(1);
  if (choices > max_choices) request.fail("n", "must be at most " + std::to_string(max_choices));
  chat.choices = static_cast<std::size_t>(choices);
  if (chat.choices > 1 && !chat.response_id.empty()) {
    request.fail("n", "must be 1 where response_id names the one response");
  }
  chat.log_probabilities = request.flag("logprobs");
  chat.schema            = read_response_format(request);
  chat.stops             = read_stop(request);
  chat.tool_wait         = request.find_number("tool_wait", 0, 3600).value_or(0);
  chat.stream            = request.flag("stream");
  if (request.find("stream_options") != nullptr) {
    if (!chat.stream) request.fail("stream_options", "needs stream");
    const Fields options = request.object("stream_options");
    options.allow({"include_usage"});
    chat.include_usage = options.flag("include_usage");
  }
  detail::read_tools(request, chat);
  chat.choice = detail::read_choice(request, !chat.tools.empty());
  if (chat.choice.choice == tooldecode::ToolChoice::named && !chat.tools.find(chat.choice.name)) {
    request.fail("tool_choice", "names a function that is not among the tools");
  }
  chat.decode           = detail::read_decode(request, vocabulary_size);
  const auto max_tokens = request.find_integer("max_tokens", 1);
  const auto max_all    = request.find_integer("max_completion_tokens", 1);
  if (max_tokens && max_all) request.fail("max_tokens", "excludes max_completion_tokens");
  if (const auto max = max_all ? max_all : max_tokens) {
    chat.max_tokens = static_cast<std::size_t>(*max);
  }
  if (const auto seed = request.find_integer("seed", std::numeric_limits<std::int64_t>::min())) {
    chat.seed = static_cast<std::uint64_t>(*seed);
  }
  Dialogue dialogue(format);
  for (const Fields& message : request.objects("messages")) dialogue.add(message);
  chat.messages = dialogue.finish(request);
  return chat;
}

/// What a client says that a call would return.
struct CachedOutput {
  std::string place;  ///< in the body, as a JSON pointer
  tooldecode::ToolCall call;
  bool any_arguments = false;        ///< of the call only the name counts
  std::string output{};              ///< as the model reads it
  std::optional<double> keep_alive;  ///< seconds
};

namespace detail {

inline CachedOutput read_cached_output(const Json& object, std::string place) {
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
  const auto output = object.find("output");  // null is a value like any other
  if (output == object.end()) entry.fail("output", "is required", "missing_required_parameter");
  cached.output =
      output->is_string() ? output->get<std::string>() : tooldecode::tools::write_json(*output);
  return cached;
}

}  // namespace detail

/// Reads the body of `POST /cache-tool-output/{response_id}`: an array of outputs, or one. Each has
/// the tool's `name`; the `params` of the call, or none where any arguments are meant; `output`,
/// which the model reads as it is where it is a string, and as JSON where it is anything else; and
/// perhaps `keep_alive`, in seconds. ApiError for the first mistake, with its JSON pointer.
inline std::vector<CachedOutput> parse_cached_outputs(const Json& body) {
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
