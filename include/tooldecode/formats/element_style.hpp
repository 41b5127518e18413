/// \file
/// ElementStyle: how a model family writes an object as elements, one per property.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/core/config.hpp>

namespace tooldecode::formats {

/// The kind of a value, for styles that write it beside the value.
enum class ElementKind : std::uint8_t { text, number, integer, truth, null, array, object };
/// The number of kinds.
inline constexpr std::size_t element_kinds = 7;

/// What may stand between an element's delimiters and its value without being part of the value.
enum class ElementPadding : std::uint8_t {
  any,     ///< white space
  values,  ///< white space, but not around strings
  none,
};

/// The delimiters of elements and of their parts.
///
/// An element is `before_key` key `after_key`; then, in styles with kinds, `before_kind` kind
/// `after_kind`; then `before_value` value `after_value`; then, in styles that repeat it, the key
/// and `after_end_key`.
struct ElementStyle {
  std::string name;
  std::string before_key;
  std::string after_key;
  std::string before_kind{};
  std::array<std::string, element_kinds> kinds{};  ///< by ElementKind; empty: the style lacks this
                                                   ///< kind
  std::string after_kind{};
  std::string before_value{};  ///< white space may precede it
  std::string after_value;
  std::string after_end_key{};
  ElementPadding padding = ElementPadding::any;
  std::string before_item{};    ///< opens an item of a list; if empty, lists and objects are JSON
  std::string after_item{};     ///< closes an item; if empty, `after_value` does
  bool escapes = false;         ///< keys are written with XML entities
  std::string never_in_text{};  ///< no string holds this; if empty, `after_value`
  std::vector<std::string> excluded{};  ///< more texts that no string holds
  std::string before_text{};            ///< opens a string
  std::string after_text{};             ///< closes a string
  std::string separator{};              ///< between elements, and between items
  std::string before_list{};            ///< opens a list whose items are not elements
  std::string after_list{};
  std::string before_object{};  ///< opens an object inside another one
  std::string after_object{};
  bool by_document =
      false;  ///< only the document tells strings from other values, see ElementTypes

  [[nodiscard]] bool has_kinds() const noexcept { return !before_kind.empty(); }
  [[nodiscard]] bool nests() const noexcept { return !before_item.empty() || !before_list.empty(); }
  [[nodiscard]] bool repeats_key() const noexcept { return !after_end_key.empty(); }
  /// True where the element of a key opens as an item of a list does.
  [[nodiscard]] bool is_item(std::string_view key) const;
  /// What closes an item.
  [[nodiscard]] const std::string& item_end() const noexcept;
  /// A key as the style writes it.
  [[nodiscard]] std::string written_key(std::string_view key) const;
  /// The inverse of `written_key`; unknown entities stay as they are.
  [[nodiscard]] std::string read_key(std::string_view written) const;
  /// True where a key can be told from other text in its place without a delimiter before it.
  [[nodiscard]] bool carries_bare(std::string_view key) const;
  /// True where an object inside another one can have a key.
  [[nodiscard]] bool carries(std::string_view key) const;
  /// Texts that readers of calls take for the end of a value wherever they occur: closing
  /// delimiters and what no string holds. No written value holds one.
  [[nodiscard]] std::vector<std::string> ends_of_values() const;
  /// What ends a string; no string holds it.
  [[nodiscard]] const std::string& text_end() const noexcept;
};

/// All styles.
///
/// \par Source      XGrammar 0.2, `JSONSchemaFormat.style`: Qwen3-Coder, MiniMax M2 and M3,
///                  DeepSeek V3.2 and V4.1, GLM-4.5, Cohere's Command, Kimi K3
[[nodiscard]] std::span<const ElementStyle> element_styles();

/// The style with a name; null where there is none.
[[nodiscard]] const ElementStyle* find_element_style(std::string_view name);

}  // namespace tooldecode::formats

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/formats/element_style.ipp>
#endif
