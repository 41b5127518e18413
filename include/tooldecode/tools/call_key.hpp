/// \file
/// call_key: one cache key for all calls of a tool with the same meaning, documented defaults
/// included.
#pragma once

#include <string>
#include <string_view>

#include <tooldecode/text/json_value.hpp>
#include <tooldecode/tools/tool_call.hpp>

namespace tooldecode {

struct Tool;

/// Adds the `default` of each property that an object leaves out, also in nested objects whose
/// schema lists their properties.
///
/// Only `properties` is searched: `$ref`, `allOf` and the items of arrays are not followed. A
/// default is copied as it is, null included.
///
/// \par Complexity  O(size of the arguments + properties listed)
void fill_defaults(JsonValue& arguments, const JsonValue& schema);

/// The key for all calls of a tool, whatever their arguments. The keys of these calls begin with
/// it, and those of no other tool do.
///
/// \par Complexity  O(length)
[[nodiscard]] std::string any_arguments_key(std::string_view tool);

/// The part of a call's key that is its tool's any_arguments_key; empty where it is no call's key.
///
/// \par Complexity  O(length)
[[nodiscard]] std::string_view any_arguments_part(std::string_view key);

/// A key that is equal for equal calls: the tool's name, a line end, the canonical JSON of the
/// arguments.
///
/// `{"a": 1, "b": 2}`, `{"b": 2, "a": 1.0}` and a call that leaves out an argument with its
/// documented default have the same key.
///
/// \param tool  has the defaults; null where they are unknown
///
/// \par Complexity  as `canonical_json` and `fill_defaults`
/// \par Errors      as `canonical_json`
[[nodiscard]] std::string call_key(const ToolCall& call, const Tool* tool);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/tools/call_key.ipp>
#endif
