/// \file
/// Call formats, tool choice, and the grammar of a whole answer.
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
#include <tooldecode/formats/call_marks.hpp>
#include <tooldecode/formats/free_text.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/occurrences.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/tools/document_note.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>

namespace tooldecode {

/// Whether an answer makes calls.
enum class ToolChoice : std::uint8_t {
  automatic,  ///< free text or calls, as the model chooses
  none,       ///< free text without calls
  required,   ///< one call or more, without text
  named,      ///< one call to one tool
};

/// How an answer may call tools.
struct ChoiceOptions {
  ToolChoice choice = ToolChoice::automatic;
  std::string name{};               ///< the tool, where the choice is `named`
  bool parallel           = true;   ///< an answer may have several calls
  std::uint32_t max_calls = 16;     ///< in an answer, where `parallel` is true
  bool documented_order   = false;  ///< arguments follow the document's order
  /// The most bytes of white space at a place, as in SchemaOptions. With 0 only the white space of
  /// the format itself is allowed: the model cannot write endless blanks, and there are more
  /// fast-forward tokens.
  std::uint32_t whitespace = 0;
  std::vector<std::string> leading_keys{};  ///< come first; `named` only
  bool open_ended = false;                  ///< anything may follow the arguments; `named` only
  std::optional<formats::ReasoningDelimiters>
      reasoning{};  ///< a block that may precede the answer;
                    ///< a trigger in it means nothing
  /// A JSON Schema for the text of an answer where calls are not required. The text is then a JSON
  /// value with its properties in the schema's order, and an answer is either that value or calls,
  /// never both. Grammar::json_schema says what is enforced; `"nullable": true` admits null, as in
  /// tool documents. Behind a reasoning block up to two characters of white space may precede it.
  std::optional<JsonValue> text_schema{};
  BuildLimits limits{};  ///< limits of the build; an outer budget replaces them
  /// What happens to tools that cannot be enforced, see enforceable_tools.
  ToolEnforcement enforcement = ToolEnforcement::strict;

  /// How many calls an answer has; `further_calls` counts those after the first.
  [[nodiscard]] text::Occurrences calls() const noexcept { return {1, parallel ? max_calls : 1}; }
  [[nodiscard]] text::Occurrences further_calls() const noexcept;
};

/// A grammar of whole answers.
///
/// Inside a call the automaton's tags hold `tool_mode`, and from the tool's name on also the tool's
/// index. The parts of the text are marked, see call_marks.hpp.
struct CallGrammar {
  static constexpr std::uint32_t tool_mode = formats::mark::calls;
  Grammar grammar;
  /// The delimiters that open calls, where `text_schema` replaces free text.
  std::optional<std::vector<std::string>> openings{};
  std::vector<std::string> text_ends{};       ///< delimiters at the end of marked text
  std::vector<std::string> turn_ends{};       ///< the same, but text may go on after them
  std::vector<std::string> reasoning_ends{};  ///< delimiters at the end of marked reasoning
};

/// One way to open the calls of an answer.
struct CallOpening {
  std::string delimiter;       ///< opens the calls; free text does not hold it
  NodeId calls{};              ///< what follows the delimiter, up to the end of the answer
  bool only_at_start = false;  ///< opens calls only at the start of the answer
  std::vector<std::string> longer =
      {};  ///< the delimiter and what must follow it; without that it is text

  /// A delimiter that the format's parser reads as a call but the grammar does not allow; text does
  /// not hold it either.
  [[nodiscard]] static CallOpening barred(Grammar& grammar, std::string delimiter,
                                          bool only_at_start = false);
};

/// The texts of an answer, for formats that define their own.
struct AnswerTexts {
  NodeId silent{};  ///< a whole answer without calls
  NodeId before{};  ///< what may precede the first call
};

/// What a call format offers: the delimiters that open calls (the usual one is the trigger), a
/// grammar of the calls after each delimiter, `write` and `parse`.
///
/// Whatever the format's parser reads as a call must be a call in the grammar, or must not be in
/// it.
///
/// CallStream needs marked arguments. If they are a JSON object, the grammar marks them with
/// `formats::mark::arguments`. Otherwise it marks each one with `formats::mark::argument`, and the
/// format offers `read_argument(tool, given, before, text)`. It receives the number of earlier
/// arguments, the text between the last of them and this one, and this one's text; it returns key
/// and value as `std::pair<std::string, JsonValue>`.
///
/// Optional members: `barred()`, a pattern that other readers take for a call and free text does
/// not match; `ends_reasoning()`, delimiters that end a reasoning block; `never_in_text()`,
/// delimiters that neither free text nor reasoning holds; `frame()`, what may surround free text;
/// `texts(grammar)`, the format's own free text; `write(calls, tools)`; `shares_parts`, true if
/// Grammar::part makes equal nodes for tools with the same `parameters`, `documented` and `strict`.
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

/// True where F is a CallFormat. Otherwise a compile error names the first thing that F lacks.
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

/// The place that errors in `text_schema` begin with.
inline constexpr std::string_view text_schema_place = "text_schema";

/// The SchemaOptions of `text_schema`.
SchemaOptions text_schema_options(const ChoiceOptions& options);

/// What a format says about answers, for a format of any type.
struct AnswerParts {
  std::vector<CallOpening> openings;
  std::string barred{};
  std::vector<std::string> ends_reasoning{};
  std::vector<std::string> never_in_text{};
  std::optional<AnswerTexts> texts{};
  formats::TextFrame frame{};
};

}  // namespace detail

namespace formats {

/// How a tool's parameters are read: objects are closed, unless the tool is not strict.
[[nodiscard]] schema::DocumentRules parameter_rules(const Tool& tool);

/// The SchemaOptions that a format gives to SchemaCompiler: parameter_rules and how arguments are
/// written.
///
/// \param ends  texts that readers of the format take for the end of a call, see
///              SchemaOptions::excluded
[[nodiscard]] SchemaOptions parameter_options(const Tool& tool, const ChoiceOptions& options,
                                              text::ValueSyntax syntax = text::ValueSyntax::json,
                                              std::vector<std::string> ends = {});

/// A reader of calls: its errors are malformed_call, and of repeated keys the last value counts.
[[nodiscard]] text::ValueReader call_reader(
    std::string_view text,
    text::ValueReader::Language language = text::ValueReader::Language::json);
/// Reads the arguments of a call, which are an object, and the white space around them.
[[nodiscard]] JsonValue read_arguments(text::ValueReader& reader);
/// Skips white space, after which nothing may follow.
void expect_end(text::ValueReader& reader);

/// Type erasure for call formats; constraints hold one.
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

  [[nodiscard]] text::ValueReader::Language language() const { return held_->language; }
  /// What the format says about answers with these tools.
  [[nodiscard]] tooldecode::detail::AnswerParts parts(Grammar& grammar, const ToolSet& tools,
                                                      std::span<const std::size_t> chosen,
                                                      const ChoiceOptions& options) const {
    return held_->parts(grammar, tools, chosen, options);
  }
  [[nodiscard]] std::vector<std::string> ends_reasoning() const { return held_->ends_reasoning(); }
  /// A format of a FormatSet; of any other format, the format itself.
  [[nodiscard]] const AnyFormat& member(std::size_t index) const {
    const std::span<const AnyFormat> all = held_->members();
    return all.empty() ? *this : all[index];
  }
  [[nodiscard]] std::string write(std::span<const ToolCall> calls, const ToolSet& tools) const {
    return held_->write(calls, tools);
  }
  [[nodiscard]] std::vector<ToolCall> parse(std::string_view text, const ToolSet& tools) const {
    return held_->parse(text, tools);
  }
  /// The format, if it is an F; otherwise null.
  template <class F>
  [[nodiscard]] const F* find() const noexcept {
    return held_->type == &type_of<F> ? &static_cast<const Held<F>&>(*held_).format : nullptr;
  }
  /// True where tools with the same parameters have the same part of a grammar, see CallFormat.
  [[nodiscard]] bool shares_parts() const { return held_->shares_parts; }
  /// True where arguments are read one by one; otherwise they are one JSON object.
  [[nodiscard]] bool reads_arguments() const { return held_->reads_arguments; }
  /// \param given   how many arguments precede this one
  /// \param before  the text between the last of them and this one
  [[nodiscard]] Argument read_argument(const Tool& tool, std::size_t given, std::string_view before,
                                       std::string_view text) const {
    return held_->read_argument(tool, given, before, text);
  }

 private:
  template <class F>
  static constexpr bool has_arguments =
      requires(const F& f, const Tool& tool, std::string_view text) {
        { f.read_argument(tool, 0, text, text) } -> std::same_as<Argument>;
      };
  template <class F>
  static constexpr bool has_shared_parts = [] {
    if constexpr (requires { F::shares_parts; }) return F::shares_parts;
    return false;
  }();
  // Its address identifies a type, also without run-time type information.
  template <class F>
  static constexpr char type_of = 0;

  struct Interface {
    const void* type;
    text::ValueReader::Language language;
    bool reads_arguments;
    bool shares_parts;

    [[nodiscard]] virtual tooldecode::detail::AnswerParts parts(Grammar&, const ToolSet&,
                                                                std::span<const std::size_t>,
                                                                const ChoiceOptions&) const   = 0;
    [[nodiscard]] virtual std::vector<std::string> ends_reasoning() const                     = 0;
    [[nodiscard]] virtual std::span<const AnyFormat> members() const                          = 0;
    [[nodiscard]] virtual std::string write(std::span<const ToolCall>, const ToolSet&) const  = 0;
    [[nodiscard]] virtual std::vector<ToolCall> parse(std::string_view, const ToolSet&) const = 0;
    [[nodiscard]] virtual Argument read_argument(const Tool&, std::size_t, std::string_view,
                                                 std::string_view) const                      = 0;

   protected:
    Interface(const void* id, text::ValueReader::Language values, bool one_by_one, bool shared)
        : type(id), language(values), reads_arguments(one_by_one), shares_parts(shared) {}
    ~Interface() = default;  // shared_ptr deletes the type that it was made from
  };

  template <class F>
  struct Held final : Interface {
    explicit Held(F chosen)
        : Interface(&type_of<F>, F::language, has_arguments<F>, has_shared_parts<F>),
          format(std::move(chosen)) {}

    tooldecode::detail::AnswerParts parts(Grammar& grammar, const ToolSet& tools,
                                          std::span<const std::size_t> chosen,
                                          const ChoiceOptions& options) const override {
      if constexpr (requires { format.members(); }) {
        return format.parts(grammar, tools, chosen, options);
      }
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
    std::span<const AnyFormat> members() const override {
      if constexpr (requires { format.members(); }) return format.members();
      return {};
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
    Argument read_argument(const Tool& tool, std::size_t given, std::string_view before,
                           std::string_view text) const override {
      if constexpr (has_arguments<F>) {
        return format.read_argument(tool, given, before, text);
      } else {
        return {};
      }
    }

    F format;
  };

  std::shared_ptr<const Interface> held_;
};

}  // namespace formats

/// The grammar of a whole answer: free text, calls or both, as the tool choice says, after an
/// optional reasoning block.
///
/// Free text is any bytes without control tokens. After the last call the answer ends. Delimiters
/// are read as text and as control tokens, see `delimiter_spellings`. Names that `parse` could not
/// read back are refused. Errors in ChoiceOptions' `text_schema` have places that begin with that
/// name.
///
/// \param grammar_to_extend  the grammar to add to: empty, or with a source of parts
///
/// \par Complexity  O(size of the tools' schemas), or O(tools) where a source has their parts
/// \par Errors      as SchemaCompiler, with the JSON pointer into the tool documents;
///                  Error{unsupported_name} with the pointer, for names that the format cannot
///                  carry; Error{unknown_tool}, Error{invalid_option} for the choice
[[nodiscard]] CallGrammar build_call_grammar(const formats::AnyFormat& format, const ToolSet& tools,
                                             const ChoiceOptions& options = {},
                                             Grammar grammar_to_extend    = {});

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/formats/call_format.ipp>
#endif
