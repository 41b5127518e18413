/// \file
/// MaskParts: the tokens that a walk finds, until they are one mask.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <tooldecode/constraint/shared_states.hpp>
#include <tooldecode/constraint/token_mask.hpp>
#include <tooldecode/core/types.hpp>

namespace tooldecode::constraint {

/// Collects tokens one by one, and ready masks without some of their tokens, into a mask that is as
/// small as can be: lists beside one of the ready masks, or a mask of its own.
///
/// \par Shapes      masks over V tokens
/// \par Complexity  `add` O(1), a ready mask O(tokens that it lacks), `entry` O(V / 32) for each
///                  ready mask but one
class MaskParts {
 public:
  /// So many tokens are as quickly set one by one as a mask is copied.
  static constexpr std::size_t max_listed = 1024;

  explicit MaskParts(std::size_t vocabulary_size) : vocabulary_size_(vocabulary_size) {}

  void add(TokenId token);
  void add_all(std::span<const std::uint32_t> tokens);
  /// The tokens of a mask that outlives this, but for some.
  ///
  /// \param count  of the mask's tokens
  /// \param apart  tokens that are left out too; they need not be the mask's
  void add_base(const TokenMask& mask, std::size_t count, std::vector<TokenId> removed,
                std::span<const TokenId> apart);
  /// What others have collected, but for some tokens, ascending.
  void add(MaskParts other, std::span<const TokenId> apart);

  /// All of it, as lists where they are the smaller form, else as one mask.
  [[nodiscard]] MaskEntry entry() &&;

 private:
  // A ready mask, and what of it is not allowed, ascending.
  struct Base {
    const TokenMask* mask;
    std::size_t count;
    std::vector<TokenId> removed;
  };

  void spill();

  std::size_t vocabulary_size_;
  std::vector<Base> bases_;
  std::vector<TokenId> added_;
  std::unique_ptr<TokenMask> spilled_;  // where there are too many for a list
};

}  // namespace tooldecode::constraint

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/constraint/mask_parts.ipp>
#endif
