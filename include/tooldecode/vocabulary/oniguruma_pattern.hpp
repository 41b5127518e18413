/// \file
/// Translates regular expressions of Oniguruma, as in tokenizer.json, to PCRE2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/text/text_cursor.hpp>

namespace tooldecode::vocabulary {

namespace detail {

/// Reads a pattern and writes what it matches as PCRE2's pattern.
class OnigurumaPattern : text::TextCursor<Errc::unknown_format, Errc::unknown_format> {
 public:
  explicit OnigurumaPattern(std::string_view pattern) : TextCursor(pattern) {}

  [[nodiscard]] std::string translate();

 private:
  // Characters of a class.
  struct CharacterSet {
    std::string items               = {};     // as PCRE2 writes them between brackets
    std::vector<std::string> others = {};     // patterns of one character each
    bool is_escape                  = false;  // `items` is one escape, which needs no brackets
  };
  // One character, or some of which any may stand.
  struct Characters {
    std::optional<std::uint32_t> one = {};
    CharacterSet set                 = {};
  };

  // What a part of the pattern permits.
  struct Part {
    bool can_repeat   = true;
    bool can_be_empty = false;
  };
  static constexpr Part place{false, true};  // such as the begin of a line

  char byte();

  Part read_alternatives(unsigned depth);
  Part read_atom(unsigned depth);
  Part read_group(unsigned depth);
  Part read_escaped_atom();
  // Reads the repeats of the part that is written from `begin` on.
  Part read_repeats(std::size_t begin, Part part);
  // `*`, `+`, `?`, an interval, or nothing.
  std::string read_repeat();
  std::string read_interval();
  std::string digits();

  CharacterSet read_class(unsigned depth);
  void read_class_part(CharacterSet& part, bool is_first, unsigned depth);
  Characters read_character(bool in_class);
  Characters read_escape(bool in_class);
  CharacterSet read_property(bool is_negated);
  std::uint32_t read_hexadecimal(std::size_t min, std::size_t max);

  void write_character(std::uint32_t c);
  static std::string escaped(std::uint32_t c);
  static std::string written(const CharacterSet& set);
  static std::string negated(const CharacterSet& set);

  std::string out_;
  bool ignores_case_      = false;
  std::uint32_t previous_ = 0;  // the character written last, 0 if there is none
};

}  // namespace detail

/// Translates a pattern in Oniguruma's syntax for Ruby.
///
/// Otherwise than in PCRE2, classes contain classes and intersections (`[a[^b]&&c]`), `{1,3}+`
/// repeats a repetition, `{2}?` may be absent, `^` and `$` match at every line, `\h` is a
/// hexadecimal digit, `\p{Han}` is a script without its extensions, and `\w` has more characters.
///
/// \par Complexity  O(size of the pattern) for a bounded depth
/// \par Errors      Error{unknown_format} with the byte of a part that is not translated: options
///                  other than `(?i)`, references, names, POSIX brackets, `\b` and other escapes
/// \par Source      kkos/oniguruma, doc/RE and doc/SYNTAX.md
[[nodiscard]] std::string translate_oniguruma(std::string_view pattern);

}  // namespace tooldecode::vocabulary

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/vocabulary/oniguruma_pattern.ipp>
#endif
