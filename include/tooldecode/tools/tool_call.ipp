#pragma once

#include <tooldecode/tools/canonical_json.hpp>
#include <tooldecode/tools/tool_call.hpp>

namespace tooldecode {

TOOLDECODE_INLINE std::string ToolCall::canonical_text() const {
  return canonical_json(JsonValue{{"name", name}, {"arguments", arguments}});
}

}  // namespace tooldecode
