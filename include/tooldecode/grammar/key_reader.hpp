/// \file
/// KeyReader: what a byte does to a key of a keyed set, whichever way the key is spelt.
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
#include <tooldecode/grammar/members_seen.hpp>
#include <tooldecode/grammar/node_store.hpp>
#include <tooldecode/grammar/stacks.hpp>
#include <tooldecode/text/byte_set.hpp>
#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/string_escape.hpp>

namespace tooldecode::grammar {

/// Reads the keys of keyed sets. A place in a key is a number: a node of the trie of the members'
/// keys; or a pooled one, for a place inside an escape and for a key of others whose text matters.
///
/// Escapes are read, not listed: a complete one leads where its character leads, so that a key is
/// known in any spelling while the trie has it once. No place is a dead end. What no writer
/// escapes, the letters of a name, may be escaped in a member's key only where the set says so:
/// else a model is asked at each letter whether it escapes the next one, and no key is ever forced.
///
/// \par Complexity  O(others) per byte; inside escapes and tracked keys times the characters of the
///                  members' and the remembered keys that may come next
/// \par Threads     members that are not const one at a time; the others need no lock
/// \par Errors      std::bad_alloc
class KeyReader {
 public:
  using Node        = NodeStore::Node;
  using Set         = MembersSeen::Set;
  using KeyPosition = std::uint32_t;
  /// Places are less.
  static constexpr KeyPosition end_of_key_positions = 0x8000'0000;

  /// One thing that a byte may lead to.
  struct Step {
    enum class Kind : std::uint8_t {
      inside,      ///< the key goes on at `at`
      member,      ///< the key of member `index` ends
      other,       ///< a key of others `index` goes on, or ends, in the state `at` of its lexeme
      other_ends,  ///< a key of others `index` ends; `at` is its number where it matters, or 0
    };
    Kind kind;
    std::uint32_t index = 0;
    std::uint32_t at    = 0;
  };
  using Steps = std::vector<Step>;

  explicit KeyReader(const NodeStore& nodes) : nodes_(nodes) {}

  [[nodiscard]] MembersSeen& seen() noexcept { return seen_; }
  [[nodiscard]] const MembersSeen& seen() const noexcept { return seen_; }

  /// Adds what a byte leads to; nothing where it may not follow.
  void read(const Node& node, Set seen, KeyPosition at, std::uint8_t byte, Steps& out) {
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

  /// Whether a longer key than that of a trie's node can still be one that is available.
  [[nodiscard]] bool has_more(const Node& node, core::ByteTrie::NodeIndex at, Set seen) const {
    const auto [first, last] = node.literals->children(at);
    for (auto child = first; child < last; ++child) {
      const auto literal = node.literals->values(child);
      if (!literal.empty() && seen_.may_follow(node, seen, literal.front())) return true;
      if (has_more(node, child, seen)) return true;
    }
    return false;
  }

  /// Whether a key of others can still be completed from a place.
  [[nodiscard]] bool may_become_other(const Node& node, Set seen, KeyPosition at,
                                      std::size_t k) const {
    if (!seen_.may_add(node, seen)) return false;
    if (at < pooled) return others_live(node, seen, k, at);
    const Words& words = pool_[at - pooled];
    if (words[0] == 0) return leads_elsewhere(node, seen, k, text_of(words));
    const text::StringEscape escape = escape_of(node, words);
    return others_live(node, seen, k, words[0], escape,
                       key_characters(*node.literals, words[0], *node.strings));
  }

  /// A set that has every byte that may follow.
  [[nodiscard]] text::ByteSet candidates(const Node& node, KeyPosition at) const {
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
  /// The same for a place in its trie, where what needs no escape is not escaped.
  [[nodiscard]] text::ByteSet plain_candidates(const Node& node, KeyPosition at) const {
    text::ByteSet set = candidates(node, at);
    if (at < pooled && at != 0 && node.strings && node.literals->find_child(at, '\\') == 0) {
      const bool is_open = std::any_of(
          node.others.begin(), node.others.end(),
          [&](const NodeStore::Others& others) { return others.state[at] != text::Dfa::dead; });
      if (!is_open) set.erase('\\');
    }
    return set;
  }
  /// The bytes that may lead on along keys that others cannot have: the members' and those that may
  /// not be repeated.
  [[nodiscard]] text::ByteSet reserved_bytes(const Node& node, Set seen, KeyPosition at) const {
    if (at < pooled) return literal_bytes(node, at) | remembered_bytes(node, seen, at);
    const Words& words = pool_[at - pooled];
    if (words[0] != 0) return escape_of(node, words).next();
    return remembered_bytes(node, seen, at);
  }
  /// The state of others' lexeme at a place of the trie or of a tracked key.
  [[nodiscard]] text::Dfa::State state_at(const Node& node, KeyPosition at, std::size_t k) const {
    if (at < pooled) return node.others[k].state[at];
    const Words& words = pool_[at - pooled];
    return words[0] == 0 ? state_behind(lexeme(node, k), 0, text_of(words)) : text::Dfa::dead;
  }
  /// Whether a member's key ends at a place.
  [[nodiscard]] bool ends_member(const Node& node, KeyPosition at) const {
    return at < pooled && !node.literals->values(at).empty();
  }
  /// Another object's set of members seen, and its place, here: both have the same nodes.
  [[nodiscard]] Set adopt(const KeyReader& from, const Node& node, Set seen) {
    return seen_.adopt(from.seen_, node, seen,
                       [&](std::uint32_t key) { return pool_.intern(from.pool_[key]); });
  }
  [[nodiscard]] KeyPosition adopt(const KeyReader& from, KeyPosition at) {
    return at < pooled ? at : pooled + pool_.intern(from.pool_[at - pooled]);
  }
  /// About how much memory all of this takes.
  [[nodiscard]] std::size_t bytes() const noexcept { return seen_.bytes() + pool_.bytes(); }

  /// Whether a place is a node of the members' trie.
  [[nodiscard]] static bool is_in_trie(KeyPosition at) noexcept { return at < pooled; }
  /// Whether a place is inside an escape.
  [[nodiscard]] bool is_in_escape(KeyPosition at) const {
    return at >= pooled && pool_[at - pooled][0] != 0;
  }

 private:
  using Words = WordsPool<std::uint32_t>::Words;
  using Texts = std::vector<std::string>;

  // Nodes of tries are less. In the pool, a place in an escape is the trie's node before it and
  // what the escape has read; one in a tracked key is 0 and the key's bytes.
  static constexpr KeyPosition pooled = 0x4000'0000;

  [[nodiscard]] const text::Dfa& lexeme(const Node& node, std::size_t k) const {
    return *nodes_[node.others[k].key].dfa;
  }
  [[nodiscard]] static text::StringEscape escape_of(const Node& node, const Words& words) {
    return {*node.strings, words.size() > 1 ? words[1] : 0, words.size() > 2 ? words[2] : 0};
  }
  [[nodiscard]] static std::string text_of(const Words& words) {
    return {words.begin() + 1, words.end()};
  }
  [[nodiscard]] std::uint32_t number(const std::string& text) {
    Words words{0};
    for (const char c : text) words.push_back(static_cast<std::uint8_t>(c));
    return pool_.intern(std::move(words));
  }

  static void add_other(const text::Dfa& dfa, std::uint32_t k, text::Dfa::State state, Steps& out) {
    if (state != text::Dfa::dead && !(dfa.live(state).empty() && !dfa.accepting(state))) {
      out.push_back({Step::Kind::other, k, state});
    }
  }

  // At a node of the trie, behind a character or within one.
  void arrive(const Node& node, Set seen, core::ByteTrie::NodeIndex at, bool adds, Steps& out) {
    const auto literal = node.literals->values(at);
    bool stays         = has_more(node, at, seen);
    for (std::uint32_t k = 0; adds && k < node.others.size(); ++k) {
      stays                        = stays || others_live(node, seen, k, at);
      const text::Dfa::State state = node.others[k].state[at];
      if (!literal.empty() || state == text::Dfa::dead || !lexeme(node, k).accepting(state))
        continue;
      end_other(node, seen, k, node.literals->text(at), out);
    }
    if (stays) out.push_back({Step::Kind::inside, 0, at});
    if (literal.empty() || !seen_.may_follow(node, seen, literal.front())) return;
    out.push_back({Step::Kind::member, literal.front(), 0});
  }

  // Whether a character of a member's key may be escaped.
  static bool may_escape(const Node& node, char32_t c) noexcept {
    return node.every_spelling || !text::StringEscape::is_plain(c);
  }

  // In or behind an escape that stands at a node of the trie.
  void escaped(const Node& node, Set seen, core::ByteTrie::NodeIndex at,
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
        const text::Dfa::State state =
            state_behind(lexeme(node, k), node.others[k].state[at], bytes);
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

  [[nodiscard]] bool others_live(const Node& node, Set seen, std::size_t k,
                                 core::ByteTrie::NodeIndex at) const {
    if (!node.others[k].completes[at]) return false;
    return !seen_.remembers(node, seen) || leads_elsewhere(node, seen, k, node.literals->text(at));
  }
  [[nodiscard]] bool others_live(const Node& node, Set seen, std::size_t k,
                                 core::ByteTrie::NodeIndex at, const text::StringEscape& escape,
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

  // Keys of others whose text matters: those that leave the trie, as the plainest spelling of what
  // has been read, and an escape that is not complete.
  void read_tracked(const Node& node, Set seen, std::string text, std::uint8_t byte, Steps& out) {
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
  void track(const Node& node, Set seen, const std::string& text, Steps& out) {
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
  void end_other(const Node& node, Set seen, std::uint32_t k, const std::string& text, Steps& out) {
    std::uint32_t key = 0;
    if (seen_.is_tracked(node, seen)) {
      key              = number(requoted(node, text, '"'));
      const auto known = seen_.remembered(node, seen);
      if (std::binary_search(known.begin(), known.end(), key)) return;
    }
    out.push_back({Step::Kind::other_ends, k, key});
  }

  // A key between other quotes; they are no part of its text.
  static std::string requoted(const Node& node, const std::string& key, char quote) {
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
  // The keys that may not be repeated, between the quotes that a text begins with.
  [[nodiscard]] Texts remembered(const Node& node, Set seen, std::string_view text) const {
    Texts all;
    for (const std::uint64_t key : seen_.remembered(node, seen)) {
      std::string one  = text_of(pool_[static_cast<std::uint32_t>(key)]);
      const char quote = text.empty() ? '"' : text[0];
      all.push_back(requoted(node, one, quote));
    }
    return all;
  }

  // Where the escape begins that a text ends in.
  static std::size_t open_escape(std::string_view text, text::ValueSyntax syntax) {
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

  // The keys that begin with a text, are longer, and may not be those of others.
  [[nodiscard]] Texts reserved(const Node& node, Set seen, std::string_view text) const {
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

  // Whether a text, which may end inside an escape, begins a longer key of others that none of the
  // reserved keys is.
  [[nodiscard]] bool leads_elsewhere(const Node& node, Set seen, std::size_t k,
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
  [[nodiscard]] static bool leads_elsewhere(const Node& node, const text::Dfa& dfa,
                                            text::Dfa::State state, std::string_view text,
                                            const std::optional<text::StringEscape>& escape,
                                            const Texts& reserved) {
    if (reserved.empty()) return true;
    // What follows a longer text, if some key of others may.
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
      return !dfa.live(next).empty() &&
             leads_elsewhere(node, dfa, next, longer, std::nullopt, left);
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
        // An escape's own state cannot be stepped by the character's plain bytes.
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
  // The characters by which reserved keys go on behind a text.
  static std::vector<KeyCharacter> characters_behind(const Node& node, std::string_view text,
                                                     const Texts& reserved) {
    std::vector<core::ByteTrie::Entry> rest;
    for (const std::string& one : reserved) {
      rest.emplace_back(std::string_view(one).substr(text.size()), 0);
    }
    return key_characters(core::ByteTrie(std::move(rest)), 0, *node.strings);
  }

  // The bytes by which members' keys go on, the beginning of escapes included.
  [[nodiscard]] static text::ByteSet literal_bytes(const Node& node, core::ByteTrie::NodeIndex at) {
    text::ByteSet set;
    const auto [first, last] = node.literals->children(at);
    for (auto child = first; child < last; ++child) set.insert(node.literals->label(child));
    if (node.strings && at != 0 && first != last) set.insert('\\');
    return set;
  }
  [[nodiscard]] text::ByteSet remembered_bytes(const Node& node, Set seen, KeyPosition at) const {
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

  const NodeStore& nodes_;
  MembersSeen seen_;
  WordsPool<std::uint32_t> pool_;
};

}  // namespace tooldecode::grammar
