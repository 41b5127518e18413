/// \file
/// Definitions of key_reader.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/key_characters.hpp>
#include <tooldecode/grammar/key_reader.hpp>
#include <tooldecode/grammar/members_seen.hpp>
#include <tooldecode/grammar/node_store.hpp>
#include <tooldecode/grammar/stacks.hpp>
#include <tooldecode/text/byte_set.hpp>
#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/string_escape.hpp>

namespace tooldecode::grammar {

TOOLDECODE_INLINE void KeyReader::read(const Node& node, Set seen, KeyPosition at,
                                       std::uint8_t byte, Steps& out) {
  const bool adds = seen_.may_add(node, seen);
  if (at >= pooled) {
    const Words& words = pool_[at - pooled];
    if (words[0] == 0) return read_tracked(node, seen, text_of(words), byte, out);
    text::StringEscape escape = escape_of(node, words);
    if (escape.read(byte)) escaped(node, seen, words[0], escape, adds, out);
    return;
  }
  if (byte == '\\' && node.strings && at != 0) {
    return escaped(node, seen, at, text::StringEscape(*node.strings), adds, out);
  }
  if (const auto child = node.literals->find_child(at, byte); child != 0) {
    return arrive(node, seen, child, adds, out);
  }
  if (adds && seen_.is_tracked(node, seen)) {
    return track(node, seen, node.literals->text(at) + static_cast<char>(byte), out);
  }
  for (std::uint32_t k = 0; adds && k < node.others.size(); ++k) {
    const text::Dfa::State state = node.others[k].state[at];
    if (state != text::Dfa::dead)
      add_other(lexeme(node, k), k, lexeme(node, k).next(state, byte), out);
  }
}

TOOLDECODE_INLINE bool KeyReader::has_more(const Node& node, core::ByteTrie::NodeIndex at,
                                           Set seen) const {
  if (at == 0) {  // all members: no walk is needed
    for (std::uint32_t member = 0; member < node.children.size(); ++member) {
      if (seen_.may_follow(node, seen, member)) return true;
    }
    return false;
  }
  const auto [first, last] = node.literals->children(at);
  for (auto child = first; child < last; ++child) {
    const auto literal = node.literals->values(child);
    if (!literal.empty() && seen_.may_follow(node, seen, literal.front())) return true;
    if (has_more(node, child, seen)) return true;
  }
  return false;
}

TOOLDECODE_INLINE bool KeyReader::may_become_other(const Node& node, Set seen, KeyPosition at,
                                                   std::size_t k) const {
  if (!seen_.may_add(node, seen)) return false;
  if (at < pooled) return others_live(node, seen, k, at);
  const Words& words = pool_[at - pooled];
  if (words[0] == 0) return leads_elsewhere(node, seen, k, text_of(words));
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
  if (words[0] != 0) return escape_of(node, words).next();
  return remembered_bytes(node, seen, at);
}

TOOLDECODE_INLINE text::Dfa::State KeyReader::state_at(const Node& node, KeyPosition at,
                                                       std::size_t k) const {
  if (at < pooled) return node.others[k].state[at];
  const Words& words = pool_[at - pooled];
  return words[0] == 0 ? state_behind(lexeme(node, k), 0, text_of(words)) : text::Dfa::dead;
}

TOOLDECODE_INLINE bool KeyReader::ends_member(const Node& node, KeyPosition at) const {
  return at < pooled && !node.literals->values(at).empty();
}

TOOLDECODE_INLINE KeyReader::Set KeyReader::adopt(const KeyReader& from, const Node& node,
                                                  Set seen) {
  return seen_.adopt(from.seen_, node, seen,
                     [&](std::uint32_t key) { return number(from.text_of(from.pool_[key])); });
}

TOOLDECODE_INLINE KeyReader::KeyPosition KeyReader::adopt(const KeyReader& from, KeyPosition at) {
  if (at < pooled) return at;
  const Words& words = from.pool_[at - pooled];
  return pooled + (words[0] == 0 ? number(from.text_of(words)) : pool_.intern(words));
}

TOOLDECODE_INLINE bool KeyReader::is_in_escape(KeyPosition at) const {
  return at >= pooled && pool_[at - pooled][0] != 0;
}

TOOLDECODE_INLINE const text::Dfa& KeyReader::lexeme(const Node& node, std::size_t k) const {
  return nodes_.lexeme(node.others[k].key);
}

TOOLDECODE_INLINE text::StringEscape KeyReader::escape_of(const Node& node, const Words& words) {
  return {*node.strings, words.size() > 1 ? words[1] : 0, words.size() > 2 ? words[2] : 0};
}

TOOLDECODE_INLINE std::string KeyReader::text_of(const Words& words) const {
  std::vector<const Words*> blocks{&words};
  while (const std::uint32_t before = (*blocks.back())[1]) blocks.push_back(&pool_[before]);
  std::string text;
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
    text.append((*block)->begin() + 2, (*block)->end());
  }
  return text;
}

TOOLDECODE_INLINE std::uint32_t KeyReader::number(std::string_view text) {
  std::uint32_t before = 0;
  while (true) {
    Words words{0, before};
    for (const char c : text.substr(0, block_bytes)) {
      words.push_back(static_cast<std::uint8_t>(c));
    }
    before = pool_.intern(std::move(words));
    if (text.size() <= block_bytes) return before;
    text.remove_prefix(block_bytes);
  }
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
    end_other(node, seen, k, node.literals->text(at), out);
  }
  if (stays || has_more(node, at, seen)) out.push_back({Step::Kind::inside, 0, at});
  if (literal.empty() || !seen_.may_follow(node, seen, literal.front())) return;
  out.push_back({Step::Kind::member, literal.front(), 0});
}

TOOLDECODE_INLINE bool KeyReader::may_escape(const Node& node, char32_t c) noexcept {
  return node.every_spelling || !text::StringEscape::is_plain(c);
}

TOOLDECODE_INLINE void KeyReader::escaped(const Node& node, Set seen, core::ByteTrie::NodeIndex at,
                                          const text::StringEscape& escape, bool adds, Steps& out) {
  const auto known = key_characters(*node.literals, at, *node.strings);
  if (const auto c = escape.character()) {
    for (const KeyCharacter& one : known) {
      if (one.character != *c) continue;
      if (may_escape(node, *c)) arrive(node, seen, one.node, adds, out);
      return;
    }
    std::string bytes;
    if (!adds) return;
    if (seen_.is_tracked(node, seen)) {
      std::string text = node.literals->text(at);
      text::StringEscape::append(text, *c, *node.strings, text[0]);
      return track(node, seen, std::move(text), out);
    }
    text::StringEscape::append(bytes, *c, *node.strings, 0);
    for (std::uint32_t k = 0; k < node.others.size(); ++k) {
      const text::Dfa::State state = state_behind(lexeme(node, k), node.others[k].state[at], bytes);
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
  return !seen_.remembers(node, seen) || leads_elsewhere(node, seen, k, node.literals->text(at));
}

TOOLDECODE_INLINE bool KeyReader::others_live(const Node& node, Set seen, std::size_t k,
                                              core::ByteTrie::NodeIndex at,
                                              const text::StringEscape& escape,
                                              const std::vector<KeyCharacter>& known) const {
  if (seen_.remembers(node, seen)) {
    return leads_elsewhere(node, seen, k, node.literals->text(at) + escape.text());
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

TOOLDECODE_INLINE void KeyReader::read_tracked(const Node& node, Set seen, std::string text,
                                               std::uint8_t byte, Steps& out) {
  text += static_cast<char>(byte);
  if (node.strings) {
    const std::size_t begin = open_escape(text.substr(0, text.size() - 1), *node.strings);
    if (begin != std::string::npos) {
      text::StringEscape escape(*node.strings);
      for (std::size_t i = begin + 1; i < text.size(); ++i) {
        if (!escape.read(static_cast<std::uint8_t>(text[i]))) return;
      }
      text.resize(begin);
      if (const auto c = escape.character()) {
        text::StringEscape::append(text, *c, *node.strings, text[0]);
      } else {
        text += escape.text();
      }
    }
  }
  track(node, seen, std::move(text), out);
}

TOOLDECODE_INLINE void KeyReader::track(const Node& node, Set seen, const std::string& text,
                                        Steps& out) {
  bool stays = false;
  for (std::uint32_t k = 0; k < node.others.size(); ++k) {
    const text::Dfa& dfa         = lexeme(node, k);
    const text::Dfa::State state = state_behind(dfa, 0, text);
    if (state == text::Dfa::dead) continue;
    if (dfa.accepting(state)) end_other(node, seen, k, text, out);
    stays = stays || leads_elsewhere(node, seen, k, text);
  }
  if (stays) out.push_back({Step::Kind::inside, 0, pooled + number(text)});
}

TOOLDECODE_INLINE void KeyReader::end_other(const Node& node, Set seen, std::uint32_t k,
                                            const std::string& text, Steps& out) {
  std::uint32_t key = 0;
  if (seen_.is_tracked(node, seen)) {
    key              = number(requoted(node, text, '"'));
    const auto known = seen_.remembered(node, seen);
    if (std::binary_search(known.begin(), known.end(), key)) return;
  }
  out.push_back({Step::Kind::other_ends, k, key});
}

TOOLDECODE_INLINE std::string KeyReader::requoted(const Node& node, const std::string& key,
                                                  char quote) {
  if (!node.strings || key[0] == quote) return key;
  std::string result(1, quote);
  for (std::size_t i = 1; i + 1 < key.size(); ++i) {
    if (key[i] == '\\') {
      text::StringEscape escape(*node.strings);
      while (!escape.character()) (void)escape.read(static_cast<std::uint8_t>(key[++i]));
      text::StringEscape::append(result, *escape.character(), *node.strings, quote);
    } else if (key[i] == quote) {
      result += {'\\', quote};
    } else {
      result += key[i];
    }
  }
  return result + quote;
}

TOOLDECODE_INLINE KeyReader::Texts KeyReader::remembered(const Node& node, Set seen,
                                                         std::string_view text) const {
  Texts all;
  for (const std::uint64_t key : seen_.remembered(node, seen)) {
    std::string one  = text_of(pool_[static_cast<std::uint32_t>(key)]);
    const char quote = text.empty() ? '"' : text[0];
    all.push_back(requoted(node, one, quote));
  }
  return all;
}

TOOLDECODE_INLINE std::size_t KeyReader::open_escape(std::string_view text,
                                                     text::ValueSyntax syntax) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') continue;
    text::StringEscape escape(syntax);
    const std::size_t begin = i;
    while (i + 1 < text.size() && !escape.character()) {
      if (!escape.read(static_cast<std::uint8_t>(text[++i]))) break;
    }
    if (!escape.character()) return begin;
  }
  return std::string_view::npos;
}

TOOLDECODE_INLINE KeyReader::Texts KeyReader::reserved(const Node& node, Set seen,
                                                       std::string_view text) const {
  Texts all;
  for (std::string& one : remembered(node, seen, text)) {
    if (one.size() > text.size() && one.starts_with(text)) all.push_back(std::move(one));
  }
  core::ByteTrie::NodeIndex at = 0;
  for (const char c : text) {
    at = node.literals->find_child(at, static_cast<std::uint8_t>(c));
    if (at == 0) return all;
  }
  std::vector<std::pair<core::ByteTrie::NodeIndex, std::string>> work{{at, std::string(text)}};
  while (!work.empty()) {
    const auto [from, spelt] = std::move(work.back());
    work.pop_back();
    const auto [first, last] = node.literals->children(from);
    for (auto child = first; child < last; ++child) {
      work.emplace_back(child, spelt + static_cast<char>(node.literals->label(child)));
      if (!node.literals->values(child).empty()) all.push_back(work.back().second);
    }
  }
  return all;
}

TOOLDECODE_INLINE bool KeyReader::leads_elsewhere(const Node& node, Set seen, std::size_t k,
                                                  std::string_view text) const {
  std::optional<text::StringEscape> escape;
  std::string_view read = text;
  if (node.strings) {
    const std::size_t begin = open_escape(text, *node.strings);
    if (begin != std::string_view::npos) {
      read = text.substr(0, begin);
      escape.emplace(*node.strings);
      for (const char c : text.substr(begin + 1)) {
        (void)escape->read(static_cast<std::uint8_t>(c));
      }
    }
  }
  const text::Dfa::State state = state_behind(lexeme(node, k), 0, text);
  if (state == text::Dfa::dead || lexeme(node, k).live(state).empty()) return false;
  return leads_elsewhere(node, lexeme(node, k), state, read, escape, reserved(node, seen, read));
}

TOOLDECODE_INLINE bool KeyReader::leads_elsewhere(const Node& node, const text::Dfa& dfa,
                                                  text::Dfa::State state, std::string_view text,
                                                  const std::optional<text::StringEscape>& escape,
                                                  const Texts& reserved) {
  if (reserved.empty()) return true;
  // Whether a key of others may follow a longer text.
  const auto follows = [&](const std::string& longer, text::Dfa::State next) {
    if (next == text::Dfa::dead) return false;
    Texts left;
    for (const std::string& one : reserved) {
      if (one.starts_with(longer)) left.push_back(one);
    }
    if (dfa.accepting(next) && std::find(left.begin(), left.end(), longer) == left.end()) {
      return true;
    }
    std::erase(left, longer);
    return !dfa.live(next).empty() && leads_elsewhere(node, dfa, next, longer, std::nullopt, left);
  };
  const bool by_characters = escape || (node.strings && !text.empty() && dfa.boundary(state));
  bool found               = false;
  if (by_characters) {
    const auto known              = characters_behind(node, text, reserved);
    const text::StringEscape from = escape.value_or(text::StringEscape(*node.strings));
    const text::Dfa::State inside = escape ? state : dfa.next(state, '\\');
    if (has_further_character(dfa, inside, from, known)) return true;
    for (const KeyCharacter& one : known) {
      if (found || !from.may_become(one.character)) continue;
      if (escape && !may_escape(node, one.character)) continue;
      std::string more;
      text::StringEscape::append(more, one.character, *node.strings, text[0]);
      // The state inside an escape cannot step over the character's plain bytes.
      const text::Dfa::State before = state_behind(dfa, 0, text);
      found = follows(std::string(text) + more, state_behind(dfa, before, more));
    }
    if (found || escape) return found;
    const auto quote = static_cast<std::uint8_t>(text[0]);
    return follows(std::string(text) + text[0], dfa.next(state, quote));
  }
  dfa.live(state).for_each([&](std::uint8_t byte) {
    found = found || follows(std::string(text) + static_cast<char>(byte), dfa.next(state, byte));
  });
  return found;
}

TOOLDECODE_INLINE std::vector<KeyCharacter> KeyReader::characters_behind(const Node& node,
                                                                         std::string_view text,
                                                                         const Texts& reserved) {
  std::vector<core::ByteTrie::Entry> rest;
  for (const std::string& one : reserved) {
    rest.emplace_back(std::string_view(one).substr(text.size()), 0);
  }
  return key_characters(core::ByteTrie(std::move(rest)), 0, *node.strings);
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
  const std::string text = at < pooled ? node.literals->text(at) : text_of(pool_[at - pooled]);
  std::string_view read  = text;
  if (node.strings) {
    const std::size_t begin = open_escape(read, *node.strings);
    if (begin != std::string_view::npos) {
      text::StringEscape escape(*node.strings);
      for (const char c : read.substr(begin + 1)) (void)escape.read(static_cast<std::uint8_t>(c));
      return escape.next();
    }
  }
  for (const std::string& one : remembered(node, seen, read)) {
    if (one.size() <= read.size() || !one.starts_with(read)) continue;
    set.insert(static_cast<std::uint8_t>(one[read.size()]));
    if (node.strings && !read.empty()) set.insert('\\');
  }
  return set;
}

}  // namespace tooldecode::grammar
