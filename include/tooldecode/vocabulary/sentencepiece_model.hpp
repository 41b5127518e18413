/// \file
/// SentencePiece's own files (tokenizer.model): models of unigrams, and of byte pairs by score.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
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
  bool next() {
    if (at_ == bytes_.size()) return false;
    const std::uint64_t tag = varint();
    number_                 = tag >> 3;
    value_                  = 0;
    text_                   = {};
    switch (tag & 7) {
      case 0:
        value_ = varint();
        break;
      case 1:
        take(8);
        break;
      case 2:
        take(varint());
        break;
      case 5: {
        take(4);
        std::uint32_t bits;
        std::memcpy(&bits, text_.data(), sizeof bits);
        value_ = bits;
        break;
      }
      default:
        fail("wire type " + std::to_string(tag & 7) + ": must be 0, 1, 2 or 5");
    }
    return true;
  }
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
  [[nodiscard]] std::uint64_t value() const noexcept { return value_; }
  [[nodiscard]] std::string_view text() const noexcept { return text_; }
  [[nodiscard]] float real() const noexcept {
    float result;
    const auto bits = static_cast<std::uint32_t>(value_);
    std::memcpy(&result, &bits, sizeof result);
    return result;
  }
  /// The message that the field holds.
  [[nodiscard]] ProtocolFields message() const {
    return ProtocolFields(text_, offset_ + at_ - text_.size());
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(Errc::malformed_file, "byte " + std::to_string(offset_ + at_), what);
  }
  std::uint64_t varint() {
    std::uint64_t result = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at_ == bytes_.size()) fail("the file is cut short");
      const auto byte = static_cast<std::uint8_t>(bytes_[at_++]);
      result |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return result;
    }
    fail("a number must not be longer than ten bytes");
  }
  void take(std::uint64_t size) {
    if (size > bytes_.size() - at_) fail("the file is cut short");
    text_ = bytes_.substr(at_, size);
    at_ += size;
  }

  std::string_view bytes_;
  std::size_t offset_, at_ = 0;
  std::uint64_t number_ = 0, value_ = 0;
  std::string_view text_;
};

/// What a SentencePiece file says.
class SentencePieceModel {
 public:
  explicit SentencePieceModel(std::string_view bytes) {
    for (ProtocolFields file(bytes); file.next();) {
      switch (file.number()) {
        case 1:
          read_piece(file.message());
          break;
        case 2:
          read_trainer(file.message());
          break;
        case 3:
          read_normalizer(file.message());
          break;
        default:
          break;
      }
    }
    if (entries_.empty()) throw Error(Errc::malformed_vocabulary, "pieces", "must not be empty");
  }

  [[nodiscard]] Tokenizer build() const {
    const Vocabulary vocabulary(entries_, options());
    if (kind_ == unigrams) {
      return Tokenizer(vocabulary,
                       Unigram(vocabulary, scores_,
                               {.characters      = CharacterMap(character_map_),
                                .collapse_spaces = collapses_spaces_}),
                       {}, prefixes_space_);
    }
    if (kind_ != byte_pairs) {
      throw Error(Errc::malformed_vocabulary, "trainer_spec/model_type", kind_,
                  "must be 1 (unigrams) or 2 (byte pairs)");
    }
    return Tokenizer(vocabulary, BytePairEncoding(vocabulary, scores_),
                     character_map_.empty()
                         ? PreTokenizer()
                         : PreTokenizer::unknown("normalizer_spec/precompiled_charsmap",
                                                 "characters are replaced only for unigrams"),
                     prefixes_space_);
  }

 private:
  static constexpr std::uint64_t unigrams = 1, byte_pairs = 2;

  void read_piece(ProtocolFields piece) {
    const std::string place = "pieces/" + std::to_string(entries_.size());
    std::string text;
    float score        = 0;
    std::uint64_t type = 1;
    while (piece.next()) {
      if (piece.number() == 1) text = piece.text();
      if (piece.number() == 2) score = piece.real();
      if (piece.number() == 3) type = piece.value();
    }
    if (type < 1 || type > 6)
      throw Error(Errc::malformed_vocabulary, place + " type", type, "must be from 1 to 6");
    const auto kind = static_cast<TokenType>(type);
    if (kind == TokenType::byte) {
      const auto byte = find_byte(text);
      if (!byte)
        throw Error(Errc::malformed_vocabulary, place, "must be a byte's token, as <0x0A> is");
      text = std::string(1, *byte);
    } else {
      text = replace_space_marks(text);
    }
    entries_.push_back({std::move(text), kind});
    scores_.push_back(score);
  }
  void read_trainer(ProtocolFields trainer) {
    while (trainer.next()) {
      if (trainer.number() == 3) kind_ = trainer.value();
      const auto id = static_cast<std::int64_t>(static_cast<std::int32_t>(trainer.value()));
      if (trainer.number() == 41) begin_ = id;
      if (trainer.number() == 42) end_ = id;
      if (trainer.number() == 43) pad_ = id;
    }
  }
  void read_normalizer(ProtocolFields normalizer) {
    while (normalizer.next()) {
      if (normalizer.number() == 2) character_map_ = normalizer.text();
      if (normalizer.number() == 3) prefixes_space_ = normalizer.value() != 0;
      if (normalizer.number() == 4) collapses_spaces_ = normalizer.value() != 0;
    }
  }
  [[nodiscard]] VocabularyOptions options() const {
    const auto checked = [&](std::int64_t id) -> std::optional<TokenId> {
      if (id < 0 || id >= static_cast<std::int64_t>(entries_.size())) return std::nullopt;
      return static_cast<TokenId>(id);
    };
    std::vector<TokenId> ends;
    if (const auto end = checked(end_)) ends.push_back(*end);
    for (const TokenId end : find_named_ends(entries_)) ends.push_back(end);
    return {.end_tokens  = without_false_ends(std::move(ends), entries_),
            .begin_token = checked(begin_),
            .pad_token   = checked(pad_)};
  }

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
[[nodiscard]] inline Tokenizer parse_sentencepiece(std::string_view bytes) {
  return detail::SentencePieceModel(bytes).build();
}

}  // namespace tooldecode::vocabulary
