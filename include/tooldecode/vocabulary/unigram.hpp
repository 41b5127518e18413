/// \file
/// Unigram: the most likely cut of a text into pieces, as SentencePiece's models of that name make it.
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
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode::vocabulary {

/// SentencePiece's compiled normalisation: what some texts are replaced with before they are encoded.
///
/// A file holds the length of a double array in bytes, the double array itself (units of 32 bits, as
/// Darts-clone builds it), and replacements that each end with a zero byte. The longest text that
/// begins at a place is replaced; a character that no text begins with stays.
///
/// \par Complexity  O(bytes of the text)
/// \par Threads     immutable after construction
/// \par Errors      Error{malformed_vocabulary} from the constructor
/// \par Source      google/sentencepiece, normalizer.h; s-yata/darts-clone
class CharacterMap {
 public:
  CharacterMap() = default;
  explicit CharacterMap(std::string_view compiled);

  /// The text with what the map replaces replaced.
  [[nodiscard]] std::string apply(std::string_view text) const;

 private:
  // A unit has a label and the distance to its children, or, where a text ends, a value.
  static std::uint32_t children(std::uint32_t unit) noexcept;
  [[nodiscard]] std::pair<std::size_t, std::size_t> longest(std::string_view text) const noexcept;

  std::vector<std::uint32_t> units_;
  std::string texts_;
};

/// What a Unigram does to a text before it cuts it.
struct UnigramOptions {
  CharacterMap characters = {};     ///< replaces characters
  bool collapse_spaces    = true;   ///< of spaces in a row one is left, of those at the end none
  bool user_defined       = false;  ///< user-defined tokens are pieces too
  std::span<const TokenId> left_out = {};  ///< ids that are no pieces, in order
  std::optional<double> lowest = {};  ///< the score that a character without a piece is 10 below;
                                      ///< else the lowest of all pieces
};

/// The cut of a text into pieces whose scores, logarithms of probabilities, have the greatest sum.
///
/// A character without a piece is written as its byte tokens.
///
/// \par Complexity  O(n L) for n bytes and pieces of up to L
/// \par Threads     immutable after construction; a copy shares the pieces
/// \par Errors      Error{malformed_vocabulary} from the constructor; Error{unknown_token} from `encode`
///                  for a byte that the vocabulary cannot write
/// \par Source      Kudo, arXiv:1804.10959; google/sentencepiece, unigram_model.cc
class Unigram {
 public:
  /// \param scores  one per token
  Unigram(Vocabulary vocabulary, std::vector<float> scores, UnigramOptions options = {});
  /// With scores that are summed in double precision, as Hugging Face's tokenizers do.
  [[nodiscard]] static Unigram of_doubles(const Vocabulary& vocabulary, std::vector<double> scores,
                                          UnigramOptions options);

  /// Appends the tokens of a text.
  void encode(std::string_view original, std::vector<TokenId>& out) const;

 private:
  Unigram(std::vector<double> scores, bool is_single, Vocabulary vocabulary,
          UnigramOptions options);

  struct Step {
    double score      = -std::numeric_limits<double>::infinity();
    std::size_t begin = 0;
    TokenId token     = -1;  // -1: none, the character's bytes
  };

  static void improve(Step& known, const Step& other) noexcept;
  static std::size_t character_size(std::string_view text, std::size_t at) noexcept;
  [[nodiscard]] double sum(double a, double b) const noexcept;
  [[nodiscard]] std::string normalized(std::string_view original) const;
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
