/// \file
/// LarkFile: a grammar in Lark's syntax as a tree, before names mean anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <tooldecode/text/occurrences.hpp>

namespace tooldecode::ebnf {

/// A part of a rule or a terminal.
struct LarkExpression {
  enum class Kind : std::uint8_t {
    sequence,      ///< the parts, one after the other; perhaps none
    choice,        ///< one of the parts
    intersection,  ///< what all the parts match
    negation,      ///< what the part does not match
    repeat,        ///< the part, so many times
    name,          ///< of a rule or a terminal
    string,        ///< this text; flag i: its letters in either case
    range,         ///< one character from the first of the text to the second
    regex,         ///< what a regular expression matches
    token,         ///< a token by name, or tokens by numbers in `<[`, `]>`
    json,          ///< a value of the schema that is the text
    substring,     ///< a `%regex` whose document is the text
    file,          ///< what the file of this number in `nested` describes
  };
  Kind kind = Kind::sequence;
  std::vector<LarkExpression> parts{};
  std::string text{};
  std::string flags{};
  text::Occurrences count{};  ///< repeat
  std::size_t file = 0;       ///< file
  std::size_t at   = 0;       ///< byte where it begins
};

/// A rule, or a terminal where the name is in capitals.
struct LarkRule {
  LarkExpression body{};
  bool is_lazy                       = false;  ///< matches as little as it can
  std::vector<LarkExpression> suffix = {};     ///< what a lazy rule ends with: none or one
  std::size_t at                     = 0;      ///< byte of its name
};

/// What stands in one grammar text, or in the braces of a `%lark`.
struct LarkFile {
  std::map<std::string, LarkRule, std::less<>> rules{};  ///< terminals too
  std::vector<LarkExpression> ignored{};
  std::vector<LarkFile> nested{};
  bool may_begin_ignored = false;  ///< what is ignored may stand before everything else
};

/// Whether a name is a terminal's: its first letter is a capital.
[[nodiscard]] bool is_lark_terminal(const std::string& name);

}  // namespace tooldecode::ebnf

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/ebnf/lark_syntax.ipp>
#endif
