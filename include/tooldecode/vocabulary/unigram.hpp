/// \file
/// Unigram: SentencePiece's Unigram model, which splits a text into its most likely pieces.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode::vocabulary {

/// SentencePiece's compiled normalisation: replaces texts before they are encoded.
///
/// The data has the size of a double array in bytes, the double array (32-bit units, as built by
/// Darts-clone), and replacements that each end with a zero byte. At each place the longest match
/// is replaced; a character without a match stays.
///
/// \par Complexity  O(bytes of the text)
/// \par Threads     immutable after construction
/// \par Errors      Error{malformed_vocabulary} from the constructor
/// \par Source      google/sentencepiece, normalizer.h; s-yata/darts-clone
class CharacterMap {
 public:
  CharacterMap() = default;
  explicit CharacterMap(std::string_view compiled);

  [[nodiscard]] std::string apply(std::string_view text) const;

 private:
  // A unit has a label and the offset of its children or, where a text ends, a value.
  static std::uint32_t children(std::uint32_t unit) noexcept;
  [[nodiscard]] std::pair<std::size_t, std::size_t> longest(std::string_view text) const noexcept;

  std::vector<std::uint32_t> units_;
  std::string texts_;
};

/// Options of Unigram.
struct UnigramOptions {
  bool user_defined                 = false;  ///< user-defined tokens are also pieces
  std::span<const TokenId> left_out = {};     ///< ids that are not pieces, sorted
  std::optional<double> lowest      = {};     ///< a character without a piece scores 10 below this;
                                              ///< default: the lowest score of all pieces
};

/// Splits a text into the pieces with the greatest sum of scores (log probabilities).
///
/// A character without a piece becomes its byte tokens.
///
/// \par Complexity  O(n L) for n bytes and pieces of up to L
/// \par Threads     immutable after construction; a copy shares the pieces
/// \par Errors      Error{malformed_vocabulary} from the constructor; Error{unknown_token} from
///                  `encode` for a byte that the vocabulary cannot write
/// \par Source      Kudo, arXiv:1804.10959; google/sentencepiece, unigram_model.cc
class Unigram {
 public:
  /// \param scores  one per token
  Unigram(Vocabulary vocabulary, std::vector<float> scores, UnigramOptions options = {});
  /// Sums scores in double precision, as Hugging Face's tokenizers do.
  [[nodiscard]] static Unigram of_doubles(const Vocabulary& vocabulary, std::vector<double> scores,
                                          UnigramOptions options);

  void encode(std::string_view text, std::vector<TokenId>& out) const;

 private:
  Unigram(std::vector<double> scores, bool is_single, Vocabulary vocabulary,
          UnigramOptions options);

  struct Step {
    double score      = -std::numeric_limits<double>::infinity();
    std::size_t begin = 0;
    TokenId token     = -1;  // -1: none, the character's byte tokens
  };

  static void improve(Step& known, const Step& other) noexcept;
  static std::size_t character_size(std::string_view text, std::size_t at) noexcept;
  [[nodiscard]] double sum(double a, double b) const noexcept;
  void write_bytes(std::string_view text, std::vector<TokenId>& out) const;

  Vocabulary vocabulary_;
  std::vector<double> scores_;
  bool is_single_;  // sums are rounded to single precision
  UnigramOptions options_;
  double lowest_ = 0;
  std::array<TokenId, 256> bytes_{};
  std::shared_ptr<const core::ByteTrie> pieces_;
};

}  // namespace tooldecode::vocabulary

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/vocabulary/unigram.ipp>
#endif
