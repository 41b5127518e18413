/// \file
/// What the text of an answer may be: members of requests as OpenAI's, vLLM's, SGLang's and
/// llama.cpp's clients send them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/call_format.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

#include <program/fields.hpp>
#include <program/json.hpp>
#include <program/response_format.hpp>

namespace program {

/// A grammar of the text of an answer, not built yet.
struct TextGrammar {
  enum class Kind : std::uint8_t {
    regex,           ///< a pattern of ECMA-262 that matches the whole text
    choice,          ///< one of several texts
    ebnf,            ///< llama.cpp's GBNF or XGrammar's EBNF
    lark,            ///< llguidance's Lark
    structural_tag,  ///< XGrammar's document
    schema,          ///< values of a JSON Schema, where no message or call is around the text
    any,             ///< any text without control tokens; what looks like a call is text
  };
  Kind kind;
  /// A text; for `choice` a list; for `structural_tag` and `schema` a document; for `any` null.
  Json value;
  std::string place;  ///< the member of the request that has it: `structured_outputs.regex`

  /// Different for different grammars.
  [[nodiscard]] std::string key() const;
};

/// What the text of an answer may be; neither: any text.
struct TextRules {
  std::optional<TextSchema> schema;
  std::optional<TextGrammar> grammar;
  std::vector<std::string> ignored{};  ///< members beside them without effect here

  [[nodiscard]] bool any() const noexcept { return !schema && !grammar; }  ///< any text
  /// Whether a part of a text is useless.
  [[nodiscard]] bool must_end() const noexcept {
    return schema || (grammar && grammar->kind != TextGrammar::Kind::any);
  }
  [[nodiscard]] const std::string& place() const { return schema ? schema->place : grammar->place; }
};

/// Reads `response_format`, `structured_outputs`, `guided_json`, `guided_regex`, `guided_choice`,
/// `guided_grammar`, `structural_tag`, `grammar`, `json_schema`, `regex` and `ebnf`; ApiError for
/// the first mistake, and for the second rule.
TextRules read_text_rules(const Fields& request);

/// A call format whose answers are the texts of a grammar, without calls.
class GrammarText {
 public:
  static constexpr auto language = tooldecode::text::ValueReader::Language::json;

  /// \param vocabulary  of the tokens that a grammar may name
  /// \param whitespace  see ChoiceOptions
  GrammarText(TextGrammar grammar, tooldecode::Vocabulary vocabulary, std::uint32_t whitespace);

  [[nodiscard]] std::string trigger() const { return ""; }
  [[nodiscard]] bool only_at_start() const { return true; }
  [[nodiscard]] std::vector<tooldecode::CallOpening> openings(
      tooldecode::Grammar&, const tooldecode::ToolSet&, std::span<const std::size_t>,
      const tooldecode::ChoiceOptions&) const {
    return {};
  }
  [[nodiscard]] tooldecode::AnswerTexts texts(tooldecode::Grammar& grammar) const;
  [[nodiscard]] std::string write(std::span<const tooldecode::ToolCall> calls) const;
  [[nodiscard]] std::vector<tooldecode::ToolCall> parse(std::string_view,
                                                        const tooldecode::ToolSet&) const {
    return {};
  }

 private:
  [[nodiscard]] tooldecode::Grammar build() const;

  TextGrammar grammar_;
  tooldecode::Vocabulary vocabulary_;
  std::uint32_t whitespace_;
};

}  // namespace program
