#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tooldecode/schema/keywords.hpp>
#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/near_name.hpp>

namespace tooldecode::schema {

TOOLDECODE_INLINE bool Keyword::is_in(SchemaDraft draft) const noexcept {
  return first <= draft && draft <= last;
}

namespace detail {

TOOLDECODE_INLINE const std::unordered_map<std::string_view, Keyword>& keywords() {
  using enum KeywordShape;
  using enum SchemaDraft;
  static const std::unordered_map<std::string_view, Keyword> known{
      {"$anchor", {annotation}},
      {"$comment", {annotation}},
      {"$defs", {map}},
      {"$dynamicAnchor", {annotation}},
      {"$dynamicRef", {value, draft2020}},
      {"$id", {annotation}},
      {"$recursiveAnchor", {annotation}},
      {"$recursiveRef", {value, draft2019, draft2019}},
      {"$ref", {value}},
      {"$schema", {annotation}},
      {"$vocabulary", {annotation}},
      {"additionalItems", {schema}},
      {"additionalProperties", {schema}},
      {"allOf", {list}},
      {"anyOf", {list}},
      {"const", {value, draft6}},
      {"contains", {schema, draft6}},
      {"contentEncoding", {annotation}},
      {"contentMediaType", {annotation}},
      {"contentSchema", {annotation}},
      {"default", {annotation}},
      {"definitions", {map}},
      {"dependencies", {map}},
      {"dependentRequired", {value, draft2019}},
      {"dependentSchemas", {map, draft2019}},
      {"deprecated", {annotation}},
      {"description", {annotation}},
      {"else", {schema, draft7}},
      {"enum", {value}},
      {"examples", {annotation}},
      {"exclusiveMaximum", {value}},
      {"exclusiveMinimum", {value}},
      {"format", {value}},
      {"id", {annotation}},
      {"if", {schema, draft7}},
      {"items", {either}},
      {"maxContains", {value, draft2019}},
      {"maxItems", {value}},
      {"maxLength", {value}},
      {"maxProperties", {value}},
      {"maximum", {value}},
      {"minContains", {value, draft2019}},
      {"minItems", {value}},
      {"minLength", {value}},
      {"minProperties", {value}},
      {"minimum", {value}},
      {"multipleOf", {value}},
      {"not", {schema}},
      {"oneOf", {list}},
      {"pattern", {value}},
      {"patternProperties", {map}},
      {"prefixItems", {list, draft2020}},
      {"properties", {map}},
      {"propertyNames", {schema, draft6}},
      {"readOnly", {annotation}},
      {"required", {value}},
      {"then", {schema, draft7}},
      {"title", {annotation}},
      {"type", {value}},
      {"unevaluatedItems", {schema, draft2019}},
      {"unevaluatedProperties", {schema, draft2019}},
      {"uniqueItems", {value}},
      {"writeOnly", {annotation}},
  };
  return known;
}

}  // namespace detail

TOOLDECODE_INLINE std::optional<Keyword> find_keyword(std::string_view name) {
  const auto& known = detail::keywords();
  const auto at     = known.find(name);
  if (at == known.end()) return std::nullopt;
  return at->second;
}

TOOLDECODE_INLINE std::string_view vocabulary_of(std::string_view keyword, SchemaDraft draft) {
  static constexpr std::array<std::string_view, 20> validation{"type",
                                                               "enum",
                                                               "const",
                                                               "multipleOf",
                                                               "maximum",
                                                               "minimum",
                                                               "maxLength",
                                                               "minLength",
                                                               "pattern",
                                                               "maxItems",
                                                               "minItems",
                                                               "uniqueItems",
                                                               "maxContains",
                                                               "minContains",
                                                               "maxProperties",
                                                               "minProperties",
                                                               "required",
                                                               "exclusiveMaximum",
                                                               "exclusiveMinimum",
                                                               "dependentRequired"};
  if (keyword.starts_with('$') || keyword == "definitions") return "core";
  if (keyword == "format") return "format";
  if (keyword.starts_with("unevaluated") && draft == SchemaDraft::draft2020) return "unevaluated";
  return std::find(validation.begin(), validation.end(), keyword) != validation.end()
             ? "validation"
             : "applicator";
}

TOOLDECODE_INLINE std::optional<std::string_view> find_near_keyword(std::string_view name) {
  static constexpr std::size_t shortest = 4, long_word = 8;
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const auto& [keyword, meaning] : detail::keywords()) {
      if (keyword.size() >= shortest) all.push_back(keyword);
    }
    std::sort(all.begin(), all.end());
    return all;
  }();
  if (name.size() < shortest || find_keyword(name)) return std::nullopt;
  const auto nearest = text::find_near_name(name, names, name.size() < long_word ? 1 : 2);
  if (!nearest || find_keyword(*nearest)->shape == KeywordShape::annotation) return std::nullopt;
  return nearest;
}

TOOLDECODE_INLINE bool is_annotation_keyword(std::string_view name) {
  const auto keyword = find_keyword(name);
  return !keyword || keyword->shape == KeywordShape::annotation;
}

TOOLDECODE_INLINE std::optional<SchemaDraft> find_draft(std::string_view uri) {
  using enum SchemaDraft;
  static constexpr std::array<std::pair<std::string_view, SchemaDraft>, 6> known{
      {{"json-schema.org/draft-04/schema", draft4},
       {"json-schema.org/draft-06/schema", draft6},
       {"json-schema.org/draft-07/schema", draft7},
       {"json-schema.org/draft/2019-09/schema", draft2019},
       {"json-schema.org/draft/2020-12/schema", draft2020},
       {"json-schema.org/schema", draft2020}}};
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (uri.starts_with(scheme)) uri.remove_prefix(scheme.size());
  }
  if (uri.ends_with('#')) uri.remove_suffix(1);
  const auto* const at =
      std::find_if(known.begin(), known.end(), [&](const auto& one) { return one.first == uri; });
  if (at == known.end()) return std::nullopt;
  return at->second;
}

TOOLDECODE_INLINE bool is_integral(const JsonValue& number) {
  return !number.is_number_float() || std::trunc(number.get<double>()) == number.get<double>();
}

TOOLDECODE_INLINE std::string unescape_uri(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_escape = text[i] == '%' && i + 2 < text.size();
    const auto high      = is_escape ? text::hex_digit(text[i + 1]) : std::nullopt;
    const auto low       = is_escape ? text::hex_digit(text[i + 2]) : std::nullopt;
    if (high && low) {
      plain += static_cast<char>(16 * *high + *low);
      i += 2;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

}  // namespace tooldecode::schema
