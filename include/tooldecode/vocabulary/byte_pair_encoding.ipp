#pragma once

#include <algorithm>
#include <queue>

#include <tooldecode/core/error.hpp>
#include <tooldecode/vocabulary/byte_pair_encoding.hpp>

namespace tooldecode::vocabulary {

TOOLDECODE_INLINE BytePairEncoding::BytePairEncoding(Vocabulary vocabulary,
                                                     const std::vector<Merge>& merges,
                                                     BytePairOptions options)
    : vocabulary_(std::move(vocabulary)), options_(options) {
  index_tokens(options.left_out);
  ranks_.reserve(merges.size());
  // Some files list a merged text again as a user-defined token.
  const auto any_token = [&](const std::string& text) {
    const TokenId token = token_of(text);
    return token >= 0 ? token : vocabulary_.find(text).value_or(-1);
  };
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right] = merges[rank];
    const TokenId a = any_token(left), b = any_token(right), ab = any_token(left + right);
    if (a < 0 || b < 0 || ab < 0) {
      throw Error(Errc::malformed_vocabulary, "merge " + std::to_string(rank),
                  "must merge two tokens into a third");
    }
    ranks_.try_emplace(pair(a, b), KnownMerge{static_cast<double>(rank), ab});
  }
}

TOOLDECODE_INLINE BytePairEncoding BytePairEncoding::by_tokens(
    const Vocabulary& vocabulary, const std::vector<TokenMerge>& merges, BytePairOptions options) {
  BytePairEncoding result(vocabulary, std::vector<Merge>(), options);
  result.ranks_.reserve(merges.size());
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right, merged] = merges[rank];
    result.ranks_.insert_or_assign(pair(left, right),
                                   KnownMerge{static_cast<double>(rank), merged});
  }
  return result;
}

TOOLDECODE_INLINE BytePairEncoding::BytePairEncoding(Vocabulary vocabulary,
                                                     std::vector<float> scores)
    : BytePairEncoding(std::move(scores), std::move(vocabulary), {.characters = true}) {}

TOOLDECODE_INLINE BytePairEncoding BytePairEncoding::by_ids(const Vocabulary& vocabulary) {
  std::vector<float> scores(vocabulary.token_count());
  for (std::size_t i = 0; i < scores.size(); ++i) scores[i] = -static_cast<float>(i);
  return {std::move(scores), vocabulary, {.whole_first = true}};
}

TOOLDECODE_INLINE void BytePairEncoding::encode(std::string_view piece,
                                                std::vector<TokenId>& out) const {
  if (options_.whole_first) {
    if (const auto whole = tokens_.find(piece); whole != tokens_.end()) {
      return out.push_back(whole->second);
    }
  }
  std::vector<Symbol> symbols = split(piece);
  std::priority_queue<Candidate> queue;
  const auto propose = [&](std::size_t left) {
    const std::size_t right = symbols[left].next;
    if (right == none) return;
    const KnownMerge found = find_pair(piece, symbols[left], symbols[right]);
    if (found.token < 0) return;
    queue.push({found.priority, left, symbols[left].size, symbols[right].size, right, found.token});
  };
  for (std::size_t i = 0; i < symbols.size(); ++i) propose(i);
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Symbol& left  = symbols[best.left];
    Symbol& right = symbols[best.right];
    if (left.size != best.left_size || right.size != best.right_size || left.next != best.right) {
      continue;  // stale: one of the two was merged meanwhile
    }
    left.size += right.size;
    left.token = best.token;
    left.next  = right.next;
    right.size = 0;
    if (left.next != none) symbols[left.next].previous = best.left;
    propose(best.left);
    if (left.previous != none) propose(left.previous);
  }
  for (std::size_t i = 0; i < symbols.size() && i != none; i = symbols[i].next) {
    if (symbols[i].token >= 0) {
      out.push_back(symbols[i].token);
    } else {
      write_bytes(piece.substr(symbols[i].begin, symbols[i].size), out);
    }
  }
}

TOOLDECODE_INLINE BytePairEncoding::BytePairEncoding(std::vector<float> scores,
                                                     Vocabulary vocabulary, BytePairOptions options)
    : vocabulary_(std::move(vocabulary)), options_(options), scores_(std::move(scores)) {
  if (scores_.size() != vocabulary_.token_count()) {
    throw Error(Errc::malformed_vocabulary, "scores", scores_.size(),
                "must be one for each token: " + std::to_string(vocabulary_.token_count()));
  }
  index_tokens({});
}

TOOLDECODE_INLINE std::uint64_t BytePairEncoding::pair(TokenId a, TokenId b) noexcept {
  return static_cast<std::uint64_t>(a) << 32 | static_cast<std::uint32_t>(b);
}

TOOLDECODE_INLINE void BytePairEncoding::index_tokens(std::span<const TokenId> left_out) {
  options_.left_out = {};
  bytes_.fill(-1);
  for (std::size_t i = 0; i < vocabulary_.token_count(); ++i) {
    const auto id   = static_cast<TokenId>(i);
    const auto text = vocabulary_.name(id);
    if (std::binary_search(left_out.begin(), left_out.end(), id)) continue;
    const bool is_piece =
        vocabulary_.type(id) == TokenType::normal ||
        (options_.user_defined && vocabulary_.type(id) == TokenType::user_defined);
    if (is_piece && !text.empty()) tokens_.try_emplace(text, id);
    if (vocabulary_.type(id) == TokenType::byte && text.size() == 1) {
      bytes_[static_cast<std::uint8_t>(text[0])] = id;
    }
  }
}

TOOLDECODE_INLINE TokenId BytePairEncoding::token_of(std::string_view text) const {
  const auto found = tokens_.find(text);
  return found == tokens_.end() ? -1 : found->second;
}

TOOLDECODE_INLINE std::vector<BytePairEncoding::Symbol> BytePairEncoding::split(
    std::string_view piece) const {
  std::vector<Symbol> symbols;
  for (std::size_t i = 0; i < piece.size();) {
    std::size_t size = 1;
    if (options_.characters) {
      while (i + size < piece.size() &&
             (static_cast<std::uint8_t>(piece[i + size]) & 0xC0) == 0x80) {
        ++size;
      }
    }
    const std::size_t n = symbols.size();
    symbols.push_back({i, size, n == 0 ? none : n - 1, none, token_of(piece.substr(i, size))});
    if (n > 0) symbols[n - 1].next = n;
    i += size;
  }
  return symbols;
}

TOOLDECODE_INLINE BytePairEncoding::KnownMerge BytePairEncoding::find_pair(
    std::string_view piece, const Symbol& left, const Symbol& right) const {
  if (scores_.empty()) {
    if (left.token < 0 || right.token < 0) return {};
    const auto known = ranks_.find(pair(left.token, right.token));
    return known == ranks_.end() ? KnownMerge{} : known->second;
  }
  const TokenId merged = token_of(piece.substr(left.begin, left.size + right.size));
  if (merged < 0) return {};
  return {-static_cast<double>(scores_[static_cast<std::size_t>(merged)]), merged};
}

TOOLDECODE_INLINE void BytePairEncoding::write_bytes(std::string_view text,
                                                     std::vector<TokenId>& out) const {
  for (const char c : text) {
    TokenId token = bytes_[static_cast<std::uint8_t>(c)];
    if (token < 0) token = token_of({&c, 1});
    if (token < 0) {
      throw Error(Errc::unknown_token, "byte " + std::to_string(static_cast<std::uint8_t>(c)),
                  "must have a token of the vocabulary that writes it");
    }
    out.push_back(token);
  }
}

}  // namespace tooldecode::vocabulary
