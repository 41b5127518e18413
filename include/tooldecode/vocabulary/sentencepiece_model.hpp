/// \file
/// SentencePiece files (tokenizer.model): Unigram models, and BPE models by score.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/vocabulary/tokenizer.hpp>

namespace tooldecode::vocabulary {

namespace detail {

/// Reads the fields of a Protocol Buffers message one after another.
class ProtocolFields {
 public:
  /// \param offset  the message's byte offset in its file, for errors
  explicit ProtocolFields(std::string_view bytes, std::size_t offset = 0)
      : bytes_(bytes), offset_(offset) {}

  /// Reads the next field; false at the end.
  bool next();
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
  [[nodiscard]] std::uint64_t value() const noexcept { return value_; }
  [[nodiscard]] std::string_view text() const noexcept { return text_; }
  [[nodiscard]] float real() const noexcept;
  /// The message in the current field.
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

/// The content of a SentencePiece file.
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
  std::int64_t begin_ = 1, end_ = 2;  // SentencePiece's defaults
  std::string character_map_;
  bool prefixes_space_ = true, collapses_spaces_ = true;
  bool marks_spaces_ = true, is_space_suffix_ = false;
};

}  // namespace detail

/// Reads a SentencePiece file, the Protocol Buffers message ModelProto.
///
/// End tokens are the file's `eos_id` and those of `find_named_ends`. `encode` throws if spaces end
/// words (`treat_whitespace_as_suffix`) or have no mark (`escape_whitespaces`).
///
/// \par Complexity  O(size of the file)
/// \par Errors      Error{malformed_file} with the byte offset; Error{malformed_vocabulary} with
///                  the place; Error{unknown_format} from `encode`
/// \par Source      google/sentencepiece, sentencepiece_model.proto
[[nodiscard]] Tokenizer parse_sentencepiece(std::string_view bytes);

}  // namespace tooldecode::vocabulary

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/vocabulary/sentencepiece_model.ipp>
#endif
