/// \file
/// Definitions of text_lengths.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/key_reader.hpp>
#include <tooldecode/grammar/node_order.hpp>
#include <tooldecode/grammar/node_store.hpp>
#include <tooldecode/grammar/positions.hpp>
#include <tooldecode/grammar/stack_sets.hpp>
#include <tooldecode/grammar/stacks.hpp>
#include <tooldecode/grammar/text_lengths.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/dfa_lengths.hpp>
#include <tooldecode/text/dfa_units.hpp>
#include <tooldecode/text/occurrences.hpp>

namespace tooldecode::grammar {

TOOLDECODE_INLINE std::uint32_t TextLengths::rest(const StackFrame& frame) {
  return frame.node == Positions::text_end ? 0 : sum(inside(frame), behind(frame.below));
}

TOOLDECODE_INLINE TextLengths::Worst TextLengths::worst(StoredId root) {
  const auto known = worst_.find(root);
  return known != worst_.end() ? known->second : worst_[root] = find_worst(root);
}

TOOLDECODE_INLINE std::size_t TextLengths::bytes() const noexcept {
  return sizeof(std::uint32_t) * (shortest_.capacity() + behind_.capacity()) + table_bytes_ +
         onward_.bytes();
}

TOOLDECODE_INLINE std::uint32_t TextLengths::sum(std::uint32_t a, std::uint32_t b) noexcept {
  return std::min(a + b, none);
}

TOOLDECODE_INLINE std::uint32_t TextLengths::product(std::uint32_t n,
                                                     std::uint32_t length) noexcept {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(std::uint64_t{n} * length, none));
}

TOOLDECODE_INLINE std::uint32_t TextLengths::shortest(StoredId id) {
  if (id.index() >= shortest_.size() || shortest_[id.index()] == unknown) find_shortest(id);
  return shortest_[id.index()];
}

TOOLDECODE_INLINE void TextLengths::find_shortest(StoredId root) {
  const NodeOrder order(positions_.nodes(), root, [&](StoredId id) {
    return id.index() < shortest_.size() && shortest_[id.index()] != unknown;
  });
  shortest_.resize(std::max(shortest_.size(), positions_.nodes().size()), unknown);
  for (const StoredId id : order.nodes()) shortest_[id.index()] = none;
  try {
    for (bool changed = true; changed;) {
      changed = false;
      for (const StoredId id : order.nodes()) {
        const std::uint32_t length = shortest_of(id);
        changed |= length < shortest_[id.index()];
        shortest_[id.index()] = std::min(length, shortest_[id.index()]);
      }
      changed &= order.is_recursive();
    }
  } catch (...) {  // out of memory: drop values that are not final
    for (const StoredId id : order.nodes()) shortest_[id.index()] = unknown;
    throw;
  }
}

TOOLDECODE_INLINE std::uint32_t TextLengths::shortest_of(StoredId id) {
  const NodeStore::Node& node = node_of(id);
  switch (node.kind) {
    case Kind::nothing:
    case Kind::linked:
      return none;
    case Kind::empty:
      return 0;
    case Kind::literal:
      return static_cast<std::uint32_t>(node.text.size());
    case Kind::sequence:
      return parts_from(node, 0);
    case Kind::choice: {
      std::uint32_t least = none;
      for (const StoredId child : node.children) {
        least = std::min(least, shortest_[child.index()]);
      }
      return least;
    }
    case Kind::repeat:
      return node.occurrences.min == 0 ? 0
                                       : sum(item(node), product(node.occurrences.min - 1,
                                                                 sum(item(node), between(node))));
    case Kind::lexeme:
      return lexeme(node, 0, 0, true);
    case Kind::trie:
      return below_trie(node)[0];
    case Kind::keyed_set: {
      const SeenId nobody{};
      if (positions_.keys().seen().is_complete(node, nobody)) return 0;
      return key({id, nobody.number(), 0, empty_stack});
    }
    case Kind::reference:
    case Kind::tag:
      return shortest_[node.children[0].index()];
  }
  return none;
}

TOOLDECODE_INLINE std::uint32_t TextLengths::item(const NodeStore::Node& node) const {
  return shortest_[node.children[0].index()];
}

TOOLDECODE_INLINE std::uint32_t TextLengths::between(const NodeStore::Node& node) const {
  return shortest_[node.separator.index()];
}

TOOLDECODE_INLINE std::uint32_t TextLengths::parts_from(const NodeStore::Node& node,
                                                        std::size_t first) const {
  std::uint32_t length = 0;
  for (std::size_t i = first; i < node.children.size(); ++i) {
    length = sum(length, shortest_[node.children[i].index()]);
  }
  return length;
}

TOOLDECODE_INLINE TextLengths::Lengths TextLengths::below_trie(const NodeStore::Node& node) const {
  const core::ByteTrie& literals = *node.literals;
  Lengths below(literals.size(), none);
  for (std::size_t at = literals.size(); at-- > 0;) {
    const auto [first, last] = literals.children(static_cast<core::ByteTrie::NodeIndex>(at));
    for (auto child = first; child < last; ++child) {
      std::uint32_t here = below[child];
      if (const auto values = literals.values(child); !values.empty()) {
        here = std::min(here, shortest_[node.children[values.front()].index()]);
      }
      below[at] = std::min(below[at], sum(1, here));
    }
  }
  return below;
}

TOOLDECODE_INLINE std::uint32_t TextLengths::lexeme(const NodeStore::Node& node,
                                                    text::Dfa::State state, std::uint32_t units,
                                                    bool is_start) {
  std::uint32_t owed = node.occurrences.min > units ? node.occurrences.min - units : 0;
  if (node.ends) owed -= std::min(owed, (*node.ends)[state][0].min);
  if (is_start && node.dfa->accepting(state) && owed == 0) return 0;
  return sum(onward_.of(*node.dfa)[state], owed);
}

TOOLDECODE_INLINE std::uint32_t TextLengths::inside(const StackFrame& frame) {
  (void)shortest(frame.node);
  const NodeStore::Node& node = node_of(frame.node);
  switch (node.kind) {
    case Kind::literal:
      return static_cast<std::uint32_t>(node.text.size()) - frame.offset();
    case Kind::lexeme:
      return lexeme(node, frame.dfa_state(), frame.units());
    case Kind::trie:
      return literal(frame);
    case Kind::keyed_set:
      return key(frame);
    default:
      return none;
  }
}

TOOLDECODE_INLINE std::uint32_t TextLengths::literal(const StackFrame& frame) {
  Lengths& below = below_[frame.node];
  if (below.empty()) {
    below = below_trie(node_of(frame.node));
    table_bytes_ += 4 * below.size();
  }
  return below[frame.trie_node()];
}

TOOLDECODE_INLINE std::uint32_t TextLengths::member(StoredId id, std::uint32_t index) {
  const NodeStore::Node& node = node_of(id);
  Lengths& spellings          = spellings_[id];
  if (spellings.empty()) {
    Lengths found(node.children.size() + 1, none);
    each_below(*node.literals, 0, [&](std::uint32_t depth, std::uint32_t value) {
      found[value] = std::min(found[value], depth);
    });
    spellings = std::move(found);
    table_bytes_ += 4 * spellings.size();
  }
  return sum(spellings[index], shortest_[node.children[index].index()]);
}

TOOLDECODE_INLINE std::uint32_t TextLengths::any_other(const NodeStore::Node& node) {
  std::uint32_t least = none;
  for (const NodeStore::OtherKeys& others : node.others) {
    least = std::min(least,
                     sum(onward_.of(*node_of(others.key).dfa)[0], shortest_[others.value.index()]));
  }
  return least;
}

TOOLDECODE_INLINE std::uint32_t TextLengths::missing(StoredId id, SeenId seen) {
  const NodeStore::Node& node = node_of(id);
  std::uint32_t length        = 0;
  positions_.keys().seen().for_each_missing(node, seen, [&](std::uint32_t index) {
    length = sum(length, sum(between(node), member(id, index)));
  });
  const std::uint32_t owed = positions_.keys().seen().count_owed(node, seen);
  return owed == 0 ? length : sum(length, product(owed, further(id, seen)));
}

TOOLDECODE_INLINE std::uint32_t TextLengths::further(StoredId id, SeenId seen) {
  const NodeStore::Node& node = node_of(id);
  std::uint32_t least         = any_other(node);
  for (std::uint32_t i = 0; i < node.children.size(); ++i) {
    if (positions_.keys().seen().may_follow(node, seen, i)) {
      least = std::min(least, member(id, i));
    }
  }
  return sum(between(node), least);
}

TOOLDECODE_INLINE std::uint32_t TextLengths::key(const StackFrame& frame) {
  const NodeStore::Node& node = node_of(frame.node);
  const KeyReader& keys       = positions_.keys();
  const std::uint32_t all     = missing(frame.node, frame.seen());
  // The shortest text has no escape in a key.
  if (keys.is_in_escape(frame.key())) return sum(all, longest_escape);
  const bool owes = keys.seen().count_owed(node, frame.seen()) != 0;
  const std::uint32_t without_further =
      owes ? all - std::min(all, further(frame.node, frame.seen())) : all;
  const std::vector<char> is_missing = needed(node, frame.seen());
  std::uint32_t least                = none;
  const auto becomes                 = [&](std::uint32_t depth, std::uint32_t index) {
    if (!keys.seen().may_follow(node, frame.seen(), index)) return;
    const std::uint32_t others =
        is_missing[index] ? all - std::min(all, sum(between(node), member(frame.node, index)))
                                          : without_further;
    least = std::min(least, sum(others, sum(depth, shortest_[node.children[index].index()])));
  };
  if (KeyReader::is_in_trie(frame.key())) each_below(*node.literals, frame.key(), becomes);
  const bool adds = keys.seen().may_add(node, frame.seen());
  for (std::size_t k = 0; adds && k < node.others.size(); ++k) {
    const text::Dfa::State state = keys.state_at(node, frame.key(), k);
    if (state == text::Dfa::dead) continue;
    const std::uint32_t one = sum(onward_.of(*node_of(node.others[k].key).dfa)[state],
                                  shortest_[node.others[k].value.index()]);
    least                   = std::min(least, sum(without_further, one));
  }
  return least;
}

TOOLDECODE_INLINE std::vector<char> TextLengths::needed(const NodeStore::Node& node,
                                                        SeenId seen) const {
  std::vector<char> result(node.children.size(), 0);
  positions_.keys().seen().for_each_missing(node, seen,
                                            [&](std::uint32_t index) { result[index] = 1; });
  return result;
}

TOOLDECODE_INLINE std::uint32_t TextLengths::behind(StackId root) {
  std::vector<StackId> work{root};
  while (!work.empty()) {
    const StackId id = work.back();
    if (is_known(id)) {
      work.pop_back();
      continue;
    }
    const StackFrame frame   = positions_.stacks()[id];
    const std::size_t before = work.size();
    const auto want          = [&](StackId one) {
      if (!is_known(one)) work.push_back(one);
    };
    const bool is_bundle = frame.node == StackSets::bundle;
    if (is_bundle) {
      for (const StackId one : positions_.stacks().ones(frame)) want(one);
    } else {
      want(frame.below);
    }
    if (work.size() != before) continue;
    work.pop_back();
    std::uint32_t length = none;
    if (is_bundle) {
      for (const StackId one : positions_.stacks().ones(frame)) {
        length = std::min(length, known_behind(one));
      }
    } else {
      length = sum(left_of(frame), known_behind(frame.below));
    }
    if (id.index() >= behind_.size()) behind_.resize(2 * id.index() + 1, unknown);
    behind_[id.index()] = length;
  }
  return known_behind(root);
}

TOOLDECODE_INLINE bool TextLengths::is_known(StackId id) const {
  return id == empty_stack || (id.index() < behind_.size() && behind_[id.index()] != unknown);
}

TOOLDECODE_INLINE std::uint32_t TextLengths::known_behind(StackId id) const {
  return id == empty_stack ? 0 : behind_[id.index()];
}

TOOLDECODE_INLINE std::uint32_t TextLengths::left_of(const StackFrame& frame) {
  (void)shortest(frame.node);
  const NodeStore::Node& node = node_of(frame.node);
  switch (node.kind) {
    case Kind::sequence:
      return parts_from(node, frame.part());
    case Kind::repeat: {
      std::uint32_t owed =
          positions_.stacks().counts().count_owed(frame.counts(), node.occurrences);
      if (frame.stage() == 0) return product(owed, sum(item(node), between(node)));
      owed = std::max(owed, 1U) - 1;
      return sum(item(node), product(owed, sum(item(node), between(node))));
    }
    case Kind::keyed_set:
      if (frame.stage() == Positions::in_separator) {
        return key({frame.node, frame.seen().number(), 0, empty_stack});
      }
      if (frame.stage() >= Positions::in_other) {
        const auto& others = node.others[frame.stage() - Positions::in_other];
        return sum(shortest_[others.value.index()], missing(frame.node, frame.seen()));
      }
      return missing(frame.node, frame.seen());
    default:
      return 0;  // tag
  }
}

TOOLDECODE_INLINE TextLengths::Worst TextLengths::find_worst(StoredId root) {
  (void)shortest(root);
  const NodeOrder order(positions_.nodes(), root);
  std::unordered_map<StoredId, std::uint32_t> worst;
  for (const StoredId id : order.nodes()) worst[id] = worst_of(id, worst);
  Worst result{worst[root], 0};
  for (const StoredId id : order.entries()) result.nested = std::max(result.nested, worst[id]);
  return result;
}

TOOLDECODE_INLINE std::uint32_t TextLengths::worst_of(
    StoredId id, const std::unordered_map<StoredId, std::uint32_t>& worst) {
  const NodeStore::Node& node = node_of(id);
  const auto of               = [&](StoredId child) {
    const auto known = worst.find(child);  // missing means open, see Worst::nested
    return known == worst.end() ? 0 : known->second;
  };
  std::uint32_t most = 0;
  switch (node.kind) {
    case Kind::literal:
      return static_cast<std::uint32_t>(node.text.size());
    case Kind::lexeme:
      return worst_lexeme(node);
    case Kind::sequence:
      for (std::size_t i = 0; i < node.children.size(); ++i) {
        most = std::max(most, sum(of(node.children[i]), parts_from(node, i + 1)));
      }
      return most;
    case Kind::repeat:
      most = std::max(of(node.children[0]), sum(of(node.separator), item(node)));
      return sum(most, product(node.occurrences.min, sum(item(node), between(node))));
    case Kind::trie:
      each_below(*node.literals, 0, [&](std::uint32_t depth, std::uint32_t value) {
        most = std::max(most, sum(depth, of(node.children[value])));
      });
      return most;
    case Kind::keyed_set:
      return worst_set(id, of);
    default:
      for (const StoredId child : node.children) most = std::max(most, of(child));
      return most;
  }
}

TOOLDECODE_INLINE std::uint32_t TextLengths::worst_lexeme(const NodeStore::Node& node) {
  const text::Dfa& dfa                  = *node.dfa;
  const text::DfaLengths& lengths       = onward_.of(dfa);
  const bool counts                     = node.occurrences != text::Occurrences{};
  const std::vector<std::uint8_t> bytes = text::one_of_each_column(dfa);
  const std::uint32_t most              = sum(node.occurrences.min, lengths.longest());
  if (!counts) return most;
  if (node.ends) {
    return sum(product(std::max(node.occurrences.min, node.ends->far()) + 1, longest_unit), 2);
  }
  for (text::Dfa::State state = 0; state < dfa.size(); ++state) {
    if (!dfa.boundary(state)) continue;
    bool fills = node.occurrences.min == 0, ends = dfa.accepting(state);
    for (const std::uint8_t byte : bytes) {
      const text::Dfa::State next = dfa.next(state, byte);
      fills |= next == state;
      ends |= next != text::Dfa::dead && dfa.closing(next) && dfa.accepting(next);
    }
    if (!fills || !ends) return none;
  }
  return most;
}

TOOLDECODE_INLINE std::uint32_t TextLengths::any_member(StoredId id) {
  std::uint32_t most = 0;
  for (std::uint32_t i = 0; i < node_of(id).children.size(); ++i) {
    const std::uint32_t length = member(id, i);
    if (length != none) most = std::max(most, length);
  }
  return most;
}

}  // namespace tooldecode::grammar
