/// \file
/// JointWalk: follows every token of a vocabulary through an automaton, each set of positions once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/core/intern_index.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/grammar/stacks.hpp>
#include <tooldecode/text/byte_set.hpp>

namespace tooldecode::constraint {

/// Walks a trie and an automaton side by side, as a deterministic automaton would: all positions
/// move together, and where a byte leads from a set of positions is worked out once, however many
/// ways there are to cut a token into the grammar's parts and however many tokens pass there.
///
/// Where a grammar is ambiguous, walks that follow positions one by one visit a node of the trie
/// once for each way to read it, which doubles with every byte; this one visits it once.
///
/// \par Complexity  O(nodes below, and sets of positions x bytes), times the positions of a set
/// \par Threads     holds the automaton's lock through its walk
/// \par Source      the subset construction, Rabin and Scott 1959
class JointWalk {
 public:
  using Span      = grammar::Automaton::Cursor::Span;
  using NodeIndex = core::ByteTrie::NodeIndex;

  JointWalk(grammar::Automaton::Cursor& walk, const core::ByteTrie& trie)
      : walk_(walk), trie_(trie) {}

  /// Calls `visit(values)` for each node below the trie's root whose text may follow.
  template <class Visit>
  void operator()(Span place, Visit visit) {
    struct At {
      NodeIndex node;
      std::uint32_t set;
    };
    std::vector<At> work{{0, intern(place)}};
    while (!work.empty()) {
      const At at = work.back();
      work.pop_back();
      const auto [first, last] = trie_.children(at.node);
      for (auto child = first; child < last; ++child) {
        const std::uint32_t next = step(at.set, trie_.label(child));
        if (next == none) continue;
        visit(trie_.values(child));
        const auto [below, end] = trie_.children(child);
        if (below != end) work.push_back({child, next});
      }
    }
  }

  /// Sets of positions met so far.
  [[nodiscard]] std::size_t size() const noexcept { return sets_.size(); }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0}, unknown = none - 1;
  using Row = std::array<std::uint32_t, 256>;

  struct Set {
    Span place;
    text::ByteSet candidates;
    std::unique_ptr<Row> next{};  // made at the first step
  };

  std::uint32_t step(std::uint32_t from, std::uint8_t byte);

  // A set that is known gives its place back.
  std::uint32_t intern(Span place);

  grammar::Automaton::Cursor& walk_;
  const core::ByteTrie& trie_;
  std::vector<Set> sets_;
  core::InternIndex index_;
};

}  // namespace tooldecode::constraint

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/constraint/joint_walk.ipp>
#endif
