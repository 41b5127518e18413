/// \file
/// ValueReader: reads JSON and Python literals from a longer text, strictly, with byte offsets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <tooldecode/core/error.hpp>
#include <tooldecode/text/json_value.hpp>

namespace tooldecode::text {

/// A cursor over a text that reads one value after another.
///
/// JSON follows RFC 8259. Python is what `ast.literal_eval` reads, if the value has a JSON form:
/// True, False, None, decimal numbers, strings without a prefix (adjacent ones are joined), lists,
/// tuples (as lists) and dicts with string keys; not sets, bytes, complex numbers, other bases,
/// underscores in numbers, `\N{...}` and comments. In both, these are errors: text that is not
/// UTF-8, a number beyond double, half of a surrogate pair unless `replace_half_pairs`, and a
/// repeated key unless `allow_repeated_keys`. An integer beyond 64 bits becomes the nearest double
/// unless `keep_numbers` or `keep_integers`.
///
/// \par Complexity  O(bytes read), O(log keys) more per key
/// \par Threads     a value; one thread at a time
/// \par Errors      Error{code given} with place "byte N"; Error{limit_exceeded} past `max_depth`
class ValueReader {
 public:
  enum class Language : std::uint8_t { json, python };
  using Json = JsonValue;

  /// Maximum nesting of arrays and objects.
  static constexpr std::size_t max_depth = 200;

  ValueReader(std::string_view text, Language language, Errc code)
      : text_(text), language_(language), code_(code) {}

  /// Accepts repeated keys; the last value counts, as in the languages' own readers.
  void allow_repeated_keys() noexcept { unique_keys_ = false; }

  /// Keeps numbers that fit neither a double nor a 64-bit integer, see ExactNumber.
  void keep_numbers() noexcept { keep_numbers_ = true; }
  /// Keeps integers of more than 64 bits, and rounds other numbers.
  void keep_integers() noexcept { keep_integers_ = true; }

  /// Reads JSON's escape of half a surrogate pair as U+FFFD: programs that cut a text within a
  /// character write such escapes.
  void replace_half_pairs() noexcept { replaces_half_pairs_ = true; }

  [[nodiscard]] std::size_t position() const noexcept { return at_; }
  [[nodiscard]] std::string_view rest() const noexcept { return text_.substr(at_); }
  [[nodiscard]] bool at_end() const noexcept { return at_ == text_.size(); }
  void skip(std::size_t bytes) noexcept { at_ += bytes; }

  /// Skips the language's white space.
  void skip_space() noexcept;
  /// Skips these bytes if they come next; returns whether they did.
  bool accept(std::string_view bytes) noexcept;
  /// The same for one byte.
  bool accept(char byte) noexcept {
    if (at_end() || text_[at_] != byte) return false;
    ++at_;
    return true;
  }
  /// Skips these bytes, or throws if they do not come next.
  void expect(std::string_view bytes);
  [[noreturn]] void fail(std::string_view what) const { fail_at(at_, what); }
  [[noreturn]] void fail_at(std::size_t byte, std::string_view what) const;

  /// Reads the value at the cursor, after white space.
  [[nodiscard]] Json value();

  /// Reads a value that must be the rest of the text; white space may surround it.
  [[nodiscard]] Json only_value();
  /// Skips white space, after which the text must end.
  void expect_end(std::string_view otherwise = "expected the end of the text");

  /// Reads the JSON array at the cursor and gives each item to `use(Json item, std::string_view
  /// text)`, so that no tree of all items is made.
  template <class Use>
  void for_each_item(Use use) {
    const Nesting nesting(*this);
    expect("[");
    skip_space();
    for (bool has_ended = accept(']'); !has_ended;) {
      skip_space();
      const std::size_t first = at_;
      Json item               = value();
      use(std::move(item), text_.substr(first, at_ - first));
      skip_space();
      has_ended = accept(']');
      if (!has_ended) expect_or(',', "expected ',' or ']'");
    }
  }

  [[nodiscard]] std::string string();

 private:
  class Nesting {
   public:
    explicit Nesting(ValueReader& reader);
    Nesting(const Nesting&)            = delete;
    Nesting& operator=(const Nesting&) = delete;
    ~Nesting();

   private:
    ValueReader& reader_;
  };

  [[nodiscard]] bool python() const noexcept { return language_ == Language::python; }
  [[nodiscard]] bool is_space(char c) const noexcept;
  static bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
  static bool is_surrogate(std::uint32_t c) noexcept { return c >= 0xD800 && c <= 0xDFFF; }

  Json object();

  Json array();

  void expect_or(char byte, std::string_view what);

  Json word();

  Json number();

  std::string digits();

  /// Checks that a number or a word does not run into another.
  void end_of_word() const;

  void append_string(std::string& result);

  void json_escape(std::string& result);

  void python_escape(std::string& result);

  std::uint32_t hexadecimal(std::size_t digits);

  std::string_view text_;
  Language language_;
  Errc code_;
  bool unique_keys_  = true;
  bool keep_numbers_ = false, keep_integers_ = false, replaces_half_pairs_ = false;
  std::size_t at_    = 0;
  std::size_t depth_ = 0;
  // The members and items read so far of the objects and arrays around the cursor; each gets a list
  // of its final size at its end.
  Json::Object members_;
  Json::Array items_;
};

/// Reads a text that is exactly one JSON value; white space may surround it.
///
/// Repeated keys and nesting past ValueReader::max_depth are errors.
[[nodiscard]] JsonValue parse_json(std::string_view text, Errc code = Errc::malformed_json);

/// Reads a file's text like parse_json, but skips a byte order mark and accepts repeated keys, of
/// which the last value counts.
///
/// \param place  precedes "byte N" in errors
[[nodiscard]] JsonValue parse_json_file(std::string_view text, const std::string& place = "");

/// The value of a JSON text; nothing if it is not JSON.
[[nodiscard]] std::optional<JsonValue> find_json(std::string_view text);

/// Reads a document like parse_json, but keeps every number exactly: those that a double would
/// round become exact values that schemas read, see ExactNumber.
[[nodiscard]] JsonValue parse_exact_json(std::string_view text, Errc code = Errc::malformed_json);

/// Reads a text that is exactly one Python literal; white space may surround it.
[[nodiscard]] JsonValue parse_python_literal(std::string_view text);

}  // namespace tooldecode::text

namespace tooldecode {

/// Reads JSON text with exact numbers, like text::parse_exact_json, for example a schema for
/// ChoiceOptions::text_schema.
///
/// Errors: Error{malformed_json} with the byte.
[[nodiscard]] JsonValue parse_json_value(std::string_view text);

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/value_reader.ipp>
#endif
