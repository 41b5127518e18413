/// \file
/// The wire of answers: text that may be shown so far, messages, chunks of a stream, usage.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/constraint/call_stream.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/execute/engine_speculator.hpp>
#include <tooldecode/logits/selection.hpp>
#include <tooldecode/text/stop_finder.hpp>
#include <tooldecode/text/utf8_stream.hpp>
#include <tooldecode/tools/custom_tool.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

#include <program/custom_input.hpp>
#include <program/openai.hpp>

namespace program {

/// What a turn says so far: its events, of whose text comes what is content as soon as that is
/// known, up to a text that ends it. White space alone before calls is none.
class AnswerText {
 public:
  using Events = std::vector<tooldecode::StreamEvent>;

  /// \param calls  the constraint of the turn
  AnswerText(tooldecode::ToolCallFSM calls, std::vector<std::string> stops)
      : stream_(std::move(calls)), stops_(std::move(stops)) {}

  [[nodiscard]] Events push(tooldecode::TokenId token) { return shown(stream_.push(token)); }
  /// The rest, when the turn has ended.
  [[nodiscard]] Events finish();
  /// The one of the request's stops that was there, or null.
  [[nodiscard]] const std::string* stop() const noexcept { return stops_.found(); }

 private:
  using Kind = tooldecode::StreamEvent::Kind;

  [[nodiscard]] Events shown(Events events);

  tooldecode::CallStream stream_;
  tooldecode::text::StopFinder stops_;
  std::string space_;   // that the text begins with
  bool begun_ = false;  // with what is no white space
  bool calls_ = false;  // were begun
};

/// Tokens that a request took.
struct Usage {
  std::size_t prompt     = 0;  ///< results of tools that were put in among them
  std::size_t completion = 0;  ///< emitted, end tokens left out

  [[nodiscard]] Json json() const;
};

/// Why an answer ended.
struct AnswerEnd {
  const char* reason;  ///< in OpenAI's words
  Json stop;           ///< the request's text, or id of a token, that ended it; else null

  /// \param stop_tokens  the request's
  AnswerEnd(const tooldecode::EngineTurn& last, const AnswerText& text,
            std::span<const tooldecode::TokenId> stop_tokens);
};

/// The text of each call of a turn to a custom tool, by its number.
using CustomInputs = std::map<std::size_t, CustomInput>;

/// A server-sent event.
std::string sse_event(const Json& data);

/// A token with its log-probability, as OpenAI writes it; its bytes need not be whole characters.
///
/// \param likeliest  those that had been the likeliest in its place, as Output::likeliest has them
Json token_json(const tooldecode::Vocabulary& vocabulary, tooldecode::TokenId token,
                double log_probability, std::span<const tooldecode::LikelyToken> likeliest);

/// Writes one response: as an object, or as the chunks of a stream.
class ReplyWriter {
 public:
  /// \param unique  begins the ids of its calls: a client may use a response's id again
  /// \param tools   the request's, to which calls are
  /// \param notes   members of the response, and of a stream's first chunks, besides its own
  ReplyWriter(std::string id, std::string unique, std::string model, std::int64_t created,
              tooldecode::ToolSet tools, Json notes);

  /// The calls of a choice's turn that the client is to run.
  ///
  /// \param written  the JSON of each one's arguments, as a stream has it
  [[nodiscard]] Json calls(std::size_t choice, std::size_t turn,
                           std::span<const tooldecode::ToolCall> calls,
                           std::span<const std::string> written) const;
  /// What an event adds to the calls of a choice's turn; nothing where it adds none.
  [[nodiscard]] std::optional<Json> calls_delta(std::size_t choice, std::size_t turn,
                                                const tooldecode::StreamEvent& event,
                                                CustomInputs& inputs) const;
  /// The calls of a turn that were answered already.
  [[nodiscard]] Json cached_calls(std::size_t choice, std::size_t turn,
                                  const tooldecode::EngineTurn& done,
                                  std::span<const std::string> written) const;

  [[nodiscard]] std::string response(Json choices, const Usage& usage) const;
  /// The chunk that a choice begins with.
  [[nodiscard]] std::string first_chunk(std::size_t choice, bool with_usage) const;
  /// One chunk, the choice's last where it has an end. Where usage is asked for, chunks before the
  /// last have it as null.
  [[nodiscard]] std::string chunk(std::size_t choice, const Json& delta, const Json& tokens,
                                  const AnswerEnd* end, bool with_usage) const;
  /// What stands as `logprobs`: null where no token's is told.
  [[nodiscard]] static Json log_probabilities(const Json& tokens);
  [[nodiscard]] std::string usage_chunk(const Usage& usage) const;

 private:
  [[nodiscard]] bool is_custom(const std::string& name) const;
  [[nodiscard]] Json call(std::size_t choice, std::size_t turn, std::size_t index,
                          const std::string& name, const Json& arguments) const;
  [[nodiscard]] Json head(const char* kind) const;
  [[nodiscard]] Json chunk_json(std::size_t choice, const Json& delta, const Json& tokens,
                                const AnswerEnd* end, bool with_usage) const;

  std::string id_;
  std::string unique_;
  std::string model_;
  std::int64_t created_;
  tooldecode::ToolSet tools_;
  Json notes_;
};

}  // namespace program
