/// \file
/// ElementStyle: how models write an object as elements, one per property, as data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/core/config.hpp>

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
  std::vector<std::string> excluded{};  ///< further texts that no string holds
  std::string before_text{};            ///< opens a string
  std::string after_text{};             ///< closes it
  std::string separator{};              ///< between elements, and between items
  std::string before_list{};            ///< opens a list whose items are not elements
  std::string after_list{};
  std::string before_object{};  ///< opens an object inside another one
  std::string after_object{};

  [[nodiscard]] bool has_kinds() const noexcept { return !before_kind.empty(); }
  [[nodiscard]] bool nests() const noexcept { return !before_item.empty() || !before_list.empty(); }
  [[nodiscard]] bool repeats_key() const noexcept { return !after_end_key.empty(); }
  /// What closes an item.
  [[nodiscard]] const std::string& item_end() const noexcept;
  /// A key as it is written.
  [[nodiscard]] std::string written_key(std::string_view key) const;
  /// The key that is written so; what is no entity stays as it is.
  [[nodiscard]] std::string read_key(std::string_view written) const;
  /// Whether a key is told from what else may stand in its place, if nothing stands before it.
  [[nodiscard]] bool carries_bare(std::string_view key) const noexcept;
  /// Whether an object inside another one can have a key.
  [[nodiscard]] bool carries(std::string_view key) const noexcept;
  /// What readers of calls take for the end of a value, wherever it stands: what closes elements,
  /// and what no string holds. No value holds one as it is written.
  [[nodiscard]] std::vector<std::string> ends_of_values() const;
  /// What ends a string, and is in none.
  [[nodiscard]] const std::string& text_end() const noexcept;
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
