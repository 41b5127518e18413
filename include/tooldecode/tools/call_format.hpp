/// \file
/// Call formats: what a format offers, tool choice, and the grammar of a whole answer.
#pragma once

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

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/diagnose.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/occurrences.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/tools/call_marks.hpp>
#include <tooldecode/tools/free_text.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>

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
  std::string name{};               ///< of the tool, where the choice is `named`
  bool parallel           = true;   ///< more than one call in an answer
  std::uint32_t max_calls = 16;     ///< in an answer, where it may have several
  bool documented_order   = false;  ///< arguments in the document's order only
  /// As in SchemaOptions: 0 is the white space that the format itself writes and no other, so that
  /// no model can lose itself in blanks, and more tokens are forced.
  std::uint32_t whitespace = 0;
  std::vector<std::string> leading_keys{};  ///< arguments that come first, of a named tool only
  bool open_ended = false;  ///< anything may follow the arguments, of a named tool only
  std::optional<tools::ReasoningDelimiters> reasoning{};  ///< a block that may precede the answer;
                                                          ///< in it a trigger means nothing
  /// What the text of an answer is where calls are not forced: a JSON value of this schema, its
  /// properties in the schema's order, in place of free text. An answer is then such a value or
  /// calls, and no text stands beside calls. See Grammar::json_schema for what is enforced;
  /// `"nullable": true` admits null, as it does in the documents of tools.
  std::optional<JsonValue> text_schema{};
  BuildLimits limits{};  ///< what building may cost, unless an outer budget is charged

  /// How many calls there may be, and how many behind the first.
  [[nodiscard]] text::Occurrences calls() const noexcept { return {1, parallel ? max_calls : 1}; }
  [[nodiscard]] text::Occurrences further_calls() const noexcept;
};

/// A grammar of whole answers. While a text is inside a call, the
/// automaton's tags hold `tool_mode`; from the tool's name on also the tool's index; and what the
/// text is made of is marked, see call_marks.hpp.
struct CallGrammar {
  static constexpr std::uint32_t tool_mode = tools::mark::calls;
  Grammar grammar;
  /// Where the text of an answer is a value of a schema: what opens calls in place of one.
  std::optional<std::vector<std::string>> openings{};
  std::vector<std::string> text_ends{};       ///< delimiters that marked text ends with
  std::vector<std::string> reasoning_ends{};  ///< delimiters that marked reasoning ends with
};

/// A way in which the calls of an answer begin.
struct CallOpening {
  std::string delimiter;       ///< opens the calls: free text does not hold it
  NodeId calls{};              ///< what follows the delimiter, to the end of the answer
  bool only_at_start = false;  ///< opens them only where the answer begins
  std::vector<std::string> longer =
      {};  ///< the delimiter with what must follow, or else it is text

  /// A way that the format's parser takes, and that no answer may: text does not hold it either.
  [[nodiscard]] static CallOpening barred(Grammar& grammar, std::string delimiter,
                                          bool only_at_start = false);
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
/// For CallStream the grammar has the arguments under `tools::mark::arguments`, if they are a JSON
/// object; else each under `tools::mark::argument`, and the format offers `read_argument(tool,
/// given, before, text)`, the key and value of one as `std::pair<std::string, JsonValue>`: how many are given before it, the text between
/// it and them, and its own.
///
/// It may offer `barred()`, a pattern whose matches other readers take for a call, and that free
/// text does not hold; `ends_reasoning()`, delimiters that end a block of reasoning;
/// `never_in_text()`, delimiters that neither free text nor reasoning holds; `frame()`, what may
/// stand around free text; `texts(grammar)`, free text of its own; and `write(calls, tools)`.
template <class F>
concept CallFormat = std::copy_constructible<F> &&
                     requires(const F& format, Grammar& grammar, const ToolSet& tools,
                              std::span<const std::size_t> chosen, const ChoiceOptions& options,
                              std::span<const ToolCall> calls, std::string_view text) {
                       { F::language } -> std::convertible_to<text::ValueReader::Language>;
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
                         { F::language } -> std::convertible_to<text::ValueReader::Language>;
                       }) {
    static_assert(
        detail::never<F>,
        "CallFormat: add 'static constexpr auto language = text::ValueReader::Language::json;', or python");
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
SchemaOptions text_schema_options(const ChoiceOptions& options);

/// What a format says of answers, whichever format it is.
struct AnswerParts {
  std::vector<CallOpening> openings;
  std::string barred{};
  std::vector<std::string> ends_reasoning{};
  std::vector<std::string> never_in_text{};
  std::optional<AnswerTexts> texts{};
  tools::TextFrame frame{};
};

}  // namespace detail

namespace tools {

/// How a tool's parameters are read: its objects are closed, unless the tool is not strict.
[[nodiscard]] schema::DocumentRules parameter_rules(const Tool& tool);

/// The same with how its arguments are written: what a format gives to SchemaCompiler.
///
/// \param ends  what readers of the format take for the end of a call, see SchemaOptions::excluded
[[nodiscard]] SchemaOptions parameter_options(const Tool& tool, const ChoiceOptions& options,
                                              text::ValueSyntax syntax = text::ValueSyntax::json,
                                              std::vector<std::string> ends = {});

/// A call format of any type, as one type: what constraints are made of.
///
/// \par Complexity  a copy O(1): copies share the format
/// \par Threads     immutable; const members may run concurrently
/// \par Errors      those of the format
class AnyFormat {
 public:
  using Argument = std::pair<std::string, JsonValue>;

  template <class F>
    requires(!std::same_as<F, AnyFormat> && CallFormat<F>)
  // NOLINTNEXTLINE(google-explicit-constructor): any format is one
  AnyFormat(F format) : held_(std::make_shared<const Held<F>>(std::move(format))) {}

  [[nodiscard]] text::ValueReader::Language language() const { return held_->language(); }
  /// What it says of answers with these tools.
  [[nodiscard]] tooldecode::detail::AnswerParts parts(Grammar& grammar, const ToolSet& tools,
                                                      std::span<const std::size_t> chosen,
                                                      const ChoiceOptions& options) const {
    return held_->parts(grammar, tools, chosen, options);
  }
  [[nodiscard]] std::vector<std::string> ends_reasoning() const { return held_->ends_reasoning(); }
  [[nodiscard]] std::string write(std::span<const ToolCall> calls, const ToolSet& tools) const {
    return held_->write(calls, tools);
  }
  [[nodiscard]] std::vector<ToolCall> parse(std::string_view text, const ToolSet& tools) const {
    return held_->parse(text, tools);
  }
  /// Whether arguments are read one by one: else they are a JSON object.
  [[nodiscard]] bool reads_arguments() const { return held_->reads_arguments(); }
  /// \param given  how many arguments come before it, with the text `before` between
  [[nodiscard]] Argument read_argument(const Tool& tool, std::size_t given, std::string_view before,
                                       std::string_view text) const {
    return held_->read_argument(tool, given, before, text);
  }

 private:
  struct Interface {
    virtual ~Interface()                                               = default;
    [[nodiscard]] virtual text::ValueReader::Language language() const = 0;
    [[nodiscard]] virtual tooldecode::detail::AnswerParts parts(Grammar&, const ToolSet&,
                                                                std::span<const std::size_t>,
                                                                const ChoiceOptions&) const   = 0;
    [[nodiscard]] virtual std::vector<std::string> ends_reasoning() const                     = 0;
    [[nodiscard]] virtual std::string write(std::span<const ToolCall>, const ToolSet&) const  = 0;
    [[nodiscard]] virtual std::vector<ToolCall> parse(std::string_view, const ToolSet&) const = 0;
    [[nodiscard]] virtual bool reads_arguments() const                                        = 0;
    [[nodiscard]] virtual Argument read_argument(const Tool&, std::size_t, std::string_view,
                                                 std::string_view) const                      = 0;
  };

  template <class F>
  struct Held final : Interface {
    static constexpr bool has_arguments =
        requires(const F& f, const Tool& tool, std::string_view text) {
          { f.read_argument(tool, 0, text, text) } -> std::same_as<Argument>;
        };

    explicit Held(F chosen) : format(std::move(chosen)) {}

    text::ValueReader::Language language() const override { return F::language; }
    tooldecode::detail::AnswerParts parts(Grammar& grammar, const ToolSet& tools,
                                          std::span<const std::size_t> chosen,
                                          const ChoiceOptions& options) const override {
      tooldecode::detail::AnswerParts parts{
          .openings       = format.openings(grammar, tools, chosen, options),
          .ends_reasoning = ends_reasoning()};
      if constexpr (requires { format.barred(); }) parts.barred = format.barred();
      if constexpr (requires { format.texts(grammar); }) parts.texts = format.texts(grammar);
      if constexpr (requires { format.frame(); }) parts.frame = format.frame();
      if constexpr (requires { format.never_in_text(); }) {
        parts.never_in_text = format.never_in_text();
      }
      return parts;
    }
    std::vector<std::string> ends_reasoning() const override {
      if constexpr (requires { format.ends_reasoning(); }) {
        return format.ends_reasoning();
      } else {
        return {};
      }
    }
    std::string write(std::span<const ToolCall> calls, const ToolSet& tools) const override {
      if constexpr (requires { format.write(calls, tools); }) {
        return format.write(calls, tools);
      } else {
        return format.write(calls);
      }
    }
    std::vector<ToolCall> parse(std::string_view text, const ToolSet& tools) const override {
      return format.parse(text, tools);
    }
    bool reads_arguments() const override { return has_arguments; }
    Argument read_argument(const Tool& tool, std::size_t given, std::string_view before,
                           std::string_view text) const override {
      if constexpr (has_arguments) {
        return format.read_argument(tool, given, before, text);
      } else {
        return {};
      }
    }

    F format;
  };

  std::shared_ptr<const Interface> held_;
};

}  // namespace tools

/// Calls as a format writes them; one whose text depends on the documents is given them.
///
/// Errors: as the format's own `write`.
[[nodiscard]] std::string write_calls(const tools::AnyFormat& format,
                                      std::span<const ToolCall> calls, const ToolSet& tools);

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
[[nodiscard]] CallGrammar build_call_grammar(const tools::AnyFormat& format, const ToolSet& tools,
                                             const ChoiceOptions& options = {},
                                             Grammar grammar_to_extend    = {});

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/tools/call_format.ipp>
#endif
