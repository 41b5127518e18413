/// \file
/// Dialogue: converts the messages of a chat request to those of the embedded model's prompt.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/tools/custom_tool.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>

#include <program/fields.hpp>
#include <program/formats.hpp>
#include <program/prompt.hpp>

namespace program {

namespace detail {

// A message's text: a string, or an array of text parts.
std::string content_text(const Fields& message);

tooldecode::ToolCall read_call(const Fields& entry);

}  // namespace detail

/// The messages of a dialogue for the embedded model's prompt: calls are text, the system's text
/// begins the user's, and results are in the order of their calls. ApiError names a call that the
/// format cannot write.
class Dialogue {
 public:
  /// \param tools  needed by formats that write calls by the tool documents
  explicit Dialogue(const Format& format, tooldecode::ToolSet tools = {})
      : format_(&format), tools_(std::move(tools)) {}

  void add(const Fields& message);

  [[nodiscard]] std::vector<Message> finish(const Fields& request);

 private:
  struct PendingCall {
    std::string id;
    tooldecode::ToolCall call;
    std::optional<std::string> output;
  };

  void add_assistant(const Fields& message);

  // Turns that the server itself answered precede the message that reports them.
  void add_cached(const Fields& message);

  void add_result(const Fields& message);

  // The text of a turn's calls; `entries` are their places in the member `key`.
  [[nodiscard]] std::string write(const std::vector<tooldecode::ToolCall>& calls,
                                  const Fields& message, std::string_view key,
                                  std::span<const Fields> entries) const;

  void require_results(const Fields& message) const;

  const Format* format_;
  tooldecode::ToolSet tools_;
  std::string system_;
  std::vector<Message> messages_;
  std::vector<PendingCall> calls_;
};

}  // namespace program
