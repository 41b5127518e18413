#pragma once

#include <algorithm>
#include <utility>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/grammar/key_reader.hpp>

namespace tooldecode::grammar {

TOOLDECODE_INLINE void KeyReader::read(const Node& node, Set seen, KeyPosition at,
                                       std::uint8_t byte, Steps& out) {
  if (&node != added_.node || seen != added_.seen) {
    added_ = {&node, seen, seen_.may_add(node, seen)};
  }
  const bool adds = added_.may_add;
  if (at >= pooled) {
    const Words& words = pool_[at - pooled];
    if (words[0] == 0) return read_tracked(node, seen, words, byte, out);
    text::StringEscape escape = escape_of(node, words);
    const std::string spelt   = escape.text() + static_cast<char>(byte);
    if (escape.read(byte)) escaped(node, seen, words[0], escape, spelt, adds, out);
    return;
  }
  if (byte == '\\' && node.strings && at != 0) {
    return escaped(node, seen, at, text::StringEscape(*node.strings), "\\", adds, out);
  }
  if (const auto child = node.literals->find_child(at, byte); child != 0) {
    return arrive(node, seen, child, adds, out);
  }
  if (adds && seen_.is_tracked(node, seen)) {
    Tracked key = tracked_at(node, at);
    read_byte(node, key, byte);
    return track(node, seen, key, out);
  }
  for (std::uint32_t k = 0; adds && k < node.others.size(); ++k) {
    const text::Dfa::State state = node.others[k].state[at];
    if (state != text::Dfa::dead)
      add_other(lexeme(node, k), k, lexeme(node, k).next(state, byte), out);
  }
}

TOOLDECODE_INLINE std::optional<KeyReader::KeyPosition> KeyReader::inside(const Node& node,
                                                                          Set seen, KeyPosition at,
                                                                          std::uint8_t byte) const {
  if (at >= pooled || (byte == '\\' && node.strings)) return std::nullopt;
  const auto child = node.literals->find_child(at, byte);
  if (child == 0 || !node.literals->values(child).empty()) return std::nullopt;
  bool stays = false;
  for (std::size_t k = 0; k < node.others.size(); ++k) {
    const text::Dfa::State state = node.others[k].state[child];
    if (state != text::Dfa::dead && lexeme(node, k).accepting(state)) return std::nullopt;
    stays = stays || others_live(node, seen, k, child);
  }
  return stays ? std::optional(child) : std::nullopt;
}

TOOLDECODE_INLINE bool KeyReader::has_more(const Node& node, core::ByteTrie::NodeIndex at,
                                           Set seen) const {
  return std::ranges::any_of(longer_keys(node, at), [&](core::ByteTrie::NodeIndex end) {
    return seen_.may_follow(node, seen, node.literals->values(end).front());
  });
}

TOOLDECODE_INLINE bool KeyReader::may_become_other(const Node& node, Set seen, KeyPosition at,
                                                   std::size_t k) const {
  if (!seen_.may_add(node, seen)) return false;
  if (at < pooled) return others_live(node, seen, k, at);
  const Words& words = pool_[at - pooled];
  if (words[0] == 0) {
    return leads_elsewhere(node, seen, k, beginning_of(words), word(words, first_state + k),
                           tracked_escape(node, words));
  }
  const text::StringEscape escape = escape_of(node, words);
  return others_live(node, seen, k, words[0], escape,
                     key_characters(*node.literals, words[0], *node.strings));
}

TOOLDECODE_INLINE text::ByteSet KeyReader::candidates(const Node& node, KeyPosition at) const {
  if (at >= pooled && pool_[at - pooled][0] != 0) {
    return escape_of(node, pool_[at - pooled]).next();
  }
  text::ByteSet set;
  for (std::size_t k = 0; k < node.others.size(); ++k) {
    const text::Dfa::State state = state_at(node, at, k);
    if (state != text::Dfa::dead) set |= lexeme(node, k).live(state);
  }
  return at >= pooled ? set : set | literal_bytes(node, at);
}

TOOLDECODE_INLINE text::ByteSet KeyReader::plain_candidates(const Node& node,
                                                            KeyPosition at) const {
  text::ByteSet set = candidates(node, at);
  if (at < pooled && at != 0 && node.strings && node.literals->find_child(at, '\\') == 0) {
    const bool is_open = std::any_of(
        node.others.begin(), node.others.end(),
        [&](const NodeStore::OtherKeys& others) { return others.state[at] != text::Dfa::dead; });
    if (!is_open) set.erase('\\');
  }
  return set;
}

TOOLDECODE_INLINE text::ByteSet KeyReader::reserved_bytes(const Node& node, Set seen,
                                                          KeyPosition at) const {
  if (at < pooled) return literal_bytes(node, at) | remembered_bytes(node, seen, at);
  const Words& words = pool_[at - pooled];
  if (words[0] == 0) return remembered_bytes(node, seen, at);
  const text::StringEscape escape = escape_of(node, words);
  if (seen_.remembers(node, seen)) return escape.next();
  const auto known = key_characters(*node.literals, words[0], *node.strings);
  text::ByteSet set;
  escape.next().for_each([&](std::uint8_t byte) {
    text::StringEscape next = escape;
    if (next.read(byte) && std::ranges::any_of(known, [&](const KeyCharacter& one) {
          return next.may_become(one.character);
        })) {
      set.insert(byte);
    }
  });
  return set;
}

TOOLDECODE_INLINE text::Dfa::State KeyReader::state_at(const Node& node, KeyPosition at,
                                                       std::size_t k) const {
  if (at < pooled) return node.others[k].state[at];
  const Words& words = pool_[at - pooled];
  if (words[0] != 0) return text::Dfa::dead;
  const auto escape            = tracked_escape(node, words);
  const text::Dfa::State state = word(words, first_state + k);
  return escape ? state_behind(lexeme(node, k), state, escape->text()) : state;
}

TOOLDECODE_INLINE bool KeyReader::ends_member(const Node& node, KeyPosition at) const {
  return at < pooled && !node.literals->values(at).empty();
}

TOOLDECODE_INLINE KeyReader::Set KeyReader::adopt(const KeyReader& from, const Node& node,
                                                  Set seen) {
  return seen_.adopt(from.seen_, node, seen,
                     [&](std::uint32_t key) { return texts_.adopt(from.texts_, key); });
}

TOOLDECODE_INLINE KeyReader::KeyPosition KeyReader::adopt(const KeyReader& from, KeyPosition at) {
  if (at < pooled) return at;
  Words words = from.pool_[at - pooled];
  if (words[0] == 0) words[1] = texts_.adopt(from.texts_, words[1]);
  return pooled + pool_.intern(std::move(words));
}

TOOLDECODE_INLINE bool KeyReader::is_in_escape(KeyPosition at) const {
  return at >= pooled && pool_[at - pooled][0] != 0;
}

TOOLDECODE_INLINE const text::Dfa& KeyReader::lexeme(const Node& node, std::size_t k) const {
  return nodes_.lexeme(node.others[k].key);
}

TOOLDECODE_INLINE text::StringEscape KeyReader::escape_of(const Node& node, const Words& words) {
  return {*node.strings, word(words, 1), word(words, 2)};
}

TOOLDECODE_INLINE std::optional<text::StringEscape> KeyReader::tracked_escape(const Node& node,
                                                                              const Words& words) {
  if ((word(words, 2) >> 8) == 0) return std::nullopt;
  return text::StringEscape(*node.strings, word(words, 3), word(words, 4));
}

TOOLDECODE_INLINE KeyReader::Beginning KeyReader::beginning_of(const Words& words) noexcept {
  return {0, word(words, 1), static_cast<char>(word(words, 2) & 0xFF)};
}

TOOLDECODE_INLINE KeyReader::Beginning KeyReader::beginning_at(const Node& node,
                                                               core::ByteTrie::NodeIndex at) const {
  const bool is_quoted = node.strings && at != 0;
  return {at, KeyTexts::empty, is_quoted ? node.literals->text(at)[0] : '\0'};
}

TOOLDECODE_INLINE KeyReader::Tracked KeyReader::tracked(const Node& node,
                                                        const Words& words) const {
  Tracked key{beginning_of(words), tracked_escape(node, words), {}};
  for (std::size_t k = 0; k < node.others.size(); ++k) {
    key.states.push_back(word(words, first_state + k));
  }
  return key;
}

TOOLDECODE_INLINE KeyReader::Tracked KeyReader::tracked_at(const Node& node,
                                                           core::ByteTrie::NodeIndex at) {
  Tracked key{beginning_at(node, at), std::nullopt, {}};
  key.key.text = texts_.with(KeyTexts::empty, numbered_text(node, key.key));
  key.key.at   = 0;
  for (const NodeStore::OtherKeys& others : node.others) key.states.push_back(others.state[at]);
  return key;
}

TOOLDECODE_INLINE void KeyReader::read_byte(const Node& node, Tracked& key, std::uint8_t byte) {
  std::string text(1, static_cast<char>(byte));
  if (node.strings && key.key.text == KeyTexts::empty) {
    key.key.quote = text[0];
    text          = '"';
  } else if (key.key.quote != 0) {
    text = requoted(node, text, key.key.quote, '"');
  }
  key.key.text = texts_.with(key.key.text, text);
  for (std::size_t k = 0; k < key.states.size(); ++k) {
    text::Dfa::State& state = key.states[k];
    if (state != text::Dfa::dead) state = lexeme(node, k).next(state, byte);
  }
}

TOOLDECODE_INLINE void KeyReader::read_character(const Node& node, Tracked& key, char32_t c,
                                                 std::string_view spelt) {
  std::string text;
  text::StringEscape::append(text, c, *node.strings, '"');
  key.key.text = texts_.with(key.key.text, text);
  for (std::size_t k = 0; k < key.states.size(); ++k) {
    key.states[k] = state_behind(lexeme(node, k), key.states[k], spelt);
  }
  key.escape.reset();
}

TOOLDECODE_INLINE void KeyReader::add_other(const text::Dfa& dfa, std::uint32_t k,
                                            text::Dfa::State state, Steps& out) {
  if (state != text::Dfa::dead && !(dfa.live(state).empty() && !dfa.accepting(state))) {
    out.push_back({Step::Kind::other, k, state});
  }
}

TOOLDECODE_INLINE void KeyReader::arrive(const Node& node, Set seen, core::ByteTrie::NodeIndex at,
                                         bool adds, Steps& out) {
  const auto literal = node.literals->values(at);
  bool stays         = false;
  for (std::uint32_t k = 0; adds && k < node.others.size(); ++k) {
    stays                        = stays || others_live(node, seen, k, at);
    const text::Dfa::State state = node.others[k].state[at];
    if (!literal.empty() || state == text::Dfa::dead || !lexeme(node, k).accepting(state)) continue;
    const bool is_tracked = seen_.is_tracked(node, seen);
    end_other(node, seen, k, is_tracked ? tracked_at(node, at).key.text : KeyTexts::empty, out);
  }
  if (stays || has_more(node, at, seen)) out.push_back({Step::Kind::inside, 0, at});
  if (literal.empty() || !seen_.may_follow(node, seen, literal.front())) return;
  out.push_back({Step::Kind::member, literal.front(), 0});
}

TOOLDECODE_INLINE bool KeyReader::may_escape(const Node& node, char32_t c) noexcept {
  return node.every_spelling || !text::StringEscape::is_plain(c);
}

TOOLDECODE_INLINE void KeyReader::escaped(const Node& node, Set seen, core::ByteTrie::NodeIndex at,
                                          const text::StringEscape& escape, std::string_view spelt,
                                          bool adds, Steps& out) {
  const auto known = key_characters(*node.literals, at, *node.strings);
  if (const auto c = escape.character()) {
    for (const KeyCharacter& one : known) {
      if (one.character != *c) continue;
      if (may_escape(node, *c)) arrive(node, seen, one.node, adds, out);
      return;
    }
    if (!adds) return;
    if (seen_.is_tracked(node, seen)) {
      Tracked key = tracked_at(node, at);
      read_character(node, key, *c, spelt);
      return track(node, seen, key, out);
    }
    for (std::uint32_t k = 0; k < node.others.size(); ++k) {
      const text::Dfa::State state = state_behind(lexeme(node, k), node.others[k].state[at], spelt);
      add_other(lexeme(node, k), k, state, out);
    }
    return;
  }
  bool lives = false;
  for (const KeyCharacter& one : known) {
    lives = lives || (escape.may_become(one.character) && may_escape(node, one.character) &&
                      has_more(node, one.node, seen));
  }
  for (std::size_t k = 0; adds && k < node.others.size(); ++k) {
    lives = lives || others_live(node, seen, k, at, escape, known);
  }
  if (!lives) return;
  const KeyPosition place = pool_.intern({at, escape.value(), escape.places()});
  out.push_back({Step::Kind::inside, 0, pooled + place});
}

TOOLDECODE_INLINE bool KeyReader::others_live(const Node& node, Set seen, std::size_t k,
                                              core::ByteTrie::NodeIndex at) const {
  if (!node.others[k].completes[at]) return false;
  return !seen_.remembers(node, seen) || leads_elsewhere(node, seen, k, beginning_at(node, at),
                                                         node.others[k].state[at], std::nullopt);
}

TOOLDECODE_INLINE bool KeyReader::others_live(const Node& node, Set seen, std::size_t k,
                                              core::ByteTrie::NodeIndex at,
                                              const text::StringEscape& escape,
                                              const std::vector<KeyCharacter>& known) const {
  if (seen_.remembers(node, seen)) {
    return leads_elsewhere(node, seen, k, beginning_at(node, at), node.others[k].state[at], escape);
  }
  for (const KeyCharacter& one : known) {
    if (escape.may_become(one.character) && may_escape(node, one.character) &&
        node.others[k].completes[one.node]) {
      return true;
    }
  }
  const text::Dfa& dfa         = lexeme(node, k);
  const text::Dfa::State state = state_behind(dfa, node.others[k].state[at], escape.text());
  return has_further_character(dfa, state, escape, known);
}

TOOLDECODE_INLINE void KeyReader::read_tracked(const Node& node, Set seen, const Words& words,
                                               std::uint8_t byte, Steps& out) {
  Tracked key = tracked(node, words);
  if (key.escape) {
    const std::string spelt = key.escape->text() + static_cast<char>(byte);
    if (!key.escape->read(byte)) return;
    if (const auto c = key.escape->character()) read_character(node, key, *c, spelt);
  } else if (byte == '\\' && node.strings) {
    key.escape.emplace(*node.strings);
  } else {
    read_byte(node, key, byte);
  }
  track(node, seen, key, out);
}

TOOLDECODE_INLINE void KeyReader::track(const Node& node, Set seen, const Tracked& key,
                                        Steps& out) {
  bool stays               = false;
  const std::string escape = key.escape ? key.escape->text() : std::string();
  for (std::uint32_t k = 0; k < node.others.size(); ++k) {
    const text::Dfa& dfa         = lexeme(node, k);
    const text::Dfa::State state = state_behind(dfa, key.states[k], escape);
    if (state == text::Dfa::dead) continue;
    if (dfa.accepting(state)) end_other(node, seen, k, key.key.text, out);
    stays = stays || leads_elsewhere(node, seen, k, key.key, key.states[k], key.escape);
  }
  if (!stays) return;
  Words words{0, key.key.text, static_cast<std::uint8_t>(key.key.quote), 0, 0};
  if (key.escape) {
    words[2] |= 0x100;
    words[3] = key.escape->value(), words[4] = key.escape->places();
  }
  words.insert(words.end(), key.states.begin(), key.states.end());
  out.push_back({Step::Kind::inside, 0, pooled + pool_.intern(std::move(words))});
}

TOOLDECODE_INLINE void KeyReader::end_other(const Node& node, Set seen, std::uint32_t k,
                                            KeyTexts::Number text, Steps& out) {
  std::uint32_t key = 0;
  if (seen_.is_tracked(node, seen)) {
    key              = text;
    const auto known = seen_.remembered(node, seen);
    if (std::binary_search(known.begin(), known.end(), key)) return;
  }
  out.push_back({Step::Kind::other_ends, k, key});
}

TOOLDECODE_INLINE std::string KeyReader::requoted(const Node& node, std::string_view part,
                                                  char from, char to) {
  if (from == to) return std::string(part);
  std::string result;
  for (std::size_t i = 0; i < part.size(); ++i) {
    if (part[i] == '\\') {
      text::StringEscape escape(*node.strings);
      while (!escape.character()) {
        if (++i == part.size()) return result;  // the part ends inside a character
        (void)escape.read(static_cast<std::uint8_t>(part[i]));
      }
      text::StringEscape::append(result, *escape.character(), *node.strings, to);
    } else if (part[i] == from) {
      result += to;
    } else if (part[i] == to) {
      result += {'\\', to};
    } else {
      result += part[i];
    }
  }
  return result;
}

template <class Visit>
void KeyReader::for_each_remembered(const Node& node, Set seen, const Beginning& key,
                                    Visit visit) const {
  const auto known = seen_.remembered(node, seen);
  if (known.empty()) return;
  if (key.at == 0) {  // longer texts have greater numbers
    for (auto one = std::upper_bound(known.begin(), known.end(), key.text); one != known.end();
         ++one) {
      const auto text = static_cast<KeyTexts::Number>(*one);
      if (texts_.goes_on_from(text, key.text)) visit(text);
    }
    return;
  }
  const std::string begins = numbered_text(node, key);
  for (const std::uint64_t one : known) {
    const auto text = static_cast<KeyTexts::Number>(one);
    if (texts_.goes_on_from(text, begins)) visit(text);
  }
}

TOOLDECODE_INLINE std::string KeyReader::numbered_text(const Node& node, const Beginning& key) {
  const std::string text = node.literals->text(key.at);
  return key.quote == 0 ? text : '"' + requoted(node, text.substr(1), key.quote, '"');
}

TOOLDECODE_INLINE std::size_t KeyReader::length_of(const Node& node, const Beginning& key) const {
  return key.at == 0 ? texts_.length(key.text) : numbered_text(node, key).size();
}

TOOLDECODE_INLINE KeyReader::Texts KeyReader::remembered_behind(const Node& node, Set seen,
                                                                const Beginning& key) const {
  Texts all;
  std::optional<std::size_t> length;
  for_each_remembered(node, seen, key, [&](KeyTexts::Number one) {
    if (!length) length = length_of(node, key);
    std::string rest = texts_.bytes_behind(one, *length, character_bytes);
    all.push_back(key.quote == 0 ? rest : requoted(node, rest, '"', key.quote));
  });
  return all;
}

TOOLDECODE_INLINE std::string KeyReader::text_of(const Node& node, const Beginning& key) const {
  if (key.at != 0) return node.literals->text(key.at);
  const std::string text = texts_.bytes_behind(key.text, 0);
  return key.quote == 0 ? text : key.quote + requoted(node, text.substr(1), '"', key.quote);
}

TOOLDECODE_INLINE KeyReader::Texts KeyReader::reserved(const Node& node, Set seen,
                                                       const Beginning& key,
                                                       std::string_view text) const {
  Texts all;
  for_each_remembered(node, seen, key, [&](KeyTexts::Number one) {
    all.push_back(text_of(node, {0, one, key.quote}));
  });
  core::ByteTrie::NodeIndex at = 0;
  for (const char c : text) {
    at = node.literals->find_child(at, static_cast<std::uint8_t>(c));
    if (at == 0) return all;
  }
  for (const auto end : longer_keys(node, at)) all.push_back(node.literals->text(end));
  return all;
}

TOOLDECODE_INLINE bool KeyReader::leads_elsewhere(
    const Node& node, Set seen, std::size_t k, const Beginning& key, text::Dfa::State before,
    const std::optional<text::StringEscape>& escape) const {
  const text::Dfa& dfa         = lexeme(node, k);
  const text::Dfa::State state = escape ? state_behind(dfa, before, escape->text()) : before;
  if (state == text::Dfa::dead || dfa.live(state).empty()) return false;
  const Texts rests = remembered_behind(node, seen, key);
  if (leads_elsewhere_now(node, dfa, state, key, escape, rests)) return true;
  const std::string text = text_of(node, key);
  return leads_elsewhere(node, dfa, before, text.size(), escape, reserved(node, seen, key, text));
}

TOOLDECODE_INLINE bool KeyReader::leads_elsewhere_now(
    const Node& node, const text::Dfa& dfa, text::Dfa::State state, const Beginning& key,
    const std::optional<text::StringEscape>& escape, const Texts& rests) {
  const bool is_in_trie    = key.at != 0 || key.text == KeyTexts::empty;
  const auto [first, last] = node.literals->children(key.at);
  const bool has_literals  = is_in_trie && first != last;
  if (rests.empty() && !has_literals) return true;
  const auto is_closed = [&](char quote) {
    if (std::ranges::find(rests, std::string_view(&quote, 1)) != rests.end()) return true;
    const auto child =
        has_literals ? node.literals->find_child(key.at, static_cast<std::uint8_t>(quote)) : 0;
    return child != 0 && !node.literals->values(child).empty();
  };
  if (escape || (key.quote != 0 && dfa.boundary(state))) {
    auto known = first_characters(node, rests);
    if (has_literals) {
      const auto more = key_characters(*node.literals, key.at, *node.strings);
      known.insert(known.end(), more.begin(), more.end());
    }
    const text::StringEscape from = escape.value_or(text::StringEscape(*node.strings));
    const text::Dfa::State inside = escape ? state : dfa.next(state, '\\');
    if (has_further_character(dfa, inside, from, known)) return true;
    if (escape) return false;
    const text::Dfa::State end = dfa.next(state, static_cast<std::uint8_t>(key.quote));
    return end != text::Dfa::dead && dfa.accepting(end) && !is_closed(key.quote);
  }
  bool found = false;
  dfa.live(state).for_each([&](std::uint8_t byte) {
    if (found || (has_literals && node.literals->find_child(key.at, byte) != 0)) return;
    const bool is_taken = std::ranges::any_of(
        rests, [&](const std::string& rest) { return static_cast<std::uint8_t>(rest[0]) == byte; });
    const text::Dfa::State next = dfa.next(state, byte);
    found =
        !is_taken && next != text::Dfa::dead && (dfa.accepting(next) || !dfa.live(next).empty());
  });
  return found;
}

TOOLDECODE_INLINE bool KeyReader::leads_elsewhere(const Node& node, const text::Dfa& dfa,
                                                  text::Dfa::State before, std::size_t length,
                                                  const std::optional<text::StringEscape>& escape,
                                                  Texts reserved) {
  std::sort(reserved.begin(), reserved.end());
  // A beginning of `length` bytes and the reserved keys that are longer.
  struct Visit {
    text::Dfa::State state;
    std::size_t length, first, last;
  };
  std::vector<Visit> work{{before, length, 0, reserved.size()}};
  // Whether a key of others that is not reserved ends `more` bytes after a beginning; what goes on
  // from there is visited.
  const auto follow = [&](const Visit& from, std::string_view more, text::Dfa::State next) {
    if (next == text::Dfa::dead) return false;
    const auto part = [&](const std::string& one) {
      return std::string_view(one).substr(from.length, more.size());
    };
    const auto at = [&](std::size_t i) {
      return reserved.begin() + static_cast<std::ptrdiff_t>(i);
    };
    const auto low        = std::partition_point(at(from.first), at(from.last),
                                                 [&](const auto& one) { return part(one) < more; });
    const auto high       = std::partition_point(low, at(from.last),
                                                 [&](const auto& one) { return part(one) == more; });
    const std::size_t end = from.length + more.size();
    const auto longer = std::find_if(low, high, [&](const auto& one) { return one.size() > end; });
    if (dfa.accepting(next) && longer == low) return true;
    if (dfa.live(next).empty()) return false;
    if (longer == high) return true;
    work.push_back({next, end, static_cast<std::size_t>(longer - reserved.begin()),
                    static_cast<std::size_t>(high - reserved.begin())});
    return false;
  };
  for (bool is_first = true; !work.empty(); is_first = false) {
    const Visit at = work.back();
    work.pop_back();
    if (at.first == at.last) return true;
    BuildBudget::spend(16);
    const bool in_escape = is_first && escape;
    if (!in_escape && !(node.strings && at.length != 0 && dfa.boundary(at.state))) {
      bool found = false;
      dfa.live(at.state).for_each([&](std::uint8_t byte) {
        const auto c = static_cast<char>(byte);
        found        = found || follow(at, {&c, 1}, dfa.next(at.state, byte));
      });
      if (found) return true;
      continue;
    }
    const char quote = reserved[at.first][0];
    if (!in_escape &&
        follow(at, {&quote, 1}, dfa.next(at.state, static_cast<std::uint8_t>(quote)))) {
      return true;
    }
    Texts rests;
    for (std::size_t i = at.first; i < at.last; ++i) {
      rests.push_back(reserved[i].substr(at.length, character_bytes));
    }
    const auto known              = first_characters(node, rests);
    const text::StringEscape from = in_escape ? *escape : text::StringEscape(*node.strings);
    const text::Dfa::State inside =
        in_escape ? state_behind(dfa, at.state, escape->text()) : dfa.next(at.state, '\\');
    if (has_further_character(dfa, inside, from, known)) return true;
    for (const KeyCharacter& one : known) {
      if (!from.may_become(one.character)) continue;
      if (in_escape && !may_escape(node, one.character)) continue;
      std::string more;
      text::StringEscape::append(more, one.character, *node.strings, quote);
      // The state inside an escape cannot step over the character's plain bytes.
      if (follow(at, more, state_behind(dfa, at.state, more))) return true;
    }
  }
  return false;
}

TOOLDECODE_INLINE std::vector<KeyCharacter> KeyReader::first_characters(const Node& node,
                                                                        const Texts& rests) {
  if (rests.empty()) return {};
  std::vector<core::ByteTrie::Entry> entries;
  for (const std::string& rest : rests) entries.emplace_back(rest, 0);
  return key_characters(core::ByteTrie(std::move(entries)), 0, *node.strings);
}

TOOLDECODE_INLINE std::span<const core::ByteTrie::NodeIndex> KeyReader::longer_keys(
    const Node& node, core::ByteTrie::NodeIndex at) {
  const std::size_t ending = node.literals->values(at).size();
  return std::span(node.ends).subspan(node.first_end[at] + ending,
                                      node.literals->count_below(at) - ending);
}

TOOLDECODE_INLINE text::ByteSet KeyReader::literal_bytes(const Node& node,
                                                         core::ByteTrie::NodeIndex at) {
  text::ByteSet set;
  const auto [first, last] = node.literals->children(at);
  for (auto child = first; child < last; ++child) set.insert(node.literals->label(child));
  if (node.strings && at != 0 && first != last) set.insert('\\');
  return set;
}

TOOLDECODE_INLINE text::ByteSet KeyReader::remembered_bytes(const Node& node, Set seen,
                                                            KeyPosition at) const {
  text::ByteSet set;
  if (!seen_.remembers(node, seen)) return set;
  Beginning key = at < pooled ? beginning_at(node, at) : beginning_of(pool_[at - pooled]);
  if (at >= pooled) {
    if (const auto escape = tracked_escape(node, pool_[at - pooled])) return escape->next();
  }
  for (const std::string& rest : remembered_behind(node, seen, key)) {
    set.insert(static_cast<std::uint8_t>(rest[0]));
    if (key.quote != 0) set.insert('\\');
  }
  return set;
}

}  // namespace tooldecode::grammar
