/// \file
/// Numbers of documents that neither a double nor an integer of 64 bits holds: kept as their text.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>

#include <tooldecode/core/error.hpp>
#include <tooldecode/text/decimal.hpp>

#include <nlohmann/json_fwd.hpp>

namespace tooldecode::text {

namespace detail {

template <class Integer>
std::optional<Integer> find_integer(const std::string& text) {
  Integer value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace detail

/// The value of a number's text in JSON, as nlohmann reads it: an integer of 64 bits where it is
/// one and fits, else the nearest double; nothing where that is infinite.
///
/// By itself: for the sake of this alone nlohmann's parser would be compiled.
///
/// \par Complexity  O(digits)
/// \par Errors      std::bad_alloc
[[nodiscard]] std::optional<nlohmann::ordered_json> find_number(std::string text);

/// What stands in a document for the number 18446744073709551617: a binary value, of a type of its
/// own, that has the number's text. It is no string, which a schema could mean, and dumps as none;
/// `write_json` and `canonical_json` write the number.
///
/// \par Complexity  O(digits)
struct ExactNumber {
  using Json = nlohmann::ordered_json;

  static constexpr std::uint8_t subtype = 'n';

  /// The value of a number's text: as nlohmann reads it where that is the same number.
  ///
  /// \param read  what nlohmann has read
  [[nodiscard]] static Json keep(std::string text, Json read);
  [[nodiscard]] static bool is(const Json& value);
  /// The text of a number of either kind.
  [[nodiscard]] static std::string text(const Json& value);
  /// Whether a value is a number of either kind.
  [[nodiscard]] static bool is_number(const Json& value);
  /// Whether a document has such a number.
  [[nodiscard]] static bool is_in(const Json& value);
  /// The same document with every number as nlohmann reads it: rounded.
  [[nodiscard]] static Json rounded(Json value);

 private:
  static void round(Json& value);
};

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/exact_number.ipp>
#endif
