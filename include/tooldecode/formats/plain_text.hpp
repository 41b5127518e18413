/// \file
/// Strings without quotes and escapes: which schemas have them, and their texts up to a closing
/// delimiter.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tooldecode/formats/delimiter.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/schema/alternatives.hpp>
#include <tooldecode/schema/form.hpp>
#include <tooldecode/schema/grammar_builder.hpp>
#include <tooldecode/schema/reader.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/regex.hpp>
#include <tooldecode/text/text_dfa.hpp>

namespace tooldecode::formats {

/// How the values of a schema are written in formats with unquoted strings.
enum class PlainForm : std::uint8_t {
  json,      ///< JSON without strings
  mixed,     ///< JSON with strings, which have quotes
  text,      ///< unquoted strings
  nullable,  ///< unquoted strings, or `null`, which is never a string
};

/// How the values of a form are written.
[[nodiscard]] PlainForm plain_form(const schema::Form& form);

/// How the values of a schema in a document are written; empty where Reader refuses it.
[[nodiscard]] std::optional<PlainForm> find_plain_form(const JsonValue& schema,
                                                       const JsonValue& root);

/// Adds unquoted strings to a Grammar: UTF-8 text that does not hold the delimiter after it.
///
/// \par Complexity  O(size of the form x bytes of the delimiter)
/// \par Threads     one at a time per Grammar
/// \par Errors      those of Reader's texts; Error{unsupported_keyword} for a listed text that
///                  holds the delimiter; Error{unsatisfiable_schema}
class PlainText {
 public:
  /// \param delimiter  UTF-8, not empty
  /// \param excluded   more texts that no string holds; listed strings that hold one are left out
  PlainText(Grammar& grammar, std::string delimiter, std::vector<std::string> excluded = {});

  /// The values of a `text` or `nullable` form; `pointer` is the place of its schema.
  [[nodiscard]] NodeId value(schema::Reader& reader, schema::FormId id, const std::string& pointer);
  /// The same, but nothing where the form has no value in any notation.
  ///
  /// \param json  a builder for the same grammar and reader
  [[nodiscard]] NodeId value_or_nothing(schema::Reader& reader, schema::FormId id,
                                        const std::string& pointer, schema::GrammarBuilder& json);

 private:
  static std::string pattern_of(const std::string& delimiter,
                                const std::vector<std::string>& excluded);
  NodeId string(schema::StringSets& texts, const schema::StringForm& form);
  static text::DfaPointer utf8(const text::TextDfa& text);

  Grammar& grammar_;
  std::string delimiter_;
  std::vector<std::string> excluded_;
  text::TextDfa with_delimiter_;
  text::DfaPointer any_;
};

}  // namespace tooldecode::formats

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/formats/plain_text.ipp>
#endif
