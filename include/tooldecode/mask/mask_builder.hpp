/// \file
/// MaskBuilder: computes the mask of a state.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/key_reader.hpp>
#include <tooldecode/grammar/node_store.hpp>
#include <tooldecode/grammar/positions.hpp>
#include <tooldecode/mask/joint_walk.hpp>
#include <tooldecode/mask/lexeme_slice.hpp>
#include <tooldecode/mask/mask_parts.hpp>
#include <tooldecode/mask/shared_states.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/text/byte_set.hpp>
#include <tooldecode/text/dfa.hpp>

namespace tooldecode::mask {

/// Walks the vocabulary's trie in step with the automaton, once, for one state.
///
/// Where many tokens stay inside one lexeme, a ready LexemeSlice replaces the walk, and only what
/// follows the lexeme's end is walked. Inside a key that may be unknown to the schema, the tokens
/// that spell a known key are walked and kept apart from the slice's tokens.
///
/// The walk follows positions one by one, so it visits a trie node once per parse. If there are
/// many parses, a JointWalk takes over.
///
/// \par Shapes      masks over V tokens
/// \par Complexity  O(trie nodes that the automaton reaches outside slices); see JointWalk
/// \par Threads     holds the automaton's lock while it lives
/// \par Errors      Error{limit_exceeded, cancelled}, see BuildBudget; the mask is then discarded
/// \par Source      Willard and Louf, arXiv:2307.09702, section 4, without its precomputed index
class MaskBuilder {
 public:
  MaskBuilder(const SharedStates& states, std::size_t vocabulary_size);

  [[nodiscard]] MaskEntry build(grammar::Automaton::State state);

 private:
  using Span      = grammar::Automaton::Cursor::Span;
  using NodeIndex = core::ByteTrie::NodeIndex;
  using Lexeme    = grammar::NodeStore::Node::Lexeme;
  using Members   = grammar::NodeStore::Node::Members;

  // A token rarely passes this many lexemes unless the grammar is ambiguous. After this much work
  // beyond them, a JointWalk replaces the walk position by position.
  static constexpr std::size_t many_lexemes           = 3;
  static constexpr std::uint64_t max_work             = 5'000;
  static constexpr std::size_t visits_between_charges = 256;  // one step of the budget per trie
                                                              // node
  static constexpr std::size_t max_whitespaces = 4;           // that follow each other
  static constexpr std::size_t max_judged      = 4096;        // tokens; for more a walk costs less
  // A search for one child costs about as much as a look at this many.
  static constexpr std::uint32_t few_candidates = 8;
  // For fewer tokens a walk costs less than a slice.
  static constexpr std::uint32_t sliced_subtree = 48;
  // Inside strings and free text.
  static bool is_sliced(const text::Dfa& dfa, text::Dfa::State state) noexcept;

  // Adds the tokens below a trie node that may follow. One position suffices to allow a token, so
  // positions are taken one by one; those inside lexemes need no walk of the automaton.
  void collect(Span place, NodeIndex node);

  [[nodiscard]] bool is_ambiguous() const;
  template <class Follow>
  void behind_lexeme(const Follow& follow) {
    if (++lexemes_ended_ == many_lexemes) deep_since_ = walk_.work();
    follow();
    if (lexemes_ended_-- == many_lexemes) deep_work_ += walk_.work() - deep_since_;
  }

  void walk(Span place, NodeIndex node);
  // Calls `visit(child, next)` for each child of a trie's node whose byte may follow, and drops
  // `next`, the place after it. Stops where a JointWalk will take over.
  template <class Visit>
  void step_through(const core::ByteTrie& trie, Span place, NodeIndex node, const Visit& visit) {
    const auto [first, last] = trie.children(node);
    const auto follow        = [&](NodeIndex child, std::uint8_t byte) {
      if (is_ambiguous()) return;
      const Span next = walk_.step(place, byte);
      if (!next.empty()) visit(child, next);
      walk_.drop(next);
    };
    if (last - first <= 1) {  // the step itself tells
      if (first < last) follow(first, trie.label(first));
      return;
    }
    const text::ByteSet candidates = walk_.candidates(place);
    if (few_candidates * static_cast<std::uint32_t>(candidates.size()) < last - first) {
      candidates.for_each([&](std::uint8_t byte) {
        if (const NodeIndex child = trie.find_child(node, byte); child != 0) follow(child, byte);
      });
      return;
    }
    for (auto child = first; child < last; ++child) {
      if (candidates.contains(trie.label(child))) follow(child, trie.label(child));
    }
  }

  // The node of a position as a certain kind, or a null pointer.
  template <class Kind>
  [[nodiscard]] const Kind* find(const grammar::StackFrame& frame) const {
    if (frame.node == grammar::Positions::text_end) return nullptr;
    return states_.automaton().nodes()[frame.node].template as<Kind>();
  }
  [[nodiscard]] const Lexeme& lexeme_of(const grammar::StackFrame& frame) const;
  [[nodiscard]] bool is_sliced_key(const grammar::StackFrame& frame) const;
  [[nodiscard]] const grammar::KeyReader& keys() const noexcept;

  // Positions at the same point of the same lexeme differ only in what follows it.
  void collect_lexemes(std::vector<grammar::StackFrame>& frames, NodeIndex node, bool is_large);
  // Collects them where only one byte may follow, as a string's quote, behind that byte; there is a
  // slice then. False, with nothing done, if more bytes may follow or the lexeme may end.
  bool collect_behind_byte(std::vector<grammar::StackFrame>& group, NodeIndex node);
  [[nodiscard]] std::uint32_t units_left(const grammar::StackFrame& frame) const;
  // How many more units the bounds allow in every state except the lexeme's end.
  [[nodiscard]] std::uint32_t free_units(const grammar::StackFrame& frame) const;
  // The same, only in the given states; none means all.
  [[nodiscard]] std::uint32_t free_units(const grammar::StackFrame& frame,
                                         const std::vector<text::Dfa::State>& states) const;
  // Whether anything may follow the lexemes of these positions.
  [[nodiscard]] bool goes_on(const std::vector<grammar::StackFrame>& group);

  // Adds what may stand where JSON's white space may, in one walk of what follows it. False, with
  // nothing done, for other lexemes and where what follows may begin with white space as well.
  bool collect_whitespace(const std::vector<grammar::StackFrame>& group);
  struct BehindWhitespace {
    std::uint32_t most;  // bytes of white space before
    std::vector<grammar::StackFrame> positions;
  };
  [[nodiscard]] bool is_whitespace(const grammar::StackFrame& frame) const;
  // Lists what follows `group` after at most `most` bytes; white space may follow white space.
  bool find_behind_whitespace(const std::vector<grammar::StackFrame>& group, std::uint32_t most,
                              std::vector<BehindWhitespace>& found);

  // Walks the lexeme alone, and the automaton from where the lexeme may end.
  void walk_lexeme(const std::vector<grammar::StackFrame>& group, NodeIndex root);

  // A class's tokens with too many units for the lexeme may still go past its end.
  void add_too_long(const std::vector<grammar::StackFrame>& group,
                    const TokenClasses::Taken& plain);
  // Adds a class's tokens after which an end of the lexeme is within reach; false, with nothing done,
  // if that must be found out for many.
  bool add_within_reach(const std::vector<grammar::StackFrame>& group,
                        const TokenClasses::Taken& plain);
  [[nodiscard]] bool reads(Span place, TokenId token);
  [[nodiscard]] bool reads(const grammar::StackFrame& frame, TokenId token);

  void collect_slice(const std::vector<grammar::StackFrame>& group, const LexemeSlice& slice,
                     bool is_key);
  // The same where the bounds leave too few units for the slice's longest tokens; false, with nothing
  // done, if it must be found out for many whether an end is within reach after them.
  bool collect_bound(const std::vector<grammar::StackFrame>& group, const LexemeSlice& slice);
  // Whether an end of the lexeme is within reach after a token that stays inside and has so many
  // units.
  [[nodiscard]] bool is_within_reach(const grammar::StackFrame& frame, TokenId token,
                                     std::uint32_t units) const;
  // Adds the tokens past the end of a slice's lexeme that the positions after it accept and that
  // are not apart, where `fits(token)`. Each token of a key asks for the same ones: they are kept,
  // ascending.
  template <class Fits>
  void collect_past(const LexemeSlice& slice, const std::vector<grammar::StackFrame>& group,
                    bool is_key, const Fits& fits) {
    if (slice.past().size() == 1) return;
    const Span after      = walk_.after(group);
    const PastTokens* all = is_key ? states_.find_past(slice, walk_.positions(after)) : nullptr;
    PastTokens walked;
    if (all == nullptr) {
      const auto add = [&](const CountedToken& token) { walked.push_back(token); };
      if (is_key && group.size() == 1) {
        add_past_key(slice, group[0], walked);
      } else {
        walk_past(slice, after, 0, add);
      }
      if (is_key) std::ranges::sort(walked, {}, &CountedToken::token);
      all = is_key && !is_ambiguous()
                ? &states_.keep_past(slice, walk_.positions(after), std::move(walked))
                : &walked;
    }
    walk_.drop(after);
    auto apart = apart_.begin();  // there are some only in keys
    for (const CountedToken& token : *all) {
      apart = std::find_if(apart, apart_.end(), [&](TokenId one) { return one >= token.token; });
      const bool is_apart = apart != apart_.end() && *apart == token.token;
      if (!is_apart && fits(token)) parts_.add(token.token);
    }
  }
  // Adds those past the end of a key of others, first those of which the value alone decides.
  void add_past_key(const LexemeSlice& slice, const grammar::StackFrame& key, PastTokens& found);
  // Whether everything that was entered may be behind a place.
  [[nodiscard]] bool may_end(Span place) const;
  void walk_value(const LexemeSlice& slice, Span place, NodeIndex node, PastInValue& past);
  // Whether the bounds allow a token that goes to the lexeme's end or past it.
  [[nodiscard]] bool fits(const grammar::StackFrame& frame, const CountedToken& token) const;
  // \param ends  what has `past()` and `past_end()`: a LexemeSlice or WhitespaceRuns
  template <class Ends, class Visit>
  void walk_past(const Ends& ends, Span place, NodeIndex node, const Visit& visit) {
    step_through(ends.past(), place, node, [&](NodeIndex child, Span next) {
      for (const std::uint32_t index : ends.past().values(child)) visit(ends.past_end()[index]);
      walk_past(ends, next, child, visit);
    });
  }

  // Keys of sets that accept unknown keys: walks what spells a member's key or a key that must not
  // repeat, and keeps tokens that fit no other key out of the slices. Sets that differ only in what
  // follows are walked once.
  void collect_keys(const std::vector<grammar::StackFrame>& frames, NodeIndex node);
  // The tokens of a key that may repeat none of those that were written.
  //
  // \param key  the position in the lexeme of that key
  void collect_tracked(const grammar::StackFrame& frame, const grammar::StackFrame& key,
                       NodeIndex node);
  // Whether what a token has behind the end of a key may be forbidden by the text of that key.
  [[nodiscard]] bool goes_into_next_key(const grammar::StackFrame& frame, const text::Dfa& dfa,
                                        text::Dfa::State state, TokenId token) const;
  // Walks the lexeme alone: the automaton would make a position for each text of such a key.
  void walk_tracked(Span place, const text::Dfa& dfa, text::Dfa::State state, NodeIndex root);
  void walk_exactly(Span place, NodeIndex node);
  using Nodes = std::vector<NodeIndex>;
  // Positions after members' keys, by trie node.
  using Behind = std::map<NodeIndex, std::vector<grammar::StackFrame>>;
  // Follows, in every spelling, the keys that unknown keys must differ from, and lists for each of
  // the others all nodes from which none of its keys can be completed.
  void walk_key(Span place, NodeIndex node, Behind& behind, std::vector<Nodes>& apart);
  // Whether other key `k` may have a byte; true inside an escape, where that is not known.
  [[nodiscard]] bool may_read(const Members& set, std::uint32_t key, std::size_t k,
                              std::uint8_t byte) const;
  // Keeps the tokens at or below some nodes apart.
  void set_apart(const Nodes& nodes);
  void add_unless_apart(TokenId token);
  template <class WalkKeys>
  void walk_apart(const WalkKeys& walk_keys) {
    MaskParts outer = std::exchange(parts_, MaskParts(vocabulary_size_));
    auto apart      = std::exchange(apart_, {});
    walk_keys();
    apart_ = std::move(apart);
    std::swap(parts_, outer);
    parts_.add(std::move(outer), apart_);
  }

  void add_base(const TokenMask& mask, std::size_t count, std::vector<TokenId> removed);

  const SharedStates& states_;
  const core::ByteTrie& trie_;
  grammar::Automaton::Cursor walk_;
  std::size_t vocabulary_size_;
  MaskParts parts_{vocabulary_size_};
  std::vector<TokenId> apart_;     // sorted; tokens that spell a member's key
  std::size_t lexemes_ended_ = 0;  // on the way to the current node
  std::uint64_t deep_work_   = 0;  // after many_lexemes of them
  std::uint64_t deep_since_  = 0;
};

}  // namespace tooldecode::mask

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/mask/mask_builder.ipp>
#endif
