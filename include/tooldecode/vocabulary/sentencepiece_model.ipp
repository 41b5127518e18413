#pragma once

#include <cstring>
#include <optional>
#include <utility>

#include <tooldecode/vocabulary/byte_alphabet.hpp>
#include <tooldecode/vocabulary/end_tokens.hpp>
#include <tooldecode/vocabulary/sentencepiece_model.hpp>
#include <tooldecode/vocabulary/text_rules.hpp>

namespace tooldecode::vocabulary::detail {

TOOLDECODE_INLINE bool ProtocolFields::next() {
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

TOOLDECODE_INLINE float ProtocolFields::real() const noexcept {
  float result;
  const auto bits = static_cast<std::uint32_t>(value_);
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

TOOLDECODE_INLINE ProtocolFields ProtocolFields::message() const {
  return ProtocolFields(text_, offset_ + at_ - text_.size());
}

TOOLDECODE_INLINE void ProtocolFields::fail(const std::string& what) const {
  throw Error(Errc::malformed_file, "byte " + std::to_string(offset_ + at_), what);
}

TOOLDECODE_INLINE std::uint64_t ProtocolFields::varint() {
  std::uint64_t result = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (at_ == bytes_.size()) fail("the file is cut short");
    const auto byte = static_cast<std::uint8_t>(bytes_[at_++]);
    result |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return result;
  }
  fail("a number must not be longer than ten bytes");
}

TOOLDECODE_INLINE void ProtocolFields::take(std::uint64_t size) {
  if (size > bytes_.size() - at_) fail("the file is cut short");
  text_ = bytes_.substr(at_, size);
  at_ += size;
}

TOOLDECODE_INLINE SentencePieceModel::SentencePieceModel(std::string_view bytes) {
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

TOOLDECODE_INLINE Tokenizer SentencePieceModel::build() const {
  const Vocabulary vocabulary(entries_, options());
  if (kind_ != unigrams && kind_ != byte_pairs) {
    throw Error(Errc::malformed_vocabulary, "trainer_spec/model_type", kind_,
                "must be 1 (unigrams) or 2 (byte pairs)");
  }
  PreTokenizer pieces;
  if (is_space_suffix_) {
    pieces = PreTokenizer::unknown("trainer_spec/treat_whitespace_as_suffix",
                                   "spaces end words and do not begin them");
  } else if (!marks_spaces_) {
    pieces = PreTokenizer::unknown("normalizer_spec/escape_whitespaces", "no mark is for spaces");
  }
  return Tokenizer(
      vocabulary,
      kind_ == unigrams ? Tokenizer::Encoding(Unigram(vocabulary, scores_))
                        : Tokenizer::Encoding(BytePairEncoding(vocabulary, scores_)),
      pieces,
      TextRules::of_sentencepiece(vocabulary, character_map_, prefixes_space_, collapses_spaces_));
}

TOOLDECODE_INLINE void SentencePieceModel::read_piece(ProtocolFields piece) {
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

TOOLDECODE_INLINE void SentencePieceModel::read_trainer(ProtocolFields trainer) {
  while (trainer.next()) {
    if (trainer.number() == 3) kind_ = trainer.value();
    if (trainer.number() == 24) is_space_suffix_ = trainer.value() != 0;
    const auto id = static_cast<std::int64_t>(static_cast<std::int32_t>(trainer.value()));
    if (trainer.number() == 41) begin_ = id;
    if (trainer.number() == 42) end_ = id;
  }
}

TOOLDECODE_INLINE void SentencePieceModel::read_normalizer(ProtocolFields normalizer) {
  while (normalizer.next()) {
    if (normalizer.number() == 2) character_map_ = normalizer.text();
    if (normalizer.number() == 3) prefixes_space_ = normalizer.value() != 0;
    if (normalizer.number() == 4) collapses_spaces_ = normalizer.value() != 0;
    if (normalizer.number() == 5) marks_spaces_ = normalizer.value() != 0;
  }
}

TOOLDECODE_INLINE VocabularyOptions SentencePieceModel::options() const {
  const auto checked = [&](std::int64_t id) -> std::optional<TokenId> {
    if (id < 0 || id >= static_cast<std::int64_t>(entries_.size())) return std::nullopt;
    return static_cast<TokenId>(id);
  };
  std::vector<TokenId> ends;
  if (const auto end = checked(end_)) ends.push_back(*end);
  for (const TokenId end : find_named_ends(entries_)) ends.push_back(end);
  return {.end_tokens  = without_false_ends(std::move(ends), entries_),
          .begin_token = checked(begin_)};
}

}  // namespace tooldecode::vocabulary::detail

namespace tooldecode::vocabulary {

TOOLDECODE_INLINE Tokenizer parse_sentencepiece(std::string_view bytes) {
  return detail::SentencePieceModel(bytes).build();
}

}  // namespace tooldecode::vocabulary
