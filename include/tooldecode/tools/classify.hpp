/// \file
/// classify: what is wrong with a model's tool calls, as one of five classes of error, and where.
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
#include <tooldecode/tools/canonical_json.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>

#include <nlohmann/json.hpp>

namespace tooldecode {

/// What is wrong with an output, from the coarsest to the finest; the first that applies counts.
enum class ErrorClass : std::uint8_t {
  correct,    ///< nothing
  awareness,  ///< a call where none was expected, or none where one was
  selection,  ///< other tools were called, or the right ones another number of times
  format,     ///< the text is not in the call format, so that no call can be read from it
  key,        ///< an argument that the tool lacks, a required one missing, or one given twice
  value,      ///< an argument with another value, or an optional one left out or put in
};

/// The class's name, as written in tables and in machine-readable output.
[[nodiscard]] constexpr std::string_view name(ErrorClass error) noexcept {
  constexpr std::string_view names[]{"correct", "awareness", "selection", "format", "key", "value"};
  return names[static_cast<std::size_t>(error)];
}

/// How an argument is compared with what is expected.
enum class Matching : std::uint8_t {
  value,  ///< by value: 1 equals 1.0, the order of an object's keys does not count
  bfcl,   ///< as the Berkeley Function-Calling Leaderboard's AST check has it
};

/// An argument that a call should have. Under Matching::bfcl `allowed` is as the leaderboard lists
/// it: "" for one that may be left out, lists of allowed values for the members of an object.
struct ExpectedArgument {
  std::string key;
  std::vector<nlohmann::ordered_json> allowed;
  bool optional = false;
};

/// A call that an output should make.
///
/// \par Complexity  linear in the call or the entry
/// \par Threads     a value
/// \par Errors      Error{malformed_document} from `from_bfcl` for an entry of another form
struct ExpectedCall {
  using Json = nlohmann::ordered_json;

  std::string name;
  std::vector<ExpectedArgument> arguments{};
  Matching matching = Matching::value;

  /// This call and no other.
  [[nodiscard]] static ExpectedCall exactly(const ToolCall& call) {
    ExpectedCall result{call.name};
    for (const auto& [key, value] : call.arguments.items()) {
      result.arguments.push_back({key, {value}});
    }
    return result;
  }
  /// An entry of the leaderboard's answers: `{"f": {"a": [1, 2], "b": ["x", ""]}}`. Where it lists
  /// no value at all, the empty list itself is meant.
  [[nodiscard]] static ExpectedCall from_bfcl(const Json& entry) {
    if (!entry.is_object() || entry.size() != 1 || !entry.front().is_object()) {
      throw Error(Errc::malformed_document, "answer", "is not an object of one call");
    }
    ExpectedCall result{entry.begin().key(), {}, Matching::bfcl};
    for (const auto& [key, allowed] : entry.front().items()) {
      if (!allowed.is_array()) {
        throw Error(Errc::malformed_document, "answer " + result.name + ", " + key,
                    "is not a list of allowed values");
      }
      ExpectedArgument argument{key, {allowed.begin(), allowed.end()}};
      argument.optional = std::count(allowed.begin(), allowed.end(), "") > 0;
      if (allowed.empty()) argument.allowed.push_back(Json::array());
      result.arguments.push_back(std::move(argument));
    }
    return result;
  }
};

/// The class of an output, and the first place where it differs from what was expected.
struct Verdict {
  ErrorClass error = ErrorClass::correct;
  std::size_t call = 0;      ///< index among the output's calls; of `key` and `value` errors
  std::string key{};         ///< the argument; of `key` and `value` errors
  std::string pointer{};     ///< JSON pointer inside the argument's value; empty: the whole value
  std::string difference{};  ///< one sentence: what was expected, and what came
};

namespace detail {

// The JSON pointer of the first place where two lists differ.
template <class F>
std::optional<std::string> find_list_difference(const nlohmann::ordered_json& given,
                                                const nlohmann::ordered_json& expected,
                                                F item_difference) {
  const std::size_t shared = std::min(given.size(), expected.size());
  for (std::size_t i = 0; i < shared; ++i) {
    if (const auto at = item_difference(given[i], expected[i])) {
      return tools::extend_pointer("", std::to_string(i)) + *at;
    }
  }
  if (given.size() == expected.size()) return std::nullopt;
  return tools::extend_pointer("", std::to_string(shared));
}

// The JSON pointer of the first place where two values differ.
inline std::optional<std::string> find_difference(const nlohmann::ordered_json& given,
                                                  const nlohmann::ordered_json& expected) {
  if (given.is_number() && expected.is_number()) {
    // Without rounding: 2^53 + 1 is not the double next to it.
    const bool same = canonical_json(given) == canonical_json(expected);
    return same ? std::nullopt : std::optional(std::string());
  }
  if (given.type() != expected.type()) return "";
  if (given.is_array()) return find_list_difference(given, expected, find_difference);
  if (given.is_object()) {
    for (const auto& [key, value] : given.items()) {
      const auto found = expected.find(key);
      if (found == expected.end()) return tools::extend_pointer("", key);
      if (const auto at = find_difference(value, *found))
        return tools::extend_pointer("", key) + *at;
    }
    for (const auto& [key, value] : expected.items()) {
      if (!given.contains(key)) return tools::extend_pointer("", key);
    }
    return std::nullopt;
  }
  return given == expected ? std::nullopt : std::optional(std::string());
}

// Nothing where one of the values does not differ; else the first place that is inside a value.
template <class F>
std::optional<std::string> nearest(const std::vector<nlohmann::ordered_json>& allowed,
                                   F difference_from) {
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
  using Json = nlohmann::ordered_json;
  using DifferencePath =
      std::optional<std::string>;  // of a difference; nothing where there is none

 public:
  /// \param schema  of the argument as its document has it; null where it has none
  BfclArgument(const std::vector<Json>& allowed, const Json& schema) : allowed_(allowed) {
    for (const Json& value : allowed) {
      if (value == "") continue;
      listed_ = kind(value);
      break;
    }
    declared_ = declared(schema);
    if (schema.is_object() && schema.contains("items")) items_ = declared(schema["items"]);
  }

  [[nodiscard]] DifferencePath difference(const Json& given) const {
    Kind own            = kind(given);
    const Kind expected = declared_.value_or(listed_.value_or(own));
    if (own == Kind::integer && expected == Kind::number) own = Kind::number;
    // An answer of another type than the document's is a variable's name, and taken literally.
    const bool variable = listed_ && *listed_ != expected;
    if (own == expected ? !items_conform(given) : own != listed_) return "";
    if (variable || (own != Kind::text && own != Kind::list && own != Kind::object)) {
      return nearest(allowed_, [&](const Json& value) { return find_difference(given, value); });
    }
    return nearest(allowed_, [&](const Json& value) -> DifferencePath {
      if (own == Kind::text) return loosely_equal(given, value) ? DifferencePath() : "";
      if (own == Kind::object) return value.is_object() ? object_difference(given, value) : "";
      // "", which says that the list may be left out, reads as an empty list.
      return list_difference(given, value == "" ? Json::array() : value);
    });
  }

 private:
  enum class Kind : std::uint8_t { null, boolean, integer, number, text, list, object };

  static Kind kind(const Json& value) {
    if (value.is_object()) return Kind::object;
    if (value.is_array()) return Kind::list;
    if (value.is_string()) return Kind::text;
    if (value.is_boolean()) return Kind::boolean;
    if (value.is_number_float()) return Kind::number;
    return value.is_number() ? Kind::integer : Kind::null;
  }
  static std::optional<Kind> declared(const Json& schema) {
    if (!schema.is_object() || !schema.contains("type")) return std::nullopt;
    static const std::pair<const char*, Kind> names[]{
        {"string", Kind::text},   {"any", Kind::text},     {"integer", Kind::integer},
        {"number", Kind::number}, {"float", Kind::number}, {"boolean", Kind::boolean},
        {"array", Kind::list},    {"tuple", Kind::list},   {"object", Kind::object},
        {"dict", Kind::object},
    };
    for (const auto& [name, kind] : names) {
      if (schema["type"] == name) return kind;
    }
    return std::nullopt;
  }

  // An item has the document's type for items, or the type of the items of an allowed list.
  [[nodiscard]] bool items_conform(const Json& given) const {
    if (!given.is_array() || !items_) return true;
    return std::any_of(allowed_.begin(), allowed_.end(), [&](const Json& value) {
      if (!value.is_array()) return true;
      const auto typed =
          std::find_if(value.begin(), value.end(), [](const Json& v) { return v != ""; });
      return std::all_of(given.begin(), given.end(), [&](const Json& item) {
        return kind(item) == *items_ || (typed != value.end() && kind(item) == kind(*typed));
      });
    });
  }

  // Spelling variants of a text have one standard form.
  static std::string standard(std::string_view text) {
    std::string result;
    for (const char c : text) {
      if (std::string_view(" ,./-_*^").find(c) != std::string_view::npos) continue;
      result += c == '\'' ? '"' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    return result;
  }
  static bool loosely_equal(const Json& given, const Json& value) {
    if (!given.is_string() || !value.is_string()) return !find_difference(given, value);
    return standard(given.get_ref<const std::string&>()) ==
           standard(value.get_ref<const std::string&>());
  }
  [[nodiscard]] DifferencePath list_difference(const Json& given, const Json& value) const {
    if (!value.is_array()) return "";
    return find_list_difference(given, value, [&](const Json& a, const Json& b) -> DifferencePath {
      if (items_ == Kind::object && a.is_object() && b.is_object()) return object_difference(a, b);
      return loosely_equal(a, b) ? DifferencePath() : "";
    });
  }
  static DifferencePath object_difference(const Json& given, const Json& value) {
    const auto lists = [](const Json& choices, const Json& member) {
      return std::any_of(choices.begin(), choices.end(),
                         [&](const Json& choice) { return loosely_equal(member, choice); });
    };
    for (const auto& [key, member] : given.items()) {
      const auto found = value.find(key);
      if (found == value.end() || !lists(*found, member)) return tools::extend_pointer("", key);
    }
    for (const auto& [key, choices] : value.items()) {
      const bool optional = std::count(choices.begin(), choices.end(), "") > 0;
      if (!given.contains(key) && !optional) return tools::extend_pointer("", key);
    }
    return std::nullopt;
  }

  const std::vector<Json>& allowed_;
  std::optional<Kind> listed_, declared_, items_;
};

// A parameter's schema as the document spells it; null where the tool does not document it.
inline nlohmann::ordered_json documented(const Tool* tool, const std::string& key) {
  using Json    = nlohmann::ordered_json;
  using Pointer = Json::json_pointer;
  if (!tool) return nullptr;
  const Pointer property = Pointer("/properties") / key;
  for (const auto& [schema, prefix] :
       {std::pair<const Json*, const char*>{&tool->document, "/function/parameters"},
        {&tool->document, "/parameters"},
        {&tool->parameters, ""}}) {
    const Pointer at = Pointer(prefix) / property;
    if (schema->contains(at)) return schema->at(at);
  }
  return nullptr;
}

inline std::string shown(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

// One call against one that was expected, both to the same tool.
inline Verdict compare(const ExpectedCall& expected, const ToolCall& call, const Tool* tool) {
  if (!call.arguments.is_object()) {
    return {ErrorClass::key, 0, "", "", "the arguments are no object"};
  }
  const auto find = [&](const std::string& key) {
    return std::find_if(expected.arguments.begin(), expected.arguments.end(),
                        [&](const ExpectedArgument& argument) { return argument.key == key; });
  };
  Verdict result;
  const auto note = [&](bool is_key, const std::string& key, const char* difference) {
    const ErrorClass error = is_key ? ErrorClass::key : ErrorClass::value;
    if (result.error == ErrorClass::correct || error < result.error) {
      result = {error, 0, key, "", difference};
    }
  };
  for (const auto& [key, value] : call.arguments.items()) {
    if (find(key) != expected.arguments.end()) continue;
    const bool known = !documented(tool, key).is_null();
    note(!known, key,
         known ? "an argument that was not expected" : "an argument that the tool lacks");
  }
  std::vector<std::string> required;
  if (tool) required = required_names(*tool);
  for (const ExpectedArgument& argument : expected.arguments) {
    if (call.arguments.contains(argument.key)) continue;
    const bool must  = std::find(required.begin(), required.end(), argument.key) != required.end();
    const bool known = !documented(tool, argument.key).is_null();
    if (must || (!known && !argument.optional)) {
      note(true, argument.key, "the argument is missing");
    } else if (!argument.optional) {
      note(false, argument.key, "an argument that was expected is left out");
    }
  }
  if (result.error != ErrorClass::correct) return result;
  for (const auto& [key, value] : call.arguments.items()) {
    const ExpectedArgument& argument = *find(key);
    const auto place                 = expected.matching == Matching::bfcl
                                           ? BfclArgument(argument.allowed, documented(tool, key)).difference(value)
                                           : nearest(argument.allowed, [&given = value](const auto& a) {
                               return find_difference(given, a);
                             });
    if (!place) continue;
    std::string text;
    for (const auto& allowed : argument.allowed) {
      text += (text.empty() ? "expected " : " or ") + shown(allowed);
    }
    return {ErrorClass::value, 0, key, *place, text + ", got " + shown(value)};
  }
  return {};
}

// Gives call i an expected call that it fits, if others can make room: an augmenting path.
inline bool find_partner(std::size_t i, const std::vector<std::vector<bool>>& fits,
                         std::vector<std::size_t>& taken_by, std::vector<bool>& tried) {
  const std::size_t none = taken_by.size();
  for (std::size_t j = 0; j < none; ++j) {
    if (!fits[i][j] || tried[j]) continue;
    tried[j] = true;
    if (taken_by[j] != none && !find_partner(taken_by[j], fits, taken_by, tried)) continue;
    taken_by[j] = i;
    return true;
  }
  return false;
}

}  // namespace detail

/// The class of an output's calls, and the first difference.
///
/// Calls are matched with expected ones in any order, such that the most are correct; the others
/// are compared in order. Where calls err differently, the coarser class counts.
///
/// Matching::bfcl follows the leaderboard's check of Python calls: texts are equal without spaces,
/// the characters `,./-_*^` and the case of ASCII letters, and with `'` for `"`; an integer stands
/// for a number, not the reverse; lists and objects item by item, an object's members each among
/// their allowed values; an answer of another type than the document's is a variable's name, taken
/// literally. Unlike there true is never 1, and an argument that the answers have and the document
/// lacks is known.
///
/// \param calls  nothing where the text is not in the call format
/// \par Complexity  O(n^2 size of a call + n^3) for n expected calls
/// \par Threads     pure
/// \par Errors      none
/// \par Source      Patil et al., BFCL, ast_checker.py (github.com/ShishirPatil/gorilla)
[[nodiscard]] inline Verdict classify(std::span<const ExpectedCall> expected,
                                      const std::optional<std::vector<ToolCall>>& calls,
                                      const ToolSet& tools) {
  const std::size_t n = expected.size();
  if (!calls && n > 0) return {ErrorClass::format, 0, "", "", "the text is not in the call format"};
  if (!calls || (n == 0) != calls->empty()) {
    return {ErrorClass::awareness, 0, "", "",
            n == 0 ? "a call where none was expected" : "no call where one was expected"};
  }
  const auto names = [](const auto& list) {
    std::vector<std::string> result;
    for (const auto& call : list) result.push_back(call.name);
    std::sort(result.begin(), result.end());
    return result;
  };
  if (const auto wanted = names(expected), given = names(*calls); wanted != given) {
    return {ErrorClass::selection, 0, "", "",
            "expected " + detail::shown(wanted) + ", got " + detail::shown(given)};
  }
  const auto verdict = [&](std::size_t i, std::size_t j) {
    const auto tool = tools.find((*calls)[i].name);
    return detail::compare(expected[j], (*calls)[i], tool ? &tools[*tool] : nullptr);
  };
  std::vector<std::vector<bool>> fits(n, std::vector<bool>(n));
  std::vector<std::size_t> taken_by(n, n);
  std::vector<std::size_t> unfit;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      fits[i][j] =
          expected[j].name == (*calls)[i].name && verdict(i, j).error == ErrorClass::correct;
    }
    std::vector<bool> tried(n);
    if (!detail::find_partner(i, fits, taken_by, tried)) unfit.push_back(i);
  }
  Verdict result;
  for (const std::size_t i : unfit) {
    std::size_t j = 0;
    while (taken_by[j] != n || expected[j].name != (*calls)[i].name) ++j;
    taken_by[j]   = i;
    Verdict found = verdict(i, j);
    found.call    = i;
    if (result.error == ErrorClass::correct || found.error < result.error) result = found;
  }
  return result;
}

namespace detail {

// The key for which PythonCall refused a text; what follows it is not known.
inline std::optional<std::string> find_repeated_key(std::string_view refusal) {
  constexpr std::string_view before = "the argument \"", after = "\" is given twice";
  const std::size_t at = refusal.find(before);
  if (at == std::string_view::npos || !refusal.ends_with(after)) return std::nullopt;
  refusal.remove_prefix(at + before.size());
  refusal.remove_suffix(after.size());
  return std::string(refusal);
}

}  // namespace detail

/// The class of an output's text in a call format.
///
/// \param format  PythonCall{}, JsonCall::hermes(), ...: anything with `parse(text, tools)`
/// \par Complexity  as the other overload, and O(length of the text)
/// \par Threads     pure
/// \par Errors      none; what `format` throws beside Error passes through
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
