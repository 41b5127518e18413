/// \file
/// Error: what bad input gets, before decoding starts: a stable code, a place and a sentence.
#pragma once

#include <charconv>
#include <concepts>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <tooldecode/core/config.hpp>

namespace tooldecode {

/// What went wrong; stable, so that callers may switch on it.
enum class Errc {
  file_unreadable,       ///< missing, not a regular file, or cut short
  malformed_json,        ///< not JSON; the place is a byte offset
  malformed_file,        ///< GGUF, safetensors or another binary form that contradicts itself
  malformed_vocabulary,  ///< a tokenizer that contradicts itself or lacks a part
  malformed_document,    ///< a tool document that is none of the known forms
  malformed_schema,      ///< a JSON Schema keyword with a value that it cannot have
  unsupported_keyword,   ///< a JSON Schema keyword that is not implemented; never ignored
  unsatisfiable_schema,  ///< a JSON Schema that no value satisfies
  malformed_pattern,     ///< a regular expression with a syntax error
  unsupported_pattern,   ///< a regular expression that is not regular (look-around, references)
  unsupported_name,      ///< a name that a call format cannot write such that it reads back
  malformed_grammar,     ///< grammar text with an error or an undefined rule; a byte offset
  limit_exceeded,        ///< a construct that would need more memory than its limit allows
  duplicate_tool,        ///< two tools with one name
  unknown_tool,          ///< a tool choice that names no tool
  unknown_format,        ///< a call format, a tensor type or a pre-tokenizer that is not known
  malformed_call,        ///< text that is no call of its format; the place is a byte offset
  unknown_state,         ///< a constraint's state that is another's, or of memory given up since
  unknown_token,         ///< text that the vocabulary cannot write, or an id that it lacks
  shape_mismatch,        ///< a tensor or a buffer of another shape than required
  invalid_option,        ///< an option outside its range
  device_failure,        ///< a CUDA call that failed; the place is its line
  cancelled,             ///< building that was no longer wanted, see BuildBudget
};

/// The code's name, as written in messages and in machine-readable output.
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

/// Bad input, reported before decoding starts; decoding itself does not throw.
///
/// `what()` is one line, "<place>: <sentence>", or "<place> <value>: <sentence>" where a value must
/// be another. The place is what helps to find the cause: a JSON pointer ("#/properties/a"),
/// "byte 17", an option, a tensor's name, a file.
class Error : public std::runtime_error {
 public:
  /// \param code   what went wrong
  /// \param where  place in the input; empty where the whole input is meant
  /// \param what   one sentence without a full stop
  Error(Errc code, std::string where, std::string_view what);

  /// A value that must be another, as in "head_size 80: must be 64, 96, 128 or 256".
  ///
  /// \param where  the option's name, or another place, to which the value is no part
  /// \param value  what was given: a number, true or false, or a short text
  /// \param what   what it must be
  template <class Value>
  Error(Errc code, std::string where, const Value& value, std::string_view what)
      : std::runtime_error(where + ' ' + written(value) + ": " + std::string(what)),
        code_(code),
        where_(std::move(where)) {}

  [[nodiscard]] Errc code() const noexcept { return code_; }
  [[nodiscard]] const std::string& where() const noexcept { return where_; }

  /// The same error, its place completed by whoever knows what it is under: none becomes the
  /// prefix, one that begins with a slash goes behind it, and any other is whole already.
  [[nodiscard]] Error under(const std::string& prefix) const;
  /// The same error of a text that stands in another one: that one's place comes first, and what
  /// the error says of its own place becomes part of the sentence.
  [[nodiscard]] Error within(const std::string& outer) const { return {code_, outer, what()}; }

 private:
  Error(const std::string& line, Errc code, std::string where)
      : std::runtime_error(line), code_(code), where_(std::move(where)) {}

  template <class Value>
  [[nodiscard]] static std::string written(const Value& value) {
    if constexpr (std::same_as<Value, bool>) {
      return value ? "true" : "false";
    } else if constexpr (std::is_arithmetic_v<Value>) {
      char digits[32];  // the shortest of a double are at most 24
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
