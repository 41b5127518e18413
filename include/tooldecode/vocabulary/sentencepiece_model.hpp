/// \file
/// SentencePiece's own files (tokenizer.model): models of unigrams, and of byte pairs by score.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/vocabulary/byte_alphabet.hpp>
#include <tooldecode/vocabulary/end_tokens.hpp>
#include <tooldecode/vocabulary/tokenizer.hpp>
#include <tooldecode/vocabulary/unigram.hpp>

namespace tooldecode::vocabulary {

namespace detail {

/// The fields of a message of Protocol Buffers, one after the other.
class ProtocolFields {
 public:
  /// \param offset  where the message lies in its file, for errors
  explicit ProtocolFields(std::string_view bytes, std::size_t offset = 0)
      : bytes_(bytes), offset_(offset) {}

  /// Reads the next field, if there is one.
  bool next();
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
  [[nodiscard]] std::uint64_t value() const noexcept { return value_; }
  [[nodiscard]] std::string_view text() const noexcept { return text_; }
  [[nodiscard]] float real() const noexcept;
  /// The message that the field holds.
  [[nodiscard]] ProtocolFields message() const;

 private:
  [[noreturn]] void fail(const std::string& what) const;
  std::uint64_t varint();
  void take(std::uint64_t size);

  std::string_view bytes_;
  std::size_t offset_, at_ = 0;
  std::uint64_t number_ = 0, value_ = 0;
  std::string_view text_;
};

/// What a SentencePiece file says.
class SentencePieceModel {
 public:
  explicit SentencePieceModel(std::string_view bytes);

  [[nodiscard]] Tokenizer build() const;

 private:
  static constexpr std::uint64_t unigrams = 1, byte_pairs = 2;

  void read_piece(ProtocolFields piece);
  void read_trainer(ProtocolFields trainer);
  void read_normalizer(ProtocolFields normalizer);
  [[nodiscard]] VocabularyOptions options() const;

  std::vector<Vocabulary::Entry> entries_;
  std::vector<float> scores_;
  std::uint64_t kind_ = unigrams;
  std::int64_t begin_ = 1, end_ = 2, pad_ = -1;  // SentencePiece's own where a file is silent
  std::string character_map_;
  bool prefixes_space_ = true, collapses_spaces_ = true;
};

}  // namespace detail

/// Reads SentencePiece's file, a message ModelProto of Protocol Buffers.
///
/// A text ends with the file's `eos_id` and with the tokens of `find_named_ends`.
///
/// \par Complexity  O(size of the file)
/// \par Errors      Error{malformed_file} with the byte offset; Error{malformed_vocabulary} with the place
/// \par Source      google/sentencepiece, sentencepiece_model.proto
[[nodiscard]] Tokenizer parse_sentencepiece(std::string_view bytes);

}  // namespace tooldecode::vocabulary

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/vocabulary/sentencepiece_model.ipp>
#endif
