/// \file
/// Answers described by a structural tag, XGrammar's JSON document.
#pragma once

#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/text/json_value.hpp>

namespace tooldecode {

namespace formats {

/// Adds the texts of a structural tag to a Grammar.
///
/// A document is `{"type": "structural_tag", "format": ...}`, or the older `{"structures":
/// [{"begin", "schema", "end"}], "triggers": [...]}`. Formats are `const_string`, `json_schema`,
/// `qwen_xml_parameter`, `regex`, `grammar`, `any_text`, `sequence`, `or`, `optional`, `plus`,
/// `star`, `repeat`, `tag`, `triggered_tags`, `tags_with_separator`, `dispatch`, and for tokens
/// `token`, `any_tokens`, `token_triggered_tags` and `token_dispatch`.
///
/// The texts are XGrammar's, with these differences. Values conform to JSON Schema: objects are
/// open unless the schema closes them, `any_order` frees only the order of properties, and each key
/// occurs once. Expressions are ECMA-262 and match as a whole. A delimiter that the vocabulary has
/// as a control token may be written as token or text; free text holds no control token. White
/// space is bounded, see StructuralTagOptions. In an element that names the kind of its value, the
/// value has that kind.
///
/// These are refused: unknown fields, `max_tokens`, `exclude_token`, `excludes` of values, excluded
/// tokens that write text, a trigger inside another one, a trigger that begins no tag, and a tag
/// that no trigger begins.
///
/// \par Complexity  O(size of the document), schemas as SchemaCompiler, expressions as
///                  compile_pattern, grammars as parse_grammar, triggers as turning_text
/// \par Threads     one at a time per Grammar
/// \par Errors      Error{malformed_document, unknown_format, unknown_token, unsupported_keyword,
///                  unsupported_name, limit_exceeded} and those of schemas, expressions and
///                  grammars, with the JSON pointer; Error{unsatisfiable_schema}
/// \par Source      XGrammar 0.2, structural_tag.py
[[nodiscard]] NodeId build_structural_tag(Grammar& grammar, const JsonValue& document,
                                          const StructuralTagOptions& options = {});

}  // namespace formats

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/formats/structural_tag.ipp>
#endif
