/// \file
/// CallStream: text, reasoning and calls out of an answer while it is written.
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
#include <tooldecode/text/utf8_stream.hpp>

namespace tooldecode {

namespace grammar {
class ByteLabels;
}  // namespace grammar

/// What an answer has brought.
struct StreamEvent {
  enum class Kind : std::uint8_t {
    text,        ///< more of the text beside calls
    reasoning,   ///< more of the block of reasoning, its delimiters left out
    call_begin,  ///< a call to the tool `text`
    arguments,   ///< more of the JSON text of a call's arguments
    call_end,    ///< the arguments are whole
    answer_end,  ///< nothing follows
  };
  Kind kind;
  std::size_t call = 0;  ///< which call of the answer, from 0; of its end, how many there were
  std::string text{};    ///< whole characters of UTF-8; U+FFFD for each byte that is part of none
  friend bool operator==(const StreamEvent&, const StreamEvent&) = default;
};

/// Takes an answer token by token, or in any pieces, and gives what is known of it so far.
///
/// It follows the states of the constraint itself and the marks of its grammar, so that it finds
/// the calls that the constraint allowed; there is no parser beside it. Arguments come as one JSON
/// text, whatever the format: as they are written where the format writes JSON, else each when it
/// is complete. Bytes come as soon as they can be nothing else: what may begin a delimiter waits.
/// Events do not depend on the pieces, but that text of one kind in one piece is one event.
///
/// A call that is cut has no end; what has been written of its arguments has come. A piece that is
/// refused, or that memory does not suffice for, changes nothing: another may be given.
///
/// \par Complexity  O(positions of the state) per byte; memory O(the longest delimiter), and that
///                  of one argument where the format does not write JSON
/// \par Threads     a value; one thread at a time
/// \par Errors      Error{malformed_call} with the byte where the answer breaks the constraint;
///                  Error{unknown_token}
class CallStream {
 public:
  /// \param calls  whose answers these are
  explicit CallStream(ToolCallFSM calls);

  /// The next token; what ends the answer ends this, see `finish`. Of control tokens those are read
  /// that the grammar knows.
  [[nodiscard]] std::vector<StreamEvent> push(TokenId token);
  /// The next bytes.
  [[nodiscard]] std::vector<StreamEvent> push(std::string_view bytes);
  /// The rest, when the answer has ended, wherever that is; nothing may follow.
  [[nodiscard]] std::vector<StreamEvent> finish();

 private:
  using Kind   = StreamEvent::Kind;
  using Label  = std::uint64_t;  // as ByteLabels has it
  using Events = std::vector<StreamEvent>;

  // What a byte is part of.
  enum class Part : std::uint8_t {
    none,
    text,
    text_value,
    reasoning,
    call,       // around arguments
    arguments,  // as JSON
    argument,
  };
  static Label label(Part part, std::size_t tool = 0) noexcept;
  static Part part_of(Label label) noexcept { return static_cast<Part>(label >> 32); }
  static bool is_in_call(Label label) noexcept { return part_of(label) >= Part::call; }
  static std::size_t tool_of(Label label) noexcept { return label & 0xFFFF'FFFF; }

  static core::Boxed<grammar::ByteLabels> labels_of(const ToolCallFSM& calls);

  // Does what brings events, or changes nothing.
  template <class Change>
  Events change(const Change& change);
  // The next bytes as the grammar has them, control tokens with their marks.
  void read(std::string_view bytes, Events& events);
  [[noreturn]] void refuse(std::string_view why) const;
  void take(char byte, Label label, Events& events);
  // Begins what the next byte must be part of, and ends what it cannot be part of.
  void settle(Events& events);
  void begin_call(std::size_t tool, Events& events);
  void end_call(Events& events);
  void end_argument(Events& events);
  void enter(Part part, Events& events);
  void add(Kind kind, std::string_view text, Events& events) const;

  ToolCallFSM calls_;
  core::Boxed<grammar::ByteLabels> labels_;
  std::size_t position_ = 0;  // bytes read
  Part part_            = Part::none;
  text::StopFinder delimiters_;  // that end the part
  text::Utf8Stream characters_;  // of the part
  bool in_call_      = false;
  bool has_ended_    = false;
  std::size_t tool_  = 0;  // that is called
  std::size_t call_  = 0;  // its number
  std::size_t given_ = 0;  // arguments of it that are complete
  std::string before_, argument_;
  std::size_t old_ = 0;  // bytes of the argument from before the change at hand
  std::string ended_;    // an argument from before it that has ended since
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/constraint/call_stream.ipp>
#endif
