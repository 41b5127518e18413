/// \file
/// Call formats: what a format offers, tool choice, and the grammar of a whole answer.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/json_schema.hpp>
#include <tooldecode/grammar/string_lexeme.hpp>
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
};

/// A grammar and the node of it that a whole answer matches. While a text is inside a call, the
/// automaton's tags hold `tool_mode`; from the tool's name on also the tool's index.
struct CallGrammar {
  static constexpr std::uint32_t tool_mode = ~std::uint32_t{0};
  Grammar grammar;
  NodeId root = 0;
};

/// What a call format must offer: its trigger, the grammar of the calls behind the trigger, and
/// text to and from values.
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

// Free text and a trigger inside it, by the prefix of the trigger that the text ends with.
inline std::vector<Dfa::Row> text_and_trigger(std::string_view trigger) {
  const std::size_t size = trigger.size();
  std::vector<Dfa::Row> rows(size + 1);
  for (std::size_t matched = 0; matched < size; ++matched) {
    for (unsigned b = 0; b < 256; ++b) {
      const std::string seen = std::string(trigger.substr(0, matched)) + static_cast<char>(b);
      std::size_t longest    = std::min(size, seen.size());
      while (!seen.ends_with(trigger.substr(0, longest))) --longest;
      rows[matched].next[b] = static_cast<Dfa::State>(longest);
    }
  }
  return rows;
}

// Free text that never holds the trigger; it may end anywhere.
inline DfaPointer text_without(std::string_view trigger) {
  std::vector<Dfa::Row> rows = text_and_trigger(trigger);
  rows.pop_back();
  for (Dfa::Row& row : rows) {
    row.accepting = true;
    std::replace(row.next.begin(), row.next.end(), static_cast<Dfa::State>(trigger.size()),
                 Dfa::dead);
  }
  return std::make_shared<const Dfa>(std::move(rows));
}

// Free text up to the end of the first trigger.
inline DfaPointer text_until(std::string_view trigger) {
  std::vector<Dfa::Row> rows = text_and_trigger(trigger);
  rows.back().accepting      = true;
  return std::make_shared<const Dfa>(std::move(rows));
}

// Free text whose first byte that is not white space does not begin the trigger.
inline DfaPointer text_not_beginning(std::string_view trigger) {
  std::vector<Dfa::Row> rows(2);
  for (unsigned b = 0; b < 256; ++b) {
    const bool space = b == ' ' || b == '\t' || b == '\n' || b == '\r';
    rows[0].next[b]  = space ? 0 : 1;
    rows[1].next[b]  = 1;
  }
  rows[0].next[static_cast<unsigned char>(trigger[0])] = Dfa::dead;
  rows[0].accepting = rows[1].accepting = true;
  return std::make_shared<const Dfa>(std::move(rows));
}

// Any bytes.
inline DfaPointer any_text() {
  std::vector<Dfa::Row> rows(1);
  std::fill(rows[0].next.begin(), rows[0].next.end(), Dfa::State{0});
  rows[0].accepting = true;
  return std::make_shared<const Dfa>(std::move(rows));
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

/// The grammar of a whole answer: free text, calls, or both, as the tool choice has it.
///
/// Free text is any bytes. After the last call only the end may follow.
///
/// \par Complexity  O(size of the tools' schemas)
/// \par Threads     pure
/// \par Errors      as SchemaCompiler, with the JSON pointer into the tool documents;
///                  Error{unknown_tool}, Error{invalid_option} for the choice
template <CallFormat F>
[[nodiscard]] CallGrammar build_call_grammar(const F& format, const ToolSet& tools,
                                             const ChoiceOptions& options = {}) {
  const std::vector<std::size_t> chosen = detail::chosen_tools(tools, options);
  const std::string_view trigger        = format.trigger();
  CallGrammar result;
  Grammar& grammar  = result.grammar;
  const auto silent = [&] {
    return grammar.lexeme(format.only_at_start() ? detail::text_not_beginning(trigger)
                                                 : detail::text_without(trigger));
  };
  if (chosen.empty()) {
    result.root = silent();
    return result;
  }
  ChoiceOptions single = options;
  if (options.choice == ToolChoice::named) {
    single.parallel = false;
  } else {
    single.leading_keys.clear();
    single.open_ended = false;
  }
  const NodeId calls = grammar.tagged(CallGrammar::tool_mode,
                                      format.calls_after_trigger(grammar, tools, chosen, single));
  const NodeId space = grammar.lexeme(any_whitespace(), {0, 2});
  if (options.choice != ToolChoice::automatic) {
    const NodeId begin = grammar.tagged(CallGrammar::tool_mode, grammar.literal(trigger));
    result.root        = grammar.sequence({space, begin, calls});
  } else if (format.only_at_start()) {
    result.root =
        grammar.choice({silent(), grammar.sequence({space, grammar.literal(trigger), calls})});
  } else {
    const NodeId text = grammar.lexeme(detail::text_until(trigger));
    result.root       = grammar.choice({silent(), grammar.sequence({text, calls})});
  }
  return result;
}

}  // namespace tooldecode
