/// \file
/// ToolCallFSM: text mode and tool mode as one constraint: only existing tools, only conforming
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
#include <tooldecode/constraint/vocabulary_index.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/diagnose.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/tools/call_format.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode {

class CallStream;
class WithoutRepeats;

namespace constraint {
class CompiledTools;
}  // namespace constraint

/// Constrains a whole answer: free text where that is allowed, and calls in one format.
///
/// The machine has two modes. In text mode any token may follow; the format's trigger switches to
/// tool mode, where a trie yields the names of existing tools and each tool's own machine yields
/// arguments that conform to its document. Both modes, the edges between them and several calls in
/// a row are one grammar, so a token may straddle any edge.
///
/// \par Shapes      masks [ceil(V / 32)]
/// \par Complexity  construction O(size of the documents); the rest as Constraint
/// \par Threads     every const member may run concurrently; a copy shares everything
/// \par Errors      from the constructor: what the documents' schemas get wrong (malformed_schema,
///                  unsupported_keyword, ... with a JSON pointer), Error{limit_exceeded} where
///                  building costs more than ChoiceOptions::limits, Error{unknown_tool} for a named
///                  choice, Error{invalid_option} where a call is required and there are no tools,
///                  and where a value of ChoiceOptions::text_schema could begin as calls do
/// \par Source      Zhang et al., ToolDec, arXiv:2310.07075, section 3
class ToolCallFSM {
 public:
  using State = Constraint::State;

  /// Where a text stands.
  enum class Mode : std::uint8_t {
    text,  ///< before or outside a call
    tool,  ///< inside a call, or nothing but a call may follow
  };

  /// Where the first byte that cannot follow stands in a text.
  struct Refusal {
    std::size_t at = 0;      ///< byte offset; the text's length where only its end is missing
    bool too_short = false;  ///< every byte can follow, but the text cannot end here
  };

  /// \param cache   a vocabulary, or the VocabularyIndex that several constraints share
  /// \param format  a call format: PythonCall{}, JsonCall::hermes(), ...
  template <class F>
  ToolCallFSM(VocabularyIndex cache, const ToolSet& tools, const F& format,
              const ChoiceOptions& options = {})
      : ToolCallFSM(build(std::move(cache), std::make_shared<const ToolSet>(tools), erased(format),
                          options)) {}

  [[nodiscard]] std::size_t vocabulary_size() const noexcept;
  [[nodiscard]] const Vocabulary& vocabulary() const noexcept { return constraint_.vocabulary(); }
  [[nodiscard]] const VocabularyIndex& vocabulary_index() const noexcept;
  [[nodiscard]] const ToolSet& tools() const noexcept;
  /// The grammar of whole answers; its states are these.
  [[nodiscard]] const Constraint& grammar() const noexcept { return constraint_; }

  [[nodiscard]] State initial() const noexcept { return constraint_.initial(); }
  [[nodiscard]] std::optional<State> advance(State state, TokenId token) const {
    return constraint_.advance(state, token);
  }
  [[nodiscard]] std::optional<State> advance_bytes(State state, std::string_view bytes) const;
  void fill_mask(State state, MaskView words) const { constraint_.fill_mask(state, words); }
  [[nodiscard]] bool is_accepting(State state) const { return constraint_.is_accepting(state); }
  [[nodiscard]] bool is_finished(State state) const noexcept {
    return constraint_.is_finished(state);
  }
  [[nodiscard]] std::string forced(State state) const { return constraint_.forced(state); }

  /// See Constraint: of this object alone, whatever its copies do.
  void renew() { constraint_.renew(); }
  void compact(std::span<State> live) { constraint_.compact(live); }
  [[nodiscard]] std::size_t bytes() const { return constraint_.bytes(); }

  /// Whether a state is inside a call.
  [[nodiscard]] Mode mode(State state) const;
  /// The tool whose arguments are being written.
  [[nodiscard]] std::optional<std::size_t> find_tool(State state) const;

  /// The argument whose value is being written, or may still go on, by its place in
  /// `argument_names`.
  [[nodiscard]] std::optional<std::size_t> find_argument(State state) const;

  /// The machine of one call to one tool and nothing else, written as `write` writes it, with some
  /// of the arguments supplied first, in this order.
  ///
  /// \param open_ended  anything may follow the arguments, for use beside a machine that says what
  ///
  /// Errors: Error{invalid_option} where a leading key is not one of the tool's.
  [[nodiscard]] ToolCallFSM single_call(std::size_t tool,
                                        std::vector<std::string> leading_keys = {},
                                        bool open_ended                       = false) const;

  /// Tokens that the syntax of calls is written with: those of every call without values, and the
  /// single bytes that values begin and end with. For a draft vocabulary, ascending.
  [[nodiscard]] std::vector<TokenId> structural_tokens() const;

  /// The first place where a whole text breaks the constraint; nothing where it conforms.
  [[nodiscard]] std::optional<Refusal> find_refusal(std::string_view text) const;
  /// The calls that a text makes; Error{malformed_call} names the byte where it breaks the format.
  [[nodiscard]] std::vector<ToolCall> parse(std::string_view text) const;
  /// Calls as text; Error{malformed_call} for numbers that are not finite.
  [[nodiscard]] std::string write(std::span<const ToolCall> calls) const;
  /// One value as the format writes it; Error{malformed_call} names the byte that breaks it.
  [[nodiscard]] JsonValue parse_value(std::string_view text) const;

 private:
  friend class constraint::CompiledTools;
  friend class CallStream;
  friend class WithoutRepeats;

  // The tools of tags, by the tags; empty: the tags themselves.
  using Numbers = std::vector<std::pair<std::uint32_t, std::size_t>>;
  struct Parts;
  struct Shared;

  // What is no format gets one sentence, and no line for all that would be done with it.
  template <class F>
  static tools::AnyFormat erased(const F& format) {
    if constexpr (std::same_as<F, tools::AnyFormat>) {
      return format;
    } else if constexpr (diagnose::is_call_format<F>() && CallFormat<F>) {
      return format;
    } else {
      std::terminate();
    }
  }

  static ToolCallFSM build(VocabularyIndex cache, std::shared_ptr<const ToolSet> tools,
                           tools::AnyFormat format, const ChoiceOptions& options);
  ToolCallFSM(VocabularyIndex cache, std::shared_ptr<const ToolSet> tools, tools::AnyFormat format,
              const ChoiceOptions& options, Parts parts);

  // A text that begins as calls do is calls, so that no value of a schema may begin so.
  void require_told_apart(const std::vector<std::string>& openings,
                          const ChoiceOptions& options) const;

  // The tool of marks that a text is inside of.
  [[nodiscard]] std::optional<std::size_t> tool_of(std::span<const std::uint32_t> marks) const;

  Constraint constraint_;
  std::shared_ptr<const Shared> shared_;
};
static_assert(ConstraintPolicy<ToolCallFSM>);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/constraint/tool_call_fsm.ipp>
#endif
