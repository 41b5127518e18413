#pragma once

#include <algorithm>
#include <unordered_set>

#include <tooldecode/schema/assertions.hpp>

namespace tooldecode::schema {

TOOLDECODE_INLINE bool is_nullable(const JsonValue& schema, const std::string& pointer) {
  const auto flag = schema.find("nullable");
  if (flag == schema.end()) return false;
  if (!flag->is_boolean()) {
    throw Error(Errc::malformed_schema, pointer + "/nullable", "must be true or false");
  }
  return flag->get<bool>();
}

TOOLDECODE_INLINE Assertions::Assertions(const Json& schema, SchemaDraft draft,
                                         const std::string& pointer,
                                         const std::vector<std::string_view>& without)
    : pointer_(pointer), draft_(draft) {
  known_.reserve(schema.items().size());
  for (const auto& [name, content] : schema.items()) {
    const auto keyword = find_keyword(name);
    if (!keyword || keyword->shape == KeywordShape::annotation || !keyword->is_in(draft) ||
        (!without.empty() &&
         std::ranges::find(without, vocabulary_of(name, draft)) != without.end())) {
      continue;
    }
    known_.emplace_back(name, &content);
  }
}

TOOLDECODE_INLINE const Assertions::Json* Assertions::find(
    std::string_view keyword) const noexcept {
  for (const auto& [name, content] : known_) {
    if (name == keyword) return content;
  }
  return nullptr;
}

TOOLDECODE_INLINE std::string Assertions::place(std::string_view keyword) const {
  return pointer_ + '/' + std::string(keyword);
}

TOOLDECODE_INLINE void Assertions::malformed(std::string_view keyword,
                                             const std::string& what) const {
  throw Error(Errc::malformed_schema, place(keyword), what);
}

TOOLDECODE_INLINE Assertions::Types Assertions::types() const {
  const Json* type = find("type");
  if (type == nullptr) return {true, true, true, true, true, true, true};
  Types result;
  const auto add = [&](const Json& name) {
    if (name == "null") {
      result.null = true;
    } else if (name == "boolean") {
      result.boolean = true;
    } else if (name == "integer") {
      result.integer = true;
    } else if (name == "number") {
      result.number = result.integer = true;
    } else if (name == "string") {
      result.string = true;
    } else if (name == "array") {
      result.array = true;
    } else if (name == "object") {
      result.object = true;
    } else {
      malformed("type", "no such type: " + name.text());
    }
  };
  if (type->is_array()) {
    for (const Json& name : *type) add(name);
  } else {
    add(*type);
  }
  return result;
}

TOOLDECODE_INLINE NumberForm Assertions::numbers() const {
  NumberForm form;
  if (!types().number) {
    form.kinds =
        draft_ == SchemaDraft::draft4 ? text::NumberKinds::digits : text::NumberKinds::integers;
  }
  read_bound(form.bounds.minimum, "minimum", "exclusiveMinimum", 1);
  read_bound(form.bounds.maximum, "maximum", "exclusiveMaximum", -1);
  if (const Json* multiple = find("multipleOf")) {
    const text::Decimal& divisor =
        form.bounds.multiples.emplace_back(decimal(*multiple, "multipleOf"));
    if (divisor.is_zero() || divisor.negative) {
      malformed("multipleOf", multiple->text() + ": must be above 0");
    }
  }
  return form;
}

TOOLDECODE_INLINE text::Occurrences Assertions::occurrences(const char* min,
                                                            const char* max) const {
  const auto read = [&](const char* keyword, std::uint32_t otherwise) {
    const Json* bound = find(keyword);
    if (bound == nullptr) return otherwise;
    const bool is_number        = text::ExactNumber::is_number(*bound);
    const text::Decimal decimal = is_number ? this->decimal(*bound, keyword) : text::Decimal{};
    if (!is_number || !decimal.is_integral() || decimal.negative) {
      malformed(keyword, "must be a whole number, 0 or more");
    }
    if (decimal.scale > 10) return text::Occurrences::unbounded;
    return static_cast<std::uint32_t>(
        std::min<std::uint64_t>(std::stoull(decimal.plain()), text::Occurrences::unbounded));
  };
  return {read(min, 0), read(max, text::Occurrences::unbounded)};
}

TOOLDECODE_INLINE std::vector<std::string> Assertions::names(const Json& list,
                                                             const std::string& place) {
  std::vector<std::string> result;
  std::unordered_set<std::string_view> known;  // if there are many
  if (!list.is_array()) throw Error(Errc::malformed_schema, place, "must be an array of names");
  result.reserve(list.size());
  for (const Json& name : list) {
    if (!name.is_string()) {
      throw Error(Errc::malformed_schema, place, "must be an array of names");
    }
    const auto& text  = name.string();
    const bool is_new = list.size() > 16 ? known.insert(text).second
                                         : std::ranges::find(result, text) == result.end();
    if (is_new) result.push_back(text);
  }
  return result;
}

TOOLDECODE_INLINE const Assertions::Json* Assertions::find_list(const char* keyword) const {
  const Json* list = find(keyword);
  if (list != nullptr && !list->is_array()) malformed(keyword, "must be an array of schemas");
  return list;
}

TOOLDECODE_INLINE const Assertions::Json* Assertions::find_map(const char* keyword) const {
  const Json* map = find(keyword);
  if (map != nullptr && !map->is_object()) malformed(keyword, "must be an object of schemas");
  return map;
}

TOOLDECODE_INLINE std::optional<std::string> Assertions::find_text(const char* keyword) const {
  const Json* text = find(keyword);
  if (text == nullptr) return std::nullopt;
  if (!text->is_string()) malformed(keyword, "must be a string");
  return text->get<std::string>();
}

TOOLDECODE_INLINE bool Assertions::is_set(const char* keyword) const {
  const Json* flag = find(keyword);
  if (flag == nullptr) return false;
  if (!flag->is_boolean()) malformed(keyword, "must be true or false");
  return flag->get<bool>();
}

TOOLDECODE_INLINE text::Decimal Assertions::decimal(const Json& number, const char* keyword) const {
  if (!text::ExactNumber::is_number(number)) malformed(keyword, "must be a number");
  try {
    return text::Decimal::parse(number.text());
  } catch (const Error& error) {
    throw error.under(place(keyword));
  }
}

TOOLDECODE_INLINE void Assertions::read_bound(Bound& bound, const char* closed, const char* open,
                                              int sign) const {
  const Json* inner = find(closed);
  const Json* outer = find(open);
  if (inner != nullptr) bound = {decimal(*inner, closed), false};
  if (outer == nullptr) return;
  if (outer->is_boolean()) {
    if (bound) bound->exclusive = outer->get<bool>();
    return;
  }
  text::NumberBounds::Bound other{decimal(*outer, open), true};
  if (!bound || sign * text::compare(other.value, bound->value) >= 0) bound = std::move(other);
}

}  // namespace tooldecode::schema
