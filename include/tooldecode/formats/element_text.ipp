#pragma once

#include <utility>

#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/delimiter.hpp>
#include <tooldecode/formats/element_text.hpp>
#include <tooldecode/schema/spellings.hpp>
#include <tooldecode/text/utf8.hpp>
#include <tooldecode/text/value_writer.hpp>

namespace tooldecode::formats {

TOOLDECODE_INLINE std::string ElementText::end_of(std::string_view key) const {
  if (!style_.repeats_key()) return style_.after_value;
  return style_.after_value + style_.written_key(key) + style_.after_end_key;
}

TOOLDECODE_INLINE void ElementText::append_string(std::string& text, const std::string& string,
                                                  const ElementTypes& types) const {
  std::vector<std::string> ends = style_.ends_of_values();
  ends.push_back(style_.after_text);
  for (const std::string& end : ends) {
    if (end.empty() || string.find(end) == std::string::npos) continue;
    throw Error(Errc::malformed_call, end, "a string must not hold the delimiter that closes it");
  }
  if (style_.by_document && !types.forms().empty() && types.find_word(string)) {
    throw Error(Errc::malformed_call, string,
                "must not be a string where the same text may be another value");
  }
  ((text += style_.before_text) += string) += style_.after_text;
}

TOOLDECODE_INLINE void ElementText::append(std::string& text, const Json& value,
                                           const ElementTypes& types, std::size_t depth) const {
  check_depth(depth);
  if (style_.has_kinds()) {
    ((text += style_.before_kind) += kind(kind_of(value))) += style_.after_kind;
  }
  text += style_.before_value;
  if (value.is_string()) return append_string(text, value.string(), types);
  if (!style_.nests() || !value.is_structured()) {
    text += schema::escape_excluded(text::write_json(value), style_.ends_of_values());
    return;
  }
  if (style_.by_document && value.empty() && types.has(ElementKind::text)) {
    throw Error(Errc::malformed_call, "", "no list or object is empty where a string may stand");
  }
  bool first          = true;
  const auto separate = [&] {
    if (!std::exchange(first, false)) text += style_.separator;
  };
  if (value.is_array()) {
    text += style_.before_list;
    std::size_t i = 0;
    for (const Json& item : value) {
      separate();
      text += style_.before_item;
      append(text, item, types.item(i++), depth + 1);
      text += style_.item_end();
    }
    text += style_.after_list;
    return;
  }
  text += style_.before_object;
  for (const auto& [name, member] : value.items()) {
    separate();
    const bool is_item =
        style_.by_document && style_.is_item(name) && types.has(ElementKind::array);
    if (is_item || !style_.carries(name)) {
      throw Error(Errc::malformed_call, name, "the format cannot write this key");
    }
    ((text += style_.before_key) += style_.written_key(name)) += style_.after_key;
    append(text, member, types.member(name), depth + 1);
    text += end_of(name);
  }
  text += style_.after_object;
}

TOOLDECODE_INLINE ElementText::Json ElementText::read(text::ValueReader& reader,
                                                      const ElementTypes& types,
                                                      std::size_t depth) const {
  check_depth(depth);
  if (style_.by_document) return by_document(reader, types, depth);
  std::string_view named;
  if (style_.has_kinds()) {
    reader.expect(style_.before_kind);
    const std::size_t length = reader.rest().find(style_.after_kind);
    if (length == std::string_view::npos) reader.fail("expected '" + style_.after_kind + "'");
    named = reader.rest().substr(0, length);
    reader.skip(length + style_.after_kind.size());
  }
  reader.expect(style_.before_value);
  const bool is_told = style_.has_kinds();
  if (is_told ? named == kind(ElementKind::text) : reader.rest().starts_with(style_.before_text)) {
    return string(reader);
  }
  reader.skip_space();
  if (style_.nests()) {
    const auto is = [&](ElementKind one, const std::string& before) {
      return is_told ? named == kind(one) : reader.rest().starts_with(before);
    };
    if (is(ElementKind::array, style_.before_list)) return list(reader, types, depth);
    if (is(ElementKind::object, style_.before_object)) return object(reader, types, depth);
  }
  reader.allow_repeated_keys();
  Json value = reader.value();
  reader.skip_space();
  return value;
}

TOOLDECODE_INLINE ElementText::Json ElementText::by_document(text::ValueReader& reader,
                                                             const ElementTypes& types,
                                                             std::size_t depth) const {
  reader.expect(style_.before_value);
  text::ValueReader first = reader;
  first.skip_space();
  const auto follows = [&](const std::string& opening) {
    return !opening.empty() && first.rest().starts_with(opening);
  };
  const bool is_element = follows(style_.before_key) && !follows(style_.after_value);
  const bool is_list    = follows(style_.before_item) &&
                       (types.has(ElementKind::array) || !types.has(ElementKind::object));
  if (is_list) return list(reader, types, depth);
  if (is_element) return object(reader, types, depth);
  std::string text = string(reader);
  if (!types.has(ElementKind::text) && trimmed(text).empty()) {
    if (types.has(ElementKind::array)) return Json::array();
    if (types.has(ElementKind::object)) return Json::object();
  }
  if (auto word = types.find_word(text)) return *std::move(word);
  return Json(std::move(text));
}

TOOLDECODE_INLINE std::optional<std::size_t> ElementText::find_string(std::string_view text) const {
  std::string opening;
  if (style_.has_kinds()) {
    opening = style_.before_kind + kind(ElementKind::text) + style_.after_kind;
  }
  opening += style_.before_value + style_.before_text;
  if (text.starts_with(opening)) return opening.size();
  if (opening.starts_with(text)) return std::nullopt;
  return text.size() + 1;
}

TOOLDECODE_INLINE std::string ElementText::string(text::ValueReader& reader) const {
  reader.expect(style_.before_text);
  const std::string& end   = style_.after_text.empty() ? style_.after_value : style_.after_text;
  const std::size_t length = reader.rest().find(end);
  if (length == std::string_view::npos) reader.fail("expected '" + end + "'");
  const std::string_view text = reader.rest().substr(0, length);
  if (!text::is_utf8(text)) reader.fail("the string is not UTF-8");
  reader.skip(length);
  reader.expect(style_.after_text);
  return std::string(text);
}

TOOLDECODE_INLINE ElementText::Json ElementText::list(text::ValueReader& reader,
                                                      const ElementTypes& types,
                                                      std::size_t depth) const {
  const std::string& end = style_.after_list.empty() ? style_.after_value : style_.after_list;
  reader.expect(style_.before_list);
  reader.skip_space();
  Json result = Json::array();
  while (!reader.rest().starts_with(end)) {
    if (!result.empty()) reader.expect(style_.separator);
    reader.skip_space();
    reader.expect(style_.before_item);
    result.push_back(read(reader, types.item(result.size()), depth + 1));
    reader.expect(style_.item_end());
    reader.skip_space();
  }
  reader.expect(style_.after_list);
  return result;
}

TOOLDECODE_INLINE ElementText::Json ElementText::object(text::ValueReader& reader,
                                                        const ElementTypes& types,
                                                        std::size_t depth) const {
  const std::string& end = style_.after_object.empty() ? style_.after_value : style_.after_object;
  reader.expect(style_.before_object);
  reader.skip_space();
  Json result = Json::object();
  while (!reader.rest().starts_with(end)) {
    if (!result.empty()) reader.expect(style_.separator);
    reader.skip_space();
    reader.expect(style_.before_key);
    std::string name = key(reader);
    result[name]     = read(reader, types.member(name), depth + 1);
    reader.expect(end_of(name));
    reader.skip_space();
  }
  reader.expect(style_.after_object);
  return result;
}

TOOLDECODE_INLINE std::string ElementText::key(text::ValueReader& reader) const {
  const std::size_t length = reader.rest().find(style_.after_key);
  if (length == std::string_view::npos) reader.fail("expected '" + style_.after_key + "'");
  const std::string_view written = reader.rest().substr(0, length);
  if (written.empty() || !text::is_utf8(written)) reader.fail("expected a key");
  reader.skip(length + style_.after_key.size());
  return style_.read_key(written);
}

TOOLDECODE_INLINE ElementKind ElementText::kind_of(const Json& value) {
  if (value.is_string()) return ElementKind::text;
  if (value.is_boolean()) return ElementKind::truth;
  if (value.is_null()) return ElementKind::null;
  if (value.is_array()) return ElementKind::array;
  return value.is_object() ? ElementKind::object : ElementKind::number;
}

TOOLDECODE_INLINE void ElementText::check_depth(std::size_t depth) {
  if (depth <= text::ValueReader::max_depth) return;
  throw Error(Errc::limit_exceeded, "#", "values are nested too deeply");
}

TOOLDECODE_INLINE const std::string& ElementText::kind(ElementKind kind) const {
  return style_.kinds[static_cast<std::size_t>(kind)];
}

TOOLDECODE_INLINE ElementText::Json ElementText::read(text::ValueReader& reader,
                                                      const ElementTypes& types) const {
  return read(reader, types, 0);
}

}  // namespace tooldecode::formats
