/// \file
/// ToolCall: the name of a tool and its arguments.
#pragma once

#include <string>

#include <tooldecode/text/json_value.hpp>

namespace tooldecode {

/// A tool call by meaning.
///
/// Equality compares meaning: the order of keys does not matter, 1 equals 1.0, true
/// does not equal 1. `arguments` keeps the order in which they were written.
///
/// \par Complexity  comparison and canonical text O(size of the arguments)
/// \par Errors      Error{malformed_call} from `canonical_text`, see canonical_json
struct ToolCall {
  std::string name;
  JsonValue arguments = JsonValue::object();

  /// `{"arguments":{...},"name":"..."}` in canonical_json's form; equal calls have equal texts.
  [[nodiscard]] std::string canonical_text() const;
  friend bool operator==(const ToolCall& a, const ToolCall& b) {
    return a.name == b.name && a.canonical_text() == b.canonical_text();
  }
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/tools/tool_call.ipp>
#endif
