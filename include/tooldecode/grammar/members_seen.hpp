/// \file
/// MembersSeen: what a keyed set has written so far, and what it may write next.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/node_store.hpp>
#include <tooldecode/grammar/stacks.hpp>

namespace tooldecode::grammar {

/// The rules of a KeyedSet over interned sets of members: n members in any order need states for
/// the sets seen, not for n! orders.
///
/// A set's words hold the members seen, one bit each; then the progress in the documented order;
/// then the number of members, if it is bounded; then, while a minimum demands more keys, which
/// keys of the others were written: these must not repeat, so that the minimum counts distinct
/// keys. A set of distinct keys remembers all of them.
///
/// \par Complexity  O(members / 64) per call, times the dependences if there are any
/// \par Threads     `after` and `after_other` one at a time; the rest needs no lock
class MembersSeen {
 public:
  using Node = NodeStore::Node::Members;
  using Set  = SeenId;

  [[nodiscard]] bool is_complete(const Node& node, Set seen) const;

  [[nodiscard]] bool may_follow(const Node& node, Set seen, std::uint32_t member) const;

  [[nodiscard]] bool may_add(const Node& node, Set seen) const;

  /// Calls `visit(member)` for each member that must still come, ascending.
  template <class Visit>
  void for_each_missing(const Node& node, Set seen, Visit visit) const {
    const Words lacking = missing(node, words_of(seen));
    for (std::uint32_t i = 0; i < node.children.size(); ++i) {
      if (has(lacking, i)) visit(i);
    }
  }
  /// How many more keys must come besides those of the missing members.
  [[nodiscard]] std::uint32_t count_owed(const Node& node, Set seen) const;

  [[nodiscard]] Set after(const Node& node, Set seen, std::uint32_t member);
  /// \param key  the number of its text if tracked, else 0
  [[nodiscard]] Set after_other(const Node& node, Set seen, std::uint32_t key = 0);

  /// Whether the text of the next key of others matters: the minimum demands more keys than those
  /// written and those missing, and this key may repeat one or be repeated.
  [[nodiscard]] bool is_tracked(const Node& node, Set seen) const;
  /// Whether keys of others were written that must not repeat.
  [[nodiscard]] bool remembers(const Node& node, Set seen) const;
  /// The numbers of these keys, ascending.
  [[nodiscard]] std::span<const std::uint64_t> remembered(const Node& node, Set seen) const;

  /// Converts a set of another object; `renumber(key)` returns the number of a key's text here.
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
  [[nodiscard]] std::size_t bytes() const noexcept { return pool_.bytes(); }

 private:
  using Words = WordsPool<std::uint64_t>::Words;

  [[nodiscard]] const Words& words_of(Set seen) const noexcept { return pool_[seen.number()]; }
  [[nodiscard]] Set intern(Words words) { return Set(pool_.intern(std::move(words))); }

  // The subset of a condition's keys that is present.
  static std::uint32_t part_of(const KeyedSet::Together& together, const Words& words) noexcept;
  static bool leads_on(const KeyedSet::Together& together, const Words& words,
                       std::uint32_t member) noexcept;

  static std::size_t bits(const Node& node) noexcept { return node.required.size(); }
  // Only the required members matter, and they may come at any time.
  static bool is_simple(const Node& node) noexcept;
  // Only the documented order and the required members matter.
  static bool is_plain(const Node& node) noexcept;
  // Whether one of the members in [from, to) is required.
  static bool requires_any(const Node& node, std::uint64_t from, std::uint64_t to) noexcept;
  static std::uint64_t word(const Words& words, std::size_t i) noexcept;
  static bool has(const Words& words, std::uint32_t member) noexcept;
  static void insert(Words& words, std::uint32_t member);
  static std::uint64_t passed(const Node& node, const Words& words) noexcept;
  static std::size_t count(const Node& node, const Words& words) noexcept;
  static void add_one(const Node& node, Words& words);
  static std::optional<std::uint32_t> first(const Words& words) noexcept;
  static std::size_t size(const Words& words) noexcept;

  static Words widened(const Node& node, Words words);
  static Words::iterator texts(const Node& node, Words& words);
  // How many keys must come besides those that only members can be.
  static std::uint32_t owed(const Node& node, const Words& words);
  static void forget(const Node& node, Words& words);

  static Words with(const Node& node, Words from, std::uint32_t member);

  static std::optional<std::uint32_t> next_leading(const Node& node, const Words& words);

  static Words missing(const Node& node, const Words& words);

  WordsPool<std::uint64_t> pool_;
};

}  // namespace tooldecode::grammar

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/grammar/members_seen.ipp>
#endif
