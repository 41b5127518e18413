/// \file
/// BytePairEncoding: merges the symbols of a piece of text into tokens.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tooldecode/core/types.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode::vocabulary {

/// Options of BytePairEncoding.
struct BytePairOptions {
  bool characters   = false;  ///< starts from characters (SentencePiece) instead of bytes
  bool whole_first  = false;  ///< a piece that is a token becomes that token, whatever the merges
  bool user_defined = false;  ///< user-defined tokens are also pieces of text
  std::span<const TokenId> left_out = {};  ///< ids that no text is encoded as, sorted
};

/// Byte-pair encoding over a vocabulary, by ranked merges or by the scores of the merged pieces.
///
/// The best pair is merged until none is left; among equal pairs the leftmost comes first. A
/// character without a token becomes its byte tokens.
///
/// \par Complexity  O(n log n) for a piece of n bytes
/// \par Threads     immutable after construction
/// \par Errors      Error{malformed_vocabulary} from the constructors; Error{unknown_token} from
///                  `encode` for a byte that the vocabulary cannot write
/// \par Source      Sennrich et al., arXiv:1508.07909; Kudo and Richardson, arXiv:1808.06226
class BytePairEncoding {
 public:
  /// A pair of texts to merge; earlier pairs have priority.
  using Merge = std::pair<std::string, std::string>;

  struct TokenMerge {
    TokenId left, right, merged;
  };

  BytePairEncoding(Vocabulary vocabulary, const std::vector<Merge>& merges,
                   BytePairOptions options);
  /// Uses merges of token ids, so different tokens may write equal bytes; earlier merges have
  /// priority.
  [[nodiscard]] static BytePairEncoding by_tokens(const Vocabulary& vocabulary,
                                                  const std::vector<TokenMerge>& merges,
                                                  BytePairOptions options);
  /// \param scores  one per token; the pair whose text has the highest score is merged first
  BytePairEncoding(Vocabulary vocabulary, std::vector<float> scores);
  /// tiktoken's rule: the pair whose text is the token with the lowest id is merged first, and a
  /// piece that is a token becomes that token.
  [[nodiscard]] static BytePairEncoding by_ids(const Vocabulary& vocabulary);

  void encode(std::string_view piece, std::vector<TokenId>& out) const;

 private:
  BytePairEncoding(std::vector<float> scores, Vocabulary vocabulary, BytePairOptions options);

  static constexpr std::size_t none = ~std::size_t{0};
  struct Symbol {
    std::size_t begin, size, previous, next;
    TokenId token;  // -1: none
  };
  struct KnownMerge {
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

  static std::uint64_t pair(TokenId a, TokenId b) noexcept;

  void index_tokens(std::span<const TokenId> left_out);
  [[nodiscard]] TokenId token_of(std::string_view text) const;
  [[nodiscard]] std::vector<Symbol> split(std::string_view piece) const;
  [[nodiscard]] KnownMerge find_pair(std::string_view piece, const Symbol& left,
                                     const Symbol& right) const;
  void write_bytes(std::string_view text, std::vector<TokenId>& out) const;

  Vocabulary vocabulary_;
  BytePairOptions options_;
  std::unordered_map<std::string_view, TokenId> tokens_;  // views into vocabulary_'s shared table
  std::array<TokenId, 256> bytes_{};
  std::unordered_map<std::uint64_t, KnownMerge> ranks_;
  std::vector<float> scores_;
};

}  // namespace tooldecode::vocabulary

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/vocabulary/byte_pair_encoding.ipp>
#endif
