#pragma once

#include <algorithm>

#include <tooldecode/formats/element_style.hpp>

namespace tooldecode::formats {

TOOLDECODE_INLINE std::span<const ElementStyle> element_styles() {
  static const std::vector<ElementStyle> all = [] {
    const auto deep_seek = [](const char* name, const char* gap) {
      const std::string mark = "\uFF5CDSML\uFF5C" + std::string(gap) + "parameter";
      return ElementStyle{
          .name        = name,
          .before_key  = '<' + mark + " name=\"",
          .after_key   = "\"",
          .before_kind = " string=\"",
          .kinds       = {"true", "false", "", "false", "false", "false", "false"},
          .after_kind  = "\">",
          .after_value = "</" + mark + '>',
          .padding     = ElementPadding::values,
      };
    };
    return std::vector<ElementStyle>{
        {.name        = "qwen_xml",
         .before_key  = "<parameter=",
         .after_key   = ">",
         .after_value = "</parameter>"},
        {.name        = "minimax_xml",
         .before_key  = "<parameter name=\"",
         .after_key   = "\">",
         .after_value = "</parameter>"},
        {.name         = "glm_xml",
         .before_key   = "<arg_key>",
         .after_key    = "</arg_key>",
         .before_value = "<arg_value>",
         .after_value  = "</arg_value>"},
        deep_seek("deepseek_xml", ""),
        deep_seek("deepseek_v4_1_xml", " "),
        {.name        = "kimi_k3_xml",
         .before_key  = "<|open|>argument key=\"",
         .after_key   = "\"",
         .before_kind = " type=\"",
         .kinds       = {"string", "number", "integer", "boolean", "null", "array", "object"},
         .after_kind  = "\"<|sep|>",
         .after_value = "<|close|>argument<|sep|>"},
        {.name        = "cohere_xml",
         .before_key  = "<cofl:value name=\"",
         .after_key   = "\"",
         .before_kind = " type=\"",
         .kinds       = {"raw", "json", "", "json", "json", "list", "dict"},
         .after_kind  = "\">",
         .after_value = "</cofl:value>",
         .before_item = "<cofl:value",
         .escapes     = true},
        {.name          = "minimax_m3_xml",
         .before_key    = "]<]minimax[>[<",
         .after_key     = ">",
         .after_value   = "]<]minimax[>[</",
         .after_end_key = ">",
         .padding       = ElementPadding::none,
         .before_item   = "]<]minimax[>[<item>",
         .after_item    = "]<]minimax[>[</item>",
         .never_in_text = "]<]minimax[>["},
    };
  }();
  return all;
}

namespace detail {
inline constexpr std::string_view escaped = "&<>\"";
inline constexpr std::string_view entities[]{"&amp;", "&lt;", "&gt;", "&quot;"};
}  // namespace detail

TOOLDECODE_INLINE std::string ElementStyle::written_key(std::string_view key) const {
  if (!escapes) return std::string(key);
  std::string written;
  for (const char c : key) {
    const std::size_t known = detail::escaped.find(c);
    if (known == std::string_view::npos) {
      written += c;
    } else {
      written += detail::entities[known];
    }
  }
  return written;
}

TOOLDECODE_INLINE std::string ElementStyle::read_key(std::string_view written) const {
  if (!escapes) return std::string(written);
  std::string key;
  for (std::size_t at = 0; at < written.size();) {
    std::size_t i = 0;
    while (i < detail::escaped.size() && !written.substr(at).starts_with(detail::entities[i])) ++i;
    const bool is_entity = i < detail::escaped.size();
    key += is_entity ? detail::escaped[i] : written[at];
    at += is_entity ? detail::entities[i].size() : 1;
  }
  return key;
}

TOOLDECODE_INLINE const ElementStyle* find_element_style(std::string_view name) {
  for (const ElementStyle& style : element_styles()) {
    if (style.name == name) return &style;
  }
  return nullptr;
}

TOOLDECODE_INLINE const std::string& ElementStyle::item_end() const noexcept {
  return after_item.empty() && !before_item.empty() ? after_value : after_item;
}

TOOLDECODE_INLINE bool ElementStyle::is_item(std::string_view key) const {
  return !before_item.empty() && before_key + std::string(key) + after_key == before_item;
}

TOOLDECODE_INLINE bool ElementStyle::carries_bare(std::string_view key) const {
  if (before_key.empty()) {
    return !key.empty() && key.find_first_of(" \t\r\n\v\f,:{}[]<>\"") == std::string_view::npos;
  }
  if (after_value.empty()) return true;
  // Such a key would open an element as one is closed, or close it as a call is.
  const std::string end = after_value + std::string(key) + after_end_key;
  return !(before_key + std::string(key)).starts_with(after_value) &&
         (!repeats_key() || std::find(excluded.begin(), excluded.end(), end) == excluded.end());
}

TOOLDECODE_INLINE bool ElementStyle::carries(std::string_view key) const {
  return escapes ? !key.empty() && key.find('\0') == std::string_view::npos : carries_bare(key);
}

TOOLDECODE_INLINE std::vector<std::string> ElementStyle::ends_of_values() const {
  std::vector<std::string> ends = excluded;
  for (const std::string& one : {text_end(), after_value}) {
    if (one.size() > 1) ends.push_back(one);
  }
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  return ends;
}

TOOLDECODE_INLINE const std::string& ElementStyle::text_end() const noexcept {
  return never_in_text.empty() ? after_value : never_in_text;
}

}  // namespace tooldecode::formats
