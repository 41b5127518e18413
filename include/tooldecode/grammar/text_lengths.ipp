#pragma once

#include <tooldecode/core/heap_bytes.hpp>
#include <tooldecode/grammar/text_lengths.hpp>
#include <tooldecode/text/dfa_units.hpp>

namespace tooldecode::grammar {

TOOLDECODE_INLINE std::uint32_t TextLengths::rest(const StackFrame& frame) {
  return frame.node == Positions::text_end ? 0 : sum(inside(frame), behind(frame.below));
}

TOOLDECODE_INLINE TextLengths::Worst TextLengths::worst(StoredId root) {
  const auto known = worst_.find(root);
  return known != worst_.end() ? known->second : worst_[root] = find_worst(root);
}

TOOLDECODE_INLINE std::size_t TextLengths::bytes() const noexcept {
  using core::heap_bytes;
  return heap_bytes(shortest_) + heap_bytes(behind_) + heap_bytes(spellings_) + heap_bytes(below_) +
         heap_bytes(worst_) + table_bytes_ + onward_.bytes();
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
  return node_of(id).visit(
      [](const Node::Literal& literal) { return static_cast<std::uint32_t>(literal.text.size()); },
      [&](const Node::Lexeme& one) { return lexeme(one, 0, 0, true); },
      [&](const Node::Sequence& all) { return parts_from(all, 0); },
      [&](const Node::Choice& choice) {
        std::uint32_t least = none;
        for (const StoredId child : choice.children) {
          least = std::min(least, shortest_[child.index()]);
        }
        return least;
      },
      [&](const Node::Repeat& repeat) {
        return repeat.count.min == 0
                   ? 0
                   : sum(item(repeat), product(repeat.count.min - 1, next_item(repeat)));
      },
      [&](const Node::Trie& trie) { return below_trie(trie)[0]; },
      [&](const Node::Members& set) {
        if (positions_.keys().seen().is_complete(set, SeenId{})) return std::uint32_t{0};
        return key({id, SeenId{}.number(), 0, empty_stack});
      },
      [&](const Node::Reference& reference) { return shortest_[reference.body->index()]; },
      [&](const Node::Tag& tag) { return shortest_[tag.child.index()]; },
      [](const Node::Linked&) { return none; });
}

TOOLDECODE_INLINE std::uint32_t TextLengths::item(const Node::Repeat& repeat) const {
  return shortest_[repeat.item.index()];
}

TOOLDECODE_INLINE std::uint32_t TextLengths::next_item(const Node::Repeat& repeat) const {
  return sum(item(repeat), shortest_[repeat.separator.index()]);
}

TOOLDECODE_INLINE std::uint32_t TextLengths::parts_from(const Node::Sequence& all,
                                                        std::size_t first) const {
  std::uint32_t length = 0;
  for (std::size_t i = first; i < all.children.size(); ++i) {
    length = sum(length, shortest_[all.children[i].index()]);
  }
  return length;
}

TOOLDECODE_INLINE TextLengths::Lengths TextLengths::below_trie(const Node::Trie& trie) const {
  const core::ByteTrie& literals = *trie.literals;
  Lengths below(literals.size(), none);
  for (std::size_t at = literals.size(); at-- > 0;) {
    const auto [first, last] = literals.children(static_cast<core::ByteTrie::NodeIndex>(at));
    for (auto child = first; child < last; ++child) {
      std::uint32_t here = below[child];
      if (const auto values = literals.values(child); !values.empty()) {
        here = std::min(here, shortest_[trie.children[values.front()].index()]);
      }
      below[at] = std::min(below[at], sum(1, here));
    }
  }
  return below;
}

TOOLDECODE_INLINE std::uint32_t TextLengths::lexeme(const Node::Lexeme& one, text::Dfa::State state,
                                                    std::uint32_t units, bool is_start) {
  std::uint32_t owed = one.units.min > units ? one.units.min - units : 0;
  if (one.ends) owed -= std::min(owed, (*one.ends)[state][0].min);
  if (is_start && one.dfa->accepting(state) && owed == 0) return 0;
  return sum(onward_.of(*one.dfa)[state], owed);
}

TOOLDECODE_INLINE std::uint32_t TextLengths::inside(const StackFrame& frame) {
  (void)shortest(frame.node);
  return node_of(frame.node)
      .visit(
          [&](const Node::Literal& literal) {
            return static_cast<std::uint32_t>(literal.text.size()) - frame.offset();
          },
          [&](const Node::Lexeme& one) { return lexeme(one, frame.dfa_state(), frame.units()); },
          [&](const Node::Trie& trie) { return literal(trie, frame); },
          [&](const Node::Members&) { return key(frame); }, [](const auto&) { return none; });
}

TOOLDECODE_INLINE std::uint32_t TextLengths::literal(const Node::Trie& trie,
                                                     const StackFrame& frame) {
  Lengths& below = below_[frame.node];
  if (below.empty()) {
    below = below_trie(trie);
    table_bytes_ += core::heap_bytes(below);
  }
  return below[frame.trie_node()];
}

TOOLDECODE_INLINE std::uint32_t TextLengths::member(StoredId id, std::uint32_t index) {
  const Node::Members& set = set_of(id);
  Lengths& spellings       = spellings_[id];
  if (spellings.empty()) {
    Lengths found(set.children.size() + 1, none);
    each_below(*set.literals, 0, [&](std::uint32_t depth, std::uint32_t value) {
      found[value] = std::min(found[value], depth);
    });
    spellings = std::move(found);
    table_bytes_ += core::heap_bytes(spellings);
  }
  return sum(spellings[index], shortest_[set.children[index].index()]);
}

TOOLDECODE_INLINE std::uint32_t TextLengths::any_other(const Node::Members& set) {
  std::uint32_t least = none;
  for (const NodeStore::OtherKeys& others : set.others) {
    least = std::min(least, sum(onward_.of(positions_.nodes().lexeme(others.key))[0],
                                shortest_[others.value.index()]));
  }
  return least;
}

TOOLDECODE_INLINE std::uint32_t TextLengths::missing(StoredId id, SeenId seen) {
  const Node::Members& set = set_of(id);
  std::uint32_t length     = 0;
  positions_.keys().seen().for_each_missing(set, seen, [&](std::uint32_t index) {
    length = sum(length, sum(shortest_[set.separator.index()], member(id, index)));
  });
  const std::uint32_t owed = positions_.keys().seen().count_owed(set, seen);
  return owed == 0 ? length : sum(length, product(owed, further(id, seen)));
}

TOOLDECODE_INLINE std::uint32_t TextLengths::further(StoredId id, SeenId seen) {
  const Node::Members& set = set_of(id);
  std::uint32_t least      = any_other(set);
  for (std::uint32_t i = 0; i < set.children.size(); ++i) {
    if (positions_.keys().seen().may_follow(set, seen, i)) {
      least = std::min(least, member(id, i));
    }
  }
  return sum(shortest_[set.separator.index()], least);
}

TOOLDECODE_INLINE std::uint32_t TextLengths::key(const StackFrame& frame) {
  const Node::Members& set = set_of(frame.node);
  const KeyReader& keys    = positions_.keys();
  const std::uint32_t all  = missing(frame.node, frame.seen());
  // The shortest text has no escape in a key.
  if (keys.is_in_escape(frame.key())) return sum(all, longest_escape);
  const bool owes = keys.seen().count_owed(set, frame.seen()) != 0;
  const std::uint32_t without_further =
      owes ? all - std::min(all, further(frame.node, frame.seen())) : all;
  const std::vector<char> is_missing = needed(set, frame.seen());
  std::uint32_t least                = none;
  const auto becomes                 = [&](std::uint32_t depth, std::uint32_t index) {
    if (!keys.seen().may_follow(set, frame.seen(), index)) return;
    const std::uint32_t others =
        is_missing[index]
                            ? all - std::min(all, sum(shortest_[set.separator.index()], member(frame.node, index)))
                            : without_further;
    least = std::min(least, sum(others, sum(depth, shortest_[set.children[index].index()])));
  };
  if (KeyReader::is_in_trie(frame.key())) each_below(*set.literals, frame.key(), becomes);
  const bool adds = keys.seen().may_add(set, frame.seen());
  for (std::size_t k = 0; adds && k < set.others.size(); ++k) {
    const text::Dfa::State state = keys.state_at(set, frame.key(), k);
    if (state == text::Dfa::dead) continue;
    const std::uint32_t one = sum(onward_.of(positions_.nodes().lexeme(set.others[k].key))[state],
                                  shortest_[set.others[k].value.index()]);
    least                   = std::min(least, sum(without_further, one));
  }
  return least;
}

TOOLDECODE_INLINE std::vector<char> TextLengths::needed(const Node::Members& set,
                                                        SeenId seen) const {
  std::vector<char> result(set.children.size(), 0);
  positions_.keys().seen().for_each_missing(set, seen,
                                            [&](std::uint32_t index) { result[index] = 1; });
  return result;
}

TOOLDECODE_INLINE std::uint32_t TextLengths::behind(StackId root) {
  const StackSets& stacks = positions_.stacks();
  const auto known        = [&](StackId id) { return is_known(id); };
  stacks.visit_upwards(root, known, [&](StackId id, const StackFrame& frame) {
    std::uint32_t length = none;
    if (frame.node == StackSets::bundle) {
      for (const StackId one : stacks.ones(frame)) length = std::min(length, known_behind(one));
    } else {
      length = sum(left_of(frame), known_behind(frame.below));
    }
    if (id.index() >= behind_.size()) behind_.resize(2 * id.index() + 1, unknown);
    behind_[id.index()] = length;
  });
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
  return node_of(frame.node)
      .visit([&](const Node::Sequence& all) { return parts_from(all, frame.part()); },
             [&](const Node::Repeat& repeat) {
               std::uint32_t owed =
                   positions_.stacks().counts().count_owed(frame.counts(), repeat.count);
               if (frame.stage() == 0) return product(owed, next_item(repeat));
               owed = std::max(owed, 1U) - 1;
               return sum(item(repeat), product(owed, next_item(repeat)));
             },
             [&](const Node::Members& set) {
               if (frame.stage() == Positions::in_separator) {
                 return key({frame.node, frame.seen().number(), 0, empty_stack});
               }
               if (frame.stage() >= Positions::in_other) {
                 const auto& others = set.others[frame.stage() - Positions::in_other];
                 return sum(shortest_[others.value.index()], missing(frame.node, frame.seen()));
               }
               return missing(frame.node, frame.seen());
             },
             [](const auto&) { return std::uint32_t{0}; });  // tag
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
  const auto of = [&](StoredId child) {
    const auto known = worst.find(child);  // missing means open, see Worst::nested
    return known == worst.end() ? 0 : known->second;
  };
  std::uint32_t most = 0;
  return node_of(id).visit(
      [](const Node::Literal& literal) { return static_cast<std::uint32_t>(literal.text.size()); },
      [&](const Node::Lexeme& one) { return worst_lexeme(one); },
      [&](const Node::Sequence& all) {
        for (std::size_t i = 0; i < all.children.size(); ++i) {
          most = std::max(most, sum(of(all.children[i]), parts_from(all, i + 1)));
        }
        return most;
      },
      [&](const Node::Choice& choice) {
        for (const StoredId child : choice.children) most = std::max(most, of(child));
        return most;
      },
      [&](const Node::Repeat& repeat) {
        most = std::max(of(repeat.item), sum(of(repeat.separator), item(repeat)));
        return sum(most, product(repeat.count.min, next_item(repeat)));
      },
      [&](const Node::Trie& trie) {
        each_below(*trie.literals, 0, [&](std::uint32_t depth, std::uint32_t value) {
          most = std::max(most, sum(depth, of(trie.children[value])));
        });
        return most;
      },
      [&](const Node::Members&) { return worst_set(id, of); },
      [&](const Node::Reference& reference) { return of(*reference.body); },
      [&](const Node::Tag& tag) { return of(tag.child); },
      [](const Node::Linked&) { return std::uint32_t{0}; });
}

TOOLDECODE_INLINE std::uint32_t TextLengths::worst_lexeme(const Node::Lexeme& one) {
  const text::Dfa& dfa                  = *one.dfa;
  const text::DfaLengths& lengths       = onward_.of(dfa);
  const bool counts                     = one.units != text::Occurrences{};
  const std::vector<std::uint8_t> bytes = text::one_of_each_column(dfa);
  const std::uint32_t most              = sum(one.units.min, lengths.longest());
  if (!counts) return most;
  if (one.ends) {
    return sum(product(std::max(one.units.min, one.ends->far()) + 1, longest_unit), 2);
  }
  for (text::Dfa::State state = 0; state < dfa.size(); ++state) {
    if (!dfa.boundary(state)) continue;
    bool fills = one.units.min == 0, ends = dfa.accepting(state);
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
  for (std::uint32_t i = 0; i < set_of(id).children.size(); ++i) {
    const std::uint32_t length = member(id, i);
    if (length != none) most = std::max(most, length);
  }
  return most;
}

}  // namespace tooldecode::grammar
