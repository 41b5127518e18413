/// \file
/// SchemaCompiler: compiles JSON Schema to a grammar of the conforming values, as JSON or Python
/// text.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/schema/document_rules.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/number_limits.hpp>
#include <tooldecode/text/value_syntax.hpp>

namespace tooldecode {

/// How schemas are read and values are written.
struct SchemaOptions {
  text::ValueSyntax syntax = text::ValueSyntax::json;
  bool documented_order    = false;  ///< properties only in the order of the schema
  std::uint32_t whitespace = 40;     ///< most bytes of optional whitespace; 0: only ", " and ": "
  std::vector<std::string> leading_keys{};  ///< keys of the root object: required, first, in this
                                            ///< order
  /// Set this to check texts rather than to generate them: also allows spellings that no writer
  /// uses and that would lead a model astray: any escape in named keys, even of letters (`\u0061`),
  /// and integers whose exponent makes up for digits after the point (`3.5e1`).
  bool every_spelling = false;
  /// Bytes that no string may contain literally, because a reader around the values takes them for
  /// the end. The first byte of each must be ASCII and is written as an escape instead. JSON only.
  /// Strings of a pattern whose automaton has over 4,000 states stay as they are.
  std::vector<std::string> excluded{};
  schema::DocumentRules rules{};
  text::NumberLimits numbers{};  ///< how many digits numbers have, and which exponents
  BuildLimits limits{};          ///< limits of the build, unless an outer budget is charged
};

/// Base of the marks on argument values: `argument_tag + i` marks the value of the root object's
/// i-th property.
inline constexpr std::uint32_t argument_tag = 0x8000'0000;

/// Adds the values of schemas to a Grammar.
///
/// Every keyword of drafts 4, 6, 7, 2019-09 and 2020-12 is either enforced or refused by name.
/// These have no grammar and are refused: `uniqueItems` if the items cannot be listed and are not
/// all strings, a `not` that demands a further property with its own value or a number that is no
/// multiple, references that leave the document (see DocumentRules), and patterns and formats that
/// are not regular.
///
/// Every text of the grammar conforms, and every conforming value is in the grammar, with these
/// limits on spelling. Numbers have the length of NumberLimits and are finite as doubles. Enum
/// texts and texts of a pattern or format are written as Python's json.dumps and JavaScript's
/// JSON.stringify write them: plainly, or as a `\uXXXX` escape if the character is DEL, beyond
/// ASCII or must be escaped. Keys, and texts with at most a length, have every spelling of the
/// syntax (in Python except octal and named escapes); a key is identified by its text, not its
/// spelling. In keys that the schema names, letters and other characters that no writer escapes are
/// plain, unless SchemaOptions::every_spelling is set.
///
/// A key that the schema does not name may repeat: each of its values conforms, so it does not
/// matter which one a reader takes. Each counts for maxProperties. For minProperties a key counts
/// once: while more keys are needed than the required ones, none repeats.
///
/// Patterns are ECMA-262 patterns in Unicode mode, no other dialect, see compile_pattern; formats
/// are those of their RFCs, see string_format.
///
/// A number is its value, however it is written: 1e3 and 3.0 are integers, except in draft 4, whose
/// integers have neither a point nor an exponent; 3.5e1 is an integer only with
/// SchemaOptions::every_spelling. Numbers of the schema are exact if its text was read by
/// `parse_exact_json`, as Grammar::json_schema and ToolSet::parse do. If you pass a JsonValue that
/// another reader made, a double means the shortest decimal that reads as it.
///
/// The cost of a build is counted, see BuildLimits: a document of up to a megabyte is built within
/// about a second and 256 MB, or refused with the pointer of the current schema.
/// SchemaOptions::limits raises these limits.
///
/// \par Complexity  O(alternatives of the normal form), each once; patterns see compile_pattern
/// \par Threads     one at a time per Grammar
/// \par Errors      Error{malformed_schema, unsupported_keyword, unsatisfiable_schema,
///                  malformed_pattern, unsupported_pattern, limit_exceeded} with the JSON pointer
/// \par Source      JSON Schema drafts 4 to 2020-12; RFC 8259
class SchemaCompiler {
 public:
  using Json = JsonValue;

  /// \param root  the document for references; must outlive the compiler
  SchemaCompiler(Grammar& grammar, const Json& root, SchemaOptions options = {});
  SchemaCompiler(Grammar& grammar, Json&& root, SchemaOptions options = {}) = delete;
  SchemaCompiler(const SchemaCompiler&)                                     = delete;
  SchemaCompiler& operator=(const SchemaCompiler&)                          = delete;
  ~SchemaCompiler();

  /// Any conforming value; `pointer` is the schema's place in the root document.
  [[nodiscard]] NodeId value(const Json& schema, const std::string& pointer);

  /// The properties of an object schema as keyword arguments of a call: `a=1, b='x'`.
  ///
  /// \param mark  mark on each value, around the argument's mark
  [[nodiscard]] NodeId keyword_arguments(const Json& schema, const std::string& pointer,
                                         std::optional<std::uint32_t> mark = {});

  [[nodiscard]] NodeId whitespace() const noexcept;
  [[nodiscard]] NodeId comma() const noexcept;
  [[nodiscard]] NodeId colon() const noexcept;

 private:
  class Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/schema/json_schema.ipp>
#endif
