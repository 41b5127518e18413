/// \file
/// SchemaCompiler: JSON Schema to grammar: the values that conform, as JSON or Python writes them.
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

/// How values are written, and how schemas are read.
struct SchemaOptions {
  text::ValueSyntax syntax = text::ValueSyntax::json;
  bool documented_order    = false;  ///< properties in the order of the schema only
  std::uint32_t whitespace = 40;     ///< most bytes of optional whitespace; 0: ", " and ": " only
  std::vector<std::string> leading_keys{};  ///< of the root object: required, first, in this order
  /// For judging texts rather than for writing them, also what no writer has and a model would be
  /// led astray by: named keys with every escape, of letters too (`\u0061`), and integers whose
  /// exponent makes up for digits behind a point (`3.5e1`).
  bool every_spelling = false;
  /// Bytes that no string holds as they are written, since a reader around the values takes them
  /// for an end; the first of them is ASCII and is written as an escape instead. JSON alone. Strings
  /// of a pattern that takes over 4,000 states are left as they are.
  std::vector<std::string> excluded{};
  schema::DocumentRules rules{};
  text::NumberLimits numbers{};  ///< how many digits numbers have, and which exponents
  BuildLimits limits{};          ///< what building it may cost, unless an outer budget is charged
};

/// The mark, `argument_tag + i`, on the value of the root object's i-th property.
inline constexpr std::uint32_t argument_tag = 0x8000'0000;

/// Adds the values of schemas to a Grammar.
///
/// Every keyword of drafts 4, 6, 7, 2019-09 and 2020-12 is enforced or refused by name. Refused are
/// combinations without a grammar: `uniqueItems` where the items cannot be listed, a `not` that
/// asks for a further property with a value of its own or for a number that is no multiple,
/// `unevaluatedItems` beside `contains`, references that leave the document (see DocumentRules),
/// and patterns and formats that are not regular. What is accepted conforms; what conforms is
/// accepted but for these readings: numbers are as long as NumberLimits says, and finite as
/// doubles; enum texts and texts of a pattern or format are written as Python's json.dumps and
/// JavaScript's JSON.stringify write them: plainly, or by number where a character is DEL, past
/// ASCII or must be escaped. Keys, and texts with no more than a length, have every spelling of the
/// syntax (in Python but octal and named escapes), and a key is that of its text however it is
/// spelt; only letters and others that no writer escapes are plain in keys that the schema names,
/// unless SchemaOptions::every_spelling says otherwise.
///
/// A key that the schema does not name may be repeated: each of its values conforms, so that it
/// does not matter which of them a reader takes. Each counts for maxProperties; for minProperties a
/// key counts once: as long as more keys are needed than those that are required, none is repeated.
///
/// Patterns are those of ECMA-262 in Unicode mode, and no other dialect's, see compile_pattern;
/// formats are those of their RFCs, see string_format.
///
/// Numbers are their values, however they are written: 1e3 and 3.0 are integers, save in draft 4,
/// whose integers have neither a point nor an exponent; 3.5e1 is one by
/// SchemaOptions::every_spelling only. Numbers of the schema are exact where its text was read by
/// `parse_exact_json`, as Grammar::json_schema and ToolSet::parse do. Of a double, in a
/// value that others have read, nothing is known but itself: it means the shortest decimal that
/// reads as it.
///
/// What building may cost is counted, see BuildLimits: a document of up to a megabyte is built
/// within about a second and 256 MB, or refused with the pointer of the schema that was at work.
/// SchemaOptions::limits raises that.
///
/// \par Complexity  O(alternatives of the normal form), each once; patterns see compile_pattern
/// \par Threads     one at a time per Grammar
/// \par Errors      Error{malformed_schema, unsupported_keyword, unsatisfiable_schema,
///                  malformed_pattern, unsupported_pattern, limit_exceeded} with the JSON pointer
/// \par Source      JSON Schema drafts 4 to 2020-12; RFC 8259
class SchemaCompiler {
 public:
  using Json = JsonValue;

  /// \param root  the document that references point into; it outlives the compiler
  SchemaCompiler(Grammar& grammar, const Json& root, SchemaOptions options = {});
  SchemaCompiler(Grammar& grammar, Json&& root, SchemaOptions options = {}) = delete;
  SchemaCompiler(const SchemaCompiler&)                                     = delete;
  SchemaCompiler& operator=(const SchemaCompiler&)                          = delete;
  ~SchemaCompiler();

  /// Any value that conforms; `pointer` is where the schema stands in the root document.
  [[nodiscard]] NodeId value(const Json& schema, const std::string& pointer);

  /// The properties of an object schema as a call's keyword arguments: `a=1, b='x'`.
  ///
  /// \param mark  of each value, around that of an argument
  [[nodiscard]] NodeId keyword_arguments(const Json& schema, const std::string& pointer,
                                         std::optional<std::uint32_t> mark = {});

  /// What a relaxed reading has left out, see DocumentRules.
  [[nodiscard]] const std::vector<schema::Relaxation>& relaxations() const noexcept;

  /// Optional whitespace, as this compiler writes it between values.
  [[nodiscard]] NodeId whitespace() const noexcept;
  /// A comma between values, and a colon after a key.
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
