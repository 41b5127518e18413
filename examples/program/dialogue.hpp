/// \file
/// Dialogue: converts the messages of a chat request to those of a prompt.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/tools/custom_tool.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>

#include <program/fields.hpp>
#include <program/formats.hpp>
#include <program/prompt.hpp>

namespace program {

namespace detail {

// The text of a member: a string, or an array of parts of these types. What is ignored of the parts
// is added to `ignored`.
std::string content_text(const Fields& message, std::vector<std::string>& ignored,
                         std::string_view key                          = "content",
                         std::initializer_list<std::string_view> types = {"text"});

// The arguments of a call, which are an object's JSON in a text; no text is no arguments.
Json read_arguments(const Fields& call);

tooldecode::ToolCall read_call(const Fields& entry, std::vector<std::string>& ignored);

}  // namespace detail

/// A call of an earlier turn, and where the request has it.
struct EarlierCall {
  Fields entry;             ///< has the id
  std::string_view id_key;  ///< of the id
  tooldecode::ToolCall call;
  Fields body;                     ///< has the arguments
  std::string_view arguments_key;  ///< of the arguments
};

/// The messages of a dialogue for a prompt: calls are text, the system's texts are one message at the
/// beginning, and results are in the order of their calls. ApiError names a call that the format
/// cannot write.
class Dialogue {
 public:
  /// \param tools  needed by formats that write calls by the tool documents
  explicit Dialogue(const Format& format, tooldecode::ToolSet tools = {})
      : format_(&format), tools_(std::move(tools)) {}

  /// Adds a message of the chat API.
  void add(const Fields& message);

  void add_system(const std::string& text);
  void add_user(const std::string& text);
  /// Adds a turn of the model: a text, calls or both.
  void add_turn(std::string text, std::span<const EarlierCall> calls, const Fields& place,
                std::string_view key);
  /// Adds the result of a call that awaits one; `key` is the member of `place` with the call's id.
  void add_result(const std::string& output, const Fields& place, std::string_view key);
  /// Members of the added messages that have no effect.
  [[nodiscard]] const std::vector<std::string>& ignored() const noexcept { return ignored_; }
  /// Whether a call has no result yet.
  [[nodiscard]] bool awaits_result() const noexcept { return !calls_.empty(); }

  /// \param key  the member with the dialogue
  [[nodiscard]] std::vector<Message> finish(const Fields& request,
                                            std::string_view key = "messages");

 private:
  struct PendingCall {
    std::string id;
    tooldecode::ToolCall call;
    std::optional<std::string> output;
  };

  void add_assistant(const Fields& message);

  // Turns that the server itself answered precede the message that reports them.
  // Returns the texts that stood before the calls.
  std::string add_cached(const Fields& message);

  [[nodiscard]] Message make_turn(std::string text, std::span<const EarlierCall> calls,
                                  const Fields& place, std::string_view key) const;

  // The text of a turn's calls, which are the member `key`.
  [[nodiscard]] std::string write(std::span<const EarlierCall> calls, const Fields& place,
                                  std::string_view key) const;

  const Format* format_;
  tooldecode::ToolSet tools_;
  std::string system_;
  std::vector<Message> messages_;
  std::vector<PendingCall> calls_;
  std::vector<std::string> ignored_;
};

}  // namespace program
