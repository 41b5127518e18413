/// \file
/// Parses requests of OpenAI's chat completions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>
#include <tooldecode/text/exact_number.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/text/value_writer.hpp>
#include <tooldecode/tools/tool_call.hpp>

#include <program/dialogue.hpp>
#include <program/fields.hpp>
#include <program/formats.hpp>
#include <program/hosted_tools.hpp>
#include <program/prompt.hpp>
#include <program/request_tools.hpp>
#include <program/response_format.hpp>
#include <program/structured_outputs.hpp>

namespace program {

/// The API of a request, in which its answer is written.
enum class Api { chat, responses, completions };

/// Prefix of the ids of an API's answers that the server chooses.
std::string_view id_prefix(Api api);
/// The member of a request that has the dialogue.
std::string_view dialogue_key(Api api);

/// A prompt without a chat template: a text, or tokens.
struct RawPrompt {
  std::string text{};
  std::vector<tooldecode::TokenId> tokens{};  ///< if any, in place of the text
};

/// What one of the APIs asks.
struct ChatRequest {
  Api api = Api::chat;
  std::string model;
  std::string response_id;  ///< empty: the server chooses one
  std::vector<Message> messages;
  std::optional<RawPrompt> prompt;  ///< in place of messages
  RequestTools tools;
  std::vector<std::string> ignored;             ///< parameters without effect here
  std::optional<std::string> reasoning_effort;  ///< for chat templates that use it
  TemplateVariables variables;                  ///< of the chat template
  tooldecode::DecodeOptions decode;  ///< without `max_tokens`, `seed`; end tokens are the request's
  std::optional<std::size_t> max_tokens;
  std::string max_tokens_name = "max_tokens";  ///< as this API calls it
  std::optional<std::uint64_t> seed;
  TextRules text;                  ///< what the answer's text may be
  std::vector<std::string> stops;  ///< texts that end the answer, and are not part of it
  std::size_t choices    = 1;      ///< answers, each with its own seed
  bool log_probabilities = false;
  bool stream            = false;
  bool include_usage     = false;         ///< in the last chunk of a stream
  double tool_wait       = 0;             ///< seconds to wait for outputs of its calls
  HostedTools::Labels hosted;             ///< of its tools, those that the server runs
  std::optional<std::size_t> max_orders;  ///< of each call's parameters; empty: no votes
  Json echo = Json::object();             ///< members that a response of the Responses API repeats

  /// Whether calls are streamed while they are written. Not if the cache may hold their outputs,
  /// because then the client does not need the calls.
  [[nodiscard]] bool streams_calls() const noexcept;
  /// Has these tools run by the server. Its calls come one at a time if the client has tools too: an
  /// answer is continued or ends as a whole. ApiError if a call is required, because one would then
  /// follow each result.
  void host(HostedTools::Labels tools_here);
  /// Keeps of `reasoning_effort` and `variables` what the chat template takes, and lists the rest as
  /// ignored. An effort of `none` turns off a switch `enable_thinking`.
  void keep_variables(const std::function<bool(const std::string&)>& takes);
  /// Variables for the chat template.
  [[nodiscard]] TemplateVariables template_variables() const;
};

inline constexpr const char* reasoning_effort_key = "reasoning_effort";
inline constexpr const char* variables_key        = "chat_template_kwargs";

inline constexpr std::int64_t max_choices       = 16;
inline constexpr std::int64_t most_orders       = 24;  ///< each may need a cache
inline constexpr std::size_t most_variables     = 64;
inline constexpr std::size_t most_variable_name = 64;  ///< characters

/// Whether a client may use this response id.
bool is_response_id(std::string_view id);

/// Whether an id begins as those that the server chooses; clients must not choose such ids.
bool is_server_id(std::string_view id);

namespace detail {

std::vector<std::pair<tooldecode::TokenId, float>> read_bias(const Fields& request,
                                                             std::size_t vocabulary_size);

/// Reads a token's id of this place.
tooldecode::TokenId read_token(const Fields& request, const std::string& place, const Json& id,
                               std::size_t vocabulary_size);

std::vector<tooldecode::TokenId> read_stop_tokens(const Fields& request,
                                                  std::size_t vocabulary_size);

std::size_t read_choices(const Fields& request);

std::size_t read_top_log_probabilities(const Fields& request);

std::optional<std::string> read_reasoning_effort(const Fields& object, const char* key);

/// Reads `chat_template_kwargs`.
TemplateVariables read_variables(const Fields& request);

std::optional<std::uint64_t> read_seed(const Fields& request);

void read_stream(const Fields& request, ChatRequest& chat);

std::optional<std::size_t> read_max_orders(const Fields& request);

tooldecode::DecodeOptions read_decode(const Fields& request, std::size_t vocabulary_size);

}  // namespace detail

/// Reads what the text of an answer may be into a request that has its tools.
void read_text_rules(const Fields& request, ChatRequest& chat);

/// Parses a body as JSON and keeps every number as written; ApiError if it is not JSON.
Json parse_exact_body(std::string_view body);

/// Parses a body that must be an object; ApiError otherwise.
Json parse_body(std::string_view body);

/// Parses a chat completion request; ApiError names what is wrong and where. Unknown parameters,
/// and unsupported ones that would change the answer, are refused. Those without effect (`user`,
/// `metadata`, ...) are accepted and listed.
ChatRequest parse_chat(const Json& body, const Format& format, std::size_t vocabulary_size);

/// A call's output, announced by a client.
struct CachedOutput {
  std::string place;  ///< JSON pointer into the body
  tooldecode::ToolCall call;
  bool any_arguments = false;        ///< only the call's name counts
  std::string output{};              ///< as the model reads it
  std::optional<double> keep_alive;  ///< seconds
};

namespace detail {

CachedOutput read_cached_output(const Json& object, std::string place);

}  // namespace detail

/// Parses the body of `POST /cache-tool-output/{response_id}`: one output or an array of outputs.
/// Each has the tool's `name`; `params`, or none for any arguments; `output`, which the model reads
/// unchanged if it is a string, else as JSON; and optionally `keep_alive`, in seconds. ApiError for
/// the first mistake, with its JSON pointer.
std::vector<CachedOutput> parse_cached_outputs(const Json& body);

}  // namespace program
