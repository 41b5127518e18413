/// \file
/// explain_refusal: where a text stops conforming, what was expected there, and which keywords of
/// which schema forbid it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/text/json_value.hpp>

namespace tooldecode {

/// The first place of a text that a constraint refuses, and why.
struct RefusedText {
  /// A keyword, or a subschema where no single keyword decides.
  struct Rule {
    std::string pointer;  ///< "#/properties/days/maximum", as in the errors of the document
    std::string value;    ///< as JSON, cut after 60 bytes
  };

  std::size_t at     = 0;      ///< byte offset; the text's length if only its end is missing
  bool too_short     = false;  ///< all bytes are allowed, but the text cannot end here
  std::size_t line   = 1;      ///< from 1
  std::size_t column = 1;      ///< in characters, from 1
  std::string excerpt{};       ///< the line, or a part of it around the place
  std::size_t caret = 0;       ///< terminal columns of the excerpt before the place
  std::string reason{};        ///< `"0" cannot follow`
  std::string expected{};      ///< in the words of `explain`
  std::string value_at{};      ///< JSON pointer of the value, in the text or the arguments
  std::vector<Rule> rules{};

  /// Several lines: place and reason, the excerpt with a caret below the place, what was expected,
  /// and a line for each rule.
  [[nodiscard]] std::string text() const;
  /// The fields as an object, for programs.
  [[nodiscard]] JsonValue json() const;
};

/// Explains why a text is refused; nullopt if it conforms. `rules` is empty.
///
/// \par Complexity  O(bytes of the text); see also `explain`
/// \par Threads     may run concurrently
[[nodiscard]] std::optional<RefusedText> explain_refusal(const Constraint& constraint,
                                                         std::string_view text);

/// The same for the constraint of a JSON Schema, with the keywords that forbid the place.
///
/// The rules are a smallest set: a schema that has them alone refuses the same byte, and with any one
/// of them removed it lets the text go on, or end. They are found by building the schema again with
/// less and less in it. Of `anyOf` and `oneOf`, only the branches that the text conforms to before
/// the place are named. If a place is forbidden whatever the schema says (a missing comma), the rule
/// is the subschema of the value being written. A search that costs more than `options.limits` ends
/// with the keywords that are known by then, or with that subschema.
///
/// \param schema   what the constraint was made from, or its text
/// \param options  those it was made with
///
/// \par Complexity  O(rules x log of the schema's keywords) builds, bounded by `options.limits`
/// \par Threads     may run concurrently
/// \par Errors      Error{malformed_json} for a schema's text that is not JSON
[[nodiscard]] std::optional<RefusedText> explain_refusal(const Constraint& constraint,
                                                         std::string_view text,
                                                         const JsonValue& schema,
                                                         const SchemaOptions& options = {});

/// The same for answers with calls: the pointers lead into the tools' documents, or begin with
/// "text_schema". If no keyword decides, the rule is the schema of the argument or of all arguments.
[[nodiscard]] std::optional<RefusedText> explain_refusal(const ToolCallFSM& calls,
                                                         std::string_view text);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/constraint/explain_refusal.ipp>
#endif
