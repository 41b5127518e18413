#pragma once

#include <tooldecode/research/classify.hpp>
#include <tooldecode/text/exact_number.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/tools/canonical_json.hpp>

namespace tooldecode {

TOOLDECODE_INLINE ExpectedCall ExpectedCall::exactly(const ToolCall& call) {
  ExpectedCall result{call.name};
  for (const auto& [key, value] : call.arguments.items()) {
    result.arguments.push_back({key, {value}});
  }
  return result;
}

TOOLDECODE_INLINE ExpectedCall ExpectedCall::from_bfcl(const Json& entry) {
  if (!entry.is_object() || entry.size() != 1 || !entry.front().is_object()) {
    throw Error(Errc::malformed_document, "answer", "must be an object of one call");
  }
  ExpectedCall result{entry.begin().key(), {}, Matching::bfcl};
  for (const auto& [key, allowed] : entry.front().items()) {
    if (!allowed.is_array()) {
      throw Error(Errc::malformed_document, "answer " + result.name + ", " + key,
                  "must be a list of allowed values");
    }
    ExpectedArgument argument{key, {allowed.begin(), allowed.end()}};
    argument.optional =
        std::any_of(allowed.begin(), allowed.end(), [](const Json& one) { return one == ""; });
    if (allowed.empty()) argument.allowed.push_back(Json::array());
    result.arguments.push_back(std::move(argument));
  }
  return result;
}

}  // namespace tooldecode

namespace tooldecode::detail {

TOOLDECODE_INLINE std::optional<std::string> find_difference(const JsonValue& given,
                                                             const JsonValue& expected) {
  if (given.is_exact() || expected.is_exact()) {  // expected values are read as doubles
    using text::ExactNumber;
    return find_difference(ExactNumber::rounded(given), ExactNumber::rounded(expected));
  }
  if (given.is_number() && expected.is_number()) {
    // Without rounding: 2^53 + 1 differs from the nearest double.
    const bool same = canonical_json(given) == canonical_json(expected);
    return same ? std::nullopt : std::optional(std::string());
  }
  if (given.type() != expected.type()) return "";
  if (given.is_array()) return find_list_difference(given, expected, find_difference);
  if (given.is_object()) {
    for (const auto& [key, value] : given.items()) {
      const auto found = expected.find(key);
      if (found == expected.end()) return text::extend_pointer("", key);
      if (const auto at = find_difference(value, *found))
        return text::extend_pointer("", key) + *at;
    }
    for (const auto& [key, value] : expected.items()) {
      if (!given.contains(key)) return text::extend_pointer("", key);
    }
    return std::nullopt;
  }
  return given == expected ? std::nullopt : std::optional(std::string());
}

TOOLDECODE_INLINE BfclArgument::BfclArgument(const std::vector<Json>& allowed, const Json& schema)
    : allowed_(allowed) {
  for (const Json& value : allowed) {
    if (value == "") continue;
    listed_ = kind(value);
    break;
  }
  declared_ = declared(schema);
  if (schema.is_object() && schema.contains("items")) items_ = declared(schema["items"]);
}

TOOLDECODE_INLINE BfclArgument::DifferencePath BfclArgument::difference(const Json& given) const {
  Kind own            = kind(given);
  const Kind expected = declared_.value_or(listed_.value_or(own));
  if (own == Kind::integer && expected == Kind::number) own = Kind::number;
  // An answer of another type than the document's is a variable's name, and is taken literally.
  const bool variable = listed_ && *listed_ != expected;
  if (own == expected ? !items_conform(given) : own != listed_) return "";
  if (variable || (own != Kind::text && own != Kind::list && own != Kind::object)) {
    return nearest(allowed_, [&](const Json& value) { return find_difference(given, value); });
  }
  return nearest(allowed_, [&](const Json& value) -> DifferencePath {
    if (own == Kind::text) return loosely_equal(given, value) ? DifferencePath() : "";
    if (own == Kind::object) return value.is_object() ? object_difference(given, value) : "";
    // "" says that the list may be left out, and reads as an empty list.
    return list_difference(given, value == "" ? Json::array() : value);
  });
}

TOOLDECODE_INLINE BfclArgument::Kind BfclArgument::kind(const Json& value) {
  if (value.is_object()) return Kind::object;
  if (value.is_array()) return Kind::list;
  if (value.is_string()) return Kind::text;
  if (value.is_boolean()) return Kind::boolean;
  if (value.is_exact()) return Kind::integer;
  if (value.is_number_float()) return Kind::number;
  return value.is_number() ? Kind::integer : Kind::null;
}

TOOLDECODE_INLINE std::optional<BfclArgument::Kind> BfclArgument::declared(const Json& schema) {
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

TOOLDECODE_INLINE bool BfclArgument::items_conform(const Json& given) const {
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

TOOLDECODE_INLINE std::string BfclArgument::standard(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (std::string_view(" ,./-_*^").find(c) != std::string_view::npos) continue;
    result += c == '\'' ? '"' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return result;
}

TOOLDECODE_INLINE bool BfclArgument::loosely_equal(const Json& given, const Json& value) {
  if (!given.is_string() || !value.is_string()) return !find_difference(given, value);
  return standard(given.string()) == standard(value.string());
}

TOOLDECODE_INLINE BfclArgument::DifferencePath BfclArgument::list_difference(
    const Json& given, const Json& value) const {
  if (!value.is_array()) return "";
  return find_list_difference(given, value, [&](const Json& a, const Json& b) -> DifferencePath {
    if (items_ == Kind::object && a.is_object() && b.is_object()) return object_difference(a, b);
    return loosely_equal(a, b) ? DifferencePath() : "";
  });
}

TOOLDECODE_INLINE BfclArgument::DifferencePath BfclArgument::object_difference(const Json& given,
                                                                               const Json& value) {
  const auto lists = [](const Json& choices, const Json& member) {
    return std::any_of(choices.begin(), choices.end(),
                       [&](const Json& choice) { return loosely_equal(member, choice); });
  };
  for (const auto& [key, member] : given.items()) {
    const auto found = value.find(key);
    if (found == value.end() || !lists(*found, member)) return text::extend_pointer("", key);
  }
  for (const auto& [key, choices] : value.items()) {
    const bool optional =
        std::any_of(choices.begin(), choices.end(), [](const Json& one) { return one == ""; });
    if (!given.contains(key) && !optional) return text::extend_pointer("", key);
  }
  return std::nullopt;
}

/// \param document  the tool's document as a value
TOOLDECODE_INLINE JsonValue documented(const Tool* tool, const JsonValue& document,
                                       const std::string& key) {
  if (!tool) return nullptr;
  const std::string property = text::extend_pointer("/properties", key);
  for (const auto& [schema, prefix] :
       {std::pair<const JsonValue*, const char*>{&document, "/function/parameters"},
        {&document, "/parameters"},
        {&tool->parameters, ""}}) {
    if (const JsonValue* found = schema->find_at(prefix + property)) return *found;
  }
  return nullptr;
}

TOOLDECODE_INLINE std::string shown(const JsonValue& value) {
  return value.text();
}

TOOLDECODE_INLINE Verdict compare(const ExpectedCall& expected, const ToolCall& call,
                                  const Tool* tool) {
  if (!call.arguments.is_object()) {
    return {ErrorClass::key, 0, "", "", "the arguments are no object"};
  }
  const JsonValue document = tool ? text::parse_json(tool->document) : JsonValue();
  const auto find          = [&](const std::string& key) {
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
    const bool known = !documented(tool, document, key).is_null();
    note(!known, key,
         known ? "an argument that was not expected" : "an argument that the tool lacks");
  }
  std::vector<std::string> required;
  if (tool) required = required_names(*tool);
  for (const ExpectedArgument& argument : expected.arguments) {
    if (call.arguments.contains(argument.key)) continue;
    const bool must  = std::find(required.begin(), required.end(), argument.key) != required.end();
    const bool known = !documented(tool, document, argument.key).is_null();
    if (must || (!known && !argument.optional)) {
      note(true, argument.key, "the argument is missing");
    } else if (!argument.optional) {
      note(false, argument.key, "an argument that was expected is left out");
    }
  }
  if (result.error != ErrorClass::correct) return result;
  for (const auto& [key, value] : call.arguments.items()) {
    const ExpectedArgument& argument = *find(key);
    const auto place =
        expected.matching == Matching::bfcl
            ? BfclArgument(argument.allowed, documented(tool, document, key)).difference(value)
            : nearest(argument.allowed,
                      [&given = value](const auto& a) { return find_difference(given, a); });
    if (!place) continue;
    std::string text;
    for (const auto& allowed : argument.allowed) {
      text += (text.empty() ? "expected " : " or ") + shown(allowed);
    }
    return {ErrorClass::value, 0, key, *place, text + ", got " + shown(value)};
  }
  return {};
}

TOOLDECODE_INLINE bool find_partner(std::size_t i, const std::vector<std::vector<bool>>& fits,
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

}  // namespace tooldecode::detail

namespace tooldecode {

TOOLDECODE_INLINE Verdict classify(std::span<const ExpectedCall> expected,
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

}  // namespace tooldecode

namespace tooldecode::detail {

TOOLDECODE_INLINE std::optional<std::string> find_repeated_key(std::string_view refusal) {
  constexpr std::string_view before = "the argument \"", after = "\" is given twice";
  const std::size_t at = refusal.find(before);
  if (at == std::string_view::npos || !refusal.ends_with(after)) return std::nullopt;
  refusal.remove_prefix(at + before.size());
  refusal.remove_suffix(after.size());
  return std::string(refusal);
}

}  // namespace tooldecode::detail
