/// \file
/// call_key: one text for all calls of a tool that mean the same, documented defaults included.
#pragma once

#include <string>
#include <string_view>

#include <tooldecode/text/json_value.hpp>
#include <tooldecode/tools/tool_call.hpp>

namespace tooldecode {

struct Tool;

/// An object with every property that it leaves out, and for which its schema has a `default`, set
/// to that default; in the objects inside it too, where the schema lists their properties.
///
/// Properties are looked for under `properties` alone: what `$ref`, `allOf` or the items of an
/// array say is not followed. A default is taken as it stands, null included.
///
/// \par Complexity  O(size of the arguments + properties listed)
void fill_defaults(JsonValue& arguments, const JsonValue& schema);

/// The key that stands for the calls of a tool whatever their arguments: what the keys of all of
/// them begin with, and of no other tool's.
///
/// \par Complexity  O(length)
[[nodiscard]] std::string any_arguments_key(std::string_view tool);

/// Of a call's key, the key of its tool for any arguments; empty where it is no call's key.
///
/// \par Complexity  O(length)
[[nodiscard]] std::string_view any_arguments_part(std::string_view key);

/// A key under which equal calls are equal: the tool's name, a line end, the canonical JSON of the
/// arguments. `{"a": 1, "b": 2}`, `{"b": 2, "a": 1.0}` and a call that leaves out what the document
/// gives a default have one key.
///
/// \param tool  whose defaults are filled in; null: none are known
/// \par Complexity  as `canonical_json` and `fill_defaults`
/// \par Errors      as `canonical_json`
[[nodiscard]] std::string call_key(const ToolCall& call, const Tool* tool);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/tools/call_key.ipp>
#endif
