#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/mask/mask_builder.hpp>
#include <tooldecode/mask/whitespace_runs.hpp>
#include <tooldecode/text/dfa_units.hpp>
#include <tooldecode/text/string_lexeme.hpp>

namespace tooldecode::mask {

TOOLDECODE_INLINE MaskBuilder::MaskBuilder(const SharedStates& states, std::size_t vocabulary_size)
    : states_(states),
      trie_(states.trie()),
      walk_(states.automaton()),
      vocabulary_size_(vocabulary_size) {}

TOOLDECODE_INLINE MaskEntry MaskBuilder::build(grammar::Automaton::State state) {
  collect(walk_.begin(state), 0);
  if (is_ambiguous()) {
    JointWalk joint(walk_, trie_);
    joint(walk_.begin(state),
          [&](std::span<const std::uint32_t> tokens) { parts_.add_all(tokens); });
  }
  return std::move(parts_).entry();
}

TOOLDECODE_INLINE bool MaskBuilder::is_sliced(const text::Dfa& dfa,
                                              text::Dfa::State state) noexcept {
  return state != text::Dfa::dead && dfa.live(state).size() >= 16;
}

TOOLDECODE_INLINE void MaskBuilder::collect(Span place, NodeIndex node) {
  const bool is_large  = trie_.count_below(node) >= sliced_subtree;
  const auto is_lexeme = [&](const grammar::StackFrame& frame) {
    return find<Lexeme>(frame) != nullptr;
  };
  const auto is_key = [&](const grammar::StackFrame& frame) {
    return is_large && is_sliced_key(frame);
  };
  const auto is_walked = [&](const grammar::StackFrame& frame) {
    return !is_lexeme(frame) && !is_key(frame);
  };
  // Few nodes of the trie have positions that are not walked.
  if (std::ranges::all_of(walk_.positions(place), is_walked)) return walk(place, node);
  std::vector<grammar::StackFrame> rest, lexemes, keys;
  for (const grammar::StackFrame& frame : walk_.positions(place)) {
    (is_lexeme(frame) ? lexemes : is_key(frame) ? keys : rest).push_back(frame);
  }
  collect_lexemes(lexemes, node, is_large);
  if (!keys.empty()) collect_keys(keys, node);
  if (rest.empty()) return;
  const Span others = walk_.begin(rest);
  walk(others, node);
  walk_.drop(others);
}

TOOLDECODE_INLINE bool MaskBuilder::is_ambiguous() const {
  const bool is_deep = lexemes_ended_ >= many_lexemes;
  return deep_work_ + (is_deep ? walk_.work() - deep_since_ : 0) > max_work;
}

TOOLDECODE_INLINE void MaskBuilder::walk(Span place, NodeIndex node) {
  step_through(trie_, place, node, [&](NodeIndex child, Span next) {
    parts_.add_all(trie_.values(child));
    const auto [below, end] = trie_.children(child);
    if (below != end) collect(next, child);
  });
}

TOOLDECODE_INLINE const MaskBuilder::Lexeme& MaskBuilder::lexeme_of(
    const grammar::StackFrame& frame) const {
  return *find<Lexeme>(frame);
}

TOOLDECODE_INLINE bool MaskBuilder::is_sliced_key(const grammar::StackFrame& frame) const {
  const auto* set = find<Members>(frame);
  if (set == nullptr || keys().is_in_escape(frame.key())) return false;
  for (std::size_t k = 0; k < set->others.size(); ++k) {
    const text::Dfa::State state = keys().state_at(*set, frame.key(), k);
    const text::Dfa& key         = states_.automaton().nodes().lexeme(set->others[k].key);
    if (is_sliced(key, state)) return keys().seen().may_add(*set, frame.seen());
  }
  return false;
}

TOOLDECODE_INLINE const grammar::KeyReader& MaskBuilder::keys() const noexcept {
  return states_.automaton().keys();
}

TOOLDECODE_INLINE void MaskBuilder::collect_lexemes(std::vector<grammar::StackFrame>& frames,
                                                    NodeIndex node, bool is_large) {
  while (!frames.empty()) {
    const grammar::StackFrame frame = frames.back();
    const auto alike = [&](const grammar::StackFrame& other) { return other.is_beside(frame); };
    std::vector<grammar::StackFrame> group;
    std::copy_if(frames.begin(), frames.end(), std::back_inserter(group), alike);
    std::erase_if(frames, alike);
    if (is_large && collect_behind_byte(group, node)) continue;
    const LexemeSlice* slice = nullptr;
    if (is_large && is_sliced(*lexeme_of(frame).dfa, frame.dfa_state())) {
      slice = states_.slice(lexeme_of(frame).dfa, frame.dfa_state(), node);
    }
    // Without free units, even the rest of a character may lead out of reach.
    const std::uint32_t free = slice != nullptr && lexeme_of(frame).ends ? free_units(frame) : ~0U;
    const bool is_bound      = slice != nullptr && (free == 0 || free < slice->max_units());
    // A token that may not stay may end the lexeme and go past it.
    const bool is_ready =
        slice != nullptr &&
        !(slice->may_end_inside(is_bound ? 0 : units_left(frame)) && goes_on(group));
    if (is_ready && !is_bound) {
      collect_slice(group, *slice, false);
    } else if (is_ready && node == 0 && collect_bound(group, *slice)) {
      continue;
    } else if (node != 0 || !collect_whitespace(group)) {
      walk_lexeme(group, node);
    }
  }
}

TOOLDECODE_INLINE bool MaskBuilder::collect_behind_byte(std::vector<grammar::StackFrame>& group,
                                                        NodeIndex node) {
  const text::ByteSet& live = lexeme_of(group[0]).dfa->live(group[0].dfa_state());
  if (live.size() != 1) return false;
  std::uint8_t byte = 0;
  live.for_each([&](std::uint8_t only) { byte = only; });
  grammar::StackFrame moved = group[0];
  if (!walk_.move_inside(moved, byte)) return false;
  const NodeIndex child = trie_.find_child(node, byte);
  if (child == 0) return true;
  parts_.add_all(trie_.values(child));
  for (grammar::StackFrame& frame : group) frame = {frame.node, moved.a, moved.b, frame.below};
  collect_lexemes(group, child, trie_.count_below(child) >= sliced_subtree);
  return true;
}

TOOLDECODE_INLINE std::uint32_t MaskBuilder::units_left(const grammar::StackFrame& frame) const {
  const text::Occurrences& bounds = lexeme_of(frame).units;
  return bounds.max == text::Occurrences::unbounded ? bounds.max : bounds.max - frame.units();
}

TOOLDECODE_INLINE std::uint32_t MaskBuilder::free_units(const grammar::StackFrame& frame) const {
  const text::DfaUnits& ends = *lexeme_of(frame).ends;
  const std::uint32_t left   = units_left(frame);
  const bool owes            = frame.units() < lexeme_of(frame).units.min;
  if (owes && !ends.is_open()) return 0;
  if (left == text::Occurrences::unbounded) return left;
  return left - std::min(left, owes ? ends.far() : ends.fewest());
}

TOOLDECODE_INLINE std::uint32_t MaskBuilder::free_units(
    const grammar::StackFrame& frame, const std::vector<text::Dfa::State>& states) const {
  if (states.empty()) return free_units(frame);
  const std::uint32_t left = units_left(frame);
  const bool owes          = frame.units() < lexeme_of(frame).units.min;
  std::uint32_t needed     = 0;
  for (const text::Dfa::State state : states) {
    const auto ranges = (*lexeme_of(frame).ends)[state];
    if (owes && ranges.back().max != text::Occurrences::unbounded) return 0;
    needed = std::max(needed, (owes ? ranges.back() : ranges.front()).min);
  }
  return left == text::Occurrences::unbounded ? left : left - std::min(left, needed);
}

TOOLDECODE_INLINE bool MaskBuilder::goes_on(const std::vector<grammar::StackFrame>& group) {
  const Span after   = walk_.after(group);
  const bool is_open = !walk_.candidates(after).empty();
  walk_.drop(after);
  return is_open;
}

TOOLDECODE_INLINE bool MaskBuilder::is_whitespace(const grammar::StackFrame& frame) const {
  const text::DfaPointer& whitespace = text::any_whitespace();
  const text::DfaPointer& dfa        = lexeme_of(frame).dfa;
  return dfa == whitespace || *dfa == *whitespace;
}

TOOLDECODE_INLINE bool MaskBuilder::find_behind_whitespace(
    const std::vector<grammar::StackFrame>& group, std::uint32_t most,
    std::vector<BehindWhitespace>& found) {
  if (found.size() == max_whitespaces) return false;
  const Span after = walk_.after(group);
  std::vector<grammar::StackFrame> rest, more;
  for (const grammar::StackFrame& frame : walk_.positions(after)) {
    (find<Lexeme>(frame) != nullptr && is_whitespace(frame) ? more : rest).push_back(frame);
  }
  walk_.drop(after);
  const Span others = walk_.begin(rest);
  bool is_apart     = (walk_.candidates(others) & WhitespaceRuns::bytes()).empty();
  walk_.drop(others);
  found.push_back({most, std::move(rest)});
  for (const grammar::StackFrame& frame : more) {
    const std::uint32_t both = most + std::min(units_left(frame), ~most);
    is_apart                 = is_apart && lexeme_of(frame).units.min <= frame.units() &&
               find_behind_whitespace({frame}, both, found);
  }
  return is_apart;
}

TOOLDECODE_INLINE bool MaskBuilder::collect_whitespace(
    const std::vector<grammar::StackFrame>& group) {
  if (!is_whitespace(group[0])) return false;
  if (lexeme_of(group[0]).units.min > group[0].units() + 1) return false;
  if (units_left(group[0]) == 0) return true;
  std::vector<BehindWhitespace> found;
  if (!find_behind_whitespace(group, units_left(group[0]), found)) return false;
  const WhitespaceRuns& runs = states_.classes().whitespace();
  std::uint32_t most         = 0;
  for (const BehindWhitespace& behind : found) most = std::max(most, behind.most);
  std::vector<TokenId> removed;
  for (const CountedToken& token : runs.longer_than(most)) removed.push_back(token.token);
  parts_.add_base(runs.mask(), runs.listed().size(), std::move(removed), apart_, runs.listed());
  for (const BehindWhitespace& behind : found) {
    BuildBudget::spend(visits_between_charges);
    const Span place = walk_.begin(behind.positions);
    behind_lexeme([&] {
      for (const NodeIndex node : runs.behind_one()) walk(place, node);
      walk_past(runs, place, 0, [&](const CountedToken& token) {
        if (token.units <= behind.most) parts_.add(token.token);
      });
    });
    walk_.drop(place);
  }
  return true;
}

TOOLDECODE_INLINE void MaskBuilder::walk_lexeme(const std::vector<grammar::StackFrame>& group,
                                                NodeIndex root) {
  const Lexeme& lexeme            = lexeme_of(group[0]);
  const text::Dfa& dfa            = *lexeme.dfa;
  const text::Occurrences& bounds = lexeme.units;
  struct Visit {
    ClassWalk::Place place;
    text::Dfa::State state;
    std::uint32_t units;
  };
  const TokenClasses& classes = states_.classes();
  std::optional<TokenClasses::Taken> plain;
  if (root == 0 && dfa.live(group[0].dfa_state()).size() >= 48)
    plain = classes.find(dfa, group[0].dfa_state());
  if (plain && lexeme.ends) {
    if (!add_within_reach(group, *plain)) plain.reset();
  } else if (plain) {
    auto left_out = classes.left_out(*plain, units_left(group[0]));
    if (left_out) {
      add_base(classes.up_to(plain->k, plain->most), classes.count_up_to(*plain),
               std::move(*left_out));
      const bool are_too_long = plain->counts && units_left(group[0]) < plain->most;
      if (are_too_long && dfa.may_end_inside()) add_too_long(group, *plain);
    } else {
      plain.reset();
    }
  } else if (root == 0 && bounds.max == text::Occurrences::unbounded && bounds.min == 0 &&
             dfa.live(group[0].dfa_state()).size() >= 48) {
    plain = classes.find_bounded(dfa, group[0].dfa_state());
    if (plain) add_base(classes.up_to(plain->k, plain->most), classes.count_up_to(*plain), {});
  }
  const ClassWalk inside(trie_, classes, plain);
  std::optional<Span> after;
  const auto visit = [&](const Visit& at, std::vector<Visit>& deeper) {
    const bool is_boundary = dfa.boundary(at.state);
    inside.for_each_child(at.place, [&](const ClassWalk::Child& child) {
      const text::Dfa::State next = dfa.next(at.state, child.label);
      if (next == text::Dfa::dead) return;
      std::uint32_t more = at.units;
      if (is_boundary && dfa.closing(next)) {
        if (more < bounds.min) return;
      } else if (is_boundary) {
        if (more >= bounds.max) return;
        ++more;
      }
      if (lexeme.ends && !lexeme.ends->is_within_reach(next, more, bounds)) return;
      parts_.add_all(inside.tokens(child));
      const ClassWalk::Place below = inside.below(child);
      if (below.empty()) return;
      if (!dfa.live(next).empty()) deeper.push_back({below, next, more});
      if (!dfa.accepting(next) || (!dfa.closing(next) && more < bounds.min)) return;
      if (!after) after = walk_.after(group);
      behind_lexeme([&] { walk(*after, child.node); });
    });
  };
  // Level by level, in the memory order of the trie.
  std::vector<Visit> level{{inside.begin(root), group[0].dfa_state(), group[0].units()}}, deeper;
  for (; !level.empty(); level.swap(deeper)) {
    deeper.clear();
    for (std::size_t i = 0; i < level.size() && !is_ambiguous(); ++i) {
      if (i % visits_between_charges == 0) BuildBudget::spend(visits_between_charges);
      visit(level[i], deeper);
    }
  }
  if (after) walk_.drop(*after);
}

TOOLDECODE_INLINE void MaskBuilder::add_too_long(const std::vector<grammar::StackFrame>& group,
                                                 const TokenClasses::Taken& plain) {
  const TokenClasses& classes = states_.classes();
  const Span place            = walk_.begin(group);
  for (std::size_t units = std::size_t{units_left(group[0])} + 1; units <= plain.most; ++units) {
    classes.for_each(plain.k, units, [&](TokenId token) {
      if (reads(place, token)) parts_.add(token);
    });
  }
  walk_.drop(place);
}

TOOLDECODE_INLINE bool MaskBuilder::add_within_reach(const std::vector<grammar::StackFrame>& group,
                                                     const TokenClasses::Taken& plain) {
  const TokenClasses& classes      = states_.classes();
  const grammar::StackFrame& frame = group[0];
  const Lexeme& lexeme             = lexeme_of(frame);
  const auto up_to                 = [&](std::uint32_t units) {
    return TokenClasses::Taken{
                        .k = plain.k, .counts = true, .most = std::min<std::size_t>(units, plain.most)};
  };
  const auto free =
      up_to(free_units(frame, classes.reached(plain, *lexeme.dfa, frame.dfa_state())));
  const auto left = up_to(units_left(frame));
  // A token that may not stay may end the lexeme and go past it.
  const bool may_end = lexeme.dfa->may_end_inside();
  const auto judged  = may_end ? plain : left;
  if (classes.count_up_to(judged) - classes.count_up_to(free) > max_judged) return false;
  const TokenMask& mask = classes.up_to(free.k, free.most);
  std::vector<TokenId> apart;
  classes.for_each_apart(plain, [&](TokenId token) {
    if (mask.contains(token)) apart.push_back(token);
  });
  add_base(mask, classes.count_up_to(free), std::move(apart));
  const Span place = walk_.begin(group);
  for (std::size_t units = free.most + 1; units <= judged.most; ++units) {
    classes.for_each(plain.k, units, [&](TokenId token) {
      const bool stays =
          units <= left.most && is_within_reach(frame, token, static_cast<std::uint32_t>(units));
      if (stays || (may_end && reads(place, token))) parts_.add(token);
    });
  }
  walk_.drop(place);
  return true;
}

TOOLDECODE_INLINE bool MaskBuilder::is_within_reach(const grammar::StackFrame& frame, TokenId token,
                                                    std::uint32_t units) const {
  const Lexeme& lexeme   = lexeme_of(frame);
  text::Dfa::State state = frame.dfa_state();
  for (const char c : states_.vocabulary().grammar_bytes(token)) {
    state = lexeme.dfa->next(state, static_cast<std::uint8_t>(c));
    if (state == text::Dfa::dead) return false;
  }
  return lexeme.ends->is_within_reach(state, frame.units() + units, lexeme.units);
}

TOOLDECODE_INLINE bool MaskBuilder::reads(const grammar::StackFrame& frame, TokenId token) {
  const Span place = walk_.begin(frame);
  const bool done  = reads(place, token);
  walk_.drop(place);
  return done;
}

TOOLDECODE_INLINE bool MaskBuilder::reads(Span place, TokenId token) {
  Span next = place;
  for (const char c : states_.vocabulary().grammar_bytes(token)) {
    next = walk_.step(next, static_cast<std::uint8_t>(c));
    if (next.empty()) break;
  }
  walk_.drop({place.last, place.last});
  return !next.empty();
}

TOOLDECODE_INLINE void MaskBuilder::collect_slice(const std::vector<grammar::StackFrame>& group,
                                                  const LexemeSlice& slice, bool is_key) {
  const std::uint32_t least = lexeme_of(group[0]).units.min;
  const std::uint32_t count = group[0].units();
  const std::uint32_t min   = least > count ? least - count : 0;
  const std::uint32_t max   = units_left(group[0]);
  const auto add_closing    = [&] {
    for (const CountedToken& token : slice.closing()) {
      if (fits(group[0], token)) add_unless_apart(token.token);
    }
  };
  if (slice.is_listed()) {
    slice.for_each_staying(max, [&](TokenId token) { add_unless_apart(token); });
    add_closing();
  } else if (auto removed = slice.not_fitting(min, max, MaskParts::max_listed)) {
    add_base(slice.inside(), slice.count(), std::move(*removed));
  } else {
    add_base(slice.staying(max), slice.count(), {});
    add_closing();
  }
  collect_past(slice, group, is_key,
               [&](const CountedToken& token) { return fits(group[0], token); });
}

TOOLDECODE_INLINE bool MaskBuilder::collect_bound(const std::vector<grammar::StackFrame>& group,
                                                  const LexemeSlice& slice) {
  const grammar::StackFrame& frame = group[0];
  const std::uint32_t free = free_units(frame), left = units_left(frame);
  const auto judged = slice.staying_between(free == 0 ? 0 : free + 1, left, max_judged);
  if (!judged) return false;
  if (free != 0) add_base(slice.staying(free), slice.count(), {});
  for (const CountedToken& token : *judged) {
    if (is_within_reach(frame, token.token, token.units)) parts_.add(token.token);
  }
  for (const CountedToken& token : slice.closing()) {
    if (fits(frame, token)) parts_.add(token.token);
  }
  collect_past(slice, group, false, [&](const CountedToken& token) { return fits(frame, token); });
  return true;
}

TOOLDECODE_INLINE void MaskBuilder::add_past_key(const LexemeSlice& slice,
                                                 const grammar::StackFrame& key,
                                                 PastTokens& found) {
  const auto [value, behind] = walk_.value_of_other_key(key);
  const PastInValue* past    = states_.find_past(slice, value);
  PastInValue walked;
  if (past == nullptr) {
    const Span place = walk_.enter(value);
    if (may_end(place)) walked.ends.push_back(0);
    walk_value(slice, place, 0, walked);
    walk_.drop(place);
    past = is_ambiguous() ? &walked : &states_.keep_past(slice, value, std::move(walked));
  }
  found = past->tokens;
  if (past->ends.empty()) return;
  const Span place = walk_.after({{.below = behind}});
  const auto add   = [&](const CountedToken& token) { found.push_back(token); };
  if (!place.empty()) {
    for (const NodeIndex node : past->ends) {
      for (const std::uint32_t index : slice.past().values(node)) add(slice.past_end()[index]);
      walk_past(slice, place, node, add);
    }
  }
  walk_.drop(place);
}

TOOLDECODE_INLINE bool MaskBuilder::may_end(Span place) const {
  return std::ranges::any_of(walk_.positions(place), [](const grammar::StackFrame& frame) {
    return frame.node == grammar::Positions::text_end;
  });
}

TOOLDECODE_INLINE void MaskBuilder::walk_value(const LexemeSlice& slice, Span place, NodeIndex node,
                                               PastInValue& past) {
  step_through(slice.past(), place, node, [&](NodeIndex child, Span next) {
    const bool ends = may_end(next);
    if (ends) past.ends.push_back(child);
    if (ends && walk_.positions(next).size() == 1) return;
    for (const std::uint32_t index : slice.past().values(child)) {
      past.tokens.push_back(slice.past_end()[index]);
    }
    walk_value(slice, next, child, past);
  });
}

TOOLDECODE_INLINE bool MaskBuilder::fits(const grammar::StackFrame& frame,
                                         const CountedToken& token) const {
  const std::uint32_t least = lexeme_of(frame).units.min, count = frame.units();
  return token.units + count >= least && token.units <= units_left(frame);
}

TOOLDECODE_INLINE void MaskBuilder::collect_keys(const std::vector<grammar::StackFrame>& frames,
                                                 NodeIndex node) {
  Behind behind;
  std::map<std::tuple<bool, grammar::StackFrame, Nodes>, std::vector<grammar::StackFrame>> others;
  for (const grammar::StackFrame& frame : frames) {
    const Members& set = *find<Members>(frame);
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
  const Nodes* apart = nullptr;  // the nodes that apart_ covers
  for (const auto& entry : others) {
    const auto& alike                             = entry.first;
    const std::vector<grammar::StackFrame>& group = entry.second;
    const auto& [is_tracked, key, nodes]          = alike;
    if (apart == nullptr || *apart != nodes) {
      apart = &nodes;
      apart_.clear();
      set_apart(nodes);
    }
    const text::DfaPointer& dfa = lexeme_of(key).dfa;
    if (is_tracked) {
      for (const grammar::StackFrame& frame : group) collect_tracked(frame, key, node);
      continue;
    }
    const LexemeSlice* slice =
        is_sliced(*dfa, key.dfa_state()) ? states_.slice(dfa, key.dfa_state(), node) : nullptr;
    if (slice != nullptr && !slice->may_end_inside(text::Occurrences::unbounded)) {
      collect_slice(group, *slice, true);
    } else {
      walk_apart([&] { walk_lexeme(group, node); });
    }
  }
  apart_.swap(outer);
}

TOOLDECODE_INLINE void MaskBuilder::collect_tracked(const grammar::StackFrame& frame,
                                                    const grammar::StackFrame& key,
                                                    NodeIndex node) {
  const text::DfaPointer& dfa  = lexeme_of(key).dfa;
  const text::Dfa::State state = key.dfa_state();
  const LexemeSlice* slice =
      node == 0 && is_sliced(*dfa, state) ? &states_.ready_slice(dfa, state, node) : nullptr;
  const Span place = walk_.begin(frame);
  if (slice == nullptr || slice->may_end_inside(text::Occurrences::unbounded)) {
    walk_apart([&] { walk_tracked(place, *dfa, state, node); });
  } else {
    if (slice->is_listed()) {
      slice->for_each_staying(slice->max_units(), [&](TokenId token) { add_unless_apart(token); });
      for (const CountedToken& token : slice->closing()) add_unless_apart(token.token);
    } else {
      add_base(slice->inside(), slice->count(), {});
    }
    // Keys that were written are apart. Behind the others the text of this one matters only to a
    // token that goes on into the next key, which it then may forbid.
    collect_past(*slice, {key}, true, [&](const CountedToken& token) {
      return !goes_into_next_key(frame, *dfa, state, token.token) || reads(frame, token.token);
    });
  }
  walk_.drop(place);
}

TOOLDECODE_INLINE bool MaskBuilder::goes_into_next_key(const grammar::StackFrame& frame,
                                                       const text::Dfa& dfa, text::Dfa::State state,
                                                       TokenId token) const {
  if (!find<Members>(frame)->strings) return true;
  std::string_view bytes = states_.vocabulary().grammar_bytes(token);
  while (!bytes.empty() && !dfa.accepting(state)) {
    state = dfa.next(state, static_cast<std::uint8_t>(bytes.front()));
    if (state == text::Dfa::dead) return true;
    bytes.remove_prefix(1);
  }
  const std::size_t quote = bytes.find_first_of("\"'");
  return quote != std::string_view::npos && quote + 1 < bytes.size();
}

TOOLDECODE_INLINE void MaskBuilder::walk_tracked(Span place, const text::Dfa& dfa,
                                                 text::Dfa::State state, NodeIndex root) {
  struct Visit {
    NodeIndex node;
    text::Dfa::State state;
    std::size_t before;
  };
  std::vector<Visit> work{{root, state, 0}};
  std::vector<std::uint8_t> path;  // from the root to a node, in reverse
  for (std::size_t i = 0; i < work.size(); ++i) {
    if (i % visits_between_charges == 0) BuildBudget::spend(visits_between_charges);
    const auto [first, last] = trie_.children(work[i].node);
    for (auto child = first; child < last; ++child) {
      const std::uint8_t byte     = trie_.label(child);
      const text::Dfa::State next = dfa.next(work[i].state, byte);
      if (next == text::Dfa::dead) continue;
      if (!dfa.accepting(next)) {
        parts_.add_all(trie_.values(child));
        work.push_back({child, next, i});
        continue;
      }
      path.assign(1, byte);
      for (std::size_t at = i; work[at].node != root; at = work[at].before) {
        path.push_back(trie_.label(work[at].node));
      }
      Span behind = place;
      for (auto from = path.rbegin(); from != path.rend() && !behind.empty(); ++from) {
        behind = walk_.step(behind, *from);
      }
      if (!behind.empty()) {
        parts_.add_all(trie_.values(child));
        walk_exactly(behind, child);
      }
      walk_.drop({place.last, place.last});
    }
  }
}

TOOLDECODE_INLINE void MaskBuilder::walk_exactly(Span place, NodeIndex node) {
  step_through(trie_, place, node, [&](NodeIndex child, Span next) {
    parts_.add_all(trie_.values(child));
    walk_exactly(next, child);
  });
}

TOOLDECODE_INLINE void MaskBuilder::walk_key(Span place, NodeIndex node, Behind& behind,
                                             std::vector<Nodes>& apart) {
  const grammar::StackFrame frame = walk_.positions(place)[0];
  const Members& set              = *find<Members>(frame);
  keys().reserved_bytes(set, frame.seen(), frame.key()).for_each([&](std::uint8_t byte) {
    const NodeIndex child = trie_.find_child(node, byte);
    if (child == 0) return;
    Span next;
    if (const auto key = keys().inside(set, frame.seen(), frame.key(), byte)) {
      next = walk_.begin(grammar::StackFrame{frame.node, frame.seen().number(), *key, frame.below});
    } else {
      next = walk_.step(place, byte);
    }
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
    // A member's key may also continue as another key: what follows it is walked.
    const bool ends = stays && keys().ends_member(set, inside.key());
    for (std::size_t k = 0; k < apart.size(); ++k) {
      const bool goes_on =
          stays && !ends && keys().may_become_other(set, frame.seen(), inside.key(), k);
      if (!goes_on && may_read(set, frame.key(), k, byte)) apart[k].push_back(child);
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

TOOLDECODE_INLINE bool MaskBuilder::may_read(const Members& set, std::uint32_t key, std::size_t k,
                                             std::uint8_t byte) const {
  if (keys().is_in_escape(key)) return true;
  const text::Dfa::State state = keys().state_at(set, key, k);
  return state != text::Dfa::dead &&
         states_.automaton().nodes().lexeme(set.others[k].key).next(state, byte) != text::Dfa::dead;
}

TOOLDECODE_INLINE void MaskBuilder::set_apart(const Nodes& nodes) {
  apart_.clear();
  for (const NodeIndex node : nodes) {
    const std::vector<TokenId>& below = states_.tokens_below(node);
    apart_.insert(apart_.end(), below.begin(), below.end());
  }
  if (nodes.size() == 1) return;
  std::sort(apart_.begin(), apart_.end());
  apart_.erase(std::unique(apart_.begin(), apart_.end()), apart_.end());
}

TOOLDECODE_INLINE void MaskBuilder::add_unless_apart(TokenId token) {
  if (!std::binary_search(apart_.begin(), apart_.end(), token)) parts_.add(token);
}

TOOLDECODE_INLINE void MaskBuilder::add_base(const TokenMask& mask, std::size_t count,
                                             std::vector<TokenId> removed) {
  parts_.add_base(mask, count, std::move(removed), apart_);
}

}  // namespace tooldecode::mask
