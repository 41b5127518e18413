/// \file
/// ElementTypes: the kinds of value that a tool's document has at a place, for elements that do not
/// write the kind.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/formats/element_style.hpp>
#include <tooldecode/schema/form.hpp>
#include <tooldecode/schema/reader.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/text_dfa.hpp>

namespace tooldecode::formats {

/// The values that may stand at one place of a call's arguments, whichever other arguments it has.
///
/// Without a document every value may.
///
/// \par Complexity  `member` and `item` O(alternatives x keys)
/// \par Threads     one at a time per Reader, to which this refers
class ElementTypes {
 public:
  ElementTypes() = default;
  /// \param forms  of the reader: a value conforms to one of them; every value does if there are none
  ///               or one cannot be read
  ElementTypes(schema::Reader& reader, std::vector<schema::FormId> forms);

  /// Whether a value of this kind may stand here.
  [[nodiscard]] bool has(ElementKind kind) const noexcept {
    return has_[static_cast<std::size_t>(kind)];
  }
  /// Whether numbers, truths or nulls may, which are written without quotes, as strings are.
  [[nodiscard]] bool has_words() const noexcept;
  /// The place of a member of an object here.
  [[nodiscard]] ElementTypes member(const std::string& key) const;
  /// The place of an item of a list here.
  [[nodiscard]] ElementTypes item(std::size_t i) const;
  /// The number, truth or null that a text is here; nullopt where it is a string.
  [[nodiscard]] std::optional<JsonValue> find_word(std::string_view text) const;
  /// All texts that `find_word` finds a value for, at a place that has words.
  [[nodiscard]] text::TextDfa words() const;

  /// The forms; empty without a document.
  [[nodiscard]] const std::vector<schema::FormId>& forms() const noexcept { return forms_; }

 private:
  schema::Reader* reader_ = nullptr;
  std::vector<schema::FormId> forms_{};  // ascending
  std::array<bool, element_kinds> has_{true, true, true, true, true, true, true};
};

}  // namespace tooldecode::formats

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/formats/element_types.ipp>
#endif
