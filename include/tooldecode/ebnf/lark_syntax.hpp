/// \file
/// LarkFile: the syntax tree of a grammar in Lark's syntax, before names are resolved.
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
    sequence,  ///< the parts, one after another; may be empty
    choice,
    intersection,  ///< the texts that all parts match
    negation,      ///< the texts that the part does not match
    repeat,        ///< the part, `count` times
    name,
    string,  ///< this text; flag i: in either case
    range,   ///< one character, from the first to the second one of the text
    regex,
    token,      ///< a token by name, or tokens by numbers in `<[`, `]>`
    json,       ///< a value of the schema in the text
    substring,  ///< a `%regex` with the document in the text
    file,       ///< the file with this index in `nested`
  };
  Kind kind = Kind::sequence;
  std::vector<LarkExpression> parts{};
  std::string text{};
  std::string flags{};
  text::Occurrences count{};
  std::size_t file = 0;
  std::size_t at   = 0;  ///< byte offset of its beginning
};

/// A rule, or a terminal if its name is in capitals.
struct LarkRule {
  LarkExpression body{};
  bool is_lazy                       = false;  ///< matches as little as possible
  std::vector<LarkExpression> suffix = {};     ///< what ends a lazy rule: at most one
  std::size_t at                     = 0;      ///< byte offset of its name
};

/// The contents of a grammar text, or of the braces of a `%lark`.
struct LarkFile {
  std::map<std::string, LarkRule, std::less<>> rules{};  ///< and terminals
  std::vector<LarkExpression> ignored{};
  std::vector<LarkFile> nested{};
  bool may_begin_ignored = false;  ///< ignored text may stand before everything else
};

/// Whether a name is a terminal's: its first letter is a capital.
[[nodiscard]] bool is_lark_terminal(const std::string& name);

}  // namespace tooldecode::ebnf

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/ebnf/lark_syntax.ipp>
#endif
