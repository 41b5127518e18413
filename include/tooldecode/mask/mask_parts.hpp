/// \file
/// MaskParts: collects the tokens of a walk into one mask.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <tooldecode/core/types.hpp>
#include <tooldecode/mask/shared_states.hpp>
#include <tooldecode/mask/token_mask.hpp>

namespace tooldecode::mask {

/// Collects single tokens, and ready masks minus some tokens, into the smallest MaskEntry: lists
/// beside one ready mask, or a separate mask.
///
/// \par Shapes      masks over V tokens
/// \par Complexity  `add` O(1), a ready mask O(tokens removed), `entry` O(V / 32) for each ready
///                  mask except one
class MaskParts {
 public:
  /// Setting this many tokens costs as much as copying a mask.
  static constexpr std::size_t max_listed = 1024;

  explicit MaskParts(std::size_t vocabulary_size) : vocabulary_size_(vocabulary_size) {}

  void add(TokenId token);
  void add_all(std::span<const std::uint32_t> tokens);
  /// Adds a mask without some of its tokens; the mask must outlive this object.
  ///
  /// \param count  number of the mask's tokens
  /// \param apart  more tokens to leave out; the mask need not have them
  /// \param listed the mask's tokens, if a list of them is at hand; must outlive this object
  void add_base(const TokenMask& mask, std::size_t count, std::vector<TokenId> removed,
                std::span<const TokenId> apart, std::span<const CountedToken> listed = {});
  /// Adds what another object collected, without the tokens of `apart`, which is ascending.
  void add(MaskParts other, std::span<const TokenId> apart);

  [[nodiscard]] MaskEntry entry() &&;

 private:
  // A ready mask and its tokens that are not allowed, ascending.
  struct Base {
    const TokenMask* mask;
    std::size_t count;
    std::vector<TokenId> removed;
    std::span<const CountedToken> listed;
  };

  void spill();
  // Erases the tokens that are added as well from those removed, ascending.
  void keep_added(std::vector<TokenId>& removed) const;

  std::size_t vocabulary_size_;
  std::vector<Base> bases_;
  std::vector<TokenId> added_;
  std::unique_ptr<TokenMask> spilled_;
};

}  // namespace tooldecode::mask

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/mask/mask_parts.ipp>
#endif
