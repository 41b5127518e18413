/// \file
/// CallStream: turns an answer into events for text, reasoning and calls while it streams.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/boxed.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/text/stop_finder.hpp>
#include <tooldecode/text/utf8.hpp>

namespace tooldecode {

namespace formats {
class OpenArgument;
}  // namespace formats

namespace grammar {
class ByteLabels;
}  // namespace grammar

/// One event of an answer's stream.
struct StreamEvent {
  enum class Kind : std::uint8_t {
    text,        ///< more text outside calls
    reasoning,   ///< more of the reasoning block, without its delimiters
    call_begin,  ///< a call to the tool `text`
    arguments,   ///< more JSON text of the call's arguments
    call_end,
    answer_end,  ///< nothing follows
  };
  Kind kind;
  std::size_t call = 0;    ///< index of the call, from 0; for answer_end: the number of calls
  std::string text{};      ///< whole UTF-8 characters; U+FFFD for each invalid byte
  std::size_t format = 0;  ///< of call_begin: which format of a FormatSet the call is written in
  friend bool operator==(const StreamEvent&, const StreamEvent&) = default;
};

/// Turns an answer, given token by token or in byte pieces of any size, into events.
///
/// It follows the constraint's own states and the marks of its grammar, so it finds exactly the
/// calls that the constraint allows; there is no separate parser. Arguments arrive as one JSON text
/// in every format: keys, strings and JSON as they come, other values when they are complete.
/// A byte that may begin a delimiter is held back until that is decided. How the answer is cut into
/// pieces changes nothing, except that text of one kind within one piece is one event.
///
/// If the answer is cut off inside a call, there is no call_end; the arguments written so far have
/// been delivered. A push that throws changes nothing, so you can push something else.
///
/// \par Complexity  O(positions of the state) per byte; memory O(longest delimiter), plus one
///                  argument if the format does not write JSON
/// \par Threads     a value; one thread at a time
/// \par Errors      Error{malformed_call} with the byte where the answer breaks the constraint;
///                  Error{unknown_token}
class CallStream {
 public:
  /// \param calls  the constraint of the answers
  explicit CallStream(ToolCallFSM calls);

  /// Reads a token. An end token ends the stream as `finish` does. Of the control tokens it accepts
  /// those that the grammar knows.
  [[nodiscard]] std::vector<StreamEvent> push(TokenId token);
  [[nodiscard]] std::vector<StreamEvent> push(std::string_view bytes);
  /// Ends the answer, wherever it is, and returns the remaining events; push nothing after it.
  [[nodiscard]] std::vector<StreamEvent> finish();

 private:
  using Kind   = StreamEvent::Kind;
  using Label  = std::uint64_t;
  using Events = std::vector<StreamEvent>;

  enum class Part : std::uint8_t {
    none,
    text,
    text_value,
    more_text,
    reasoning,
    call,
    arguments,  // written as JSON by the format
    argument,
  };
  // At most 2^24 tools and 128 formats.
  static Label label(Part part, std::size_t tool = 0, std::size_t format = 0) noexcept;
  static Part part_of(Label label) noexcept { return static_cast<Part>(label >> 32); }
  static bool is_in_call(Label label) noexcept { return part_of(label) >= Part::call; }
  static std::size_t tool_of(Label label) noexcept { return label & 0xFF'FFFF; }
  static std::size_t format_of(Label label) noexcept { return label >> 24 & 0xFF; }

  static core::Boxed<grammar::ByteLabels> labels_of(const ToolCallFSM& calls);

  // Applies a change that makes events; if it throws, the earlier state is restored.
  template <class Change>
  Events change(const Change& change);
  // Reads bytes in the grammar's spelling: control tokens with their marks.
  void read(std::string_view bytes, Events& events);
  [[noreturn]] void refuse(std::string_view why) const;
  void take(char byte, Label label, Events& events);
  // Opens the part that the next byte must belong to, and closes parts that it cannot belong to.
  void settle(Events& events);
  void begin_call(Label label, Events& events);
  void end_call(Events& events);
  void end_argument(Events& events);
  void enter(Part part, Events& events);
  void add(Kind kind, std::string_view text, Events& events) const;

  ToolCallFSM calls_;
  core::Boxed<grammar::ByteLabels> labels_;
  core::Boxed<formats::OpenArgument> open_;
  std::size_t position_ = 0;  // bytes read
  Part part_            = Part::none;
  text::StopFinder delimiters_;  // that end part_
  text::Utf8Stream characters_;  // of part_
  bool in_call_     = false;
  bool has_ended_   = false;
  std::size_t tool_ = 0, format_ = 0;
  std::size_t call_  = 0;  // its index in the answer
  std::size_t given_ = 0;  // its complete arguments
  std::string before_, argument_;
  std::size_t old_ = 0;  // length of argument_ before the current change
  std::string ended_;    // an argument that was open before the current change and ended in it
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/constraint/call_stream.ipp>
#endif
