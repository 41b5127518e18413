#pragma once

#include <algorithm>
#include <cstring>

#include <tooldecode/core/error.hpp>
#include <tooldecode/vocabulary/unigram.hpp>

namespace tooldecode::vocabulary {

TOOLDECODE_INLINE CharacterMap::CharacterMap(std::string_view compiled) {
  if (compiled.empty()) return;
  std::uint32_t size = 0;
  if (compiled.size() >= sizeof size) std::memcpy(&size, compiled.data(), sizeof size);
  if (size == 0 || size % 4 != 0 || size > compiled.size() - sizeof size) {
    throw Error(Errc::malformed_vocabulary, "precompiled_charsmap",
                "must begin with the length of its double array");
  }
  units_.resize(size / 4);
  std::memcpy(units_.data(), compiled.data() + sizeof size, size);
  texts_ = compiled.substr(sizeof size + size);
}

TOOLDECODE_INLINE std::string CharacterMap::apply(std::string_view text) const {
  if (units_.empty()) return std::string(text);
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const auto [length, value] = longest(text.substr(at));
    if (length == 0) {
      do result.push_back(text[at++]);
      while (at < text.size() && (static_cast<std::uint8_t>(text[at]) & 0xC0) == 0x80);
    } else {
      result += std::string_view(texts_).substr(value, texts_.find('\0', value) - value);
      at += length;
    }
  }
  return result;
}

TOOLDECODE_INLINE std::uint32_t CharacterMap::children(std::uint32_t unit) noexcept {
  return (unit >> 10) << ((unit & 1U << 9) >> 6);
}

TOOLDECODE_INLINE std::pair<std::size_t, std::size_t> CharacterMap::longest(
    std::string_view text) const noexcept {
  std::pair<std::size_t, std::size_t> best{0, 0};
  std::size_t at = children(units_[0]);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::uint32_t byte = static_cast<std::uint8_t>(text[i]);
    at ^= byte;
    if (at >= units_.size() || (units_[at] & (1U << 31 | 0xFFU)) != byte) break;
    const std::uint32_t unit = units_[at];
    at ^= children(unit);
    if ((unit >> 8 & 1U) == 0) continue;
    if (at >= units_.size()) break;
    const std::size_t value = units_[at] & ~(1U << 31);
    if (value < texts_.size()) best = {i + 1, value};
  }
  return best;
}

TOOLDECODE_INLINE Unigram::Unigram(Vocabulary vocabulary, std::vector<float> scores,
                                   UnigramOptions options)
    : Unigram({scores.begin(), scores.end()}, true, std::move(vocabulary), std::move(options)) {}

TOOLDECODE_INLINE Unigram Unigram::of_doubles(const Vocabulary& vocabulary,
                                              std::vector<double> scores, UnigramOptions options) {
  return {std::move(scores), false, vocabulary, std::move(options)};
}

TOOLDECODE_INLINE Unigram::Unigram(std::vector<double> scores, bool is_single,
                                   Vocabulary vocabulary, UnigramOptions options)
    : vocabulary_(std::move(vocabulary)),
      scores_(std::move(scores)),
      is_single_(is_single),
      options_(std::move(options)) {
  if (scores_.size() != vocabulary_.token_count()) {
    throw Error(Errc::malformed_vocabulary, "scores", scores_.size(),
                "must be one for each token: " + std::to_string(vocabulary_.token_count()));
  }
  bytes_.fill(-1);
  std::vector<core::ByteTrie::Entry> entries;
  for (std::size_t i = 0; i < vocabulary_.token_count(); ++i) {
    const auto id   = static_cast<TokenId>(i);
    const auto text = vocabulary_.name(id);
    if (std::binary_search(options_.left_out.begin(), options_.left_out.end(), id)) continue;
    if (vocabulary_.type(id) == TokenType::normal ||
        (options_.user_defined && vocabulary_.type(id) == TokenType::user_defined)) {
      entries.emplace_back(text, static_cast<std::uint32_t>(i));
      lowest_ = std::min(lowest_, scores_[i]);
    } else if (vocabulary_.type(id) == TokenType::byte && text.size() == 1) {
      bytes_[static_cast<std::uint8_t>(text[0])] = id;
    }
  }
  options_.left_out = {};
  if (options_.lowest) lowest_ = *options_.lowest;
  pieces_ = std::make_shared<const core::ByteTrie>(std::move(entries));
}

TOOLDECODE_INLINE void Unigram::encode(std::string_view text, std::vector<TokenId>& out) const {
  std::vector<Step> best(text.size() + 1);  // the best way to reach each place, and its score
  best[0].score = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t character    = character_size(text, at);
    bool has_one                   = false;
    core::ByteTrie::NodeIndex node = 0;
    for (std::size_t end = at; end < text.size();) {
      node = pieces_->find_child(node, static_cast<std::uint8_t>(text[end]));
      if (node == 0) break;
      ++end;
      const auto values = pieces_->values(node);
      if (values.empty()) continue;
      for (const std::uint32_t token : values) {
        improve(best[end], {sum(best[at].score, scores_[token]), at, static_cast<TokenId>(token)});
      }
      has_one = has_one || end - at == character;
    }
    // SentencePiece's penalty for a character without a piece.
    if (!has_one) improve(best[at + character], {sum(best[at].score, sum(lowest_, -10)), at, -1});
    at += character;
  }
  std::vector<std::size_t> ends;
  for (std::size_t end = text.size(); end > 0; end = best[end].begin) ends.push_back(end);
  for (std::size_t i = ends.size(); i-- > 0;) {
    const Step& step = best[ends[i]];
    if (step.token >= 0) {
      out.push_back(step.token);
    } else {
      write_bytes(text.substr(step.begin, ends[i] - step.begin), out);
    }
  }
}

TOOLDECODE_INLINE void Unigram::improve(Step& known, const Step& other) noexcept {
  if (other.score > known.score) known = other;
}

TOOLDECODE_INLINE double Unigram::sum(double a, double b) const noexcept {
  // Adding two floats in double precision and rounding gives the float sum.
  return is_single_ ? static_cast<double>(static_cast<float>(a + b)) : a + b;
}

TOOLDECODE_INLINE std::size_t Unigram::character_size(std::string_view text,
                                                      std::size_t at) noexcept {
  std::size_t size = 1;
  while (at + size < text.size() && (static_cast<std::uint8_t>(text[at + size]) & 0xC0) == 0x80)
    ++size;
  return size;
}

TOOLDECODE_INLINE void Unigram::write_bytes(std::string_view text,
                                            std::vector<TokenId>& out) const {
  for (const char c : text) {
    const TokenId token = bytes_[static_cast<std::uint8_t>(c)];
    if (token < 0) {
      throw Error(Errc::unknown_token, "byte " + std::to_string(static_cast<std::uint8_t>(c)),
                  "must have a token of the vocabulary that writes it");
    }
    out.push_back(token);
  }
}

}  // namespace tooldecode::vocabulary
