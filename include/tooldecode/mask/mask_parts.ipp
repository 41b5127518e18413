#pragma once

#include <algorithm>
#include <bitset>
#include <iterator>
#include <utility>

#include <tooldecode/mask/mask_parts.hpp>

namespace tooldecode::mask {

TOOLDECODE_INLINE void MaskParts::add(TokenId token) {
  added_.push_back(token);
  if (added_.size() == max_listed) spill();
}

TOOLDECODE_INLINE void MaskParts::add_all(std::span<const std::uint32_t> tokens) {
  for (const std::uint32_t token : tokens) add(static_cast<TokenId>(token));
}

TOOLDECODE_INLINE void MaskParts::add_base(const TokenMask& mask, std::size_t count,
                                           std::vector<TokenId> removed,
                                           std::span<const TokenId> apart,
                                           std::span<const CountedToken> listed) {
  Base base{&mask, count, std::move(removed), listed};
  for (const TokenId token : apart) {
    if (mask.contains(token)) base.removed.push_back(token);
  }
  if (!std::ranges::is_sorted(base.removed)) std::ranges::sort(base.removed);
  const auto same = std::find_if(bases_.begin(), bases_.end(),
                                 [&](const Base& other) { return other.mask == base.mask; });
  if (same == bases_.end()) {
    bases_.push_back(std::move(base));
    return;
  }
  std::vector<TokenId> both;  // what neither allows
  std::set_intersection(base.removed.begin(), base.removed.end(), same->removed.begin(),
                        same->removed.end(), std::back_inserter(both));
  same->removed = std::move(both);
}

TOOLDECODE_INLINE void MaskParts::add(MaskParts other, std::span<const TokenId> apart) {
  for (Base& base : other.bases_) {
    add_base(*base.mask, base.count, std::move(base.removed), apart, base.listed);
  }
  for (const TokenId token : other.added_) {
    if (!std::binary_search(apart.begin(), apart.end(), token)) add(token);
  }
  if (!other.spilled_) return;
  spill();
  for (const TokenId token : apart) other.spilled_->erase(token);
  *spilled_ |= *other.spilled_;
}

TOOLDECODE_INLINE MaskEntry MaskParts::entry() && {
  std::sort(bases_.begin(), bases_.end(),
            [](const Base& a, const Base& b) { return a.count > b.count; });
  while (bases_.size() > 1 && bases_.back().count <= max_listed / 2) {
    const Base smallest = std::move(bases_.back());
    bases_.pop_back();
    const auto add_kept = [&](TokenId token) {
      if (!std::binary_search(smallest.removed.begin(), smallest.removed.end(), token)) add(token);
    };
    for (const CountedToken& one : smallest.listed) add_kept(one.token);
    if (smallest.listed.empty()) smallest.mask->for_each(add_kept);
  }
  MaskEntry entry;
  if (bases_.size() <= 1 && !spilled_) {
    if (!bases_.empty()) {
      entry.base    = bases_[0].mask;
      entry.removed = std::move(bases_[0].removed);
      keep_added(entry.removed);
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

TOOLDECODE_INLINE void MaskParts::keep_added(std::vector<TokenId>& removed) const {
  if (removed.empty() || added_.empty()) return;
  // Most added tokens are not removed, which a table of their last bits shows at once.
  std::bitset<4096> listed;
  const auto bit = [](TokenId token) { return static_cast<std::uint32_t>(token) % 4096; };
  for (const TokenId token : removed) listed.set(bit(token));
  std::vector<TokenId> both;
  for (const TokenId token : added_) {
    if (listed[bit(token)] && std::binary_search(removed.begin(), removed.end(), token)) {
      both.push_back(token);
    }
  }
  std::sort(both.begin(), both.end());
  std::erase_if(removed,
                [&](TokenId token) { return std::binary_search(both.begin(), both.end(), token); });
}

TOOLDECODE_INLINE void MaskParts::spill() {
  if (!spilled_) spilled_ = std::make_unique<TokenMask>(vocabulary_size_);
  for (const TokenId token : added_) spilled_->insert(token);
  added_.clear();
}

}  // namespace tooldecode::mask
