#pragma once

#include <algorithm>

#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/element_text.hpp>
#include <tooldecode/formats/listed_arguments.hpp>
#include <tooldecode/formats/open_argument.hpp>
#include <tooldecode/formats/plain_text.hpp>
#include <tooldecode/formats/positional_call.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/formats/xml_call.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_text.hpp>

namespace tooldecode::formats {
namespace detail {

// The text without the character at its end that has begun.
TOOLDECODE_INLINE std::string_view whole_characters(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0U) == 0x80U) continue;
    const std::size_t length = byte >= 0xF0U ? 4 : byte >= 0xE0U ? 3 : byte >= 0xC0U ? 2 : 1;
    if (length > back) text.remove_suffix(back);
    break;
  }
  return text;
}

// JSON text of more of a string, which opens with the first piece.
TOOLDECODE_INLINE std::string piece_of(std::string_view more, bool is_first) {
  std::string json;
  text::append_json_string(json, more);
  json.pop_back();
  return is_first ? json : json.substr(1);
}

// Bytes of the escape at the beginning of a text, as far as it may go; 0 where more is needed.
TOOLDECODE_INLINE std::size_t escape_length(std::string_view text,
                                            text::ValueReader::Language language) {
  if (text.size() < 2) return 0;
  const bool python = language == text::ValueReader::Language::python;
  std::size_t size  = 2;
  if (text[1] == 'u') {
    size = 6;
    // The first half of a pair goes with the second.
    const bool is_half = text.size() > 3 && (text[2] == 'd' || text[2] == 'D') &&
                         std::string_view("89abAB").find(text[3]) != std::string_view::npos;
    if (is_half) size = 12;
  } else if (python && text[1] == 'U') {
    size = 10;
  } else if (python && (text[1] == 'x' || (text[1] >= '0' && text[1] <= '7'))) {
    size = 4;  // an octal one may be shorter: then what follows it is read with it
  }
  return text.size() < size ? 0 : size;
}

}  // namespace detail

TOOLDECODE_INLINE std::size_t OpenArgument::held_back(std::string_view text,
                                                      std::span<const std::string> delimiters) {
  std::size_t longest = 0;
  for (const std::string& delimiter : delimiters) {
    for (std::size_t size = std::min(delimiter.size(), text.size()); size > longest; --size) {
      if (text.ends_with(std::string_view(delimiter).substr(0, size))) longest = size;
    }
  }
  return longest;
}

TOOLDECODE_INLINE std::string OpenArgument::plain(std::string_view text, std::size_t begin,
                                                  std::span<const std::string> delimiters) {
  const bool is_first        = read_ == 0;
  const std::size_t from     = is_first ? begin : read_;
  const std::string_view all = text.substr(0, text.size() - held_back(text, delimiters));
  if (all.size() <= from) return {};
  const std::string_view more = detail::whole_characters(all.substr(from));
  if (more.empty()) return {};
  read_ = from + more.size();
  return detail::piece_of(more, is_first);
}

TOOLDECODE_INLINE std::string OpenArgument::quoted(std::string_view text,
                                                   text::ValueReader::Language language) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (is_over_ || first == std::string_view::npos) return {};
  const char quote = text[first];
  is_over_ = quote != '"' && !(quote == '\'' && language == text::ValueReader::Language::python);
  if (is_over_) return {};
  const bool is_first    = read_ == 0;
  const std::size_t from = is_first ? first + 1 : read_;
  std::size_t end        = from;
  while (end < text.size()) {
    if (text[end] != '\\') {
      is_over_ = text[end] == quote;
      if (is_over_) break;
      ++end;
      continue;
    }
    const std::size_t size = detail::escape_length(text.substr(end), language);
    if (size == 0) break;
    // No further than the next quote or escape, if it is shorter than it may be.
    const std::string stops{quote, '\\'};
    const std::size_t stop = text.substr(end + 2, size - 2).find_first_of(stops);
    end += size == 12 || stop == std::string_view::npos ? size : stop + 2;
  }
  const std::string_view more = detail::whole_characters(text.substr(from, end - from));
  std::string string;
  if (!more.empty()) {
    try {
      const std::string literal = quote + std::string(more) + quote;
      string = text::ValueReader(literal, language, Errc::malformed_call).only_value().string();
    } catch (const Error&) {
      is_over_ = true;  // reading it when it is complete says what is wrong
      return {};
    }
  }
  read_ = from + more.size();
  return detail::piece_of(string, is_first);
}

TOOLDECODE_INLINE std::string OpenArgument::element(const XmlCall& format, const Tool& tool,
                                                    const std::string& key, std::string_view text) {
  const auto& style = format.style;
  if (style && !style->by_document) {
    const auto begin = ElementText(*style).find_string(text);
    is_over_         = begin && *begin > text.size();
    if (!begin || is_over_) return {};
    const std::string ends[] = {style->after_text.empty() ? format.after_value : style->after_text};
    return plain(text, *begin, ends);
  }
  const std::string& padding = format.padding;
  const std::string end      = style ? ElementText(*style).end_of(key) : format.after_value;
  const std::string ends[]   = {end, padding + end};
  if (read_ > 0) return plain(text, 0, ends);
  if (text.size() < padding.size() && padding.starts_with(text)) return {};
  const std::size_t begin = text.starts_with(padding) ? padding.size() : 0;
  const auto form         = find_argument_form(tool, key);
  is_over_                = form != PlainForm::text && form != PlainForm::nullable;
  if (is_over_) return {};
  const std::size_t held      = std::min(held_back(text, ends), text.size() - begin);
  const std::string_view word = text.substr(begin, text.size() - begin - held);
  // It may still become a null.
  if (form == PlainForm::nullable && std::string_view("null").starts_with(word)) return {};
  return plain(text, begin, ends);
}

TOOLDECODE_INLINE std::string OpenArgument::more(const AnyFormat& format, const Tool& tool,
                                                 std::size_t given, std::string_view before,
                                                 std::string_view text) {
  if (is_over_) return {};
  const auto* const elements = format.find<XmlCall>();
  const auto* const python   = format.find<PythonCall>();
  if (elements == nullptr && python == nullptr && format.find<PositionalCall>() == nullptr) {
    is_over_ = true;  // a format of the user's own
    return {};
  }
  std::string json;
  if (size_ == 0) {
    // Where there is no element, the key, by a value that every argument may be read as.
    key_ = elements != nullptr ? elements->read_key(tool, given, before)
                               : format.read_argument(tool, given, before, "0").first;
    json = given == 0 ? "{" : ", ";
    text::append_json_string(json, key_);
    json += ": ";
  }
  json += elements != nullptr
              ? element(*elements, tool, key_, text)
              : quoted(text, python != nullptr ? PythonCall::language : PositionalCall::language);
  size_ += json.size();
  return json;
}

}  // namespace tooldecode::formats
