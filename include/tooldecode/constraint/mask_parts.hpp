/// \file
/// MaskParts: the tokens that a walk finds, until they are one mask.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
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
/// \par Threads     a value
/// \par Errors      std::bad_alloc
class MaskParts {
 public:
  /// So many tokens are as quickly set one by one as a mask is copied.
  static constexpr std::size_t max_listed = 1024;

  explicit MaskParts(std::size_t vocabulary_size) : vocabulary_size_(vocabulary_size) {}

  void add(TokenId token) {
    added_.push_back(token);
    if (added_.size() == max_listed) spill();
  }
  void add_all(std::span<const std::uint32_t> tokens) {
    for (const std::uint32_t token : tokens) add(static_cast<TokenId>(token));
  }
  /// The tokens of a mask that outlives this, but for some.
  ///
  /// \param count  of the mask's tokens
  /// \param apart  tokens that are left out too; they need not be the mask's
  void add_base(const TokenMask& mask, std::size_t count, std::vector<TokenId> removed,
                std::span<const TokenId> apart) {
    Base base{&mask, count, std::move(removed)};
    for (const TokenId token : apart) {
      if (mask.contains(token)) base.removed.push_back(token);
    }
    std::sort(base.removed.begin(), base.removed.end());
    const auto same = [&](const Base& other) {
      return other.mask == base.mask && other.removed == base.removed;
    };
    if (std::none_of(bases_.begin(), bases_.end(), same)) bases_.push_back(std::move(base));
  }
  /// What others have collected, but for some tokens, ascending.
  void add(MaskParts other, std::span<const TokenId> apart) {
    for (Base& base : other.bases_) {
      add_base(*base.mask, base.count, std::move(base.removed), apart);
    }
    for (const TokenId token : other.added_) {
      if (!std::binary_search(apart.begin(), apart.end(), token)) add(token);
    }
    if (!other.spilled_) return;
    spill();
    for (const TokenId token : apart) other.spilled_->erase(token);
    *spilled_ |= *other.spilled_;
  }

  /// All of it, as lists where they are the smaller form, else as one mask.
  [[nodiscard]] MaskEntry entry() && {
    std::sort(bases_.begin(), bases_.end(),
              [](const Base& a, const Base& b) { return a.count > b.count; });
    while (bases_.size() > 1 && bases_.back().count <= max_listed / 2) {
      const Base smallest = std::move(bases_.back());
      bases_.pop_back();
      smallest.mask->for_each([&](TokenId token) {
        if (!std::binary_search(smallest.removed.begin(), smallest.removed.end(), token))
          add(token);
      });
    }
    MaskEntry entry;
    if (bases_.size() <= 1 && !spilled_) {
      std::sort(added_.begin(), added_.end());
      added_.erase(std::unique(added_.begin(), added_.end()), added_.end());
      if (!bases_.empty()) {
        entry.base    = bases_[0].mask;
        entry.removed = std::move(bases_[0].removed);
        std::erase_if(entry.removed, [&](TokenId token) {
          return std::binary_search(added_.begin(), added_.end(), token);
        });
        std::erase_if(added_, [&](TokenId token) { return entry.base->contains(token); });
      }
      if (entry.removed.size() <= max_listed) {
        entry.added.assign(added_.begin(), added_.end());
        return entry;
      }
      bases_[0].removed = std::exchange(entry.removed, {});
    }
    spill();
    TokenMask one(vocabulary_size_);
    for (const Base& base : bases_) {
      MaskEntry{.base = base.mask, .removed = base.removed}.fill(one.words());
      *spilled_ |= one;
    }
    entry.base = spilled_.get();
    entry.own  = std::move(spilled_);
    return entry;
  }

 private:
  // A ready mask, and what of it is not allowed, ascending.
  struct Base {
    const TokenMask* mask;
    std::size_t count;
    std::vector<TokenId> removed;
  };

  void spill() {
    if (!spilled_) spilled_ = std::make_unique<TokenMask>(vocabulary_size_);
    for (const TokenId token : added_) spilled_->insert(token);
    added_.clear();
  }

  std::size_t vocabulary_size_;
  std::vector<Base> bases_;
  std::vector<TokenId> added_;
  std::unique_ptr<TokenMask> spilled_;  // where there are too many for a list
};

}  // namespace tooldecode::constraint
