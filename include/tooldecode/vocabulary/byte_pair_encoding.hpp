/// \file
/// BytePairEncoding: merges the symbols of one piece of text into tokens.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <queue>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode::vocabulary {

/// How a BytePairEncoding starts and what it merges first.
struct BytePairOptions {
  bool characters  = false;  ///< starts from characters (SentencePiece) instead of bytes
  bool whole_first = false;  ///< a piece that is a token is that token, whatever the merges say
  std::span<const TokenId> left_out = {};  ///< ids that no text is encoded as, in order
};

/// Byte-pair encoding over a vocabulary, by ranked merges or by the scores of the merged pieces.
///
/// The best pair is merged until none is left, the leftmost of equals first. A character without a
/// token is written as its byte tokens.
///
/// \par Complexity  O(n log n) for a piece of n bytes
/// \par Threads     immutable after construction
/// \par Errors      Error{malformed_vocabulary} from the constructors; Error{unknown_token} from
///                  `encode` for a byte that the vocabulary cannot write
/// \par Source      Sennrich et al., arXiv:1508.07909; Kudo and Richardson, arXiv:1808.06226
class BytePairEncoding {
 public:
  /// A pair of texts that may be merged; earlier pairs first.
  using Merge = std::pair<std::string, std::string>;

  BytePairEncoding(Vocabulary vocabulary, const std::vector<Merge>& merges, BytePairOptions options)
      : vocabulary_(std::move(vocabulary)), options_(options) {
    index_tokens(options.left_out);
    ranks_.reserve(merges.size());
    // Some files list a merged text once more, as a token to be matched before anything else.
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
      ranks_.try_emplace(pair(a, b), Found{static_cast<double>(rank), ab});
    }
  }
  /// \param scores  one per token; the pair whose text has the highest score is merged first
  BytePairEncoding(Vocabulary vocabulary, std::vector<float> scores)
      : BytePairEncoding(std::move(scores), std::move(vocabulary), {.characters = true}) {}
  /// tiktoken's: the pair whose text is the token of the lowest id is merged first, and a piece that is a
  /// token is that token.
  [[nodiscard]] static BytePairEncoding by_ids(const Vocabulary& vocabulary) {
    std::vector<float> scores(vocabulary.token_count());
    for (std::size_t i = 0; i < scores.size(); ++i) scores[i] = -static_cast<float>(i);
    return {std::move(scores), vocabulary, {.whole_first = true}};
  }

  /// Appends the tokens of one piece.
  void encode(std::string_view piece, std::vector<TokenId>& out) const {
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
      const Found found = find_pair(piece, symbols[left], symbols[right]);
      if (found.token < 0) return;
      queue.push(
          {found.priority, left, symbols[left].size, symbols[right].size, right, found.token});
    };
    for (std::size_t i = 0; i < symbols.size(); ++i) propose(i);
    while (!queue.empty()) {
      const Candidate best = queue.top();
      queue.pop();
      Symbol& left  = symbols[best.left];
      Symbol& right = symbols[best.right];
      if (left.size != best.left_size || right.size != best.right_size || left.next != best.right) {
        continue;  // one of the two has been merged meanwhile
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

 private:
  BytePairEncoding(std::vector<float> scores, Vocabulary vocabulary, BytePairOptions options)
      : vocabulary_(std::move(vocabulary)), options_(options), scores_(std::move(scores)) {
    if (scores_.size() != vocabulary_.token_count()) {
      throw Error(Errc::malformed_vocabulary, "scores", scores_.size(),
                  "must be one for each token: " + std::to_string(vocabulary_.token_count()));
    }
    index_tokens({});
  }

  static constexpr std::size_t none = ~std::size_t{0};
  struct Symbol {
    std::size_t begin, size, previous, next;
    TokenId token;  // -1: none
  };
  struct Found {
    double priority = 0;  // lower first
    TokenId token   = -1;
  };
  struct Candidate {
    double priority;
    std::size_t left, left_size, right_size, right;
    TokenId token;
    friend bool operator<(const Candidate& a, const Candidate& b) {
      return a.priority != b.priority ? a.priority > b.priority : a.left > b.left;
    }
  };

  static std::uint64_t pair(TokenId a, TokenId b) noexcept {
    return static_cast<std::uint64_t>(a) << 32 | static_cast<std::uint32_t>(b);
  }

  void index_tokens(std::span<const TokenId> left_out) {
    options_.left_out = {};
    bytes_.fill(-1);
    for (std::size_t i = 0; i < vocabulary_.token_count(); ++i) {
      const auto id   = static_cast<TokenId>(i);
      const auto text = vocabulary_.name(id);
      if (std::binary_search(left_out.begin(), left_out.end(), id)) continue;
      if (vocabulary_.type(id) == TokenType::normal && !text.empty()) tokens_.try_emplace(text, id);
      if (vocabulary_.type(id) == TokenType::byte && text.size() == 1) {
        bytes_[static_cast<std::uint8_t>(text[0])] = id;
      }
    }
  }
  [[nodiscard]] TokenId token_of(std::string_view text) const {
    const auto found = tokens_.find(text);
    return found == tokens_.end() ? -1 : found->second;
  }
  [[nodiscard]] std::vector<Symbol> split(std::string_view piece) const {
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
  [[nodiscard]] Found find_pair(std::string_view piece, const Symbol& left,
                                const Symbol& right) const {
    if (scores_.empty()) {
      if (left.token < 0 || right.token < 0) return {};
      const auto known = ranks_.find(pair(left.token, right.token));
      return known == ranks_.end() ? Found{} : known->second;
    }
    const TokenId merged = token_of(piece.substr(left.begin, left.size + right.size));
    if (merged < 0) return {};
    return {-static_cast<double>(scores_[static_cast<std::size_t>(merged)]), merged};
  }
  void write_bytes(std::string_view text, std::vector<TokenId>& out) const {
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

  Vocabulary vocabulary_;
  BytePairOptions options_;
  std::unordered_map<std::string_view, TokenId> tokens_;  // views into vocabulary_'s shared table
  std::array<TokenId, 256> bytes_{};
  std::unordered_map<std::uint64_t, Found> ranks_;
  std::vector<float> scores_;
};

}  // namespace tooldecode::vocabulary
