/// \file
/// StructuralTag: answers as a JSON document describes them, in the language of XGrammar.
#pragma once

#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/text/json_value.hpp>

namespace tooldecode {

namespace tools {

/// Adds the texts of a structural tag to a Grammar.
///
/// A document is `{"type": "structural_tag", "format": ...}`, or the older `{"structures": [{"begin",
/// "schema", "end"}], "triggers": [...]}`. Formats are `const_string`, `json_schema`,
/// `qwen_xml_parameter`, `regex`, `grammar`, `any_text`, `sequence`, `or`, `optional`, `plus`,
/// `star`, `repeat`, `tag`, `triggered_tags`, `tags_with_separator`, `dispatch`, and of tokens
/// `token`, `any_tokens`, `token_triggered_tags` and `token_dispatch`.
///
/// Texts are XGrammar's, but for these. JSON Schema says what values conform: objects are open
/// unless the schema closes them, `any_order` gives up the order of properties and nothing else,
/// and a key is written once. Expressions are those of ECMA-262, and match as a whole. Where a
/// vocabulary has a control token for a delimiter, either spelling will do; free text holds no
/// control token. White space is bounded, see StructuralTagOptions. In an element that names the
/// kind of its value the value is of that kind.
///
/// Refused are fields that are not known, `max_tokens`, `exclude_token`, `excludes` of values,
/// tokens that write text where a text is to be without them, a trigger inside another one, a
/// trigger that begins no tag, and a tag that no trigger begins.
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

}  // namespace tools

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/tools/structural_tag.ipp>
#endif
