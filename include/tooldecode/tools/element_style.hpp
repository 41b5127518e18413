/// \file
/// ElementStyle: how models write an object as elements, one per property, as data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tooldecode::tools {

/// What a value is, to styles that write it beside the value.
enum class ElementKind : std::uint8_t { text, number, integer, truth, null, array, object };
/// How many kinds there are.
inline constexpr std::size_t element_kinds = 7;

/// What may stand between an element's delimiters and its value, and is no part of it.
enum class ElementPadding : std::uint8_t {
  any,     ///< white space
  values,  ///< white space, but not around strings
  none,
};

/// The delimiters of elements, and of what stands between them.
///
/// An element is `before_key` key `after_key`, the kind of its value between `before_kind` and
/// `after_kind` where the style has kinds, `before_value`, the value, and `after_value`; behind that
/// the key once more and `after_end_key` where the style repeats it.
struct ElementStyle {
  std::string name;
  std::string before_key;
  std::string after_key;
  std::string before_kind{};
  std::array<std::string, element_kinds> kinds{};  ///< by ElementKind; empty: it has no such kind
  std::string after_kind{};
  std::string before_value{};  ///< white space may precede it
  std::string after_value;
  std::string after_end_key{};
  ElementPadding padding = ElementPadding::any;
  std::string before_item{};    ///< opens an item of a list; empty: lists and objects are JSON
  std::string after_item{};     ///< closes it, where it is not closed as an element is
  bool escapes = false;         ///< keys are written with XML's entities
  std::string never_in_text{};  ///< what no string holds; empty: `after_value`

  [[nodiscard]] bool has_kinds() const noexcept { return !before_kind.empty(); }
  [[nodiscard]] bool nests() const noexcept { return !before_item.empty(); }
  [[nodiscard]] bool repeats_key() const noexcept { return !after_end_key.empty(); }
};

/// Every style.
///
/// \par Source  XGrammar 0.2, `JSONSchemaFormat.style`: Qwen3-Coder, MiniMax M2 and M3, DeepSeek
///              V3.2 and V4.1, GLM-4.5, Cohere's Command, Kimi K3
[[nodiscard]] std::span<const ElementStyle> element_styles();

/// The style of a name; null where there is none.
[[nodiscard]] const ElementStyle* find_element_style(std::string_view name);

}  // namespace tooldecode::tools

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/tools/element_style.ipp>
#endif
