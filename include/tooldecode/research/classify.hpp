/// \file
/// classify: finds what is wrong with a model's tool calls: one of five error classes, and where.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/text/json_pointer.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/tools/document_readings.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>

namespace tooldecode {

/// Error classes of an output, from the coarsest to the finest; the first that applies counts.
enum class ErrorClass : std::uint8_t {
  correct,
  awareness,  ///< a call where none was expected, or no call where one was
  selection,  ///< other tools were called, or the right ones a different number of times
  format,     ///< no call can be read: the text is not in the call format
  key,        ///< an argument that the tool lacks, a missing required one, or a duplicate
  value,      ///< a different value, or an optional argument left out or added
};

/// The class's name in tables and in machine-readable output.
[[nodiscard]] constexpr std::string_view name(ErrorClass error) noexcept {
  constexpr std::string_view names[]{"correct", "awareness", "selection", "format", "key", "value"};
  return names[static_cast<std::size_t>(error)];
}

/// How an argument is compared with the expected one.
enum class Matching : std::uint8_t {
  value,  ///< by value: 1 equals 1.0, the order of an object's keys does not count
  bfcl,   ///< as in the AST check of the Berkeley Function-Calling Leaderboard
};

/// An argument that a call should have. Under Matching::bfcl `allowed` follows the leaderboard's
/// lists: "" for an argument that may be left out, lists of allowed values for the members of an
/// object.
struct ExpectedArgument {
  std::string key;
  std::vector<JsonValue> allowed;
  bool optional = false;
};

/// A call that an output should make.
///
/// \par Complexity  linear in the call or the entry
/// \par Errors      Error{malformed_document} from `from_bfcl` for an entry of another form
struct ExpectedCall {
  using Json = JsonValue;

  std::string name;
  std::vector<ExpectedArgument> arguments{};
  Matching matching = Matching::value;

  [[nodiscard]] static ExpectedCall exactly(const ToolCall& call);
  /// An entry of the leaderboard's answers: `{"f": {"a": [1, 2], "b": ["x", ""]}}`. If it lists no
  /// value, the expected value is the empty list.
  [[nodiscard]] static ExpectedCall from_bfcl(const Json& entry);
};

/// The class of an output, and the first place where it differs from the expected calls.
struct Verdict {
  ErrorClass error = ErrorClass::correct;
  std::size_t call = 0;      ///< index among the output's calls; for `key` and `value` errors
  std::string key{};         ///< the argument; for `key` and `value` errors
  std::string pointer{};     ///< JSON pointer inside the argument's value; empty: the whole value
  std::string difference{};  ///< one sentence: the expected and the actual value
};

namespace detail {

template <class F>
std::optional<std::string> find_list_difference(const JsonValue& given, const JsonValue& expected,
                                                F item_difference) {
  const std::size_t shared = std::min(given.size(), expected.size());
  for (std::size_t i = 0; i < shared; ++i) {
    if (const auto at = item_difference(given[i], expected[i])) {
      return text::extend_pointer("", std::to_string(i)) + *at;
    }
  }
  if (given.size() == expected.size()) return std::nullopt;
  return text::extend_pointer("", std::to_string(shared));
}

std::optional<std::string> find_difference(const JsonValue& given, const JsonValue& expected);

// Nothing if one of the values is equal; else the first difference that is inside a value.
template <class F>
std::optional<std::string> nearest(const std::vector<JsonValue>& allowed, F difference_from) {
  std::optional<std::string> first;
  for (const auto& value : allowed) {
    std::optional<std::string> place = difference_from(value);
    if (!place) return place;
    if (!first || first->empty()) first = std::move(place);
  }
  return first ? first : "";
}

// The leaderboard's comparison of one argument with its allowed values.
class BfclArgument {
  using Json           = JsonValue;
  using DifferencePath = std::optional<std::string>;  // of a difference; empty if equal

 public:
  /// \param schema  the argument's schema in its document; null if there is none
  BfclArgument(const std::vector<Json>& allowed, const Json& schema);

  [[nodiscard]] DifferencePath difference(const Json& given) const;

 private:
  enum class Kind : std::uint8_t { null, boolean, integer, number, text, list, object };

  static Kind kind(const Json& value);
  static std::optional<Kind> declared(const Json& schema);

  // An item has the document's type for items, or the type of the items of an allowed list.
  [[nodiscard]] bool items_conform(const Json& given) const;

  // Maps spelling variants of a text to one form.
  static std::string standard(std::string_view text);
  static bool loosely_equal(const Json& given, const Json& value);
  [[nodiscard]] DifferencePath list_difference(const Json& given, const Json& value) const;
  static DifferencePath object_difference(const Json& given, const Json& value);

  const std::vector<Json>& allowed_;
  std::optional<Kind> listed_, declared_, items_;
};

// A parameter's schema as the document spells it; null if the tool does not document it.
JsonValue documented(const Tool* tool, const std::string& key);

std::string shown(const JsonValue& value);

Verdict compare(const ExpectedCall& expected, const ToolCall& call, const Tool* tool);

// Gives call i an expected call that it fits, if others can make room: an augmenting path.
bool find_partner(std::size_t i, const std::vector<std::vector<bool>>& fits,
                  std::vector<std::size_t>& taken_by, std::vector<bool>& tried);

}  // namespace detail

/// The class of an output's calls, and the first difference.
///
/// Calls are matched with expected ones in any order, such that as many as possible are correct;
/// the others are compared in order. If calls have different errors, the coarser class counts.
///
/// Matching::bfcl follows the leaderboard's check of Python calls. Texts are equal up to spaces,
/// the characters `,./-_*^`, the case of ASCII letters, and `'` for `"`. An integer matches a
/// number, but not the reverse. Lists and objects are compared item by item, and each member of an
/// object with its allowed values. An answer of another type than the document's is a variable's
/// name and is taken literally. Two things differ from the leaderboard: true never equals 1, and an
/// argument that the answers have but the document lacks is known.
///
/// \param calls  empty if the text is not in the call format
/// \par Complexity  O(n^2 size of a call + n^3) for n expected calls
/// \par Source      Patil et al., BFCL, ast_checker.py (github.com/ShishirPatil/gorilla)
[[nodiscard]] Verdict classify(std::span<const ExpectedCall> expected,
                               const std::optional<std::vector<ToolCall>>& calls,
                               const ToolSet& tools);

namespace detail {

// The key for which PythonCall refused a text; the text after it is not read.
std::optional<std::string> find_repeated_key(std::string_view refusal);

}  // namespace detail

/// The class of an output's text in a call format.
///
/// \param format  PythonCall{}, JsonCall::hermes(), ...: anything with `parse(text, tools)`
/// \par Complexity  as the other overload, and O(length of the text)
/// \par Errors      none; exceptions of `format` other than Error propagate
template <class F>
[[nodiscard]] Verdict classify(std::span<const ExpectedCall> expected, std::string_view text,
                               const F& format, const ToolSet& tools) {
  std::optional<std::vector<ToolCall>> calls;
  try {
    calls = format.parse(text, tools);
  } catch (const Error& refusal) {
    Verdict verdict = classify(expected, calls, tools);
    if (verdict.error != ErrorClass::format) return verdict;
    verdict.difference = refusal.what();
    if (auto key = detail::find_repeated_key(refusal.what())) {
      verdict.error = ErrorClass::key;
      verdict.key   = std::move(*key);
    }
    return verdict;
  }
  return classify(expected, calls, tools);
}

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/research/classify.ipp>
#endif
