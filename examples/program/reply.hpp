/// \file
/// The wire format of answers: visible text, messages, chunks of a stream, usage.
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

/// The events of a turn so far. Text becomes content as soon as it is known not to begin a stop
/// text. White space alone before calls is dropped.
class AnswerText {
 public:
  using Events = std::vector<tooldecode::StreamEvent>;

  /// \param calls  the constraint of the turn
  AnswerText(tooldecode::ToolCallFSM calls, std::vector<std::string> stops)
      : stream_(std::move(calls)), stops_(std::move(stops)) {}

  [[nodiscard]] Events push(tooldecode::TokenId token) { return shown(stream_.push(token)); }
  [[nodiscard]] Events finish();
  /// The stop text that was found, or null.
  [[nodiscard]] const std::string* stop() const noexcept { return stops_.found(); }

 private:
  using Kind = tooldecode::StreamEvent::Kind;

  [[nodiscard]] Events shown(Events events);

  tooldecode::CallStream stream_;
  tooldecode::text::StopFinder stops_;
  std::string space_;   // leading white space of the text
  bool begun_ = false;  // some text was not white space
  bool calls_ = false;
};

/// Token counts of a request.
struct Usage {
  std::size_t prompt     = 0;  ///< tool results that were inserted are included
  std::size_t completion = 0;  ///< emitted, without end tokens

  [[nodiscard]] Json json() const;
};

/// How each call of a reply was voted on; empty if there were no votes. `agreement` is the share of
/// the orders' votes that a parameter's value got.
Json votes_json(const tooldecode::EngineReply& reply);

struct AnswerEnd {
  const char* reason;  ///< OpenAI's finish_reason
  Json stop;           ///< the stop text or token id of the request that ended it; else null
  Json votes;          ///< see votes_json

  /// \param text         of the last turn
  /// \param stop_tokens  of the request
  AnswerEnd(const tooldecode::EngineReply& reply, const AnswerText& text,
            std::span<const tooldecode::TokenId> stop_tokens);
};

/// The texts of a turn's calls to custom tools, by call number.
using CustomInputs = std::map<std::size_t, CustomInput>;

std::string sse_event(const Json& data);

/// A token with its log-probability in OpenAI's form; its bytes may be a part of a character.
///
/// \param likeliest  the most likely tokens in its place, see Output::likeliest
Json token_json(const tooldecode::Vocabulary& vocabulary, tooldecode::TokenId token,
                double log_probability, std::span<const tooldecode::LikelyToken> likeliest);

/// Writes one response, as an object or as chunks of a stream.
class ReplyWriter {
 public:
  /// \param unique  prefix of the ids of its calls: a client may reuse a response id
  /// \param tools   of the request
  /// \param notes   additional members of the response and of a stream's first chunks
  ReplyWriter(std::string id, std::string unique, std::string model, std::int64_t created,
              tooldecode::ToolSet tools, Json notes);

  /// The calls of a choice's turn that the client must run.
  ///
  /// \param written  the JSON of each call's arguments, as streamed
  [[nodiscard]] Json calls(std::size_t choice, std::size_t turn,
                           std::span<const tooldecode::ToolCall> calls,
                           std::span<const std::string> written) const;
  /// What an event adds to the calls of a choice's turn; empty if nothing.
  [[nodiscard]] std::optional<Json> calls_delta(std::size_t choice, std::size_t turn,
                                                const tooldecode::StreamEvent& event,
                                                CustomInputs& inputs) const;
  /// The calls of a turn whose results were cached.
  [[nodiscard]] Json cached_calls(std::size_t choice, std::size_t turn,
                                  const tooldecode::EngineTurn& done,
                                  std::span<const std::string> written) const;

  [[nodiscard]] std::string response(Json choices, const Usage& usage) const;
  [[nodiscard]] std::string first_chunk(std::size_t choice, bool with_usage) const;
  /// One chunk; the choice's last if `end` is set. If usage is requested, all chunks but the last
  /// have it as null.
  [[nodiscard]] std::string chunk(std::size_t choice, const Json& delta, const Json& tokens,
                                  const AnswerEnd* end, bool with_usage) const;
  /// The value of `logprobs`: null if there are no tokens.
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
