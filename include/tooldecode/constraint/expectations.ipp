#pragma once

#include <algorithm>

#include <tooldecode/constraint/expectations.hpp>

namespace tooldecode::constraint {

TOOLDECODE_INLINE std::vector<Expectation> ExpectationFinder::at(grammar::Automaton::State state) {
  for (const grammar::StackFrame& position : automaton_.positions(state)) add(position);
  std::sort(found_.begin(), found_.end());
  std::vector<Expectation> distinct;
  for (Expectation& one : found_) {
    if (distinct.empty() || distinct.back() < one) {
      distinct.push_back(std::move(one));
    } else {
      distinct.back().first |= one.first;
    }
  }
  return distinct;
}

TOOLDECODE_INLINE void ExpectationFinder::add(const grammar::StackFrame& position) {
  if (position.node == grammar::Positions::text_end) {
    found_.push_back({Kind::end, "the end of the text"});
    return;
  }
  automaton_.nodes()[position.node].visit(
      [&](const Node::Literal& literal) { add_literal(literal, position); },
      [&](const Node::Lexeme& lexeme) { add_lexeme(lexeme, position); },
      [&](const Node::Trie& trie) { add_alternatives(trie, position); },
      [&](const Node::Members& set) { add_keys(set, position); }, [](const auto&) {});
}

TOOLDECODE_INLINE void ExpectationFinder::add_literal(const Node::Literal& node,
                                                      const grammar::StackFrame& position) {
  const text::ByteSet first = text::ByteSet::of({&node.text[position.offset()], 1});
  std::size_t at            = position.offset();
  while (at > 0 && is_inner(node.text[at])) --at;
  found_.push_back({Kind::value, literal(std::string_view(node.text).substr(at)), first});
}

TOOLDECODE_INLINE std::string ExpectationFinder::literal(std::string_view text) {
  static const std::map<char, std::string> names{{'{', "an opening brace"},
                                                 {'}', "a closing brace"},
                                                 {'[', "an opening bracket"},
                                                 {']', "a closing bracket"},
                                                 {'(', "an opening parenthesis"},
                                                 {')', "a closing parenthesis"},
                                                 {',', "a comma"},
                                                 {':', "a colon"}};
  if (text == " ") return "a space";
  if (text[0] == control_close) return "the end of a control token";
  // The space after a comma or a colon is not worth naming.
  const auto name = names.find(text[0]);
  if (name == names.end() || text.find_first_not_of(' ', 1) != std::string_view::npos) {
    return "the text " + quoted(text);
  }
  return name->second + " '" + text[0] + '\'';
}

TOOLDECODE_INLINE void ExpectationFinder::add_lexeme(const Node::Lexeme& node,
                                                     const grammar::StackFrame& position) {
  const text::Dfa& dfa = *node.dfa;
  const auto bounds    = node.units;
  text::ByteSet first;  // without what the bounds exclude
  dfa.live(position.dfa_state()).for_each([&](std::uint8_t byte) {
    const text::Dfa::State next = dfa.next(position.dfa_state(), byte);
    if (grammar::Positions::fits(node, position, next)) first.insert(byte);
  });
  if (first.empty()) return;
  if (dfa == *text::any_whitespace()) {
    found_.push_back({Kind::space, "white space", first});
    return;
  }
  const bool begins              = position.dfa_state() == 0;
  const text::ByteSet beginnings = dfa.live(0);
  std::string words;
  if (beginnings == text::ByteSet::of("\"") || beginnings == text::ByteSet::of("'")) {
    words = string(dfa, position, bounds, first, automaton_.is_in_other_key(position));
  } else if ((beginnings & ~text::ByteSet::of("-0123456789")).empty()) {
    const bool any     = dfa == *text::any_number(text::NumberKinds::any).dfa;
    const bool integer = dfa == *text::any_number(text::NumberKinds::integers).dfa ||
                         dfa == *text::any_number(text::NumberKinds::digits).dfa;
    words = integer ? "an integer" : any ? "a number" : "a number of a certain form";
    if (!begins) words = "inside " + words;
    if (!any && !integer) words += ": next " + characters(first);
  } else {
    words = characters(first);
  }
  found_.push_back({Kind::value, std::move(words), first});
}

TOOLDECODE_INLINE std::string ExpectationFinder::string(const text::Dfa& dfa,
                                                        const grammar::StackFrame& position,
                                                        const text::Occurrences& bounds,
                                                        const text::ByteSet& first, bool is_key) {
  const bool is_any = dfa == *text::any_string(text::ValueSyntax::json, '"') ||
                      dfa == *text::any_string(text::ValueSyntax::python, '"') ||
                      dfa == *text::any_string(text::ValueSyntax::python, '\'');
  const std::string name =
      std::string(is_key ? "a key" : "a string") + (is_any ? "" : " of a certain form");
  if (position.dfa_state() == 0) {
    const std::string size = length(bounds, 0, " character");
    return size.empty() ? name : name + " of " + size;
  }
  if (!dfa.boundary(position.dfa_state())) return "the rest of a character in " + name;
  if (first == dfa.live(0)) return "the end of " + name + ", " + static_cast<char>(first.front());
  std::string more = length(bounds, position.units(), " more character");
  if (!more.empty()) more = " (" + more + ")";
  return "inside " + name + more + (is_any ? "" : ": next " + characters(first));
}

TOOLDECODE_INLINE std::string ExpectationFinder::length(const text::Occurrences& bounds,
                                                        std::uint32_t done, const char* noun) {
  const std::uint32_t min = bounds.min - std::min(bounds.min, done);
  const bool is_open      = bounds.max == text::Occurrences::unbounded;
  if (is_open && min == 0) return "";
  const std::uint32_t max = is_open ? min : bounds.max - done;
  std::string words       = is_open ? "at least " : min == 0 ? "at most " : "";
  if (min != 0 && min != max) words += std::to_string(min) + " to ";
  return words + std::to_string(max) + noun + (max == 1 ? "" : "s");
}

TOOLDECODE_INLINE std::string ExpectationFinder::characters(const text::ByteSet& set) {
  const text::ByteSet ascii = set & text::ByteSet::range(0, 127);
  if (ascii.empty()) {
    const bool inner = (set & ~text::ByteSet::range(0x80, 0xBF)).empty();
    return inner ? "the rest of a character" : "a character past ASCII";
  }
  if (ascii.size() > 90) return "any text";
  const std::string past = ascii == set ? "" : " or one past ASCII";
  if (ascii.size() == 1) return "the character '" + text::byte_class(ascii) + '\'' + past;
  return "one of the characters [" + text::byte_class(ascii) + ']' + past;
}

TOOLDECODE_INLINE void ExpectationFinder::add_alternatives(const Node::Trie& node,
                                                           const grammar::StackFrame& position) {
  const Texts texts = below(*node.literals, position.trie_node());
  text::ByteSet first;
  const auto [begin, end] = node.literals->children(position.trie_node());
  for (Index child = begin; child < end; ++child) first.insert(node.literals->label(child));
  std::string words = position.trie_node() != 0 ? "the rest of "
                      : texts.size() == 1       ? "the text "
                                                : "";
  found_.push_back({Kind::value, words + listed(*node.literals, texts), first});
}

TOOLDECODE_INLINE void ExpectationFinder::add_keys(const Node::Members& node,
                                                   const grammar::StackFrame& position) {
  const core::ByteTrie& trie     = *node.literals;
  const grammar::KeyReader& keys = automaton_.keys();
  if (!keys.is_in_trie(position.key())) return add_rest_of_key(node, position);
  Texts available;
  text::ByteSet members, others;
  for (const auto& [member, ends] : below(trie, position.key())) {
    for (const Index end : ends) {
      const std::string rest = trie.text(end).substr(trie.text(position.key()).size());
      if (!may_become(position, rest)) continue;
      available[member].push_back(end);
      members.insert(static_cast<std::uint8_t>(rest[0]));
    }
  }
  const text::ByteSet all = allowed(node, position);
  if (keys.seen().may_add(node, position.seen())) {
    for (const grammar::NodeStore::OtherKeys& other : node.others) {
      const text::Dfa::State state = other.state[position.key()];
      if (state == text::Dfa::dead) continue;
      const text::Dfa& key = automaton_.nodes().lexeme(other.key);
      key.live(state).for_each([&](std::uint8_t byte) {
        const Index child = trie.find_child(position.key(), byte);
        if (child == 0 || other.completes[child] ||
            (trie.values(child).empty() && key.accepting(other.state[child]))) {
          others.insert(byte);
        }
      });
    }
    others = others & all;
  }
  // The keys may also begin with an escape.
  if (node.strings && position.key() != 0 && all.contains('\\')) {
    (available.empty() ? others : members).insert('\\');
  }
  const char* rest = position.key() == 0 ? "" : "the rest of ";
  if (!available.empty()) {
    found_.push_back(
        {Kind::member, std::string(rest) + "the key " + listed(trie, available), members});
  }
  if (!others.empty()) found_.push_back({Kind::key, rest + std::string("another key"), others});
}

TOOLDECODE_INLINE void ExpectationFinder::add_rest_of_key(const Node::Members& node,
                                                          const grammar::StackFrame& position) {
  const bool is_character = automaton_.keys().is_in_escape(position.key());
  found_.push_back({Kind::key, is_character ? "the rest of a character in a key" : "inside a key",
                    allowed(node, position)});
}

TOOLDECODE_INLINE text::ByteSet ExpectationFinder::allowed(const Node::Members& node,
                                                           const grammar::StackFrame& position) {
  const auto from = walk_.begin(position);
  text::ByteSet set;
  automaton_.keys().candidates(node, position.key()).for_each([&](std::uint8_t byte) {
    const auto next = walk_.step(from, byte);
    if (!next.empty()) set.insert(byte);
    walk_.drop(next);
  });
  walk_.drop(from);
  return set;
}

TOOLDECODE_INLINE bool ExpectationFinder::may_become(const grammar::StackFrame& position,
                                                     std::string_view rest) {
  const auto from = walk_.begin(position);
  auto place      = from;
  for (const char c : rest) place = walk_.step(place, static_cast<std::uint8_t>(c));
  const auto reached = walk_.positions(place);
  const bool is_read =
      std::any_of(reached.begin(), reached.end(), [&](const grammar::StackFrame& frame) {
        return frame.node != position.node || frame.below != position.below;
      });
  walk_.drop(from);
  return is_read;
}

TOOLDECODE_INLINE ExpectationFinder::Texts ExpectationFinder::below(const core::ByteTrie& trie,
                                                                    Index from) {
  Texts texts;
  std::vector<Index> work{from};
  while (!work.empty()) {
    const auto [first, last] = trie.children(work.back());
    work.pop_back();
    for (Index child = first; child < last; ++child) {
      const auto values = trie.values(child);
      if (!values.empty()) texts[values.front()].push_back(child);
      work.push_back(child);
    }
  }
  return texts;
}

TOOLDECODE_INLINE std::string ExpectationFinder::listed(const core::ByteTrie& trie,
                                                        const Texts& texts) {
  const std::size_t told = std::min(texts.size(), max_told);
  std::string list;
  std::size_t i = 0;
  for (auto one = texts.begin(); i < told; ++one, ++i) {
    if (i > 0) list += i + 1 == texts.size() ? " or " : ", ";
    list += quoted(trie.text(one->second.front()));
  }
  if (told < texts.size()) list += " and " + std::to_string(texts.size() - told) + " more";
  return list;
}

TOOLDECODE_INLINE std::string ExpectationFinder::quoted(std::string_view text) {
  std::string shown;
  std::size_t end = std::min(text.size(), max_bytes);
  while (end < text.size() && end > 0 && is_inner(text[end])) --end;
  for (const char c : text.substr(0, end)) {
    if (c == control_open || c == control_close) continue;
    shown += c == '\n' ? "\\n" : c == '\t' ? "\\t" : c == '\r' ? "\\r" : std::string(1, c);
  }
  if (end < text.size()) shown += "...";
  const bool has_quotes = text.size() > 1 && (text[0] == '"' || text[0] == '\'') &&
                          text.find(text[0], 1) == text.size() - 1;
  if (has_quotes) return shown;
  const char quote = shown.find('"') == std::string::npos ? '"' : '\'';
  return quote + shown + quote;
}

}  // namespace tooldecode::constraint
