/// \file
/// Call formats: what a format offers, tool choice, and the grammar of a whole answer.
#pragma once

#include <algorithm>
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
#include <tooldecode/core/diagnose.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/text/string_lexeme.hpp>
#include <tooldecode/tools/delimiter.hpp>
#include <tooldecode/tools/free_text.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/tools/value_reader.hpp>

#include <nlohmann/json.hpp>

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
  std::optional<tools::ReasoningDelimiters> reasoning{};  ///< a block that may precede the answer;
                                                          ///< in it a trigger means nothing
  /// What the text of an answer is where calls are not forced: a JSON value of this schema, its
  /// properties in the schema's order, in place of free text. An answer is then such a value or
  /// calls, and no text stands beside calls. See `JsonSchemaConstraint` for what is enforced.
  std::optional<nlohmann::ordered_json> text_schema{};
  BuildLimits limits{};  ///< what building may cost, unless an outer budget is charged
};

/// A grammar and the node of it that a whole answer matches. While a text is inside a call, the
/// automaton's tags hold `tool_mode`; from the tool's name on also the tool's index.
struct CallGrammar {
  static constexpr std::uint32_t tool_mode = ~std::uint32_t{0};
  Grammar grammar;
  NodeId root{};
  /// Where the text of an answer is a value of a schema: what opens calls in place of one.
  std::optional<std::vector<std::string>> openings{};
};

/// A way in which the calls of an answer begin.
struct CallOpening {
  std::string delimiter;       ///< opens the calls: free text does not hold it
  NodeId calls{};              ///< what follows the delimiter, to the end of the answer
  bool only_at_start = false;  ///< opens them only where the answer begins
  std::vector<std::string> longer =
      {};  ///< the delimiter with what must follow, or else it is text
};

/// The texts of an answer, where a format has something to say of them.
struct AnswerTexts {
  NodeId silent{};  ///< a whole answer without calls
  NodeId before{};  ///< what may precede the first call
};

/// What a call format must offer: the delimiters that open calls, the usual one as its trigger,
/// with the grammar of the calls behind each, and text to and from values. Whatever of these its
/// own parser reads as a call the grammar must make one, or leave out.
///
/// It may offer `barred()`, a pattern whose matches other readers take for a call, and that free
/// text does not hold; `ends_reasoning()`, delimiters that end a block of reasoning;
/// `never_in_text()`, delimiters that neither free text nor reasoning holds; `texts(grammar)`, free
/// text of its own; and `write(calls, tools)`.
template <class F>
concept CallFormat = std::copy_constructible<F> &&
                     requires(const F& format, Grammar& grammar, const ToolSet& tools,
                              std::span<const std::size_t> chosen, const ChoiceOptions& options,
                              std::span<const ToolCall> calls, std::string_view text) {
                       { F::language } -> std::convertible_to<tools::ValueReader::Language>;
                       { format.trigger() } -> std::convertible_to<std::string_view>;
                       { format.only_at_start() } -> std::convertible_to<bool>;
                       {
                         format.openings(grammar, tools, chosen, options)
                       } -> std::same_as<std::vector<CallOpening>>;
                       { format.write(calls) } -> std::same_as<std::string>;
                       { format.parse(text, tools) } -> std::same_as<std::vector<ToolCall>>;
                     };

namespace diagnose {

/// True where F is a CallFormat; otherwise a compile error that names what F lacks first.
template <class F>
consteval bool is_call_format() {
  if constexpr (CallFormat<F>) {
  } else if constexpr (!std::copy_constructible<F>) {
    static_assert(detail::never<F>,
                  "CallFormat: make it copyable: machines keep a copy of their format");
  } else if constexpr (!requires {
                         { F::language } -> std::convertible_to<tools::ValueReader::Language>;
                       }) {
    static_assert(
        detail::never<F>,
        "CallFormat: add 'static constexpr auto language = tools::ValueReader::Language::json;', or python");
  } else if constexpr (!requires(const F& format) {
                         { format.trigger() } -> std::convertible_to<std::string_view>;
                       }) {
    static_assert(detail::never<F>,
                  "CallFormat: add 'std::string trigger() const;', the delimiter that opens calls");
  } else if constexpr (!requires(const F& format) {
                         { format.only_at_start() } -> std::convertible_to<bool>;
                       }) {
    static_assert(
        detail::never<F>,
        "CallFormat: add 'bool only_at_start() const;', whether calls open only where an answer begins");
  } else if constexpr (!requires(const F& format, Grammar& grammar, const ToolSet& tools,
                                 std::span<const std::size_t> chosen,
                                 const ChoiceOptions& options) {
                         {
                           format.openings(grammar, tools, chosen, options)
                         } -> std::same_as<std::vector<CallOpening>>;
                       }) {
    static_assert(
        detail::never<F>,
        "CallFormat: add 'std::vector<CallOpening> openings(Grammar&, const ToolSet&, std::span<const std::size_t> chosen, const ChoiceOptions&) const;'");
  } else if constexpr (!requires(const F& format, std::span<const ToolCall> calls) {
                         { format.write(calls) } -> std::same_as<std::string>;
                       }) {
    static_assert(detail::never<F>,
                  "CallFormat: add 'std::string write(std::span<const ToolCall>) const;'");
  } else {
    static_assert(
        detail::never<F>,
        "CallFormat: add 'std::vector<ToolCall> parse(std::string_view, const ToolSet&) const;'");
  }
  return true;
}

}  // namespace diagnose

namespace detail {

/// Where in the options what is wrong with a schema of texts is said to be.
inline constexpr std::string_view text_schema_place = "text_schema";

/// The values that the text of an answer may be.
inline SchemaOptions text_schema_options(const ChoiceOptions& options) {
  return {.documented_order = true, .whitespace = options.whitespace};
}

template <CallFormat F>
std::vector<std::string> ends_of_reasoning(const F& format) {
  if constexpr (requires { format.ends_reasoning(); }) {
    return format.ends_reasoning();
  } else {
    return {};
  }
}
template <CallFormat F>
std::vector<std::string> never_in_text(const F& format) {
  if constexpr (requires { format.never_in_text(); }) {
    return format.never_in_text();
  } else {
    return {};
  }
}

/// Free text beside the calls of a format.
template <CallFormat F>
tools::FreeText text_beside(const F& format, std::span<const CallOpening> openings) {
  tools::FreeText text;
  for (const CallOpening& opening : openings) {
    if (opening.only_at_start) {
      text.not_first.push_back(opening.delimiter);
      continue;
    }
    const auto delimiters =
        opening.longer.empty() ? tools::delimiter_spellings(opening.delimiter) : opening.longer;
    text.without.insert(text.without.end(), delimiters.begin(), delimiters.end());
  }
  if constexpr (requires { format.barred(); }) text.barred = format.barred();
  return text;
}

inline std::vector<std::size_t> chosen_tools(const ToolSet& tools, const ChoiceOptions& options) {
  std::vector<std::size_t> chosen;
  if (options.choice == ToolChoice::none) return chosen;
  if (options.choice == ToolChoice::named) {
    const auto tool = tools.find(options.name);
    if (!tool) throw Error(Errc::unknown_tool, options.name, "must be the name of a tool");
    return {*tool};
  }
  for (std::size_t i = 0; i < tools.size(); ++i) chosen.push_back(i);
  if (chosen.empty() && options.choice == ToolChoice::required) {
    throw Error(Errc::invalid_option, "tool choice", "required",
                "must be automatic or none where there are no tools");
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
/// Delimiters are read as text and as control tokens, see `delimiter_spellings`. Names that the
/// format could not give back from a text are refused. A schema in place of free text is
/// ChoiceOptions' `text_schema`; the errors of it have places that begin with that name.
///
/// \param grammar_to_extend  what the result's grammar begins as: empty, or with a source of parts
///
/// \par Complexity  O(size of the tools' schemas), or O(tools) where a source has their parts
/// \par Errors      as SchemaCompiler, with the JSON pointer into the tool documents;
///                  Error{unsupported_name} for names that the format cannot carry, with theirs;
///                  Error{unknown_tool}, Error{invalid_option} for the choice
template <CallFormat F>
[[nodiscard]] CallGrammar build_call_grammar(const F& format, const ToolSet& tools,
                                             const ChoiceOptions& options = {},
                                             Grammar grammar_to_extend    = {}) {
  const std::vector<std::size_t> chosen = detail::chosen_tools(tools, options);
  const auto& delimiters                = options.reasoning;
  if (delimiters && delimiters->end.empty()) {
    throw Error(Errc::invalid_option, "reasoning", "what ends a block must not be empty");
  }
  CallGrammar result{std::move(grammar_to_extend)};
  Grammar& grammar     = result.grammar;
  ChoiceOptions single = options;
  if (options.choice == ToolChoice::named) {
    single.parallel = false;
  } else {
    single.leading_keys.clear();
    single.open_ended = false;
  }
  const std::vector<CallOpening> openings = format.openings(grammar, tools, chosen, single);
  const tools::FreeText beside            = detail::text_beside(format, openings);
  const NodeId space                      = grammar.lexeme(text::any_whitespace(), {0, 2});
  const bool is_forced = !chosen.empty() && options.choice != ToolChoice::automatic;
  std::optional<NodeId> value;  // that an answer's text is
  if (options.text_schema && !is_forced) {
    if constexpr (requires { format.texts(grammar); }) {
      throw Error(Errc::invalid_option, std::string(detail::text_schema_place),
                  "must not be given: texts of this format have messages around them");
    }
    const auto& schema = *options.text_schema;
    value              = SchemaCompiler(grammar, schema, detail::text_schema_options(options))
                .value(schema, std::string(detail::text_schema_place));
    result.openings.emplace();
    for (const CallOpening& opening : openings) {
      if (!chosen.empty()) result.openings->push_back(opening.delimiter);
    }
  }
  const auto in_calls = [&](NodeId calls) { return grammar.tagged(CallGrammar::tool_mode, calls); };
  // An answer, whose text does not look like a block of reasoning where one is told apart by that.
  const auto answer = [&](const std::string& not_first) {
    std::vector<NodeId> ways;
    if (is_forced) {
      for (const CallOpening& opening : openings) {
        ways.push_back(
            grammar.sequence({tools::delimiter(grammar, opening.delimiter), opening.calls}));
      }
      return in_calls(grammar.sequence({space, grammar.choice(std::move(ways))}));
    }
    if (value) {
      ways.push_back(*value);
      for (const CallOpening& opening : openings) {
        if (chosen.empty()) break;
        const bool is_tagged = !opening.longer.empty();
        ways.push_back(grammar.sequence({space, tools::delimiter(grammar, opening.delimiter),
                                         is_tagged ? opening.calls : in_calls(opening.calls)}));
      }
      return grammar.choice(std::move(ways));
    }
    if constexpr (requires { format.texts(grammar); }) {
      const AnswerTexts texts = format.texts(grammar);
      ways.push_back(texts.silent);
      if (!chosen.empty()) {
        ways.push_back(grammar.sequence({texts.before, openings.front().calls}));
      }
      return grammar.choice(std::move(ways));
    }
    tools::FreeText text = beside;
    if (!not_first.empty()) text.not_first.push_back(not_first);
    const NodeId silent = grammar.lexeme(tools::free_text(text));
    ways.push_back(silent);
    for (const CallOpening& opening : openings) {
      if (chosen.empty()) break;
      if (!opening.longer.empty()) {  // what follows the delimiter tells of a call
        ways.push_back(
            grammar.sequence({silent, grammar.literal(opening.delimiter), opening.calls}));
      } else if (opening.only_at_start) {
        ways.push_back(grammar.sequence(
            {space, tools::delimiter(grammar, opening.delimiter), in_calls(opening.calls)}));
      } else {
        tools::FreeText before = text;
        before.until           = tools::delimiter_spellings(opening.delimiter);
        for (const std::string& delimiter : before.until) std::erase(before.without, delimiter);
        ways.push_back(
            grammar.sequence({grammar.lexeme(tools::free_text(before)), in_calls(opening.calls)}));
      }
    }
    return grammar.choice(std::move(ways));
  };
  if (!delimiters) {
    result.root = answer("");
    return result;
  }
  // A block, and what follows it; where a call ends one, that call.
  const auto calls_end_it = detail::ends_of_reasoning(format);
  const auto never        = detail::never_in_text(format);
  auto without            = calls_end_it;
  without.insert(without.end(), never.begin(), never.end());
  std::vector<NodeId> ways{grammar.sequence(
      {tools::reasoning_block(grammar, delimiters->begin, std::span(&delimiters->end, 1), without),
       answer("")})};
  for (const CallOpening& opening : openings) {
    const auto at = std::find(calls_end_it.begin(), calls_end_it.end(), opening.delimiter);
    if (chosen.empty() || at == calls_end_it.end()) continue;
    auto others = calls_end_it;
    std::erase(others, opening.delimiter);
    others.push_back(delimiters->end);
    ways.push_back(
        grammar.sequence({tools::reasoning_block(grammar, delimiters->begin,
                                                 std::span(&opening.delimiter, 1), others),
                          in_calls(opening.calls)}));
  }
  if (!delimiters->begin.empty()) ways.push_back(answer(delimiters->begin));
  result.root = grammar.choice(std::move(ways));
  return result;
}

}  // namespace tooldecode
