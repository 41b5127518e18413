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
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/text/value_writer.hpp>
#include <tooldecode/tools/tool_call.hpp>

#include <program/dialogue.hpp>
#include <program/fields.hpp>
#include <program/formats.hpp>
#include <program/prompt.hpp>
#include <program/request_tools.hpp>
#include <program/response_format.hpp>

namespace program {

/// A request for a chat completion.
struct ChatRequest {
  std::string model;
  std::string response_id;  ///< empty where the server is to choose one
  std::vector<Message> messages;
  RequestTools tools;
  Relaxation relaxation;                        ///< of the tools
  std::vector<std::string> ignored;             ///< parameters that change nothing here
  std::optional<std::string> reasoning_effort;  ///< for a chat template that knows it
  tooldecode::DecodeOptions decode;  ///< all but `max_tokens` and `seed`; its end tokens are those
                                     ///< that the request names
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
  [[nodiscard]] bool streams_calls() const noexcept;
  /// What a chat template is told besides the dialogue.
  [[nodiscard]] TemplateVariables template_variables() const;
};

/// The parameter that is for a chat template.
inline constexpr const char* reasoning_effort_key = "reasoning_effort";

/// The most answers of one request.
inline constexpr std::int64_t max_choices = 16;

/// A name that a client may give a response.
bool is_response_id(std::string_view id);

/// What the ids begin with that the server chooses, and no client's.
inline constexpr std::string_view server_id_prefix = "chatcmpl-";

namespace detail {

std::vector<std::pair<tooldecode::TokenId, float>> read_bias(const Fields& request,
                                                             std::size_t vocabulary_size);

// Tokens that end an answer where it may end.
std::vector<tooldecode::TokenId> read_stop_tokens(const Fields& request,
                                                  std::size_t vocabulary_size);

// Refuses parameters that are not known or not supported; those that change nothing.
std::vector<std::string> read_names(const Json& body, const Fields& request);

std::size_t read_top_log_probabilities(const Fields& request);

std::optional<std::string> read_reasoning_effort(const Fields& request);

tooldecode::DecodeOptions read_decode(const Fields& request, std::size_t vocabulary_size);

}  // namespace detail

/// What a body is in JSON, with every number as it is written; ApiError where it is no JSON.
Json parse_exact_body(std::string_view body);

/// The object that a body is; ApiError where it is none.
Json parse_body(std::string_view body);

/// Reads a request for a chat completion; ApiError names what is wrong with it and where. What
/// changes the answer and is not supported is refused, and so is what is not known; what changes
/// nothing here (`user`, `metadata`, ...) is let through, and listed.
ChatRequest parse_chat(const Json& body, const Format& format, std::size_t vocabulary_size);

/// What a client says that a call would return.
struct CachedOutput {
  std::string place;  ///< in the body, as a JSON pointer
  tooldecode::ToolCall call;
  bool any_arguments = false;        ///< of the call only the name counts
  std::string output{};              ///< as the model reads it
  std::optional<double> keep_alive;  ///< seconds
};

namespace detail {

CachedOutput read_cached_output(const Json& object, std::string place);

}  // namespace detail

/// Reads the body of `POST /cache-tool-output/{response_id}`: an array of outputs, or one. Each has
/// the tool's `name`; the `params` of the call, or none where any arguments are meant; `output`,
/// which the model reads as it is where it is a string, and as JSON where it is anything else; and
/// perhaps `keep_alive`, in seconds. ApiError for the first mistake, with its JSON pointer.
std::vector<CachedOutput> parse_cached_outputs(const Json& body);

}  // namespace program
