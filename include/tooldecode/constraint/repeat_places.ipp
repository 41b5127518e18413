#pragma once

#include <algorithm>

#include <tooldecode/constraint/repeat_places.hpp>
#include <tooldecode/constraint/token_walk.hpp>
#include <tooldecode/text/byte_set.hpp>

namespace tooldecode::constraint {

TOOLDECODE_INLINE RepeatPlaces::RepeatPlaces(const Constraint& grammar, ToolOf tool_of,
                                             std::size_t max_texts)
    : grammar_(grammar),
      completions_(grammar),
      tool_of_(std::move(tool_of)),
      max_texts_(max_texts) {}

TOOLDECODE_INLINE const core::ByteTrie& RepeatPlaces::trie() const noexcept {
  return grammar_.vocabulary_index().trie();
}

TOOLDECODE_INLINE bool RepeatPlaces::can_end(Number id) {
  StateFacts& known = place(id);
  if (!known.can_end) known.can_end = find_whether_it_can_end(id);
  return *known.can_end;
}

TOOLDECODE_INLINE const std::string* RepeatPlaces::completion(Number id, std::size_t i) {
  auto& texts = texts_.try_emplace(id).first->second;
  while (texts.known.size() <= i) {
    if (texts.known.size() >= max_texts_ || !find_more(id, texts)) return nullptr;
  }
  return &texts.known[i];
}

TOOLDECODE_INLINE const std::optional<RepeatPlaces::Pair>& RepeatPlaces::pair(
    Number id, const AreTwoCalls& are_two_calls) {
  const auto known = pairs_.find(id);
  if (known != pairs_.end()) return known->second;
  return pairs_.emplace(id, find_pair(id, are_two_calls)).first->second;
}

TOOLDECODE_INLINE bool RepeatPlaces::is_loose(Number id, const AreTwoCalls& are_two_calls) {
  return can_end(id) || pair(id, are_two_calls).has_value();
}

TOOLDECODE_INLINE bool RepeatPlaces::ends_call(Number id, std::string_view bytes) {
  grammar::Automaton::Cursor walk(grammar_.automaton());
  auto place     = walk.begin(id);
  Inside before  = inside(walk.positions(place));
  std::size_t in = tool_;
  for (const char byte : bytes) {
    place            = walk.step(place, static_cast<std::uint8_t>(byte));
    const Inside now = inside(walk.positions(place));
    if (before == Inside::call && (now != Inside::call || tool_ != in)) return true;
    before = now;
    in     = tool_;
  }
  return false;
}

TOOLDECODE_INLINE std::size_t RepeatPlaces::bytes() const {
  std::size_t all = (places_.size() + pairs_.size()) * 64;
  for (const auto& [id, tokens] : tokens_) {
    all += 64 + tokens.tight.size() * sizeof(Tight) + tokens.loose.size() * sizeof(Number);
  }
  for (const auto& [id, texts] : texts_) all += 256 + texts.known.size() * 64;
  return all;
}

TOOLDECODE_INLINE RepeatPlaces::StateFacts& RepeatPlaces::place(Number id) {
  const auto known = places_.find(id);
  if (known != places_.end()) return known->second;
  return places_.emplace(id, StateFacts{inside(grammar_.automaton().positions(id))}).first->second;
}

TOOLDECODE_INLINE const std::optional<std::string>& RepeatPlaces::shortest(Number id) {
  StateFacts& known = place(id);
  if (!known.text) known.text = completions_.find_text({id, grammar_.initial().memory});
  return *known.text;
}

TOOLDECODE_INLINE RepeatPlaces::Inside RepeatPlaces::inside(
    std::span<const grammar::StackFrame> positions) {
  std::optional<std::optional<std::size_t>> all;
  for (const grammar::StackFrame& position : positions) {
    auto at = tools_.find(position.below.number());
    if (at == tools_.end()) {
      const auto tool = tool_of_(grammar_.automaton().tags_at(position));
      at              = tools_.emplace(position.below.number(), tool).first;
    }
    if (all && *all != at->second) return Inside::unknown;
    all = at->second;
  }
  if (!all || !*all) return Inside::nothing;
  tool_ = **all;
  return Inside::call;
}

TOOLDECODE_INLINE bool RepeatPlaces::find_whether_it_can_end(Number id) {
  const std::optional<std::string> text = shortest(id);
  if (!text || place(id).inside != Inside::nothing) return false;
  Automaton::Cursor walk(grammar_.automaton());
  Span at = walk.begin(id);
  for (const char byte : *text) {
    at = walk.step(at, static_cast<std::uint8_t>(byte));
    if (inside(walk.positions(at)) != Inside::nothing) return false;
  }
  return true;
}

TOOLDECODE_INLINE bool RepeatPlaces::find_more(Number id, Texts& texts) {
  // Exception safety: an item leaves the list only when it is done.
  if (!texts.is_begun) {
    Texts begun;
    const bool is_found = begin(id, begun);
    begun.is_begun      = true;
    texts               = std::move(begun);
    return is_found;
  }
  while (!texts.open.empty()) {
    const Texts::Branch& branch = texts.open.front();
    if (texts.bytes.empty()) {
      if (texts.open.size() > 1) texts.bytes = bytes_behind(texts.open[1].state);
      texts.open.pop_front();
      continue;
    }
    const std::uint8_t byte = texts.bytes.back();
    const auto next         = grammar_.automaton().step(branch.state, byte);
    const auto* rest        = next ? &shortest(*next) : nullptr;
    if (rest == nullptr || !*rest) {
      texts.bytes.pop_back();
      continue;
    }
    std::string before   = branch.before + static_cast<char>(byte);
    std::string text     = before + **rest;
    const bool is_inside = is_in_call(*next);
    if (is_inside || !branch.is_in_call) push(texts, {*next, std::move(before), is_inside});
    texts.known.push_back(std::move(text));
    texts.bytes.pop_back();
    return true;
  }
  return false;
}

TOOLDECODE_INLINE bool RepeatPlaces::begin(Number id, Texts& texts) {
  const std::optional<std::string> text = shortest(id);
  if (!text) return false;
  texts.known.push_back(*text);
  std::vector<Texts::Branch> way{{id, "", is_in_call(id)}};
  for (std::size_t i = 0; i < text->size(); ++i) {
    const auto next =
        grammar_.automaton().step(way.back().state, static_cast<std::uint8_t>((*text)[i]));
    if (!next || (way.back().is_in_call && !is_in_call(*next))) break;
    way.push_back({*next, text->substr(0, i + 1), is_in_call(*next)});
  }
  while (!way.empty()) {
    push(texts, std::move(way.back()));
    way.pop_back();
  }
  texts.bytes = bytes_behind(texts.open.front().state);
  return true;
}

TOOLDECODE_INLINE void RepeatPlaces::push(Texts& texts, Texts::Branch branch) {
  if (texts.seen.contains(branch.state)) return;
  const Number state = branch.state;
  texts.open.push_back(std::move(branch));
  try {
    texts.seen.insert(state);
  } catch (...) {
    texts.open.pop_back();
    throw;
  }
}

TOOLDECODE_INLINE std::vector<std::uint8_t> RepeatPlaces::bytes_behind(Number id) const {
  const text::ByteSet allowed = grammar_.automaton().allowed(id);
  std::vector<std::uint8_t> bytes;
  // Letters first: they most often change the value.
  for (const bool letters : {false, true}) {
    for (int b = 255; b >= 0; --b) {
      const auto byte = static_cast<std::uint8_t>(b);
      if (allowed.contains(byte) && is_letter(byte) == letters) bytes.push_back(byte);
    }
  }
  return bytes;
}

TOOLDECODE_INLINE bool RepeatPlaces::is_letter(std::uint8_t byte) noexcept {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

TOOLDECODE_INLINE std::optional<RepeatPlaces::Pair> RepeatPlaces::find_pair(
    Number id, const AreTwoCalls& are_two_calls) {
  for (std::size_t i = 1; i < pairs_tried; ++i) {
    const std::string* text = completion(id, i);
    if (text == nullptr) break;
    const std::string other = *text;
    for (std::size_t j = 0; j < i; ++j) {
      const std::string one = *completion(id, j);
      if (tells_apart(one, other) && are_two_calls(one, other)) return Pair{one, other};
    }
  }
  return std::nullopt;
}

TOOLDECODE_INLINE bool RepeatPlaces::tells_apart(std::string_view one, std::string_view other) {
  const auto [a, b] = std::mismatch(one.begin(), one.end(), other.begin(), other.end());
  if (a == one.end() || b == other.end()) return false;
  constexpr std::string_view of_numbers = "0123456789+-.eE \t\r\n";
  const auto lower                      = [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; };
  return of_numbers.find(*a) == std::string_view::npos &&
         of_numbers.find(*b) == std::string_view::npos && lower(*a) != lower(*b);
}

TOOLDECODE_INLINE std::vector<RepeatPlaces::ReachedNode> RepeatPlaces::reached(Number id) {
  struct Guide {
    struct Path {
      Inside inside;
      std::size_t tool;
      bool ends;
    };
    [[nodiscard]] Path path(const Path& before, std::span<const grammar::StackFrame> positions) {
      const Inside now    = places.inside(positions);
      const bool is_other = now != Inside::call || places.tool_ != before.tool;
      return {now, places.tool_, before.ends || (before.inside == Inside::call && is_other)};
    }
    [[nodiscard]] bool wants(NodeIndex node) const { return !places.trie().values(node).empty(); }
    void visit(NodeIndex node, Number next, const Path& path) {
      found.push_back({node, next, path.ends});
    }

    RepeatPlaces& places;
    std::vector<ReachedNode> found{};
  };
  Guide guide{*this};
  const Inside now = inside(grammar_.automaton().positions(id));
  TokenWalk<Guide>(grammar_, guide)(id, Guide::Path{now, tool_, false});
  return std::move(guide.found);
}

}  // namespace tooldecode::constraint
