/// \file
/// Error: reports bad input with a stable code, a place and a sentence.
#pragma once

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <tooldecode/core/config.hpp>

namespace tooldecode {

/// A place in a text, for people; columns count UTF-8 characters.
struct LinePlace {
  std::size_t line   = 1;  ///< from 1
  std::size_t column = 1;  ///< from 1
  std::size_t begin  = 0;  ///< the byte that the line begins at

  /// The place of a byte; `at` may be the text's length.
  [[nodiscard]] static LinePlace of(std::string_view text, std::size_t at) {
    const std::string_view before = text.substr(0, at);
    const std::size_t begin       = before.rfind('\n') + 1;  // npos + 1 is 0
    const auto is_inner           = [](char c) { return (c & 0xC0) == 0x80; };
    const auto lines              = std::count(before.begin(), before.end(), '\n');
    const std::string_view in     = before.substr(begin);
    const auto inner              = std::count_if(in.begin(), in.end(), is_inner);
    return {static_cast<std::size_t>(lines) + 1, in.size() - static_cast<std::size_t>(inner) + 1,
            begin};
  }
};

/// What went wrong. The codes are stable, so you can switch on them.
enum class Errc {
  file_unreadable,       ///< missing, not a regular file, or cut short
  malformed_json,        ///< not JSON; the place is a byte offset
  malformed_file,        ///< a GGUF, safetensors or other binary file that contradicts itself
  malformed_vocabulary,  ///< a tokenizer that contradicts itself or is incomplete
  malformed_document,    ///< a tool document in none of the known forms
  malformed_schema,      ///< a JSON Schema keyword with an invalid value
  unsupported_keyword,   ///< a JSON Schema keyword that is not implemented; never ignored
  unsatisfiable_schema,
  malformed_pattern,
  unsupported_pattern,  ///< a regular expression that is not regular (look-behind, references)
  unsupported_name,     ///< a name that a call format cannot write so that it reads back
  malformed_grammar,    ///< a syntax error or an undefined rule; the place is a byte offset
  limit_exceeded,       ///< more time, memory or context than the limit allows
  duplicate_tool,
  unknown_tool,    ///< a tool choice that names an unknown tool
  unknown_format,  ///< an unknown call format, tensor type or pre-tokenizer
  malformed_call,  ///< text that is not a call of its format; the place is a byte offset
  unknown_state,   ///< a state of another constraint, or one whose memory was released
  unknown_token,   ///< text that the vocabulary cannot write, or an unknown token id
  shape_mismatch,  ///< a tensor or buffer of the wrong shape
  invalid_option,
  device_failure,  ///< a CUDA call failed; the place is its source line
  cancelled,       ///< building was cancelled, see BuildLimits::cancelled
};

/// The code's name, as used in messages and machine-readable output.
[[nodiscard]] constexpr std::string_view name(Errc code) noexcept {
  switch (code) {
    case Errc::file_unreadable:
      return "file_unreadable";
    case Errc::malformed_json:
      return "malformed_json";
    case Errc::malformed_file:
      return "malformed_file";
    case Errc::malformed_vocabulary:
      return "malformed_vocabulary";
    case Errc::malformed_document:
      return "malformed_document";
    case Errc::malformed_schema:
      return "malformed_schema";
    case Errc::unsupported_keyword:
      return "unsupported_keyword";
    case Errc::unsatisfiable_schema:
      return "unsatisfiable_schema";
    case Errc::malformed_pattern:
      return "malformed_pattern";
    case Errc::unsupported_pattern:
      return "unsupported_pattern";
    case Errc::unsupported_name:
      return "unsupported_name";
    case Errc::malformed_grammar:
      return "malformed_grammar";
    case Errc::limit_exceeded:
      return "limit_exceeded";
    case Errc::duplicate_tool:
      return "duplicate_tool";
    case Errc::unknown_tool:
      return "unknown_tool";
    case Errc::unknown_format:
      return "unknown_format";
    case Errc::malformed_call:
      return "malformed_call";
    case Errc::unknown_state:
      return "unknown_state";
    case Errc::unknown_token:
      return "unknown_token";
    case Errc::shape_mismatch:
      return "shape_mismatch";
    case Errc::invalid_option:
      return "invalid_option";
    case Errc::device_failure:
      return "device_failure";
    case Errc::cancelled:
      return "cancelled";
  }
  return "unknown";
}

/// Bad input, reported before decoding starts. A token that is not allowed is never an error. While
/// decoding, masks may throw `limit_exceeded` and `cancelled`, and models throw their own errors.
///
/// `what()` is one line: "<place>: <sentence>", or "<place> <value>: <sentence>" if a value is
/// wrong. The place locates the cause: a JSON pointer ("#/properties/a"), "byte 17", an option, a
/// tensor's name, a file.
class Error : public std::runtime_error {
 public:
  /// \param code   what went wrong
  /// \param where  the place in the input; empty for the whole input
  /// \param what   one sentence without a full stop
  Error(Errc code, std::string where, std::string_view what);

  /// A wrong value, as in "head_size 80: must be 64, 96, 128 or 256".
  ///
  /// \param where  the option's name, or another place, without the value
  /// \param value  the value that was given: a number, true or false, or a short text
  /// \param what   what it must be
  template <class Value>
  Error(Errc code, std::string where, const Value& value, std::string_view what)
      : std::runtime_error(where + ' ' + written(value) + ": " + std::string(what)),
        code_(code),
        where_(std::move(where)) {}

  [[nodiscard]] Errc code() const noexcept { return code_; }
  [[nodiscard]] const std::string& where() const noexcept { return where_; }

  /// The same error with the place completed by a caller that knows more: an empty place becomes
  /// the prefix, a place that begins with a slash is appended to it, and any other place is kept.
  [[nodiscard]] Error under(const std::string& prefix) const;
  /// The same error for a text embedded in another one: the place becomes `outer`, and the message
  /// with its own place becomes the sentence.
  [[nodiscard]] Error within(const std::string& outer) const { return {code_, outer, what()}; }
  /// The same error with `byte N` of a text as the line and the column there, both from 1; columns
  /// count characters.
  [[nodiscard]] Error at_line(std::string_view text) const;

 private:
  Error(const std::string& line, Errc code, std::string where)
      : std::runtime_error(line), code_(code), where_(std::move(where)) {}

  template <class Value>
  [[nodiscard]] static std::string written(const Value& value) {
    if constexpr (std::same_as<Value, bool>) {
      return value ? "true" : "false";
    } else if constexpr (std::is_arithmetic_v<Value>) {
      char digits[32];  // the shortest form of a double has at most 24
      return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
    } else {
      return '"' + std::string(std::string_view(value)) + '"';
    }
  }

  Errc code_;
  std::string where_;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/core/error.ipp>
#endif
