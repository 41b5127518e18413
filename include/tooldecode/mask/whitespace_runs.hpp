/// \file
/// WhitespaceRuns: the tokens that begin with JSON's white space, sorted once per vocabulary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/text/byte_set.hpp>

namespace tooldecode::mask {

/// A token, and the units that it adds to a lexeme first.
struct CountedToken {
  TokenId token       = 0;
  std::uint32_t units = 0;
};

/// What the tokens of a vocabulary are where white space may stand: white space alone, or white
/// space and something after it.
///
/// A vocabulary has hundreds of trie nodes that are white space alone. Without this, each new state
/// would walk what may follow the white space below each of them.
///
/// A unit is a byte of white space.
///
/// \par Shapes      a mask over V tokens
/// \par Complexity  construction O(nodes below two bytes of white space + V / 32)
/// \par Threads     immutable after construction
class WhitespaceRuns {
 public:
  /// \param trie  the vocabulary's
  WhitespaceRuns(const core::ByteTrie& trie, std::size_t vocabulary_size);

  [[nodiscard]] static const text::ByteSet& bytes() noexcept;

  /// The tokens that are white space alone.
  [[nodiscard]] const TokenMask& mask() const noexcept { return mask_; }
  [[nodiscard]] std::span<const CountedToken> listed() const noexcept { return alone_; }
  /// Those with more than `limit` bytes; O(log size).
  [[nodiscard]] std::span<const CountedToken> longer_than(std::uint32_t limit) const noexcept;

  /// The vocabulary's trie nodes after one byte of white space.
  [[nodiscard]] std::span<const core::ByteTrie::NodeIndex> behind_one() const noexcept {
    return behind_one_;
  }
  /// What tokens hold after two bytes of white space or more; its values index `past_end`.
  [[nodiscard]] const core::ByteTrie& past() const noexcept { return past_; }
  [[nodiscard]] const std::vector<CountedToken>& past_end() const noexcept { return past_end_; }

 private:
  core::ByteTrie build(const core::ByteTrie& trie);

  std::vector<core::ByteTrie::NodeIndex> behind_one_;
  std::vector<CountedToken> alone_;  // by length
  std::vector<CountedToken> past_end_;
  core::ByteTrie past_;
  TokenMask mask_;
};

}  // namespace tooldecode::mask

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/mask/whitespace_runs.ipp>
#endif
