#pragma once

#include <algorithm>
#include <array>
#include <utility>

#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/delimiter.hpp>
#include <tooldecode/formats/element_types.hpp>
#include <tooldecode/text/regex.hpp>
#include <tooldecode/text/value_reader.hpp>

namespace tooldecode::formats {

TOOLDECODE_INLINE ElementTypes::ElementTypes(schema::Reader& reader,
                                             std::vector<schema::FormId> forms) {
  std::sort(forms.begin(), forms.end());
  forms.erase(std::unique(forms.begin(), forms.end()), forms.end());
  std::array<bool, element_kinds> has{};
  const auto add = [&](ElementKind kind, bool is) { has[static_cast<std::size_t>(kind)] |= is; };
  try {
    for (const schema::FormId id : forms) {
      const schema::Form& form = reader.written(id);
      add(ElementKind::text, !form.texts.empty());
      add(ElementKind::number, !form.numbers.empty());
      add(ElementKind::integer, !form.numbers.empty());
      add(ElementKind::truth, form.truth || form.falsehood);
      add(ElementKind::null, form.null);
      add(ElementKind::array, !form.arrays.empty());
      add(ElementKind::object, !form.objects.empty());
    }
  } catch (const Error&) {
    return;  // what cannot be read says nothing
  }
  if (forms.empty()) return;
  reader_ = &reader;
  forms_  = std::move(forms);
  has_    = has;
}

TOOLDECODE_INLINE bool ElementTypes::has_words() const noexcept {
  return has(ElementKind::number) || has(ElementKind::truth) || has(ElementKind::null);
}

TOOLDECODE_INLINE ElementTypes ElementTypes::member(const std::string& key) const {
  std::vector<schema::FormId> values;
  try {
    for (const schema::FormId id : forms_) {
      for (const schema::ObjectForm& object : reader_->written(id).objects) {
        const schema::FormId value = reader_->forms.value_of(object, key);
        if (value != schema::nothing_form) values.push_back(value);
      }
    }
  } catch (const Error&) {
    return {};  // a pattern of keys that cannot be read
  }
  if (values.empty()) return {};
  return {*reader_, std::move(values)};
}

TOOLDECODE_INLINE ElementTypes ElementTypes::item(std::size_t i) const {
  std::vector<schema::FormId> values;
  for (const schema::FormId id : forms_) {
    for (const schema::ArrayForm& array : reader_->written(id).arrays) {
      if (array.item(i) != schema::nothing_form) values.push_back(array.item(i));
    }
  }
  if (values.empty()) return {};
  return {*reader_, std::move(values)};
}

TOOLDECODE_INLINE std::optional<JsonValue> ElementTypes::find_word(std::string_view text) const {
  const std::string_view word = trimmed(text);
  if (word.empty() || std::string_view("-0123456789tfn").find(word[0]) == std::string_view::npos) {
    return std::nullopt;
  }
  try {
    text::ValueReader reader(word, text::ValueReader::Language::json, Errc::malformed_call);
    reader.keep_integers();
    JsonValue value        = reader.only_value();
    const ElementKind kind = value.is_null()      ? ElementKind::null
                             : value.is_boolean() ? ElementKind::truth
                                                  : ElementKind::number;
    if (has(kind)) return value;
  } catch (const Error&) {
    // not JSON: a string
  }
  return std::nullopt;
}

TOOLDECODE_INLINE text::TextDfa ElementTypes::words() const {
  std::string pattern;
  const auto add = [&](ElementKind kind, const char* texts) {
    if (has(kind)) (pattern += pattern.empty() ? "" : "|") += texts;
  };
  add(ElementKind::null, "null");
  add(ElementKind::truth, "true|false");
  add(ElementKind::number, "-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?(?:[eE][-+]?[0-9]+)?");
  return text::compile_whole_pattern("[ \\t\\r\\n]*(?:" + pattern + ")[ \\t\\r\\n]*");
}

}  // namespace tooldecode::formats
