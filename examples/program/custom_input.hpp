/// \file
/// CustomInput: the text of a call to a custom tool, out of the JSON of its arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/string_escape.hpp>

namespace program {

/// Takes the JSON of an object of one string in any pieces, and gives that string's text as soon as
/// it is known.
///
/// \par Complexity  O(bytes)
class CustomInput {
 public:
  /// What a piece adds to the text: whole characters, where the pieces have whole characters.
  [[nodiscard]] std::string push(std::string_view piece) {
    std::string text;
    for (const char c : piece) take(c, text);
    return text;
  }

 private:
  void take(char c, std::string& text) {
    const bool is_value = strings_ == 2;  // the first is the key
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

  int strings_    = 0;  // begun so far
  bool is_inside_ = false;
  std::optional<tooldecode::text::StringEscape> escape_;
};

}  // namespace program
