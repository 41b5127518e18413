/// \file
/// StringSets: the sets of texts that a schema's patterns and formats name, and their products.
#pragma once

#include <compare>
#include <cstddef>
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

/// That a text is in a set, or is not.
struct StringTest {
  std::uint32_t set                                             = 0;
  bool negated                                                  = false;
  friend auto operator<=>(const StringTest&, const StringTest&) = default;
};
/// Tests that must all hold, ascending.
using StringTests = std::vector<StringTest>;

/// Both lists of tests.
[[nodiscard]] StringTests united(const StringTests& a, const StringTests& b);

/// The sets of texts that tests speak of; an automaton is made when a test first needs it.
///
/// \par Complexity  as compile_pattern, once per pattern; products are made once per list of tests
/// \par Threads     one at a time
/// \par Errors      Error{malformed_pattern, unsupported_pattern, limit_exceeded} at the place
///                  where the pattern was first named
class StringSets {
 public:
  using TextsPointer = std::shared_ptr<const text::TextDfa>;

  /// The texts in which a pattern matches.
  [[nodiscard]] std::uint32_t pattern(const std::string& text, const std::string& pointer);
  /// The texts of an automaton.
  [[nodiscard]] std::uint32_t add(TextsPointer texts);
  /// The texts of a format; nothing for one that the standard does not know.
  [[nodiscard]] std::optional<std::uint32_t> format(const std::string& name,
                                                    const std::string& pointer);
  /// The format that tests ask for, and nothing else; null where it is not one.
  [[nodiscard]] const std::string* find_format(const StringTests& tests) const;

  [[nodiscard]] bool holds(const StringTests& tests, const std::string& text);
  /// The texts for which all tests hold.
  [[nodiscard]] const text::TextDfa& texts(const StringTests& tests);
  /// Whether no text passes the tests.
  [[nodiscard]] bool excludes_all(const StringTests& tests);

  /// The texts of the first that are not the second's.
  [[nodiscard]] static text::TextDfa without(const text::TextDfa& a, const text::TextDfa& b);

 private:
  struct Set {
    std::string text;
    std::string pointer;
    TextsPointer texts;
  };

  const text::TextDfa& set(std::uint32_t id);

  std::vector<Set> sets_;
  std::map<std::string, std::uint32_t> patterns_, formats_;
  std::map<StringTests, TextsPointer> products_;
};

}  // namespace tooldecode::schema

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/schema/string_sets.ipp>
#endif
