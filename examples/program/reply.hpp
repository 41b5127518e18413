/// \file
/// The wire format of answers: visible text, messages, chunks of a stream, usage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/constraint/call_stream.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/execute/engine_speculator.hpp>
#include <tooldecode/logits/selection.hpp>
#include <tooldecode/text/stop_finder.hpp>
#include <tooldecode/text/utf8.hpp>
#include <tooldecode/tools/custom_tool.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

#include <program/custom_input.hpp>
#include <program/hosted_tools.hpp>
#include <program/openai.hpp>

namespace program {

/// White space that is left out of an answer, because it only separates its parts.
struct DroppedSpace {
  bool around_reasoning = false;
  bool before_text      = false;  ///< where reasoning came before
};

/// The events of a turn so far. Text becomes content as soon as it is known not to begin a stop
/// text. White space alone before calls is dropped.
class AnswerText {
 public:
  using Events = std::vector<tooldecode::StreamEvent>;

  /// \param calls  the constraint of the turn
  AnswerText(tooldecode::ToolCallFSM calls, std::vector<std::string> stops,
             DroppedSpace dropped = {})
      : stops_(std::move(stops)),
        dropped_(dropped),
        begun_(calls.tools().empty() && !dropped.before_text),
        constraint_(std::move(calls)),
        stream_(constraint_) {}

  [[nodiscard]] Events push(tooldecode::TokenId token);
  [[nodiscard]] Events finish();
  /// The stop text that was found, or null.
  [[nodiscard]] const std::string* stop() const noexcept { return stops_.found(); }
  /// How many of a whole turn's tokens are reasoning, with those that close it and the last
  /// one of those that open it.
  [[nodiscard]] std::size_t reasoning_tokens(std::span<const tooldecode::TokenId> turn) const;

 private:
  using Kind = tooldecode::StreamEvent::Kind;

  [[nodiscard]] Events shown(Events events);
  // Whether the white space that begins the text is dropped.
  [[nodiscard]] bool drops_space() const;
  // What a text of reasoning adds, without white space at the beginning and end of it all.
  [[nodiscard]] std::string reasoning(const std::string& text);

  tooldecode::text::StopFinder stops_;
  DroppedSpace dropped_;
  std::string space_;  // leading white space of the text, held back unless `begun_`
  bool begun_;         // some text was not white space, or its leading white space is shown at once
  std::string thought_space_;  // white space that ends the reasoning so far
  bool has_thought_ = false;   // some reasoning was not white space
  bool calls_       = false;
  bool has_block_   = false;                // some text was reasoning
  std::vector<tooldecode::TokenId> begin_;  // the first tokens, as `drops_space` needs them
  tooldecode::ToolCallFSM constraint_;
  tooldecode::CallStream stream_;
};

/// Token counts of a request.
struct Usage {
  std::size_t prompt     = 0;  ///< tool results that were inserted are included
  std::size_t cached     = 0;  ///< of `prompt`, read by earlier or present requests
  std::size_t completion = 0;  ///< emitted, without end tokens
  std::size_t reasoning  = 0;  ///< of `completion`

  [[nodiscard]] Json json() const;
};

/// How each call of a reply was voted on; empty if there were no votes. `agreement` is the share of
/// the orders' votes that a parameter's value got.
Json votes_json(const tooldecode::EngineReply& reply);

/// The stop of an answer whose calls the server left, because it has as many turns as it may.
inline constexpr const char* turn_limit = "max_turns";

struct AnswerEnd {
  const char* reason;  ///< OpenAI's finish_reason
  Json stop;           ///< `turn_limit`, or the stop text or token id that ended it; else null
  Json votes;          ///< see votes_json

  /// \param calls        of the last turn, that the client must run
  /// \param text         of the last turn
  /// \param stop_tokens  of the request
  AnswerEnd(const tooldecode::EngineReply& reply, std::span<const tooldecode::ToolCall> calls,
            const AnswerText& text, std::span<const tooldecode::TokenId> stop_tokens);
};

/// The texts of a turn's calls to custom tools, by call number.
using CustomInputs = std::map<std::size_t, CustomInput>;

std::string sse_event(const Json& data);

/// The events that end a stream of completions, of chats or not.
///
/// \param last  a chunk without choices; null if the stream has no usage
std::string stream_end(Json last, const Usage& usage);

/// A token with its log-probability in OpenAI's form; its bytes may be a part of a character.
///
/// \param likeliest  the most likely tokens in its place, see Output::likeliest
Json token_json(const tooldecode::Vocabulary& vocabulary, tooldecode::TokenId token,
                double log_probability, std::span<const tooldecode::LikelyToken> likeliest);

/// What a response says about itself.
struct ReplyHead {
  std::string id;
  std::string unique;  ///< prefix of the ids of its parts: a client may reuse a response id
  std::string model;
  std::int64_t created       = 0;               ///< seconds since 1970
  tooldecode::ToolSet tools  = {};              ///< of the request
  HostedTools::Labels hosted = {};              ///< of them, those that the server runs
  Json notes                 = Json::object();  ///< additional members of the response
};

/// Writes one response, as an object or as a stream, in the form of one of the APIs. Its parts come
/// as those of chat completions: messages, deltas.
class ReplyWriter {
 public:
  explicit ReplyWriter(ReplyHead head) : head_(std::move(head)) {}
  ReplyWriter(const ReplyWriter&)            = delete;
  ReplyWriter& operator=(const ReplyWriter&) = delete;
  virtual ~ReplyWriter()                     = default;

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
  /// The calls of a response's last turn that the client must run. Not those to tools of the server,
  /// which are left where a response has as many turns as it may: it then ends as one that was cut.
  [[nodiscard]] std::span<const tooldecode::ToolCall> client_calls(
      const tooldecode::EngineTurn& last) const;
  /// The calls of a turn whose results were cached, or which the server ran. Those to tools of the
  /// server have a `server_label` and a `status`.
  [[nodiscard]] Json cached_calls(std::size_t choice, std::size_t turn,
                                  const tooldecode::EngineTurn& done,
                                  std::span<const std::string> written,
                                  const std::string& before) const;

  /// The whole response.
  ///
  /// \param choices  each with `message`, `logprobs`, `finish_reason` and `stop_reason`; for the Responses
  ///                 API also with `parts`: deltas of text, reasoning and cached calls, in order
  [[nodiscard]] virtual std::string response(Json choices, const Usage& usage) = 0;
  /// The events that begin a stream of so many choices.
  [[nodiscard]] virtual std::string begin(std::size_t choices) = 0;
  /// The events for what a choice adds; its last if `end` is set.
  ///
  /// \param tokens  with log-probabilities, if the request asks for them
  [[nodiscard]] virtual std::string chunk(std::size_t choice, const Json& delta, const Json& tokens,
                                          const AnswerEnd* end) = 0;
  /// The events that end a stream.
  [[nodiscard]] virtual std::string end(const Usage& usage) = 0;
  /// The event that ends a stream which failed.
  [[nodiscard]] virtual std::string failed(const ApiError& error) {
    return sse_event(error.json());
  }

 protected:
  [[nodiscard]] const ReplyHead& head() const noexcept { return head_; }

 private:
  [[nodiscard]] bool is_custom(const std::string& name) const;
  [[nodiscard]] Json call(std::size_t choice, std::size_t turn, std::size_t index,
                          const std::string& name, const Json& arguments) const;

  ReplyHead head_;
};

/// The value of `logprobs`: null if there are no tokens.
Json log_probabilities_json(const Json& tokens);

}  // namespace program
