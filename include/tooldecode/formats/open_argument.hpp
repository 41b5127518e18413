/// \file
/// OpenArgument: the JSON text of an argument while a model writes the argument.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <tooldecode/formats/call_format.hpp>
#include <tooldecode/text/value_reader.hpp>

namespace tooldecode {
struct XmlCall;
}  // namespace tooldecode

namespace tooldecode::formats {

/// Gives the JSON text of one argument piece by piece, for formats that do not write JSON: the key
/// when the value begins, a string as it comes. Other values are known when they are complete.
///
/// What it gives is the beginning of the argument as the format reads it: `{"key": value` for the
/// first argument of a call, `, "key": value` for others.
///
/// \par Complexity  O(bytes that are new), and once O(size of the tool's parameters)
/// \par Threads     a value; one thread at a time
/// \par Errors      Error{malformed_call} for a key that the format does not read; a text that is
///                  no value gives nothing
class OpenArgument {
 public:
  /// More of the JSON text.
  ///
  /// \param given   how many arguments precede this one
  /// \param before  the text between the last of them and this one
  /// \param text    the argument's text so far
  [[nodiscard]] std::string more(const AnyFormat& format, const Tool& tool, std::size_t given,
                                 std::string_view before, std::string_view text);

  /// How many bytes of the JSON text were given.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  /// More of a string that stands in `text` as it is, from byte `begin` up to one of some
  /// delimiters, which may have begun.
  [[nodiscard]] std::string plain(std::string_view text, std::size_t begin,
                                  std::span<const std::string> delimiters);

  /// More of a value of a language, if that is a string in quotes.
  [[nodiscard]] std::string quoted(std::string_view text, text::ValueReader::Language language);

  /// How many bytes at the end of a text may begin one of some delimiters.
  [[nodiscard]] static std::size_t held_back(std::string_view text,
                                             std::span<const std::string> delimiters);

 private:
  [[nodiscard]] std::string element(const XmlCall& format, const Tool& tool, const std::string& key,
                                    std::string_view text);

  std::string key_;
  std::size_t read_ = 0;  // bytes of the text that were given
  std::size_t size_ = 0;
  bool is_over_     = false;  // nothing more is certain before the end
};

}  // namespace tooldecode::formats

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/formats/open_argument.ipp>
#endif
