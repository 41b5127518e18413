/// \file
/// The compact JSON form of a tokenizer: token bytes in base64, merges or scores, patterns.
#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <tooldecode/core/error.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/vocabulary/tokenizer.hpp>

namespace tooldecode::vocabulary {

/// Reads members of a JSON object; errors name their JSON pointers.
class JsonMembers {
 public:
  explicit JsonMembers(const JsonValue& object, std::string pointer = "#");
  [[noreturn]] void fail(const std::string& key, const std::string& what) const;
  [[nodiscard]] bool has(const char* key) const;
  [[nodiscard]] const JsonValue& array(const char* key) const;
  /// Rejects members with other names.
  void allow(std::initializer_list<std::string_view> keys) const;
  template <class T>
  [[nodiscard]] T value(const char* key) const {
    const auto found = object_.find(key);
    bool fits        = found != object_.end();
    if constexpr (std::same_as<T, bool>) {
      fits = fits && found->is_boolean();
    } else if constexpr (std::integral<T>) {  // get would convert any number
      if (fits &&
          !(std::is_signed_v<T> ? found->is_number_integer() : found->is_number_unsigned())) {
        fail(key,
             std::is_signed_v<T> ? "must be a whole number" : "must be a whole number, 0 or more");
      }
    } else if constexpr (std::floating_point<T>) {
      fits = fits && found->is_number();
    } else if constexpr (std::same_as<T, std::string>) {
      fits = fits && found->is_string();
    } else {
      fits = fits && found->is_array();
      for (std::size_t i = 0; fits && i < found->size(); ++i) {
        fits = std::is_arithmetic_v<typename T::value_type> ? found->at(i).is_number()
                                                            : found->at(i).is_string();
      }
    }
    if (!fits) fail(key, "must be there, and of its type");
    return found->template get<T>();
  }
  template <class T>
  [[nodiscard]] T value_or(const char* key, T otherwise) const {
    return has(key) ? value<T>(key) : std::move(otherwise);
  }

 private:
  const JsonValue& object_;
  std::string pointer_;
};

/// Decodes base64; errors name `place`.
std::string decode_base64(std::string_view text, const std::string& place);

/// Splits "a b", written in the byte alphabet.
BytePairEncoding::Merge split_merge(std::string_view text, std::size_t rank);

/// Splits "a b", where U+2581 stands for spaces in a and b.
BytePairEncoding::Merge split_marked_merge(std::string_view text, std::size_t rank);

/// Reads the compact form: one JSON object with `type` (`bpe-bytelevel` or `spm-bpe`),
/// `tokens_b64`, `token_types`, `merges` or `scores`, `pre_tokenizer`, `eos_id` and, if the logits
/// are longer than the list of tokens, `model_vocab_size`.
///
/// An uncompressed file has no checksum that would reveal damage, so redundant data is checked:
/// `n_tokens` must match the tokens, merges must match the tokens they make, no two normal tokens
/// may write the same bytes, and unknown members are rejected. Data that occurs once (a token's
/// type, the end token's id) is not checked.
///
/// \par Complexity  O(size of the text)
/// \par Errors      Error{malformed_json, malformed_vocabulary, malformed_pattern} with the place
[[nodiscard]] Tokenizer parse_compact_vocabulary(std::string_view json_text);
/// The same, of a file that was parsed.
[[nodiscard]] Tokenizer read_compact_vocabulary(const JsonValue& root);

}  // namespace tooldecode::vocabulary

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/vocabulary/compact_vocabulary.ipp>
#endif
