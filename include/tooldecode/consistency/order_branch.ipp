/// \file
/// Definitions of order_branch.hpp.
#pragma once

#include <algorithm>

#include <tooldecode/consistency/order_branch.hpp>

namespace tooldecode::consistency {

TOOLDECODE_INLINE std::size_t OrderBranch::read(std::string_view bytes,
                                                double token_log_probability) {
  std::vector<std::size_t> seen;
  std::size_t at = 0;
  while (at < bytes.size() && calls.find_tool(state)) {
    if (const auto argument = calls.find_argument(state)) {
      auto value = std::find_if(values.begin(), values.end(),
                                [&](const Value& v) { return v.argument == *argument; });
      if (value == values.end()) value = values.insert(value, Value{.argument = *argument});
      value->text += bytes[at];
      if (std::find(seen.begin(), seen.end(), *argument) == seen.end()) {
        seen.push_back(*argument);
        value->log_probability += token_log_probability;
        ++value->tokens;
      }
    }
    text += bytes[at];
    state = *calls.advance_bytes(state, bytes.substr(at++, 1));
  }
  return at;
}

}  // namespace tooldecode::consistency
