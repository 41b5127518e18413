/// \file
/// MaskBuilder: finds the tokens that may follow a state.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <tooldecode/constraint/joint_walk.hpp>
#include <tooldecode/constraint/lexeme_slice.hpp>
#include <tooldecode/constraint/mask_parts.hpp>
#include <tooldecode/constraint/shared_states.hpp>
#include <tooldecode/constraint/token_mask.hpp>
#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/key_reader.hpp>
#include <tooldecode/grammar/node_store.hpp>
#include <tooldecode/grammar/positions.hpp>
#include <tooldecode/text/byte_set.hpp>
#include <tooldecode/text/dfa.hpp>

namespace tooldecode::constraint {

/// Walks the vocabulary's trie in step with the automaton, once, for one state.
///
/// Where a walk would stay inside one lexeme for many tokens, a slice that is ready for the lexeme
/// stands for it; only what comes after the lexeme's end is walked. Inside a key that need not be
/// one of the schema's, the tokens that spell one of those are walked and set apart from the
/// slice's.
///
/// Positions are followed one by one, which visits a trie node once for each way to read it; where
/// that turns out to be many, a JointWalk takes over.
///
/// \par Shapes      masks over V tokens
/// \par Complexity  O(trie nodes that the automaton can reach outside slices); see JointWalk
/// \par Threads     holds the automaton's lock while it lives
/// \par Source      Willard and Louf, arXiv:2307.09702, section 4, without its precomputed index
class MaskBuilder {
 public:
  MaskBuilder(const SharedStates& states, std::size_t vocabulary_size)
      : states_(states),
        trie_(states.trie()),
        walk_(states.automaton()),
        vocabulary_size_(vocabulary_size) {}

  [[nodiscard]] MaskEntry build(grammar::Automaton::State state) {
    collect(walk_.begin(state), 0);
    if (is_ambiguous()) {
      JointWalk joint(walk_, trie_);
      joint(walk_.begin(state),
            [&](std::span<const std::uint32_t> tokens) { parts_.add_all(tokens); });
    }
    return std::move(parts_).entry();
  }

 private:
  using Span      = grammar::Automaton::Cursor::Span;
  using NodeIndex = core::ByteTrie::NodeIndex;

  // Tokens seldom reach through so many lexemes, unless a text can be cut into them in many ways:
  // so much is then done for positions one by one before all of them are walked together.
  static constexpr std::size_t many_lexemes = 3;
  static constexpr std::uint64_t max_work   = 5'000;
  // Below so few tokens a walk costs less than a slice.
  static constexpr std::uint32_t sliced_subtree = 48;
  // Inside strings and free text.
  static bool is_sliced(const text::Dfa& dfa, text::Dfa::State state) noexcept {
    return state != text::Dfa::dead && dfa.live(state).size() >= 48;
  }

  // The tokens below a trie node that may follow. Positions are taken one by one, since what one of
  // them allows is allowed; those inside lexemes need no walk of the automaton.
  void collect(Span place, NodeIndex node) {
    const bool is_large = trie_.count_below(node) >= sliced_subtree;
    std::vector<grammar::StackFrame> rest, lexemes, keys;
    for (std::uint32_t i = place.first; i < place.last; ++i) {
      const grammar::StackFrame frame = walk_.positions(place)[i - place.first];
      if (is_lexeme(frame)) {
        lexemes.push_back(frame);
      } else if (is_large && is_sliced_key(frame)) {
        keys.push_back(frame);
      } else {
        rest.push_back(frame);
      }
    }
    collect_lexemes(lexemes, node, is_large);
    if (!keys.empty()) collect_keys(keys, node);
    if (rest.size() == place.last - place.first) return walk(place, node);
    if (rest.empty()) return;
    const Span others = walk_.begin(rest);
    walk(others, node);
    walk_.drop(others);
  }

  [[nodiscard]] bool is_ambiguous() const {
    const bool is_deep = lexemes_ended_ >= many_lexemes;
    return deep_work_ + (is_deep ? walk_.work() - deep_since_ : 0) > max_work;
  }
  // Follows tokens past the end of a lexeme.
  template <class Follow>
  void behind_lexeme(const Follow& follow) {
    if (++lexemes_ended_ == many_lexemes) deep_since_ = walk_.work();
    follow();
    if (lexemes_ended_-- == many_lexemes) deep_work_ += walk_.work() - deep_since_;
  }

  void walk(Span place, NodeIndex node) {
    const text::ByteSet candidates = walk_.candidates(place);
    const auto [first, last]       = trie_.children(node);
    for (auto child = first; child < last && !is_ambiguous(); ++child) {
      if (!candidates.contains(trie_.label(child))) continue;
      const Span next = walk_.step(place, trie_.label(child));
      if (!next.empty()) {
        parts_.add_all(trie_.values(child));
        const auto [below, end] = trie_.children(child);
        if (below != end) collect(next, child);
      }
      walk_.drop(next);
    }
  }

  [[nodiscard]] const grammar::NodeStore::Node* node_of(const grammar::StackFrame& frame) const {
    return frame.node == grammar::Positions::text_end ? nullptr
                                                      : &states_.automaton().nodes()[frame.node];
  }
  [[nodiscard]] bool is_lexeme(const grammar::StackFrame& frame) const {
    const grammar::NodeStore::Node* node = node_of(frame);
    return node != nullptr && node->kind == Grammar::Kind::lexeme;
  }
  [[nodiscard]] bool is_sliced_key(const grammar::StackFrame& frame) const {
    const grammar::NodeStore::Node* node = node_of(frame);
    if (node == nullptr || node->kind != Grammar::Kind::keyed_set ||
        keys().is_in_escape(frame.key())) {
      return false;
    }
    for (std::size_t k = 0; k < node->others.size(); ++k) {
      const text::Dfa::State state = keys().state_at(*node, frame.key(), k);
      if (is_sliced(lexeme_of(*node, k), state)) return keys().seen().may_add(*node, frame.seen());
    }
    return false;
  }
  [[nodiscard]] const grammar::KeyReader& keys() const noexcept {
    return states_.automaton().keys();
  }
  [[nodiscard]] const text::Dfa& lexeme_of(const grammar::NodeStore::Node& set,
                                           std::size_t k) const {
    return *states_.automaton().nodes()[set.others[k].key].dfa;
  }

  // Positions at one point of one lexeme differ only in what comes after it.
  void collect_lexemes(std::vector<grammar::StackFrame>& frames, NodeIndex node, bool is_large) {
    while (!frames.empty()) {
      const grammar::StackFrame frame = frames.back();
      const auto alike = [&](const grammar::StackFrame& other) { return other.is_beside(frame); };
      std::vector<grammar::StackFrame> group;
      std::copy_if(frames.begin(), frames.end(), std::back_inserter(group), alike);
      std::erase_if(frames, alike);
      const LexemeSlice* slice = nullptr;
      if (is_large && is_sliced(*node_of(frame)->dfa, frame.dfa_state())) {
        slice = states_.slice(node_of(frame)->dfa, frame.dfa_state(), node);
      }
      if (slice != nullptr && !(slice->may_end_inside(units_left(frame)) && goes_on(group))) {
        collect_slice(group, *slice);
      } else {
        walk_lexeme(group, node);
      }
    }
  }
  // The units that a lexeme may still have.
  [[nodiscard]] std::uint32_t units_left(const grammar::StackFrame& frame) const {
    const text::Occurrences& bounds = node_of(frame)->occurrences;
    return bounds.max == text::Occurrences::unbounded ? bounds.max : bounds.max - frame.units();
  }
  // Whether anything may follow the lexemes that positions are in.
  [[nodiscard]] bool goes_on(const std::vector<grammar::StackFrame>& group) {
    const Span after   = walk_.after(group);
    const bool is_open = !walk_.candidates(after).empty();
    walk_.drop(after);
    return is_open;
  }

  // Steps through a lexeme alone, and through the automaton from where the lexeme may end.
  void walk_lexeme(const std::vector<grammar::StackFrame>& group, NodeIndex root) {
    const grammar::NodeStore::Node& lexeme = *node_of(group[0]);
    const text::Dfa& dfa                   = *lexeme.dfa;
    const text::Occurrences& bounds        = lexeme.occurrences;
    struct Visit {
      NodeIndex node;
      text::Dfa::State state;
      std::uint32_t units;
      bool plain;  // the class's tokens below are added already
    };
    const TokenClasses& classes = states_.classes();
    std::optional<TokenClasses::Taken> plain;  // the class of tokens that need no walk
    if (root == 0 && dfa.live(group[0].dfa_state()).size() >= 48)
      plain = classes.find(dfa, group[0].dfa_state());
    if (plain) {
      auto left_out = classes.left_out(*plain, units_left(group[0]));
      if (left_out) {
        add_base(classes.mask(plain->k), classes.size(plain->k), std::move(*left_out));
        const bool are_too_long = plain->counts && std::size_t{units_left(group[0])} + 1 <
                                                       classes.by_characters(plain->k).size();
        if (are_too_long && dfa.may_end_inside()) add_too_long(group, *plain);
      } else {
        plain.reset();
      }
    }
    std::optional<Span> after;
    std::vector<Visit> work{{root, group[0].dfa_state(), group[0].units(), plain.has_value()}};
    // Breadth first, as the trie lies in memory.
    for (std::size_t i = 0; i < work.size() && !is_ambiguous(); ++i) {
      const auto [node, state, units, is_plain] = work[i];
      const bool is_boundary                    = dfa.boundary(state);
      const auto [first, last]                  = trie_.children(node);
      for (auto child = first; child < last; ++child) {
        const text::Dfa::State next = dfa.next(state, trie_.label(child));
        if (next == text::Dfa::dead) continue;
        const bool covered = is_plain && (node != 0 || !plain->apart.contains(trie_.label(child)));
        if (covered && !classes.has_others(plain->k, child)) continue;
        std::uint32_t more = units;
        if (is_boundary && dfa.closing(next)) {
          if (units < bounds.min) continue;
        } else if (is_boundary) {
          if (units >= bounds.max) continue;
          ++more;
        }
        parts_.add_all(trie_.values(child));
        const auto [below, end] = trie_.children(child);
        if (below == end) continue;
        if (!dfa.live(next).empty()) work.push_back({child, next, more, covered});
        if (!dfa.accepting(next) || (!dfa.closing(next) && more < bounds.min)) continue;
        if (!after) after = walk_.after(group);
        behind_lexeme([&, end_of = child] { walk(*after, end_of); });
      }
    }
    if (after) walk_.drop(*after);
  }

  // Tokens of a class that have more units than the lexeme may have may yet reach past its end.
  void add_too_long(const std::vector<grammar::StackFrame>& group,
                    const TokenClasses::Taken& plain) {
    const TokenClasses& classes = states_.classes();
    const Span place            = walk_.begin(group);
    for (std::size_t units = std::size_t{units_left(group[0])} + 1;
         units < classes.by_characters(plain.k).size(); ++units) {
      classes.for_each(plain.k, units, [&](TokenId token) {
        if (reads(place, token)) parts_.add(token);
      });
    }
    walk_.drop(place);
  }
  // Whether a token may follow.
  [[nodiscard]] bool reads(Span place, TokenId token) {
    Span next = place;
    for (const char c : states_.vocabulary().grammar_bytes(token)) {
      next = walk_.step(next, static_cast<std::uint8_t>(c));
      if (next.empty()) break;
    }
    walk_.drop({place.last, place.last});
    return !next.empty();
  }

  void collect_slice(const std::vector<grammar::StackFrame>& group, const LexemeSlice& slice) {
    const std::uint32_t least = node_of(group[0])->occurrences.min;
    const std::uint32_t count = group[0].units();
    const std::uint32_t min   = least > count ? least - count : 0;
    const std::uint32_t max   = units_left(group[0]);
    const auto fits           = [&](const LexemeSlice::Closing& token) {
      return token.units >= min && token.units <= max && !is_apart(token.token);
    };
    if (auto removed = slice.not_fitting(min, max, MaskParts::max_listed)) {
      add_base(slice.inside(), slice.count(), std::move(*removed));
    } else {
      add_base(slice.staying(max), slice.count(), {});
      for (const LexemeSlice::Closing& token : slice.closing()) {
        if (fits(token)) parts_.add(token.token);
      }
    }
    if (slice.past().size() == 1) return;
    const Span after = walk_.after(group);
    walk_past(slice, fits, after, 0);
    walk_.drop(after);
  }
  template <class Fits>
  void walk_past(const LexemeSlice& slice, const Fits& fits, Span place, NodeIndex node) {
    const core::ByteTrie& past     = slice.past();
    const text::ByteSet candidates = walk_.candidates(place);
    const auto [first, last]       = past.children(node);
    for (auto child = first; child < last; ++child) {
      if (!candidates.contains(past.label(child))) continue;
      const Span next = walk_.step(place, past.label(child));
      if (!next.empty()) {
        for (const std::uint32_t index : past.values(child)) {
          const LexemeSlice::Closing& token = slice.past_end()[index];
          if (fits(token)) parts_.add(token.token);
        }
        walk_past(slice, fits, next, child);
      }
      walk_.drop(next);
    }
  }

  // Keys of sets that take others than their members: what spells a member's key, or one that may
  // not be repeated, is walked, and what is then no other's key is kept out of the slices. Sets
  // that differ only in what comes after are walked as one.
  void collect_keys(const std::vector<grammar::StackFrame>& frames, NodeIndex node) {
    Behind behind;
    std::map<std::tuple<bool, grammar::StackFrame, Nodes>, std::vector<grammar::StackFrame>> others;
    for (const grammar::StackFrame& frame : frames) {
      const grammar::NodeStore::Node& set = *node_of(frame);
      std::vector<Nodes> apart(set.others.size());
      const Span place = walk_.begin(frame);
      walk_key(place, node, behind, apart);
      walk_.drop(place);
      const bool is_tracked = keys().seen().is_tracked(set, frame.seen());
      for (std::size_t k = 0; k < set.others.size(); ++k) {
        const text::Dfa::State state = keys().state_at(set, frame.key(), k);
        if (state == text::Dfa::dead) continue;
        const grammar::StackFrame key = walk_.in_other_key(frame, k, state);
        grammar::StackFrame alike     = key;
        alike.below                   = is_tracked ? key.below : grammar::empty_stack;
        others[{is_tracked, alike, std::move(apart[k])}].push_back(is_tracked ? frame : key);
      }
    }
    std::vector<TokenId> outer;
    outer.swap(apart_);
    for (const auto& [child, positions] : behind) {
      const Span after = walk_.begin(positions);
      collect(after, child);
      walk_.drop(after);
    }
    const Nodes* apart = nullptr;  // what apart_ has
    for (const auto& entry : others) {
      const auto& alike                             = entry.first;
      const std::vector<grammar::StackFrame>& group = entry.second;
      const auto& [is_tracked, key, nodes]          = alike;
      if (apart == nullptr || *apart != nodes) {
        apart = &nodes;
        apart_.clear();
        for (const NodeIndex below : nodes) set_apart(below);
        std::sort(apart_.begin(), apart_.end());
        apart_.erase(std::unique(apart_.begin(), apart_.end()), apart_.end());
      }
      const text::DfaPointer& dfa = node_of(key)->dfa;
      if (is_tracked) {
        for (const grammar::StackFrame& frame : group)
          collect_tracked(frame, dfa, key.dfa_state(), node);
        continue;
      }
      const LexemeSlice* slice =
          is_sliced(*dfa, key.dfa_state()) ? states_.slice(dfa, key.dfa_state(), node) : nullptr;
      if (slice != nullptr && !slice->may_end_inside(text::Occurrences::unbounded)) {
        collect_slice(group, *slice);
      } else {
        walk_apart([&] { walk_lexeme(group, node); });
      }
    }
    apart_.swap(outer);
  }
  // Where it matters which key is written, what reaches past its end is read token by token.
  void collect_tracked(const grammar::StackFrame& frame, const text::DfaPointer& dfa,
                       text::Dfa::State state, NodeIndex node) {
    const LexemeSlice* slice =
        node == 0 && is_sliced(*dfa, state) ? &states_.ready_slice(dfa, state, node) : nullptr;
    const Span place = walk_.begin(frame);
    if (slice == nullptr || slice->may_end_inside(text::Occurrences::unbounded)) {
      walk_apart([&] { walk(place, node); });
    } else {
      add_base(slice->inside(), slice->count(), {});
      for (const LexemeSlice::Closing& past : slice->past_end()) {
        if (reads(place, past.token)) parts_.add(past.token);
      }
    }
    walk_.drop(place);
  }
  using Nodes = std::vector<NodeIndex>;
  // Positions behind keys of members, by the trie's nodes.
  using Behind = std::map<NodeIndex, std::vector<grammar::StackFrame>>;
  // Follows the keys that others cannot have, in every spelling, and lists for each of the others
  // all nodes from which none of its keys can be completed.
  void walk_key(Span place, NodeIndex node, Behind& behind, std::vector<Nodes>& apart) {
    const grammar::StackFrame frame     = walk_.positions(place)[0];
    const grammar::NodeStore::Node& set = *node_of(frame);
    keys().reserved_bytes(set, frame.seen(), frame.key()).for_each([&](std::uint8_t byte) {
      const NodeIndex child = trie_.find_child(node, byte);
      if (child == 0) return;
      const Span next = walk_.step(place, byte);
      grammar::StackFrame inside{.node = grammar::Positions::text_end};
      for (const grammar::StackFrame& position : walk_.positions(next)) {
        const bool stays = position.node == frame.node && position.below == frame.below &&
                           position.seen() == frame.seen() &&
                           position.key() < grammar::KeyReader::end_of_key_positions;
        if (stays) {
          inside = position;
        } else {
          behind[child].push_back(position);
        }
      }
      const bool stays = inside.node != grammar::Positions::text_end;
      // A member's key that may go on as another's: what follows it is walked.
      const bool ends = stays && keys().ends_member(set, inside.key());
      for (std::size_t k = 0; k < apart.size(); ++k) {
        const bool goes_on =
            stays && !ends && keys().may_become_other(set, frame.seen(), inside.key(), k);
        if (!goes_on) apart[k].push_back(child);
      }
      if (!next.empty()) parts_.add_all(trie_.values(child));
      if (ends) {
        behind[child].push_back(inside);
      } else if (stays) {
        const Span deeper = walk_.begin(inside);
        walk_key(deeper, child, behind, apart);
        walk_.drop(deeper);
      }
      walk_.drop(next);
    });
  }
  void set_apart(NodeIndex node) {
    for (const std::uint32_t token : trie_.values(node)) {
      apart_.push_back(static_cast<TokenId>(token));
    }
    const auto [first, last] = trie_.children(node);
    for (auto child = first; child < last; ++child) set_apart(child);
  }
  [[nodiscard]] bool is_apart(TokenId token) const {
    return !apart_.empty() && std::binary_search(apart_.begin(), apart_.end(), token);
  }
  // A walk of another member's key that no slice serves.
  template <class WalkKeys>
  void walk_apart(const WalkKeys& walk_keys) {
    MaskParts outer = std::exchange(parts_, MaskParts(vocabulary_size_));
    auto apart      = std::exchange(apart_, {});
    walk_keys();
    apart_ = std::move(apart);
    std::swap(parts_, outer);
    parts_.add(std::move(outer), apart_);
  }

  void add_base(const TokenMask& mask, std::size_t count, std::vector<TokenId> removed) {
    parts_.add_base(mask, count, std::move(removed), apart_);
  }

  const SharedStates& states_;
  const core::ByteTrie& trie_;
  grammar::Automaton::Cursor walk_;
  std::size_t vocabulary_size_;
  MaskParts parts_{vocabulary_size_};
  std::vector<TokenId> apart_;     // sorted: they spell a member's key
  std::size_t lexemes_ended_ = 0;  // on the way to the node at hand
  std::uint64_t deep_work_   = 0;  // behind many of them
  std::uint64_t deep_since_  = 0;
};

}  // namespace tooldecode::constraint
