/// \file
/// Which reasoning block may precede an answer of the server.
#pragma once

#include <string>
#include <string_view>

#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/free_text.hpp>

namespace program {

/// The value of --reasoning that depends on the model's template and on each prompt.
inline constexpr const char* automatic_reasoning = "auto";

/// Refuses a --reasoning that the server does not know, before a model is loaded.
inline void check_reasoning(const std::string& text) {
  for (const std::string_view known : {automatic_reasoning, "no", "block", "open"}) {
    if (text == known) return;
  }
  throw tooldecode::Error(tooldecode::Errc::invalid_option, "--reasoning", text,
                          "must be auto, no, block or open");
}

namespace detail {

inline std::string_view without_last_space(std::string_view text) {
  return text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
}

}  // namespace detail

/// Whether a chat template names a delimiter of reasoning blocks. `says` tells whether it has a
/// text. White space at a delimiter's end does not count: a template may have it as `\n`.
template <class Says>
[[nodiscard]] bool names_reasoning(const Says& says,
                                   const tooldecode::formats::ReasoningDelimiters& delimiters) {
  const auto is_named = [&](const std::string& delimiter) {
    const std::string_view text = detail::without_last_space(delimiter);
    return !text.empty() && says(text);
  };
  return is_named(delimiters.begin) || is_named(delimiters.end);
}

/// What `auto` means after a prompt, if the model's template names the delimiters: `open` if the
/// prompt ends with the delimiter that begins a block, `no` if it ends with the one that ends a
/// block, else `block`.
///
/// \param prompt  what the template writes behind the last text of a request: a user may write
///                delimiters too
[[nodiscard]] inline std::string reasoning_after(
    std::string_view prompt, const tooldecode::formats::ReasoningDelimiters& delimiters) {
  prompt = detail::without_last_space(prompt);
  if (prompt.ends_with(detail::without_last_space(delimiters.end))) return "no";
  return prompt.ends_with(detail::without_last_space(delimiters.begin)) ? "open" : "block";
}

}  // namespace program
