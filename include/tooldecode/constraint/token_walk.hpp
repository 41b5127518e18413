/// \file
/// TokenWalk: follows the tokens that may come after a state.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/node_store.hpp>
#include <tooldecode/grammar/positions.hpp>
#include <tooldecode/grammar/stacks.hpp>
#include <tooldecode/text/byte_set.hpp>
#include <tooldecode/text/dfa.hpp>

namespace tooldecode::constraint {

/// Walks the vocabulary's trie together with the automaton. Inside a lexeme most tokens lead to few
/// states and need no step of the automaton. It holds the automaton's lock, so keep it short-lived.
///
/// A `Guide` has
/// - `path(before, positions)`: what it knows of a text, from what it knew one byte before. Inside a
///   lexeme a path stays as it is.
/// - `wants(node)`: whether to visit a trie node.
/// - `visit(node, next, path)`, with the state after the node's text.
///
/// \par Complexity  O(trie nodes whose text may follow)
/// \par Threads     one thread at a time
template <class Guide>
class TokenWalk {
 public:
  using Number    = grammar::Automaton::State;
  using NodeIndex = core::ByteTrie::NodeIndex;

  /// Both must outlive the walk.
  TokenWalk(const Constraint& constraint, Guide& guide)
      : trie_(constraint.vocabulary_index().trie()),
        nodes_(constraint.automaton().nodes()),
        walk_(constraint.automaton()),
        guide_(guide) {}

  template <class Path>
  void operator()(Number id, const Path& path) {
    follow(walk_.begin(id), 0, path);
  }
  /// Bytes that were followed.
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }

 private:
  using Span = grammar::Automaton::Cursor::Span;

  template <class Path>
  void follow(Span place, NodeIndex node, const Path& path) {
    if (const auto inside = find_lexeme(place)) return follow_lexeme(*inside, node, path);
    const text::ByteSet candidates = walk_.candidates(place);
    const auto [first, last]       = trie_.children(node);
    for (auto child = first; child < last; ++child) {
      if (candidates.contains(trie_.label(child))) step(place, child, path);
    }
  }
  template <class Path>
  void step(Span place, NodeIndex child, const Path& before) {
    ++steps_;
    const Span next = walk_.step(place, trie_.label(child));
    if (!next.empty()) {
      const Path path = guide_.path(before, walk_.positions(next));
      if (guide_.wants(child)) guide_.visit(child, walk_.settle(next), path);
      const auto [first, last] = trie_.children(child);
      if (first != last) follow(next, child, path);
    }
    walk_.drop(next);
  }
  [[nodiscard]] std::optional<grammar::StackFrame> find_lexeme(Span place) const {
    const auto positions = walk_.positions(place);
    if (positions.size() != 1 || positions[0].node == grammar::Positions::text_end) return {};
    if (nodes_[positions[0].node].template as<grammar::NodeStore::Node::Lexeme>() == nullptr)
      return {};
    return positions[0];
  }
  template <class Path>
  void follow_lexeme(const grammar::StackFrame& from, NodeIndex root, const Path& path) {
    const text::Dfa& dfa = nodes_.lexeme(from.node);
    std::unordered_map<std::uint64_t, Number> states;
    const auto state_at = [&](const grammar::StackFrame& frame) {
      const auto [at, is_new] = states.try_emplace(std::uint64_t{frame.a} << 32 | frame.b, 0);
      if (is_new) {
        const Span place = walk_.begin(frame);
        at->second       = walk_.settle(place);
        walk_.drop(place);
      }
      return at->second;
    };
    std::vector<std::pair<NodeIndex, grammar::StackFrame>> work{{root, from}};
    while (!work.empty()) {
      const auto [node, frame] = work.back();
      work.pop_back();
      const text::ByteSet& live = dfa.live(frame.dfa_state());
      const auto [first, last]  = trie_.children(node);
      for (auto child = first; child < last; ++child) {
        if (!live.contains(trie_.label(child))) continue;
        grammar::StackFrame next = frame;
        if (!walk_.move_inside(next, trie_.label(child))) {
          const Span place = walk_.begin(frame);
          step(place, child, path);
          walk_.drop(place);
          continue;
        }
        ++steps_;
        if (guide_.wants(child)) guide_.visit(child, state_at(next), path);
        const auto [below, end] = trie_.children(child);
        if (below != end) work.emplace_back(child, next);
      }
    }
  }

  const core::ByteTrie& trie_;
  const grammar::NodeStore& nodes_;
  grammar::Automaton::Cursor walk_;
  Guide& guide_;
  std::uint64_t steps_ = 0;
};

}  // namespace tooldecode::constraint
