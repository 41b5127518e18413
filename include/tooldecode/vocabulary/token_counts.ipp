#pragma once

#include <tooldecode/vocabulary/token_counts.hpp>

namespace tooldecode {

TOOLDECODE_INLINE void TokenCounts::add(std::span<const TokenId> tokens,
                                        std::size_t bytes) {  // [L]
  for (const TokenId token : tokens) {
    if (token < 0 || static_cast<std::size_t>(token) >= counts_.size()) {
      throw Error(Errc::unknown_token, "token " + std::to_string(token),
                  "must be one of the " + std::to_string(counts_.size()) + " tokens counted");
    }
  }
  for (const TokenId token : tokens) ++counts_[static_cast<std::size_t>(token)];
  total_ += tokens.size();
  bytes_ += bytes;
}

TOOLDECODE_INLINE TokenCounts& TokenCounts::operator+=(const TokenCounts& other) {
  if (other.counts_.size() != counts_.size()) {
    throw Error(Errc::shape_mismatch, "counts",
                std::to_string(other.counts_.size()) + " tokens: must be " +
                    std::to_string(counts_.size()));
  }
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  total_ += other.total_;
  bytes_ += other.bytes_;
  return *this;
}

TOOLDECODE_INLINE std::size_t TokenCounts::distinct() const noexcept {
  return counts_.size() -
         static_cast<std::size_t>(std::count(counts_.begin(), counts_.end(), std::uint64_t{0}));
}

}  // namespace tooldecode

namespace tooldecode::detail {

TOOLDECODE_INLINE bool TextPieces::next(std::string& piece) {
  const std::size_t held = rest_.size();
  rest_.resize(size_);
  text_.read(rest_.data() + held, static_cast<std::streamsize>(size_ - held));
  rest_.resize(held + static_cast<std::size_t>(text_.gcount()));
  read_ += rest_.size() - held;
  if (text_.bad()) {
    throw Error(Errc::file_unreadable, "byte " + std::to_string(read_), "cannot be read");
  }
  const std::size_t end = rest_.size() < size_ ? rest_.size() : place_to_cut(rest_);
  piece.assign(rest_, 0, end);
  rest_.erase(0, end);
  return end > 0;
}

TOOLDECODE_INLINE std::size_t TextPieces::place_to_cut(std::string_view text) {
  const auto visible = [](char c) { return c > ' ' && c < '\x7F'; };
  for (std::size_t i = text.size() - 1; i > 1; --i) {
    if (text[i - 1] == '\n' && visible(text[i - 2]) && visible(text[i]) && text[i] != '/') {
      return i;
    }
  }
  if (const auto line = text.rfind('\n'); line != text.npos) return line + 1;
  if (const auto word = text.rfind(' '); word != text.npos && word > 0) return word;
  std::size_t end = text.size() - 1;
  while (end + 4 > text.size() && (static_cast<std::uint8_t>(text[end]) & 0xC0) == 0x80) --end;
  return end;
}

}  // namespace tooldecode::detail
