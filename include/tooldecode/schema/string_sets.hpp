/// \file
/// StringSets: the sets of texts of a schema's patterns and formats, and their products.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/regex.hpp>
#include <tooldecode/text/string_format.hpp>
#include <tooldecode/text/text_dfa.hpp>

namespace tooldecode::schema {

/// A text is in a set, or is not if negated.
struct StringTest {
  std::uint32_t set                                             = 0;
  bool negated                                                  = false;
  friend auto operator<=>(const StringTest&, const StringTest&) = default;
};
/// Tests that must all hold, ascending.
using StringTests = std::vector<StringTest>;

/// The tests of both lists.
[[nodiscard]] StringTests united(const StringTests& a, const StringTests& b);

/// The sets of texts that tests refer to; each automaton is built on first use.
///
/// Of some formats an automaton has only a part of the texts, see text::is_partial_format. Such a
/// part may be written, but nothing may be concluded from a text that is not in it: tests of other
/// texts are refused.
///
/// \par Complexity  as compile_pattern, once per pattern; products once per list of tests
/// \par Threads     one at a time
/// \par Errors      Error{malformed_pattern, unsupported_pattern, limit_exceeded} with the place of
///                  the pattern's first use; Error{unsupported_keyword} with that of a format
class StringSets {
 public:
  using TextsPointer = std::shared_ptr<const text::TextDfa>;

  /// The set of texts in which a pattern matches.
  [[nodiscard]] std::uint32_t pattern(const std::string& text, const std::string& pointer);
  /// \param part_of  tests of which the texts are a part, if they are
  [[nodiscard]] std::uint32_t add(TextsPointer texts, const StringTests& part_of = {});
  /// The set of a format's texts; nullopt for a format that the standard does not define.
  [[nodiscard]] std::optional<std::uint32_t> format(const std::string& name,
                                                    const std::string& pointer);
  /// The format, if that is all the tests demand; else null.
  [[nodiscard]] const std::string* find_format(const StringTests& tests) const;

  [[nodiscard]] bool holds(const StringTests& tests, const std::string& text);
  [[nodiscard]] const text::TextDfa& texts(const StringTests& tests);
  /// Whether no text passes; false if unknown.
  [[nodiscard]] bool excludes_all(const StringTests& tests);
  /// Whether the automaton for the tests may lack texts that pass.
  [[nodiscard]] bool has_partial(const StringTests& tests) const;

  [[nodiscard]] static text::TextDfa without(const text::TextDfa& a, const text::TextDfa& b);

 private:
  struct Set {
    std::string text;
    std::string pointer;
    TextsPointer texts;
    bool is_partial = false;
  };

  const text::TextDfa& set(std::uint32_t id);
  [[noreturn]] void refuse_partial(std::uint32_t id) const;

  std::vector<Set> sets_;
  std::map<std::string, std::uint32_t> patterns_, formats_;
  std::map<StringTests, TextsPointer> products_;
};

}  // namespace tooldecode::schema

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/schema/string_sets.ipp>
#endif
