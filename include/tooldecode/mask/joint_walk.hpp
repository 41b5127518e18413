/// \file
/// JointWalk: follows all tokens of a vocabulary through an automaton, each position set once.
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

namespace tooldecode::mask {

/// Walks a trie and an automaton together as a DFA would: all positions move at once, and each
/// transition of a position set is computed once, however many parses a token has and however many
/// tokens share it.
///
/// If a grammar is ambiguous, a walk position by position visits a trie node once per parse, and
/// the number of parses doubles with every byte; this walk visits it once.
///
/// \par Complexity  O(nodes below, plus position sets x bytes), times the positions of a set
/// \par Threads     holds the automaton's lock during the walk
/// \par Source      subset construction, Rabin and Scott 1959
class JointWalk {
 public:
  using Span      = grammar::Automaton::Cursor::Span;
  using NodeIndex = core::ByteTrie::NodeIndex;

  JointWalk(grammar::Automaton::Cursor& walk, const core::ByteTrie& trie)
      : walk_(walk), trie_(trie) {}

  /// Calls `visit(values)` for each trie node whose text may follow.
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

  [[nodiscard]] std::size_t size() const noexcept { return sets_.size(); }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0}, unknown = none - 1;
  using Row = std::array<std::uint32_t, 256>;

  struct Set {
    Span place;
    text::ByteSet candidates;
    std::unique_ptr<Row> next{};
  };

  std::uint32_t step(std::uint32_t from, std::uint8_t byte);

  // Releases `place` if the set is already known.
  std::uint32_t intern(Span place);

  grammar::Automaton::Cursor& walk_;
  const core::ByteTrie& trie_;
  std::vector<Set> sets_;
  core::InternIndex index_;
};

}  // namespace tooldecode::mask

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/mask/joint_walk.ipp>
#endif
