#pragma once

#include <bit>

#include <tooldecode/grammar/members_seen.hpp>

namespace tooldecode::grammar {

TOOLDECODE_INLINE bool MembersSeen::is_complete(const Node& node, Set seen) const {
  if (node.count.min != 0 && count(node, words_of(seen)) < node.count.min) return false;
  for (const KeyedSet::Together& together : node.together) {
    if (!together.allows(part_of(together, words_of(seen)))) return false;
  }
  if (is_simple(node)) {
    for (std::size_t w = 0; w < node.required.size(); ++w) {
      if ((node.required[w] & ~word(words_of(seen), w)) != 0) return false;
    }
    return true;
  }
  if (is_plain(node))
    return !requires_any(node, passed(node, words_of(seen)), node.children.size());
  return !first(missing(node, words_of(seen)));
}

TOOLDECODE_INLINE bool MembersSeen::may_follow(const Node& node, Set seen,
                                               std::uint32_t member) const {
  if (node.children[member] == NodeStore::nothing) return false;
  const Words& words = words_of(seen);
  if (node.documented_order ? member < passed(node, words) : has(words, member)) return false;
  if (const auto next = next_leading(node, words); next && *next != member) return false;
  for (const KeyedSet::Together& together : node.together) {
    if (!leads_on(together, words, member)) return false;
  }
  if (is_simple(node)) return true;
  if (is_plain(node)) return !requires_any(node, passed(node, words), member);
  const auto passes_over = [&](const Words& lacking) {
    const auto next = first(lacking);
    return node.documented_order && next && *next < member;
  };
  const Words then    = with(node, words, member);
  const Words lacking = missing(node, then);
  if (passes_over(missing(node, words)) || passes_over(lacking)) return false;
  const std::size_t written = count(node, then);
  if (written + size(lacking) > node.count.max) return false;
  if (!node.documented_order || !node.others.empty()) return true;
  const auto later = std::count_if(node.children.begin() + member + 1, node.children.end(),
                                   [](StoredId child) { return child != NodeStore::nothing; });
  return written + static_cast<std::size_t>(later) >= node.count.min;
}

TOOLDECODE_INLINE bool MembersSeen::may_add(const Node& node, Set seen) const {
  if (node.others.empty()) return false;
  const Words& words = words_of(seen);
  if (next_leading(node, words)) return false;
  if (is_simple(node)) return true;
  if (is_plain(node)) return !requires_any(node, passed(node, words), node.children.size());
  const Words lacking = missing(node, words);
  if (node.documented_order && first(lacking)) return false;
  return count(node, words) + 1 + size(lacking) <= node.count.max;
}

TOOLDECODE_INLINE std::uint32_t MembersSeen::count_owed(const Node& node, Set seen) const {
  return node.count.min == 0 ? 0 : owed(node, words_of(seen));
}

TOOLDECODE_INLINE MembersSeen::Set MembersSeen::after(const Node& node, Set seen,
                                                      std::uint32_t member) {
  return intern(with(node, words_of(seen), member));
}

TOOLDECODE_INLINE MembersSeen::Set MembersSeen::after_other(const Node& node, Set seen,
                                                            std::uint32_t key) {
  if (is_simple(node)) return seen;
  Words words = widened(node, words_of(seen));
  if (node.documented_order) words[bits(node)] = node.children.size();
  add_one(node, words);
  if (key != 0) words.insert(std::upper_bound(texts(node, words), words.end(), key), key);
  forget(node, words);
  return intern(std::move(words));
}

TOOLDECODE_INLINE bool MembersSeen::is_tracked(const Node& node, Set seen) const {
  if (node.distinct) return !node.others.empty();
  if (node.count.min < 2) return false;
  const std::uint32_t more = owed(node, words_of(seen));
  return more > 1 || (more == 1 && remembers(node, seen));
}

TOOLDECODE_INLINE bool MembersSeen::remembers(const Node& node, Set seen) const {
  return (node.distinct || node.count.min > 1) && words_of(seen).size() > bits(node) + 2;
}

TOOLDECODE_INLINE std::span<const std::uint64_t> MembersSeen::remembered(const Node& node,
                                                                         Set seen) const {
  if (!remembers(node, seen)) return {};
  return std::span(words_of(seen)).subspan(bits(node) + 2);
}

TOOLDECODE_INLINE std::uint32_t MembersSeen::part_of(const KeyedSet::Together& together,
                                                     const Words& words) noexcept {
  std::uint32_t set = 0;
  for (std::size_t i = 0; i < together.keys.size(); ++i) {
    set |= static_cast<std::uint32_t>(has(words, together.keys[i])) << i;
  }
  return set;
}

TOOLDECODE_INLINE bool MembersSeen::leads_on(const KeyedSet::Together& together, const Words& words,
                                             std::uint32_t member) noexcept {
  const auto at = std::find(together.keys.begin(), together.keys.end(), member);
  if (at == together.keys.end()) return true;
  return together.leads_on(part_of(together, words) | 1U << (at - together.keys.begin()));
}

TOOLDECODE_INLINE bool MembersSeen::is_simple(const Node& node) noexcept {
  return !node.documented_order && !node.distinct && node.dependent.empty() &&
         node.count == text::Occurrences{};
}

TOOLDECODE_INLINE bool MembersSeen::is_plain(const Node& node) noexcept {
  return node.documented_order && node.dependent.empty() && node.count == text::Occurrences{};
}

TOOLDECODE_INLINE bool MembersSeen::requires_any(const Node& node, std::uint64_t from,
                                                 std::uint64_t to) noexcept {
  for (std::uint64_t w = from / 64; 64 * w < to; ++w) {
    std::uint64_t bits = node.required[w];
    if (w == from / 64) bits &= ~std::uint64_t{0} << (from % 64);
    if (to - 64 * w < 64) bits &= (std::uint64_t{1} << (to - 64 * w)) - 1;
    if (bits != 0) return true;
  }
  return false;
}

TOOLDECODE_INLINE std::uint64_t MembersSeen::word(const Words& words, std::size_t i) noexcept {
  return i < words.size() ? words[i] : 0;
}

TOOLDECODE_INLINE bool MembersSeen::has(const Words& words, std::uint32_t member) noexcept {
  return (word(words, member / 64) >> (member % 64) & 1) != 0;
}

TOOLDECODE_INLINE void MembersSeen::insert(Words& words, std::uint32_t member) {
  words[member / 64] |= std::uint64_t{1} << (member % 64);
}

TOOLDECODE_INLINE std::uint64_t MembersSeen::passed(const Node& node, const Words& words) noexcept {
  return word(words, bits(node));
}

TOOLDECODE_INLINE std::size_t MembersSeen::count(const Node& node, const Words& words) noexcept {
  return word(words, bits(node) + 1);
}

TOOLDECODE_INLINE void MembersSeen::add_one(const Node& node, Words& words) {
  const text::Occurrences& bounds = node.count;
  if (bounds == text::Occurrences{}) return;
  const bool open  = bounds.max == text::Occurrences::unbounded;
  std::uint64_t& n = words[bits(node) + 1];
  if (!open || n < bounds.min) ++n;
}

TOOLDECODE_INLINE std::optional<std::uint32_t> MembersSeen::first(const Words& words) noexcept {
  for (std::uint32_t w = 0; w < words.size(); ++w) {
    if (words[w] != 0) return 64 * w + static_cast<std::uint32_t>(std::countr_zero(words[w]));
  }
  return std::nullopt;
}

TOOLDECODE_INLINE std::size_t MembersSeen::size(const Words& words) noexcept {
  std::size_t n = 0;
  for (const std::uint64_t w : words) n += static_cast<std::size_t>(std::popcount(w));
  return n;
}

TOOLDECODE_INLINE MembersSeen::Words MembersSeen::widened(const Node& node, Words words) {
  words.resize(std::max(words.size(), bits(node) + 2));
  return words;
}

TOOLDECODE_INLINE MembersSeen::Words::iterator MembersSeen::texts(const Node& node, Words& words) {
  return words.begin() + static_cast<std::ptrdiff_t>(bits(node) + 2);
}

TOOLDECODE_INLINE std::uint32_t MembersSeen::owed(const Node& node, const Words& words) {
  const std::size_t sure = count(node, words) + size(missing(node, words));
  return sure < node.count.min ? node.count.min - static_cast<std::uint32_t>(sure) : 0;
}

TOOLDECODE_INLINE void MembersSeen::forget(const Node& node, Words& words) {
  if (node.distinct || texts(node, words) == words.end()) return;
  if (owed(node, words) == 0) words.resize(bits(node) + 2);
}

TOOLDECODE_INLINE MembersSeen::Words MembersSeen::with(const Node& node, Words from,
                                                       std::uint32_t member) {
  Words words = widened(node, std::move(from));
  insert(words, member);
  if (node.documented_order) {
    // Without dependences it does not matter which of the passed members were present.
    if (node.dependent.empty()) std::fill_n(words.begin(), bits(node), 0);
    words[bits(node)] = member + 1;
  }
  add_one(node, words);
  forget(node, words);
  return words;
}

TOOLDECODE_INLINE std::optional<std::uint32_t> MembersSeen::next_leading(const Node& node,
                                                                         const Words& words) {
  if (node.documented_order) {
    const std::uint64_t next = passed(node, words);
    return next < node.leading ? std::optional(static_cast<std::uint32_t>(next)) : std::nullopt;
  }
  for (std::uint32_t i = 0; i < node.leading; ++i) {
    if (!has(words, i)) return i;
  }
  return std::nullopt;
}

TOOLDECODE_INLINE MembersSeen::Words MembersSeen::missing(const Node& node, const Words& words) {
  Words needed = node.required;
  if (node.documented_order && node.dependent.empty()) {
    for (std::uint32_t i = 0; i < passed(node, words) && i < node.children.size(); ++i) {
      needed[i / 64] &= ~(std::uint64_t{1} << (i % 64));
    }
    return needed;
  }
  for (bool changed = !node.dependent.empty(); changed;) {
    changed = false;
    for (const auto& [member, other] : node.dependent) {
      if (!(has(words, member) || has(needed, member)) || has(needed, other)) continue;
      insert(needed, other);
      changed = true;
    }
  }
  for (std::size_t w = 0; w < needed.size(); ++w) needed[w] &= ~word(words, w);
  return needed;
}

}  // namespace tooldecode::grammar
