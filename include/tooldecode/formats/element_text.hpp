/// \file
/// ElementText: writes and parses values in an element style.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <tooldecode/formats/element_style.hpp>
#include <tooldecode/formats/element_types.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_reader.hpp>

namespace tooldecode::formats {

/// Writes and reads the value of an element, in a style that tells strings from other values by
/// their kinds, by their delimiters, or by the tool's document.
///
/// \par Complexity  O(length of the text)
/// \par Threads     const; refers to the style
/// \par Errors      Error{malformed_call} from `append` for a string that holds what ends it, for a
///                  key that cannot be told from what surrounds it, for numbers that are not
///                  finite, and for a value that `read` takes for another one of the document;
///                  from `read` with the byte; Error{limit_exceeded} past
///                  text::ValueReader::max_depth
class ElementText {
 public:
  using Json = JsonValue;

  explicit ElementText(const ElementStyle& style) : style_(style) {}

  /// \param types  the document's values here, for styles that need it
  void append(std::string& text, const Json& value, const ElementTypes& types = {}) const {
    append(text, value, types, 0);
  }
  /// Reads the value at the cursor, up to what closes the element.
  [[nodiscard]] Json read(text::ValueReader& reader, const ElementTypes& types = {}) const;
  /// What closes the element of a key.
  [[nodiscard]] std::string end_of(std::string_view key) const;
  /// Where the string of a value begins that may still be written; past the text for another
  /// value, and nothing where that is open.
  [[nodiscard]] std::optional<std::size_t> find_string(std::string_view text) const;

 private:
  void append(std::string& text, const Json& value, const ElementTypes& types,
              std::size_t depth) const;
  void append_string(std::string& text, const std::string& string, const ElementTypes& types) const;
  [[nodiscard]] Json read(text::ValueReader& reader, const ElementTypes& types,
                          std::size_t depth) const;
  // Reads a value whose kind the text does not tell.
  [[nodiscard]] Json by_document(text::ValueReader& reader, const ElementTypes& types,
                                 std::size_t depth) const;
  [[nodiscard]] std::string string(text::ValueReader& reader) const;
  [[nodiscard]] Json list(text::ValueReader& reader, const ElementTypes& types,
                          std::size_t depth) const;
  [[nodiscard]] Json object(text::ValueReader& reader, const ElementTypes& types,
                            std::size_t depth) const;
  [[nodiscard]] std::string key(text::ValueReader& reader) const;
  [[nodiscard]] const std::string& kind(ElementKind kind) const;
  static ElementKind kind_of(const Json& value);
  static void check_depth(std::size_t depth);

  const ElementStyle& style_;
};

}  // namespace tooldecode::formats

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/formats/element_text.ipp>

#endif
