#pragma once

#include <tooldecode/ebnf/lark_syntax.hpp>

namespace tooldecode::ebnf {

TOOLDECODE_INLINE bool is_lark_terminal(const std::string& name) {
  const std::size_t letter = name.find_first_not_of('_');
  return letter != std::string::npos && name[letter] >= 'A' && name[letter] <= 'Z';
}

}  // namespace tooldecode::ebnf
