/// \file
/// ToolCallFSM: a constraint for answers with text and calls: only existing tools, only valid
/// arguments.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/diagnose.hpp>
#include <tooldecode/formats/call_format.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode {

class CallStream;
class WithoutRepeats;
struct RefusedText;

namespace constraint {
class CompiledTools;
}  // namespace constraint

/// Constrains a whole answer: free text where it is allowed, and calls in one format.
///
/// There are two modes. In text mode any token may follow; the format's trigger switches to tool
/// mode, where only names of existing tools may follow, and then arguments that conform to the
/// tool's document. Both modes, the transitions between them and several calls in a row are one
/// grammar, so a token may cross any of their borders.
///
/// \par Shapes      masks [ceil(V / 32)]
/// \par Complexity  construction O(size of the documents); the rest as Constraint
/// \par Threads     const members may run concurrently; a copy shares everything
/// \par Errors      from the constructor: errors of the documents' schemas (malformed_schema,
///                  unsupported_keyword, ... with a JSON pointer), Error{limit_exceeded} if
///                  building costs more than ChoiceOptions::limits, Error{unknown_tool} for a named
///                  choice, Error{invalid_option} if a call is required and there are no tools, and
///                  if a value of ChoiceOptions::text_schema could begin as calls do; from
///                  members, as Constraint
/// \par Source      Zhang et al., ToolDec, arXiv:2310.07075, section 3
class ToolCallFSM {
 public:
  using State = Constraint::State;

  enum class Mode : std::uint8_t {
    text,  ///< before or outside calls
    tool,  ///< inside a call, or only a call may follow
  };

  using Refusal = Constraint::Refusal;

  /// \param index   a vocabulary, or the VocabularyIndex that constraints share
  /// \param format  a call format: PythonCall{}, JsonCall::hermes(), ...
  template <class F>
  ToolCallFSM(VocabularyIndex index, const ToolSet& tools, const F& format,
              const ChoiceOptions& options = {})
      : ToolCallFSM(build(std::move(index), std::make_shared<const ToolSet>(tools), erased(format),
                          options)) {}

  [[nodiscard]] std::size_t vocabulary_size() const noexcept;
  [[nodiscard]] const Vocabulary& vocabulary() const noexcept { return constraint_.vocabulary(); }
  [[nodiscard]] const VocabularyIndex& vocabulary_index() const noexcept;
  /// The tools that may be called; `notes` say which are not enforced, see ToolEnforcement.
  [[nodiscard]] const ToolSet& tools() const noexcept;
  /// The constraint of whole answers; it has the same states.
  [[nodiscard]] const Constraint& constraint() const noexcept { return constraint_; }
  [[deprecated("use constraint")]] const Constraint& grammar() const noexcept {
    return constraint_;
  }

  [[nodiscard]] State initial() const noexcept { return constraint_.initial(); }
  /// The state after a token, or after some bytes; nullopt if one of them is not allowed.
  [[nodiscard]] std::optional<State> advance(State state, TokenId token) const {
    return constraint_.advance(state, token);
  }
  [[nodiscard]] std::optional<State> advance_bytes(State state, std::string_view bytes) const;
  /// Writes the allowed tokens: exactly those that `advance` accepts.
  void fill_mask(State state, MaskView words) const { constraint_.fill_mask(state, words); }
  /// The same where the words hold the mask of `shown`, see Constraint::update_mask.
  void update_mask(State shown, State state, MaskView words) const {
    constraint_.update_mask(shown, state, words);
  }
  [[nodiscard]] bool is_accepting(State state) const { return constraint_.is_accepting(state); }
  [[nodiscard]] bool is_finished(State state) const noexcept {
    return constraint_.is_finished(state);
  }
  [[deprecated("use jump_forward")]] std::string forced(State state) const {
    return jump_forward(state);
  }
  [[nodiscard]] std::string jump_forward(State state) const {
    return constraint_.jump_forward(state);
  }

  /// Fills masks ahead, see Constraint::prepare.
  std::size_t prepare(State state, const PrepareOptions& options = {}) const {
    return constraint_.prepare(state, options);
  }

  /// `reset`, `compact` and `bytes` are those of Constraint; copies are not affected.
  void reset() { constraint_.reset(); }
  [[deprecated("use reset")]] void renew() { reset(); }
  void compact(std::span<State> live) { constraint_.compact(live); }
  [[nodiscard]] std::size_t bytes() const { return constraint_.bytes(); }

  /// Whether a state is outside calls or in one.
  [[nodiscard]] Mode mode(State state) const;
  /// The index of the tool whose arguments are being written.
  [[nodiscard]] std::optional<std::size_t> find_tool(State state) const;
  /// Whether that tool's name is written, but may still go on as the name of another tool.
  [[nodiscard]] bool is_name_open(State state) const;

  /// The argument whose value is being written or may continue, as an index into `argument_names`.
  [[nodiscard]] std::optional<std::size_t> find_argument(State state) const;

  /// A constraint for one call to one tool and nothing else, in the spelling of `write`, with
  /// `leading_keys` as the first arguments, in this order.
  ///
  /// \param open_ended  anything may follow the arguments; for use beside a constraint that decides
  ///                    what
  ///
  /// Errors: Error{invalid_option} for a leading key that is not an argument of the tool.
  [[nodiscard]] ToolCallFSM single_call(std::size_t tool,
                                        std::vector<std::string> leading_keys = {},
                                        bool open_ended                       = false) const;

  /// Tokens of the calls' syntax, for a draft vocabulary, ascending: those of every call without
  /// values, and the single bytes that values begin and end with.
  [[nodiscard]] std::vector<TokenId> structural_tokens() const;

  /// The first place where a whole text breaks the constraint; nullopt if it conforms.
  [[nodiscard]] std::optional<Refusal> find_refusal(std::string_view text) const {
    return constraint_.find_refusal(text);
  }
  /// Parses the calls of a text; Error{malformed_call} names the byte where it breaks the format.
  [[nodiscard]] std::vector<ToolCall> parse(std::string_view text) const;
  /// The same for the tokens of an answer, whose text is the vocabulary's `answer_text`.
  [[nodiscard]] std::vector<ToolCall> parse(std::span<const TokenId> tokens) const;
  /// Writes calls as text; Error{malformed_call} for numbers that are not finite.
  [[nodiscard]] std::string write(std::span<const ToolCall> calls) const;
  /// Parses a text that is one value in the format's language of values, JSON or Python;
  /// Error{malformed_call} names the byte.
  [[nodiscard]] JsonValue parse_value(std::string_view text) const;

 private:
  friend class constraint::CompiledTools;
  friend class CallStream;
  friend class WithoutRepeats;
  friend std::optional<RefusedText> explain_refusal(const ToolCallFSM& calls,
                                                    std::string_view text);

  // Maps tags to tools; if empty, a tag is the tool's index.
  using Numbers = std::vector<std::pair<std::uint32_t, std::size_t>>;
  struct Parts;
  struct Shared;

  // If F is not a call format, the compiler prints one message instead of one for each use.
  template <class F>
  static formats::AnyFormat erased(const F& format) {
    if constexpr (std::same_as<F, formats::AnyFormat>) {
      return format;
    } else if constexpr (diagnose::is_call_format<F>() && CallFormat<F>) {
      return format;
    } else {
      std::terminate();
    }
  }

  static ToolCallFSM build(VocabularyIndex index, std::shared_ptr<const ToolSet> tools,
                           formats::AnyFormat format, const ChoiceOptions& options);
  ToolCallFSM(VocabularyIndex index, std::shared_ptr<const ToolSet> tools,
              formats::AnyFormat format, const ChoiceOptions& options, Parts parts);

  // A text that begins like a call is read as calls, so no value of a schema may begin like one.
  void require_told_apart(const std::vector<std::string>& openings,
                          const ChoiceOptions& options) const;

  [[nodiscard]] std::optional<std::size_t> tool_of(std::span<const std::uint32_t> marks) const;

  Constraint constraint_;
  std::shared_ptr<const Shared> shared_;
};
static_assert(ConstraintPolicy<ToolCallFSM>);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/constraint/tool_call_fsm.ipp>
#endif
