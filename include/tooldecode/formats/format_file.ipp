#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/delimited_call.hpp>
#include <tooldecode/formats/delimiter.hpp>
#include <tooldecode/formats/element_style.hpp>
#include <tooldecode/formats/format_file.hpp>
#include <tooldecode/formats/format_set.hpp>
#include <tooldecode/formats/free_text.hpp>
#include <tooldecode/formats/harmony_call.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/positional_call.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/formats/tag_fields.hpp>
#include <tooldecode/formats/xml_call.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/near_name.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>

namespace tooldecode::formats::detail {

// The fields of a struct, one table for the reader and for the writer. `visit` receives the name
// and the field.

template <class T, class S>
concept Is = std::same_as<std::remove_const_t<T>, S>;

template <Is<ReasoningDelimiters> T>
void each_field(T& f, auto&& visit) {
  visit("begin", f.begin);
  visit("end", f.end);
}

template <Is<TextFrame> T>
void each_field(T& f, auto&& visit) {
  visit("begin", f.begin);
  visit("end", f.end);
  visit("last", f.last);
}

template <Is<CallFence> T>
void each_field(T& f, auto&& visit) {
  visit("begin", f.begin);
  visit("end", f.end);
}

template <Is<std::array<std::string, element_kinds>> T>
void each_field(T& kinds, auto&& visit) {
  static constexpr std::string_view names[]{"string", "number", "integer", "boolean",
                                            "null",   "array",  "object"};
  for (std::size_t i = 0; i < element_kinds; ++i) visit(names[i], kinds[i]);
}

template <Is<ElementStyle> T>
void each_field(T& f, auto&& visit) {
  visit("name", f.name);
  visit("before_key", f.before_key);
  visit("after_key", f.after_key);
  visit("before_kind", f.before_kind);
  visit("kinds", f.kinds);
  visit("after_kind", f.after_kind);
  visit("before_value", f.before_value);
  visit("after_value", f.after_value);
  visit("after_end_key", f.after_end_key);
  visit("padding", f.padding);
  visit("before_item", f.before_item);
  visit("after_item", f.after_item);
  visit("escapes", f.escapes);
  visit("never_in_text", f.never_in_text);
  visit("excluded", f.excluded);
  visit("before_text", f.before_text);
  visit("after_text", f.after_text);
  visit("separator", f.separator);
  visit("before_list", f.before_list);
  visit("after_list", f.after_list);
  visit("before_object", f.before_object);
  visit("after_object", f.after_object);
  visit("by_document", f.by_document);
}

template <Is<JsonCall> T>
void each_field(T& f, auto&& visit) {
  visit("begin", f.begin);
  visit("end", f.end);
  visit("separator", f.separator);
  visit("name_key", f.name);
  visit("arguments", f.arguments);
  visit("between", f.between);
  visit("list", f.list);
  visit("bare_at_start", f.bare_at_start);
  visit("call_id", f.call_id);
  visit("number", f.number);
  visit("open", f.open);
  visit("close", f.close);
  visit("before_end", f.before_end);
  visit("response", f.response);
  visit("fences", f.fences);
  visit("only_fences", f.only_fences);
  visit("call_type", f.call_type);
}

template <Is<DelimitedCall> T>
void each_field(T& f, auto&& visit) {
  visit("section_begin", f.section_begin);
  visit("begin", f.begin);
  visit("middle", f.middle);
  visit("end", f.end);
  visit("between", f.between);
  visit("section_end", f.section_end);
  visit("numbered", f.numbered);
  visit("lenient", f.lenient);
  visit("id", f.id);
  visit("foreign", f.foreign);
  visit("bare_first", f.bare_first);
  visit("response", f.response);
}

template <Is<XmlCall> T>
void each_field(T& f, auto&& visit) {
  visit("section_begin", f.section_begin);
  visit("begin", f.begin);
  visit("before_name", f.before_name);
  visit("after_name", f.after_name);
  visit("before_key", f.before_key);
  visit("after_key", f.after_key);
  visit("before_value", f.before_value);
  visit("after_value", f.after_value);
  visit("padding", f.padding);
  visit("after_values", f.after_values);
  visit("end", f.end);
  visit("bare", f.bare);
  visit("gap", f.gap);
  visit("call_gap", f.call_gap);
  visit("section_end", f.section_end);
  visit("number_end", f.number_end);
  visit("number_first", f.number_first);
  visit("first_number", f.first_number);
  visit("ends_thought", f.ends_thought);
  visit("element_style", f.style);
  visit("response", f.response);
}

template <Is<PythonCall> T>
void each_field(T& f, auto&& visit) {
  visit("begin", f.begin);
  visit("end", f.end);
  visit("open", f.open);
  visit("close", f.close);
  visit("separator", f.separator);
  visit("bare_at_start", f.bare_at_start);
}

template <Is<HarmonyCall> T>
void each_field(T& /*format*/, auto&& /*visit*/) {}

template <Is<PositionalCall> T>
void each_field(T& f, auto&& visit) {
  visit("begin", f.begin);
  visit("middle", f.middle);
  visit("end", f.end);
  visit("is_delimiter", f.is_delimiter);
}

// The types of formats with their names; `visit` receives a name and an F{}.
void each_style(auto&& visit) {
  visit("json", JsonCall{});
  visit("delimited", DelimitedCall{});
  visit("elements", XmlCall{});
  visit("python", PythonCall{});
  visit("harmony", HarmonyCall{});
  visit("positional", PositionalCall{});
}

inline constexpr std::string_view paddings[]{"any", "values", "none"};  // by ElementPadding

// Writes a value of a field as JSON.
template <class T>
JsonValue written(const T& value) {
  if constexpr (std::same_as<T, ElementPadding>) {
    return std::string(paddings[static_cast<std::size_t>(value)]);
  } else if constexpr (requires { value.has_value(); }) {
    return value ? written(*value) : JsonValue();
  } else if constexpr (std::constructible_from<std::string, T> || std::integral<T>) {
    return value;
  } else if constexpr (requires { value.capacity(); }) {
    JsonValue list = JsonValue::array();
    for (const auto& one : value) list.list().push_back(written(one));
    return list;
  } else {  // a struct, without the fields that have their default
    JsonValue object = JsonValue::object();
    each_field(value, [&](std::string_view name, const auto& field) {
      object.items().emplace_back(name, written(field));
    });
    JsonValue usual = JsonValue::object();
    const T otherwise{};
    each_field(otherwise, [&](std::string_view name, const auto& field) {
      usual.items().emplace_back(name, written(field));
    });
    std::erase_if(object.items(),
                  [&](const auto& member) { return member.second == usual.at(member.first); });
    return object;
  }
}

// Refuses the first field that is not one of the names.
TOOLDECODE_INLINE void refuse_unknown(const JsonValue& object, const TagFields& fields,
                                      const std::vector<std::string_view>& names) {
  static constexpr std::size_t max_edits = 2;
  for (const auto& [field, value] : object.items()) {
    if (std::find(names.begin(), names.end(), field) != names.end()) continue;
    const auto nearest = text::find_near_name(field, names, max_edits);
    fields.fail(field, nearest ? "not a field here; did you mean " + std::string(*nearest) + '?'
                               : std::string("not a field here; remove it"));
  }
}

template <class T>
void read(T& value, const JsonValue& json, const std::string& pointer);

// Reads the fields of a struct that the object has; `names` are further ones that it may have.
template <class T>
void read_fields(T& value, const JsonValue& object, const std::string& pointer,
                 std::vector<std::string_view> names = {}) {
  TagFields fields(object, pointer);
  each_field(value, [&](std::string_view name, auto& field) {
    names.push_back(name);
    if (const JsonValue* json = fields.find(name)) read(field, *json, fields.pointer(name));
  });
  refuse_unknown(object, fields, names);
}

template <class T>
void read(T& value, const JsonValue& json, const std::string& pointer) {
  const auto require = [&](bool is_right, const std::string& what) {
    if (!is_right) throw Error(Errc::malformed_document, pointer, what);
  };
  if constexpr (std::same_as<T, std::string>) {
    require(json.is_string(), "must be a string");
    value = json.string();
  } else if constexpr (std::same_as<T, bool>) {
    require(json.is_boolean(), "must be true or false");
    value = json.get<bool>();
  } else if constexpr (std::same_as<T, std::uint32_t>) {
    require(json.is_number_unsigned() && json.get<std::uint64_t>() <= 1'000'000,
            "must be an integer from 0 to 1000000");
    value = json.get<std::uint32_t>();
  } else if constexpr (std::same_as<T, ElementPadding>) {
    for (std::size_t i = 0; i < std::size(paddings); ++i) {
      if (json == paddings[i]) return void(value = static_cast<ElementPadding>(i));
    }
    require(false, "must be any, values or none");
  } else if constexpr (requires { value.has_value(); }) {
    read(value.emplace(), json, pointer);
  } else if constexpr (requires { value.emplace_back(); }) {
    require(json.is_array(), "must be a list");
    for (std::size_t i = 0; i < json.size(); ++i) {
      read(value.emplace_back(), json.at(i), pointer + '/' + std::to_string(i));
    }
  } else {
    read_fields(value, json, pointer);
  }
}

TOOLDECODE_INLINE void require_text(std::string_view text, const char* field, const char* what) {
  if (text.empty()) {
    throw Error(Errc::malformed_document, std::string("/") + field,
                std::string("must not be empty: ") + what);
  }
}

// Refuses formats without a text that the parser needs to find its way.
template <class F>
void check(const F& f) {
  static constexpr const char* opens = "it opens calls, so that text can be told from them";
  if constexpr (std::same_as<F, JsonCall>) {
    if (!f.name.empty()) require_text(f.arguments, "arguments", "it is the key of the arguments");
    if (f.list) require_text(f.open, "open", "it opens the list");
    if (f.list) require_text(f.close, "close", "it closes the list");
  } else if constexpr (std::same_as<F, DelimitedCall>) {
    require_text(f.trigger(), "begin", opens);
    require_text(f.middle, "middle", "it ends the name");
  } else if constexpr (std::same_as<F, XmlCall>) {
    require_text(f.begin, "begin", opens);
    require_text(f.end, "end", "it ends the call");
    require_text(f.after_key, "after_key", "it ends the key of an argument");
    if (!f.style) {
      require_text(f.before_key, "before_key", "it opens an argument");
      require_text(f.after_value, "after_value", "it ends the value of an argument");
    }
  } else if constexpr (std::same_as<F, PythonCall>) {
    require_text(f.trigger(), "open", opens);
    require_text(f.close.empty() ? f.end : f.close, "close", "it or end ends the calls");
  } else if constexpr (std::same_as<F, PositionalCall>) {
    require_text(f.begin, "begin", opens);
    require_text(f.middle, "middle", "it ends the name");
    require_text(f.end, "end", "it ends the arguments");
  }
}

// Refuses a format that does not read a call as it writes it.
TOOLDECODE_INLINE void check_round_trip(const AnyFormat& format) {
  const ToolSet tools = ToolSet::parse(R"([{"name": "find", "parameters": {"type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}}])");
  const std::vector calls{ToolCall{"find", {{"city", "Oslo"}, {"days", 2}}}};
  std::string text;
  std::string why = "other calls";
  try {
    text = format.write(calls, tools);
    if (format.parse(text, tools) == calls) return;
  } catch (const Error& error) {
    why = error.what();
  }
  throw Error(Errc::malformed_document, "",
              "a call that is written as " + text + " reads back as " + why +
                  "; change the texts around names, values and calls so that each is found");
}

}  // namespace tooldecode::formats::detail

namespace tooldecode::formats {

TOOLDECODE_INLINE NamedFormat read_format(std::string_view json) {
  const JsonValue object = text::parse_json(json);
  TagFields fields(object, "");
  if (fields.text("type") != "call_format") fields.fail("type", "must be \"call_format\"");
  const std::string name = fields.text("name");
  if (name.empty()) fields.fail("name", "must not be empty");
  const std::string style = fields.text("style");
  std::optional<NamedFormat> result;
  std::string styles;
  detail::each_style([&](std::string_view known, auto format) {
    styles += (styles.empty() ? "" : ", ") + std::string(known);
    if (style != known) return;
    detail::read_fields(format, object, "", {"type", "name", "style", "reasoning"});
    detail::check(format);
    result = NamedFormat{name, format};
  });
  if (!result) fields.fail("style", "must be one of " + styles);
  if (const JsonValue* reasoning = fields.find("reasoning")) {
    detail::read(result->reasoning, *reasoning, fields.pointer("reasoning"));
    detail::require_text(result->reasoning.end, "reasoning/end", "it ends the block");
  }
  detail::check_round_trip(result->format);
  return *std::move(result);
}

TOOLDECODE_INLINE std::string format_text(const NamedFormat& format) {
  JsonValue object = JsonValue::object();
  detail::each_style([&](std::string_view style, const auto& usual) {
    const auto* held = format.format.find<std::remove_cvref_t<decltype(usual)>>();
    if (held == nullptr) return;
    object["type"]         = "call_format";
    object["name"]         = format.name;
    object["style"]        = std::string(style);
    const JsonValue fields = detail::written(*held);
    for (const auto& [name, value] : fields.items()) object.items().emplace_back(name, value);
  });
  if (object.empty()) {
    throw Error(Errc::invalid_option, format.name, "a format of your own type has no description");
  }
  JsonValue reasoning = detail::written(format.reasoning);
  if (!reasoning.empty()) object["reasoning"] = std::move(reasoning);
  return object.text({.indent = 2});
}

TOOLDECODE_INLINE NamedFormat find_format(std::string_view name_or_description) {
  const bool is_file = trimmed(name_or_description).starts_with('{');
  return is_file ? read_format(name_or_description) : format_set(name_or_description);
}

}  // namespace tooldecode::formats
