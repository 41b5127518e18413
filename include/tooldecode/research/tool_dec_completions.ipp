#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include <tooldecode/research/tool_dec_completions.hpp>

namespace tooldecode {

TOOLDECODE_INLINE ToolDecCompletions::ToolDecCompletions(const ToolDecMachine& machine,
                                                         CompletionOptions options)
    : machine_(&machine),
      max_steps_(options.max_steps),
      banned_(machine.vocabulary_size()),
      has_banned_(!options.banned.empty()),
      calls_(machine.calls().constraint(), options) {
  for (const TokenId token : options.banned) {
    if (token >= 0 && static_cast<std::size_t>(token) < machine.vocabulary_size()) {
      banned_.insert(token);
    }
  }
  const auto ends = vocabulary().end_tokens();
  can_end_        = std::any_of(ends.begin(), ends.end(),
                                [this](TokenId token) { return !banned_.contains(token); });
}

TOOLDECODE_INLINE std::optional<std::size_t> ToolDecCompletions::shortest(State state,
                                                                          std::size_t enough) {
  if (machine_->is_finished(state)) return 0;
  if (state.phase == Phase::text) return can_end_ ? std::optional<std::size_t>(1) : std::nullopt;
  if (state.phase == Phase::trigger) return shortest_behind_trigger(state, enough);
  if (machine_->names() == nullptr) return calls_.shortest(state.calls, enough);
  bound(state);
  const CompletionBounds& known = look_up(state);
  if (known.upper > enough && known.lower < known.upper) find_shortest(state);
  return known.upper == none ? std::nullopt : std::optional<std::size_t>(known.upper);
}

TOOLDECODE_INLINE void ToolDecCompletions::narrow(State state, std::size_t remaining,
                                                  MaskView words) {
  if (machine_->is_finished(state)) return;
  if (state.phase == Phase::text) return narrow_text(state, remaining, words);
  if (state.phase == Phase::trigger) return narrow_trigger(state, remaining, words);
  if (machine_->names() == nullptr) return calls_.narrow(state.calls, remaining, words);
  narrow_names(state, remaining, words);
}

TOOLDECODE_INLINE CompletionCounts ToolDecCompletions::counts() const noexcept {
  CompletionCounts all = calls_.counts();
  all.walks += own_.walks;
  all.searches += own_.searches;
  all.searches_given_up += own_.searches_given_up;
  return all;
}

TOOLDECODE_INLINE std::size_t ToolDecCompletions::Hash::operator()(
    const State& state) const noexcept {
  const std::uint64_t calls = std::uint64_t{state.calls.memory} << 32 | state.calls.id;
  const std::uint64_t rest =
      std::uint64_t{state.written} << 8 | static_cast<std::uint8_t>(state.phase);
  return core::hash_combine(core::hash_combine(0, calls), rest);
}

TOOLDECODE_INLINE const Vocabulary& ToolDecCompletions::vocabulary() const noexcept {
  return machine_->calls().vocabulary();
}

TOOLDECODE_INLINE const core::ByteTrie& ToolDecCompletions::trie() const noexcept {
  return machine_->calls().vocabulary_index().trie();
}

TOOLDECODE_INLINE bool ToolDecCompletions::can_end_within(State state, std::size_t left) {
  const auto least = shortest(state, left);
  return least && *least <= left;
}

TOOLDECODE_INLINE bool ToolDecCompletions::is_far(State state, std::size_t remaining) {
  const std::size_t longer = machine_->names() == nullptr ? 0 : machine_->names()->longest();
  if (longer > 0 && has_banned_) return false;
  return remaining > longer && calls_.is_far(state.calls, remaining - longer);
}

TOOLDECODE_INLINE void ToolDecCompletions::keep_ends(State state, MaskView words) const {
  TokenMask ends(machine_->vocabulary_size());
  if (machine_->is_accepting(state)) {
    for (const TokenId token : vocabulary().end_tokens()) ends.insert(token);
  }
  words &= ends.words();
}

TOOLDECODE_INLINE void ToolDecCompletions::narrow_text(State state, std::size_t remaining,
                                                       MaskView words) {
  if (remaining == 1) return keep_ends(state, words);
  if (!machine_->transition() && is_far(state, remaining)) return;
  for (const Transition& one : transitions(state)) {
    if (!can_end_within(one.next, remaining - 1)) words.erase(one.token);
  }
}

TOOLDECODE_INLINE const std::vector<ToolDecCompletions::Transition>&
ToolDecCompletions::transitions(State state) {
  const auto known = transitions_.find(state);
  if (known != transitions_.end()) return known->second;
  std::vector<Transition> found;
  const auto keep = [&]() -> const std::vector<Transition>& {
    return transitions_.emplace(state, std::move(found)).first->second;
  };
  const auto add = [&](TokenId token) {
    const auto next = machine_->advance(state, token);
    if (next && next->phase != Phase::text) found.push_back({token, *next});
  };
  if (machine_->transition()) {
    add(*machine_->transition());
    return keep();
  }
  ++own_.walks;
  std::vector<std::pair<NodeIndex, ToolCallFSM::State>> work{{0, state.calls}};
  while (!work.empty()) {
    const auto [node, from]  = work.back();
    const auto [first, last] = trie().children(node);
    work.pop_back();
    for (auto child = first; child < last; ++child) {
      const char byte = static_cast<char>(trie().label(child));
      const auto next = machine_->calls().advance_bytes(from, std::string_view(&byte, 1));
      if (!next) continue;
      if (machine_->calls().mode(*next) == ToolCallFSM::Mode::text) {
        work.emplace_back(child, *next);
        continue;
      }
      for (const std::uint32_t token : trie().values(child)) add(static_cast<TokenId>(token));
    }
  }
  return keep();
}

TOOLDECODE_INLINE std::optional<std::size_t> ToolDecCompletions::shortest_behind_trigger(
    State state, std::size_t enough) {
  struct TokenPosition {
    std::size_t tokens = std::numeric_limits<std::size_t>::max();
    State state        = {};
  };
  const std::string rest = machine_->jump_forward(state);
  std::vector<TokenPosition> places(rest.size() + 1);
  places[0] = {0, state};
  for (std::size_t i = 0; i < rest.size(); ++i) {
    const TokenPosition from = places[i];
    if (from.tokens == std::numeric_limits<std::size_t>::max()) continue;
    each_step(from.state, std::string_view(rest).substr(i), [&](std::size_t length, State next) {
      if (places[i + length].tokens > from.tokens + 1) {
        places[i + length] = {from.tokens + 1, next};
      }
    });
  }
  const TokenPosition& last = places.back();
  if (last.tokens == std::numeric_limits<std::size_t>::max()) return std::nullopt;
  const auto behind = shortest(last.state, enough - std::min(enough, last.tokens));
  return behind ? std::optional(*behind + last.tokens) : std::nullopt;
}

TOOLDECODE_INLINE void ToolDecCompletions::narrow_trigger(State state, std::size_t remaining,
                                                          MaskView words) {
  words.for_each([&](TokenId token) {
    const auto next = machine_->advance(state, token);
    const bool fits = next && !banned_.contains(token) && can_end_within(*next, remaining - 1);
    if (!fits) words.erase(token);
  });
}

TOOLDECODE_INLINE ToolDecCompletions::CompletionBounds& ToolDecCompletions::look_up(State state) {
  const auto [at, is_new] = known_.try_emplace(state);
  if (is_new) {
    const bool ends = machine_->is_accepting(state) && can_end_;
    if (ends) at->second.upper = 1;
    if (!ends) at->second.lower = 2;
  }
  return at->second;
}

TOOLDECODE_INLINE void ToolDecCompletions::bound(State state) {
  CompletionBounds& known = look_up(state);
  if (known.is_bounded || known.upper == 1 || !can_end_) return;
  known.is_bounded = true;
  try {
    find_bound(state, known);
  } catch (...) {  // out of memory
    known.is_bounded = false;
    throw;
  }
}

TOOLDECODE_INLINE void ToolDecCompletions::find_bound(State state, CompletionBounds& known) {
  if (const auto text = calls_.find_text(state.calls)) write(state, *text);
  if (known.upper != none || state.phase != Phase::name) return;
  if (const std::string behind{machine_->names()->behind(state.written)}; !behind.empty()) {
    const auto chosen = machine_->calls().advance_bytes(state.calls, behind);
    const auto text   = chosen ? calls_.find_text(*chosen) : std::nullopt;
    if (text) write(state, behind + *text);
  }
  for (const TokenId token : machine_->names()->next(state.written)) {
    const auto next = banned_.contains(token) ? std::nullopt : machine_->advance(state, token);
    if (!next) continue;
    bound(*next);
    const std::uint32_t upper = look_up(*next).upper;
    if (upper != none) known.upper = std::min(known.upper, upper + 1);
  }
}

TOOLDECODE_INLINE void ToolDecCompletions::write(State state, std::string_view text) {
  struct TokenPosition {
    State state;
    std::size_t before;  // index of the place one token before
    std::uint32_t tokens;
  };
  std::vector<TokenPosition> places;
  std::vector<std::vector<std::size_t>> at(text.size() + 1);  // places after this many bytes
  const auto reach = [&](std::size_t offset, const TokenPosition& place) {
    for (const std::size_t other : at[offset]) {
      if (places[other].state != place.state) continue;
      if (places[other].tokens > place.tokens) places[other] = place;
      return;
    }
    at[offset].push_back(places.size());
    places.push_back(place);
  };
  reach(0, {state, 0, 0});
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (const std::size_t from : at[i]) {
      const TokenPosition place = places[from];
      each_step(place.state, text.substr(i), [&](std::size_t length, State next) {
        reach(i + length, {next, from, place.tokens + 1});
      });
    }
  }
  std::optional<std::size_t> last;
  const auto total = [&](std::size_t place) {
    return places[place].tokens + look_up(places[place].state).upper;
  };
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (look_up(places[i].state).upper == none) continue;
    if (!last || total(i) < total(*last)) last = i;
  }
  if (!last) return;
  std::uint32_t upper = look_up(places[*last].state).upper;
  for (std::size_t i = *last; i != 0; i = places[i].before) {
    CompletionBounds& before = look_up(places[places[i].before].state);
    before.upper             = std::min(before.upper, ++upper);
  }
}

TOOLDECODE_INLINE std::vector<ToolDecCompletions::Next> ToolDecCompletions::follow(
    State state, const TokenMask& all, const TokenMask& narrowed) {
  std::unordered_map<State, std::size_t, Hash> places;
  std::vector<Next> next;
  all.for_each([&](TokenId token) {
    ++steps_;
    if (banned_.contains(token) || vocabulary().is_end(token)) return;
    const auto after = machine_->advance(state, token);
    if (!after) return;
    const auto [at, is_new] = places.try_emplace(*after, next.size());
    if (is_new) next.push_back({*after, false});
    next[at->second].may_fit |= narrowed.contains(token);
  });
  return next;
}

TOOLDECODE_INLINE bool ToolDecCompletions::ends_within(State state, std::uint32_t left,
                                                       std::uint32_t ahead) {
  bound(state);
  CompletionBounds& known = look_up(state);
  if (known.upper <= left) return true;
  if (known.lower > left || left == 0) return false;
  if (steps_ >= max_steps_ || ahead == max_ahead) {
    is_given_up_ = true;
    return false;
  }
  TokenMask mask(machine_->vocabulary_size());
  machine_->fill_mask(state, mask.words());
  calls_.narrow(state.calls, left, mask.words());
  for (const Next& next : follow(state, mask, mask)) {
    if (!ends_within(next.state, left - 1, ahead + 1)) continue;
    known.upper = std::min(known.upper, look_up(next.state).upper + 1);
    return true;
  }
  if (!is_given_up_) known.lower = left + 1;
  return false;
}

TOOLDECODE_INLINE void ToolDecCompletions::begin_search() {
  steps_       = 0;
  is_given_up_ = false;
}

TOOLDECODE_INLINE void ToolDecCompletions::end_search() {
  own_.searches += steps_ > 0;
  own_.searches_given_up += is_given_up_;
}

TOOLDECODE_INLINE void ToolDecCompletions::find_shortest(State state) {
  begin_search();
  const CompletionBounds& known = look_up(state);
  if (known.upper == none) (void)ends_within(state, max_ahead, 0);
  const auto least = calls_.shortest(state.calls);
  if (least && known.upper != none) {
    for (auto left = static_cast<std::uint32_t>(*least); left < known.upper; ++left) {
      if (is_given_up_ || ends_within(state, left, 0)) break;
    }
  }
  end_search();
}

TOOLDECODE_INLINE void ToolDecCompletions::narrow_names(State state, std::size_t remaining,
                                                        MaskView words) {
  const std::size_t distance = remaining - 1;  // tokens that may remain after a token
  if (is_far(state, remaining)) return;
  if (distance == 0) return keep_ends(state, words);
  const auto left         = static_cast<std::uint32_t>(std::min<std::size_t>(distance, none - 1));
  CompletionBounds& known = look_up(state);
  if (known.worst <= left) return;
  ++own_.walks;
  TokenMask all(machine_->vocabulary_size());
  std::copy(words.begin(), words.end(), all.words().begin());
  TokenMask narrowed = all;
  calls_.narrow(state.calls, remaining, narrowed.words());
  const std::vector<Next> behind = follow(state, all, narrowed);
  begin_search();
  known.worst = 0;
  for (const Next& next : behind) {
    if (next.may_fit) (void)ends_within(next.state, left, 0);
    known.worst = std::max(known.worst, look_up(next.state).upper);
  }
  end_search();
  if (known.worst <= left) return;
  all.for_each([&](TokenId token) {
    if (vocabulary().is_end(token)) return;
    const auto next = banned_.contains(token) ? std::nullopt : machine_->advance(state, token);
    if (!next || look_up(*next).upper > left) words.erase(token);
  });
}

TOOLDECODE_INLINE ToolDecCompletions make_completions(const ToolDecMachine& machine,
                                                      CompletionOptions options) {
  return ToolDecCompletions(machine, std::move(options));
}

}  // namespace tooldecode
