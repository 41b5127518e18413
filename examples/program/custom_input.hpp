/// \file
/// CustomInput: extracts the text of a call to a custom tool from the JSON of its arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/string_escape.hpp>

namespace program {

/// Reads the JSON of an object with one string, in any pieces, and returns the string's text as
/// soon as it is known.
///
/// \par Complexity  O(bytes)
class CustomInput {
 public:
  /// The text that a piece adds: whole characters if the pieces have whole characters.
  [[nodiscard]] std::string push(std::string_view piece) {
    std::string text;
    for (const char c : piece) take(c, text);
    return text;
  }

 private:
  void take(char c, std::string& text) {
    const bool is_value = strings_ == 2;  // the first string is the key
    if (!is_inside_) {
      if (c != '"') return;
      is_inside_ = true;
      ++strings_;
    } else if (escape_) {
      static_cast<void>(escape_->read(static_cast<std::uint8_t>(c)));
      const auto character = escape_->character();
      if (!character) return;
      if (is_value) tooldecode::text::append_utf8(text, *character);
      escape_.reset();
    } else if (c == '\\') {
      escape_.emplace(tooldecode::text::ValueSyntax::json);
    } else if (c == '"') {
      is_inside_ = false;
    } else if (is_value) {
      text += c;
    }
  }

  int strings_    = 0;  // strings begun so far
  bool is_inside_ = false;
  std::optional<tooldecode::text::StringEscape> escape_;
};

}  // namespace program
