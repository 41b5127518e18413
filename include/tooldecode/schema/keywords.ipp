/// \file
/// Definitions of keywords.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <tooldecode/core/config.hpp>
#include <tooldecode/schema/keywords.hpp>
#include <tooldecode/text/code_points.hpp>

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

TOOLDECODE_INLINE std::size_t edit_distance(std::string_view a, std::string_view b) {
  static constexpr std::size_t longest = 32;
  std::array<std::array<std::size_t, longest>, 3> rows{};
  for (std::size_t i = 0; i <= a.size(); ++i) {
    auto& row           = rows[i % 3];
    const auto& before  = rows[(i + 2) % 3];
    const auto& earlier = rows[(i + 1) % 3];
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        row[j] = i + j;
        continue;
      }
      row[j] =
          std::min({before[j] + 1, row[j - 1] + 1, before[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], earlier[j - 2] + 1);
      }
    }
  }
  return rows[a.size() % 3][b.size()];
}

TOOLDECODE_INLINE std::optional<Keyword> find_keyword(std::string_view name) {
  const auto& known = detail::keywords();
  const auto at     = known.find(name);
  if (at == known.end()) return std::nullopt;
  return at->second;
}

TOOLDECODE_INLINE std::optional<std::string_view> find_near_keyword(std::string_view name) {
  static constexpr std::size_t shortest = 4, long_word = 8;
  if (find_keyword(name)) return std::nullopt;
  std::optional<std::string_view> nearest;
  std::size_t least = name.size() < long_word ? 2 : 3;
  for (const auto& [keyword, meaning] : detail::keywords()) {
    const std::size_t longer  = std::max(name.size(), keyword.size());
    const std::size_t shorter = std::min(name.size(), keyword.size());
    if (shorter < shortest || longer - shorter > least) continue;
    const std::size_t apart = edit_distance(name, keyword);
    const bool is_same      = apart == least && nearest && keyword < *nearest;
    if (apart > least || (apart == least && !is_same)) continue;
    nearest = keyword;
    least   = apart;
  }
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

TOOLDECODE_INLINE std::string escape_pointer(std::string_view name) {
  std::string result;
  for (const char c : name) {
    if (c == '~') {
      result += "~0";
    } else if (c == '/') {
      result += "~1";
    } else {
      result += c;
    }
  }
  return result;
}

}  // namespace tooldecode::schema
