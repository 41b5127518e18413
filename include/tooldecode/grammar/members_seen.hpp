/// \file
/// MembersSeen: what a keyed set has written so far, and what it may write next.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/node_store.hpp>
#include <tooldecode/grammar/stacks.hpp>

namespace tooldecode::grammar {

/// The rules of a KeyedSet over interned sets of members, so that any order of n members needs
/// states for what has been seen and never for n! orders.
///
/// A set's words are the members seen, one bit each; then how far the documented order has come;
/// then the number of members, where it is bounded; then, as long as a least number asks for
/// further keys, which of the others have been written: they are not written again, so that the
/// number is of different keys.
///
/// \par Complexity  O(members / 64) per call, times the dependences where there are some
/// \par Threads     `after` and `after_other` one at a time; the rest needs no lock
class MembersSeen {
 public:
  using Node = NodeStore::Node;
  using Set  = SeenId;

  /// Whether the text may have no further member.
  [[nodiscard]] bool is_complete(const Node& node, Set seen) const {
    if (node.occurrences.min != 0 && count(node, words_of(seen)) < node.occurrences.min)
      return false;
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

  /// Whether a member may come next.
  [[nodiscard]] bool may_follow(const Node& node, Set seen, std::uint32_t member) const {
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
    if (written + size(lacking) > node.occurrences.max) return false;
    if (!node.documented_order || !node.others.empty()) return true;
    const auto later = std::count_if(node.children.begin() + member + 1, node.children.end(),
                                     [](StoredId child) { return child != NodeStore::nothing; });
    return written + static_cast<std::size_t>(later) >= node.occurrences.min;
  }

  /// Whether one of the other members may come next.
  [[nodiscard]] bool may_add(const Node& node, Set seen) const {
    if (node.others.empty()) return false;
    const Words& words = words_of(seen);
    if (next_leading(node, words)) return false;
    if (is_simple(node)) return true;
    if (is_plain(node)) return !requires_any(node, passed(node, words), node.children.size());
    const Words lacking = missing(node, words);
    if (node.documented_order && first(lacking)) return false;
    return count(node, words) + 1 + size(lacking) <= node.occurrences.max;
  }

  /// Calls `visit(member)` for each member that must still come, ascending.
  template <class Visit>
  void for_each_missing(const Node& node, Set seen, Visit visit) const {
    const Words lacking = missing(node, words_of(seen));
    for (std::uint32_t i = 0; i < node.children.size(); ++i) {
      if (has(lacking, i)) visit(i);
    }
  }
  /// How many keys must come besides those of the members that must.
  [[nodiscard]] std::uint32_t count_owed(const Node& node, Set seen) const {
    return node.occurrences.min == 0 ? 0 : owed(node, words_of(seen));
  }

  [[nodiscard]] Set after(const Node& node, Set seen, std::uint32_t member) {
    return intern(with(node, words_of(seen), member));
  }
  /// \param key  the number of its text, see is_tracked; 0 where it does not matter
  [[nodiscard]] Set after_other(const Node& node, Set seen, std::uint32_t key = 0) {
    if (is_simple(node)) return seen;
    Words words = widened(node, words_of(seen));
    if (node.documented_order) words[bits(node)] = node.children.size();
    add_one(node, words);
    if (key != 0) words.insert(std::upper_bound(texts(node, words), words.end(), key), key);
    forget(node, words);
    return intern(std::move(words));
  }

  /// Whether it matters which key one of the others has next: the least number asks for more keys
  /// than those written and those that must come, and this one may be a repetition or may itself be
  /// repeated.
  [[nodiscard]] bool is_tracked(const Node& node, Set seen) const {
    if (node.occurrences.min < 2) return false;
    const std::uint32_t more = owed(node, words_of(seen));
    return more > 1 || (more == 1 && remembers(node, seen));
  }
  /// Whether keys of others have been written that may not be repeated.
  [[nodiscard]] bool remembers(const Node& node, Set seen) const {
    return node.occurrences.min > 1 && words_of(seen).size() > bits(node) + 2;
  }
  /// The numbers of these keys, ascending.
  [[nodiscard]] std::span<const std::uint64_t> remembered(const Node& node, Set seen) const {
    if (!remembers(node, seen)) return {};
    return std::span(words_of(seen)).subspan(bits(node) + 2);
  }

  /// Another object's set, here; `renumber(key)` gives the number that the text of a key has here.
  template <class Renumber>
  [[nodiscard]] Set adopt(const MembersSeen& from, const Node& node, Set seen, Renumber renumber) {
    Words words = from.words_of(seen);
    if (from.remembers(node, seen)) {
      for (auto key = texts(node, words); key != words.end(); ++key) {
        *key = renumber(static_cast<std::uint32_t>(*key));
      }
      std::sort(texts(node, words), words.end());
    }
    return intern(std::move(words));
  }
  /// About how much memory the sets take.
  [[nodiscard]] std::size_t bytes() const noexcept { return pool_.bytes(); }

 private:
  using Words = WordsPool<std::uint64_t>::Words;

  [[nodiscard]] const Words& words_of(Set seen) const noexcept { return pool_[seen.number()]; }
  [[nodiscard]] Set intern(Words words) { return Set(pool_.intern(std::move(words))); }

  // The members of a condition that are there, as its sets are numbered.
  static std::uint32_t part_of(const KeyedSet::Together& together, const Words& words) noexcept {
    std::uint32_t set = 0;
    for (std::size_t i = 0; i < together.keys.size(); ++i) {
      set |= static_cast<std::uint32_t>(has(words, together.keys[i])) << i;
    }
    return set;
  }
  static bool leads_on(const KeyedSet::Together& together, const Words& words,
                       std::uint32_t member) noexcept {
    const auto at = std::find(together.keys.begin(), together.keys.end(), member);
    if (at == together.keys.end()) return true;
    return together.leads_on(part_of(together, words) | 1U << (at - together.keys.begin()));
  }

  static std::size_t bits(const Node& node) noexcept { return node.required.size(); }
  // Only the required members matter, and they may come at any time.
  static bool is_simple(const Node& node) noexcept {
    return !node.documented_order && node.dependent.empty() &&
           node.occurrences == text::Occurrences{};
  }
  // Nothing but the documented order and the required members matters.
  static bool is_plain(const Node& node) noexcept {
    return node.documented_order && node.dependent.empty() &&
           node.occurrences == text::Occurrences{};
  }
  // Whether one of the members from, ..., to - 1 is required.
  static bool requires_any(const Node& node, std::uint64_t from, std::uint64_t to) noexcept {
    for (std::uint64_t w = from / 64; 64 * w < to; ++w) {
      std::uint64_t bits = node.required[w];
      if (w == from / 64) bits &= ~std::uint64_t{0} << (from % 64);
      if (to - 64 * w < 64) bits &= (std::uint64_t{1} << (to - 64 * w)) - 1;
      if (bits != 0) return true;
    }
    return false;
  }
  static std::uint64_t word(const Words& words, std::size_t i) noexcept {
    return i < words.size() ? words[i] : 0;
  }
  static bool has(const Words& words, std::uint32_t member) noexcept {
    return (word(words, member / 64) >> (member % 64) & 1) != 0;
  }
  static void insert(Words& words, std::uint32_t member) {
    words[member / 64] |= std::uint64_t{1} << (member % 64);
  }
  static std::uint64_t passed(const Node& node, const Words& words) noexcept {
    return word(words, bits(node));
  }
  static std::size_t count(const Node& node, const Words& words) noexcept {
    return word(words, bits(node) + 1);
  }
  static void add_one(const Node& node, Words& words) {
    const text::Occurrences& bounds = node.occurrences;
    if (bounds == text::Occurrences{}) return;
    const bool open  = bounds.max == text::Occurrences::unbounded;
    std::uint64_t& n = words[bits(node) + 1];
    if (!open || n < bounds.min) ++n;
  }
  static std::optional<std::uint32_t> first(const Words& words) noexcept {
    for (std::uint32_t w = 0; w < words.size(); ++w) {
      if (words[w] != 0) return 64 * w + static_cast<std::uint32_t>(std::countr_zero(words[w]));
    }
    return std::nullopt;
  }
  static std::size_t size(const Words& words) noexcept {
    std::size_t n = 0;
    for (const std::uint64_t w : words) n += static_cast<std::size_t>(std::popcount(w));
    return n;
  }

  static Words widened(const Node& node, Words words) {
    words.resize(std::max(words.size(), bits(node) + 2));
    return words;
  }
  static Words::iterator texts(const Node& node, Words& words) {
    return words.begin() + static_cast<std::ptrdiff_t>(bits(node) + 2);
  }
  // How many keys must come besides those that are members' in any case.
  static std::uint32_t owed(const Node& node, const Words& words) {
    const std::size_t sure = count(node, words) + size(missing(node, words));
    return sure < node.occurrences.min ? node.occurrences.min - static_cast<std::uint32_t>(sure)
                                       : 0;
  }
  static void forget(const Node& node, Words& words) {
    if (texts(node, words) != words.end() && owed(node, words) == 0) words.resize(bits(node) + 2);
  }

  static Words with(const Node& node, Words from, std::uint32_t member) {
    Words words = widened(node, std::move(from));
    insert(words, member);
    if (node.documented_order) {
      // Without dependences it does not matter which of the members passed were there.
      if (node.dependent.empty()) std::fill_n(words.begin(), bits(node), 0);
      words[bits(node)] = member + 1;
    }
    add_one(node, words);
    forget(node, words);
    return words;
  }

  static std::optional<std::uint32_t> next_leading(const Node& node, const Words& words) {
    if (node.documented_order) {
      const std::uint64_t next = passed(node, words);
      return next < node.leading ? std::optional(static_cast<std::uint32_t>(next)) : std::nullopt;
    }
    for (std::uint32_t i = 0; i < node.leading; ++i) {
      if (!has(words, i)) return i;
    }
    return std::nullopt;
  }

  // Members that must still come.
  static Words missing(const Node& node, const Words& words) {
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

  WordsPool<std::uint64_t> pool_;
};

}  // namespace tooldecode::grammar
