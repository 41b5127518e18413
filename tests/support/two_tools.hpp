/// \file
/// two_tools: a tool with arguments, and one whose name begins with the first one's.
#pragma once

#include <tooldecode/tools/tool_set.hpp>

namespace tooldecode::test {

inline const ToolSet& two_tools() {
  static const ToolSet set = ToolSet::parse(R"([
    {"name": "get", "parameters": {"type": "object", "properties": {
      "city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"]}},
    {"name": "get_time", "parameters": {"type": "object", "properties": {}}}])");
  return set;
}

}  // namespace tooldecode::test
