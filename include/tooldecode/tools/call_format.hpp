/// \file
/// Call formats: what a format offers, tool choice, and the grammar of a whole answer.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/json_schema.hpp>
#include <tooldecode/grammar/string_lexeme.hpp>
#include <tooldecode/tools/free_text.hpp>
#include <tooldecode/tools/mark.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/tools/value_reader.hpp>

namespace tooldecode {

/// Whether an answer makes calls.
enum class ToolChoice : std::uint8_t {
  automatic,  ///< free text, or calls, as the model likes
  none,       ///< free text that makes no call
  required,   ///< one call or more, and nothing else
  named,      ///< one call to one tool
};

/// How an answer may call tools.
struct ChoiceOptions {
  ToolChoice choice = ToolChoice::automatic;
  std::string name{};                       ///< of the tool, where the choice is `named`
  bool parallel            = true;          ///< more than one call in an answer
  bool documented_order    = false;         ///< arguments in the document's order only
  std::uint32_t whitespace = 40;            ///< as in SchemaOptions
  std::vector<std::string> leading_keys{};  ///< arguments that come first, of a named tool only
  bool open_ended = false;  ///< anything may follow the arguments, of a named tool only
  std::optional<ReasoningMarks> reasoning{};  ///< a block that may precede the answer; in it a
                                              ///< trigger means nothing
  BuildLimits limits{};  ///< what building may cost, unless an outer budget is charged
};

/// A grammar and the node of it that a whole answer matches. While a text is inside a call, the
/// automaton's tags hold `tool_mode`; from the tool's name on also the tool's index.
struct CallGrammar {
  static constexpr std::uint32_t tool_mode = ~std::uint32_t{0};
  Grammar grammar;
  NodeId root = 0;
};

/// What a call format must offer: its trigger, the grammar of the calls behind the trigger, and
/// text to and from values. It may offer `openings(tools)`, which free text must not hold
/// in place of the trigger that they begin with, `text_marks`, the control tokens that free text
/// may hold, and `write(calls, tools)`.
template <class F>
concept CallFormat = std::copy_constructible<F> &&
                     requires(const F& format, Grammar& grammar, const ToolSet& tools,
                              std::span<const std::size_t> chosen, const ChoiceOptions& options,
                              std::span<const ToolCall> calls, std::string_view text) {
                       { F::language } -> std::convertible_to<ValueReader::Language>;
                       { format.trigger() } -> std::convertible_to<std::string_view>;
                       { format.only_at_start() } -> std::convertible_to<bool>;
                       {
                         format.calls_after_trigger(grammar, tools, chosen, options)
                       } -> std::same_as<NodeId>;
                       { format.write(calls) } -> std::same_as<std::string>;
                       { format.parse(text, tools) } -> std::same_as<std::vector<ToolCall>>;
                     };

namespace detail {

// What free text must not hold: the trigger, unless a format has longer openings that begin with
// it, so that the trigger alone is text.
template <CallFormat F>
std::vector<std::string> openings(const F& format, const ToolSet& tools) {
  if constexpr (requires { format.openings(tools); }) {
    return format.openings(tools);
  } else {
    return {std::string(format.trigger())};
  }
}

// The control tokens that free text may hold.
template <CallFormat F>
std::vector<std::string> text_marks(const F& format) {
  if constexpr (requires { format.text_marks; }) {
    return format.text_marks;
  } else {
    return {};
  }
}

inline std::vector<std::size_t> chosen_tools(const ToolSet& tools, const ChoiceOptions& options) {
  std::vector<std::size_t> chosen;
  if (options.choice == ToolChoice::none) return chosen;
  if (options.choice == ToolChoice::named) {
    const auto tool = tools.find(options.name);
    if (!tool) throw Error(Errc::unknown_tool, options.name, "there is no tool of this name");
    return {*tool};
  }
  for (std::size_t i = 0; i < tools.size(); ++i) chosen.push_back(i);
  if (chosen.empty() && options.choice == ToolChoice::required) {
    throw Error(Errc::invalid_option, "tool choice", "a call is required, and there are no tools");
  }
  return chosen;
}

}  // namespace detail

/// Calls as a format writes them; one whose text depends on the documents is given them.
///
/// Errors: as the format's own `write`.
template <CallFormat F>
[[nodiscard]] std::string write_calls(const F& format, std::span<const ToolCall> calls,
                                      const ToolSet& tools) {
  if constexpr (requires { format.write(calls, tools); }) {
    return format.write(calls, tools);
  } else {
    return format.write(calls);
  }
}

/// The grammar of a whole answer: free text, calls, or both, as the tool choice has it, behind a
/// block of reasoning where there may be one.
///
/// Free text is any bytes, without control tokens. After the last call only the end may follow.
/// Marks are read as text and as control tokens, see `mark_spellings`.
///
/// \param grammar_to_extend  what the result's grammar begins as: empty, or with a source of parts
///
/// \par Complexity  O(size of the tools' schemas), or O(tools) where a source has their parts
/// \par Threads     pure
/// \par Errors      as SchemaCompiler, with the JSON pointer into the tool documents;
///                  Error{unknown_tool}, Error{invalid_option} for the choice
template <CallFormat F>
[[nodiscard]] CallGrammar build_call_grammar(const F& format, const ToolSet& tools,
                                             const ChoiceOptions& options = {},
                                             Grammar grammar_to_extend    = {}) {
  const std::vector<std::size_t> chosen   = detail::chosen_tools(tools, options);
  const std::vector<std::string> openings = detail::openings(format, tools);
  const std::string trigger(format.trigger());
  const bool is_trigger = openings == std::vector{trigger};
  const auto opened     = is_trigger ? detail::mark_spellings(trigger) : openings;
  const auto allowed    = detail::text_marks(format);
  const auto& marks     = options.reasoning;
  if (marks && marks->end.empty()) {
    throw Error(Errc::invalid_option, "reasoning", "what ends a block is not empty");
  }
  CallGrammar result{std::move(grammar_to_extend), 0};
  Grammar& grammar = result.grammar;
  std::optional<NodeId> calls;
  const NodeId space = grammar.lexeme(any_whitespace(), {0, 2});
  if (!chosen.empty()) {
    ChoiceOptions single = options;
    if (options.choice == ToolChoice::named) {
      single.parallel = false;
    } else {
      single.leading_keys.clear();
      single.open_ended = false;
    }
    calls = format.calls_after_trigger(grammar, tools, chosen, single);
    // Where the trigger alone may be text, the arguments' own marks tell of a call.
    if (is_trigger && options.choice == ToolChoice::automatic) {
      calls = grammar.tagged(CallGrammar::tool_mode, *calls);
    }
  }
  // An answer, whose text does not look like a block of reasoning where one is told apart by that.
  const auto answer = [&](std::string_view not_first) {
    const auto text = [&](DfaPointer lexeme) {
      if (!not_first.empty()) lexeme = detail::not_beginning(*lexeme, not_first);
      return grammar.lexeme(std::move(lexeme));
    };
    if (calls && options.choice != ToolChoice::automatic) {
      const NodeId begin = detail::mark(grammar, trigger);
      return grammar.tagged(CallGrammar::tool_mode, grammar.sequence({space, begin, *calls}));
    }
    if (format.only_at_start()) {
      const NodeId silent = text(detail::not_beginning(*detail::any_text(), trigger.substr(0, 1)));
      if (!calls) return silent;
      return grammar.choice(
          {silent, grammar.sequence({space, detail::mark(grammar, trigger), *calls})});
    }
    const NodeId silent = text(detail::text_without(opened, allowed));
    if (!calls) return silent;
    const NodeId before = is_trigger ? text(detail::text_until(opened, allowed))
                                     : grammar.sequence({silent, grammar.literal(trigger)});
    return grammar.choice({silent, grammar.sequence({before, *calls})});
  };
  if (!marks) {
    result.root = answer("");
    return result;
  }
  result.root = grammar.sequence({detail::reasoning_block(grammar, *marks), answer("")});
  if (!marks->begin.empty()) result.root = grammar.choice({result.root, answer(marks->begin)});
  return result;
}

}  // namespace tooldecode
