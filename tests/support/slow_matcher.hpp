/// \file
/// slow::matches and slow::is_prefix: what a Grammar accepts, computed with sets of end positions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/node.hpp>
#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/string_escape.hpp>

namespace tooldecode::slow {

/// Matches one text against the nodes of a grammar, by the definition of each kind.
///
/// For a node and a start it computes every position where a match may end, and whether the rest of
/// the text is a prefix of a match (the whole match included). It does not support left recursion.
class Matcher {
 public:
  Matcher(const Grammar& grammar, std::string_view text)
      : grammar_(grammar), text_(text), live_(grammar.satisfiable()) {}

  /// Where a match that starts at `start` may end, and whether it may continue past the text.
  struct Result {
    std::set<std::size_t> ends;
    bool is_prefix = false;
  };

  const Result& at(NodeId id, std::size_t start) {
    const auto key = std::pair{id, start};
    if (const auto known = known_.find(key); known != known_.end()) return known->second;
    Result result = live_[id.index()] ? compute(id, start) : Result{};
    if (result.ends.count(text_.size()) != 0) result.is_prefix = true;
    return known_.emplace(key, std::move(result)).first->second;
  }

 private:
  using Node = Grammar::Node;

  Result compute(NodeId id, std::size_t start) {
    return grammar_[id].visit(
        [&](const Node::Literal& node) { return literal(node.text, start); },
        [&](const Node::Sequence& node) { return sequence(node.children, start); },
        [&](const Node::Choice& node) { return choice(node.children, start); },
        [&](const Node::Repeat& node) { return repeat(node, start); },
        [&](const Node::Lexeme& node) { return lexeme(node, start); },
        [&](const Node::Trie& node) { return trie(node, start); },
        [&](const Node::Members& node) { return keyed_set(node, start); },
        [&](const Node::Reference& node) { return at(*node.body, start); },
        [&](const Node::Tag& node) { return at(node.child, start); },
        [](const Node::Linked&) { return Result(); });
  }

  Result literal(std::string_view bytes, std::size_t start) const {
    Result result;
    const std::string_view rest = text_.substr(start);
    if (rest.substr(0, bytes.size()) == bytes) result.ends.insert(start + bytes.size());
    result.is_prefix = bytes.substr(0, rest.size()) == rest;
    return result;
  }

  Result sequence(const std::vector<NodeId>& parts, std::size_t start) {
    Result result{{start}, false};
    for (const NodeId part : parts) {
      std::set<std::size_t> ends;
      for (const std::size_t from : result.ends) {
        const Result& one = at(part, from);
        ends.insert(one.ends.begin(), one.ends.end());
        result.is_prefix |= one.is_prefix;
      }
      result.ends = std::move(ends);
    }
    return result;
  }

  Result choice(const std::vector<NodeId>& alternatives, std::size_t start) {
    Result result;
    for (const NodeId alternative : alternatives) add(result, at(alternative, start));
    return result;
  }

  static void add(Result& result, const Result& more) {
    result.ends.insert(more.ends.begin(), more.ends.end());
    result.is_prefix |= more.is_prefix;
  }

  Result repeat(const Node::Repeat& node, std::size_t start) {
    Result result;
    if (node.count.min == 0) result.ends.insert(start);
    std::set<std::size_t> starts{start};
    for (std::uint32_t count = 1; count <= node.count.max && !starts.empty(); ++count) {
      std::set<std::size_t> ends;
      for (const std::size_t from : starts) {
        const Result& one = at(node.item, from);
        ends.insert(one.ends.begin(), one.ends.end());
        // An item may begin here; the missing items can be written if a separator can.
        const bool completes = count >= node.count.min || live_[node.separator.index()];
        result.is_prefix |= one.is_prefix && completes;
      }
      if (count >= node.count.min) result.ends.insert(ends.begin(), ends.end());
      starts.clear();
      if (count == node.count.max) break;
      for (const std::size_t from : ends) {
        const Result& one = at(node.separator, from);
        result.is_prefix |= one.is_prefix && live_[node.item.index()];
        starts.insert(one.ends.begin(), one.ends.end());
      }
      // Items are not empty, so a text has at most as many as bytes.
      if (count > text_.size() + 1) break;
    }
    return result;
  }

  // A count beyond the bounds is one unit beyond: more cannot matter.
  static std::uint32_t capped(const text::Occurrences& units, std::uint32_t count) {
    const std::uint32_t max = units.max == text::Occurrences::unbounded ? units.min : units.max + 1;
    return std::min(count, max);
  }

  using LexemeState = std::pair<text::Dfa::State, std::uint32_t>;

  static std::optional<LexemeState> step(const Node::Lexeme& node, LexemeState at,
                                         std::uint8_t byte) {
    const text::Dfa& dfa        = *node.dfa;
    const text::Dfa::State next = dfa.next(at.first, byte);
    if (next == text::Dfa::dead) return std::nullopt;
    if (dfa.boundary(at.first)) {
      if (dfa.closing(next)) {
        if (at.second < node.units.min) return std::nullopt;
      } else {
        if (at.second >= node.units.max) return std::nullopt;
        at.second = capped(node.units, at.second + 1);
      }
    }
    return LexemeState{next, at.second};
  }

  // A lexeme without a closing transition must have its units when it ends.
  static bool accepts(const Node::Lexeme& node, LexemeState at) {
    return node.dfa->accepting(at.first) &&
           (node.dfa->closing(at.first) || at.second >= node.units.min);
  }

  static bool completes(const Node::Lexeme& node, LexemeState from) {
    std::set<LexemeState> seen{from};
    std::vector<LexemeState> work{from};
    while (!work.empty()) {
      const LexemeState at = work.back();
      work.pop_back();
      if (accepts(node, at)) return true;
      std::set<text::Dfa::State> tried;
      for (unsigned b = 0; b < 256; ++b) {
        const auto byte = static_cast<std::uint8_t>(b);
        if (!tried.insert(node.dfa->next(at.first, byte)).second) continue;
        if (const auto next = step(node, at, byte); next && seen.insert(*next).second) {
          work.push_back(*next);
        }
      }
    }
    return false;
  }

  Result lexeme(const Node::Lexeme& node, std::size_t start) const {
    Result result;
    LexemeState state{0, 0};
    if (accepts(node, state)) result.ends.insert(start);
    for (std::size_t i = start; i < text_.size(); ++i) {
      const auto next = step(node, state, static_cast<std::uint8_t>(text_[i]));
      if (!next) return result;
      state = *next;
      if (accepts(node, state)) result.ends.insert(i + 1);
    }
    result.is_prefix = completes(node, state);
    return result;
  }

  // The literals of a trie with their indices.
  static std::vector<std::pair<std::string, std::uint32_t>> literals(const core::ByteTrie& trie) {
    std::vector<std::pair<std::string, std::uint32_t>> result;
    std::vector<std::pair<std::uint32_t, std::string>> work{{0, ""}};
    while (!work.empty()) {
      const auto [position, text] = work.back();
      work.pop_back();
      if (!trie.values(position).empty()) result.emplace_back(text, trie.values(position).front());
      const auto [first, last] = trie.children(position);
      for (auto child = first; child < last; ++child) {
        work.emplace_back(child, text + static_cast<char>(trie.label(child)));
      }
    }
    return result;
  }

  Result prefixed(std::string_view bytes, NodeId continuation, std::size_t start) {
    Result result;
    if (!live_[continuation.index()]) return result;
    const Result head = literal(bytes, start);
    for (const std::size_t from : head.ends) add(result, at(continuation, from));
    result.is_prefix |= head.is_prefix;
    return result;
  }

  Result trie(const Node::Trie& node, std::size_t start) {
    Result result;
    for (const auto& [text, index] : literals(*node.literals)) {
      add(result, prefixed(text, node.children[index], start));
    }
    return result;
  }

  // The name of a key: for a string, the characters after the quote in any spelling; for another
  // key, its bytes.
  struct Name {
    std::string text;
    std::string rest{};  // for a string: the part of the next character that has been read
    bool ended = false;  // for a string: the closing quote has been read, and nothing after it
  };
  static Name name_of(const Node::Members& node, std::string_view key) {
    if (!node.strings || key.empty()) return {std::string(key)};
    Name name{};
    std::size_t i = 1;
    while (i < key.size()) {
      if (key[i] == key[0]) {
        name.ended = i + 1 == key.size();
        name.rest  = name.ended ? "" : key.substr(i);
        return name;
      }
      std::size_t length = 1;
      char32_t c         = 0;
      while (i + length <= key.size() && !character(key.substr(i, length), *node.strings, c)) {
        ++length;
      }
      if (i + length > key.size()) break;
      text::append_utf8(name.text, c);
      i += length;
    }
    name.rest = key.substr(std::min(i, key.size()));
    return name;
  }
  // Whether the bytes are one whole character of a string literal, and which.
  static bool character(std::string_view bytes, text::ValueSyntax syntax, char32_t& c) {
    if (bytes[0] != '\\') {
      const std::u32string points = text::decode_utf8(bytes);
      c                           = points[0];
      return points.size() == 1 && (c != 0xFFFD || bytes == "\xEF\xBF\xBD");
    }
    const bool python            = syntax == text::ValueSyntax::python;
    const std::string_view kinds = python ? "\\'\"abfnrtv" : "\"\\/bfnrt";
    const std::string_view plain = python ? "\\'\"\a\b\f\n\r\t\v" : "\"\\/\b\f\n\r\t";
    if (bytes.size() == 2 && kinds.find(bytes[1]) != std::string_view::npos) {
      c = static_cast<unsigned char>(plain[kinds.find(bytes[1])]);
      return true;
    }
    const auto number = [&](std::size_t from, std::size_t digits) {
      return static_cast<char32_t>(
          std::stoul(std::string(bytes.substr(from, digits)), nullptr, 16));
    };
    const std::size_t wanted = bytes.size() < 2  ? 0
                               : bytes[1] == 'x' ? 4
                               : bytes[1] == 'u' ? 6
                               : bytes[1] == 'U' ? 10
                                                 : 0;
    if (bytes.size() == 12 && !python) {
      c = 0x10000 + (number(2, 4) - 0xD800) * 0x400 + number(8, 4) - 0xDC00;
      return true;
    }
    if (wanted == 0 || bytes.size() != wanted) return false;
    c = number(2, wanted - 2);
    return python || c < 0xD800 || c > 0xDFFF;
  }
  // Whether the bytes may begin a spelling of a character.
  static bool begins(std::string_view bytes, char32_t c, text::ValueSyntax syntax) {
    const bool python = syntax == text::ValueSyntax::python;
    std::vector<std::string> spellings(1);
    text::append_utf8(spellings[0], c);
    for (const char letter : std::string("\"'\\/abfnrtv")) {
      char32_t meant = 0;
      const std::string one{'\\', letter};
      if (character(one, syntax, meant) && meant == c) spellings.push_back(one);
    }
    const auto number = [&](const char* format, char32_t value) {
      char text[16];
      std::snprintf(text, sizeof text, format, static_cast<unsigned>(value));
      return std::string(text);
    };
    if (python && c < 0x100) spellings.push_back(number("\\x%02x", c));
    if (c < 0x10000) spellings.push_back(number("\\u%04x", c));
    if (python) spellings.push_back(number("\\U%08x", c));
    if (c >= 0x10000 && !python) {
      spellings.push_back(number("\\u%04x", 0xD800 + ((c - 0x10000) >> 10)) +
                          number("\\u%04x", 0xDC00 + (c & 0x3FF)));
    }
    // The letter after the backslash is case-sensitive; hexadecimal digits are not.
    std::string small(bytes);
    for (std::size_t i = 2; small[0] == '\\' && i < small.size(); ++i) {
      if (small[i] >= 'A' && small[i] <= 'F') small[i] += 'a' - 'A';
    }
    return std::any_of(spellings.begin(), spellings.end(),
                       [&](const std::string& one) { return one.starts_with(small); });
  }

  // A member whose key is a literal, then its value.
  Result member(const Node::Members& node, const std::string& literal, NodeId value,
                std::size_t start) {
    if (!node.strings) return prefixed(literal, value, start);
    Result result;
    if (!live_[value.index()]) return result;
    const std::string wanted = name_of(node, literal).text;
    for (std::size_t end = start; end <= text_.size(); ++end) {
      const std::string_view key = text_.substr(start, end - start);
      if (!key.empty() && key[0] != literal[0]) break;
      const Name name = name_of(node, key);
      if (!wanted.starts_with(name.text)) break;
      if (name.ended) {
        if (name.text == wanted) add(result, at(value, end));
        break;
      }
      if (end < text_.size()) continue;
      const std::u32string left =
          text::decode_utf8(std::string_view(wanted).substr(name.text.size()));
      result.is_prefix =
          name.rest.empty() || (!left.empty() && begins(name.rest, left[0], *node.strings));
    }
    return result;
  }

  // A member whose key is not a literal, then its value, for the name of each key that may end
  // within the text. The result without a name says whether a longer key is possible.
  std::vector<std::pair<std::string, Result>> other(const Node::Members& node,
                                                    const KeyedSet::OtherKeys& others,
                                                    std::size_t start,
                                                    const std::set<std::string>& written) {
    std::vector<std::pair<std::string, Result>> results;
    if (!live_[others.value.index()]) return results;
    std::set<std::string> shadows = written;
    for (const auto& [text, i] : literals(*node.literals)) shadows.insert(name_of(node, text).text);
    const text::Dfa& dfa   = *others.key;
    text::Dfa::State state = 0;
    for (std::size_t i = start; i <= text_.size(); ++i) {
      const std::string key(text_.substr(start, i - start));
      const std::string name = name_of(node, key).text;
      if (i > start && dfa.accepting(state) && shadows.count(name) == 0) {
        results.emplace_back(name, at(others.value, i));
      }
      if (i == text_.size()) {
        results.push_back({"", {{}, ends_elsewhere(node, dfa, state, key, shadows)}});
        break;
      }
      state = dfa.next(state, static_cast<std::uint8_t>(text_[i]));
      if (state == text::Dfa::dead) break;
    }
    return results;
  }
  // Whether some key longer than `key` is not a shadow. Names longer than every shadow are not, so
  // it is enough to try one byte more than the longest.
  static bool ends_elsewhere(const Node::Members& node, const text::Dfa& dfa,
                             text::Dfa::State state, const std::string& key,
                             const std::set<std::string>& shadows) {
    std::size_t longest = 0;
    for (const std::string& shadow : shadows) longest = std::max(longest, shadow.size());
    std::vector<std::pair<text::Dfa::State, std::string>> work{{state, key}};
    while (!work.empty()) {
      const auto [at, text] = work.back();
      work.pop_back();
      // A trimmed automaton can always end.
      if (name_of(node, text).text.size() > longest) return true;
      for (unsigned b = 0; b < 256; ++b) {
        const text::Dfa::State next = dfa.next(at, static_cast<std::uint8_t>(b));
        if (next == text::Dfa::dead) continue;
        const std::string more = text + static_cast<char>(b);
        if (dfa.accepting(next) && shadows.count(name_of(node, more).text) == 0) return true;
        work.emplace_back(next, more);
      }
    }
    return false;
  }

  Result keyed_set(const Node::Members& node, std::size_t start) {
    using Members           = std::vector<char>;
    const std::size_t count = node.children.size();
    const auto keys         = literals(*node.literals);
    // What a set of members lacks before it may end.
    const auto missing = [&](const Members& seen) {
      Members needed(count);
      for (std::size_t i = 0; i < count; ++i)
        needed[i] = (node.required[i / 64] >> (i % 64) & 1) != 0;
      for (std::size_t round = 0; round <= count; ++round) {
        for (const auto& [a, b] : node.dependent) {
          if (needed[a] || seen[a]) needed[b] = true;
        }
      }
      for (std::size_t i = 0; i < count; ++i) needed[i] = needed[i] && !seen[i];
      return needed;
    };
    struct Set {
      Members seen;
      std::size_t passed = 0, written = 0;  // of the documented order; of all members, capped
      std::set<std::string> others{};       // names of other members if they must not repeat
      bool operator<(const Set& other) const {
        return std::tie(seen, passed, written, others) <
               std::tie(other.seen, other.passed, other.written, other.others);
      }
    };
    // Whether the least number needs more keys than those written and those still required.
    const auto owes = [&](const Set& set) {
      const Members lacking = missing(set.seen);
      const auto sure       = std::count(lacking.begin(), lacking.end(), 1);
      return set.written + static_cast<std::size_t>(sure) < node.count.min;
    };
    const std::size_t cap  = text_.size() + count + node.count.min + 2;
    const auto is_complete = [&](const Set& set) {
      const Members lacking = missing(set.seen);
      return set.written >= node.count.min && set.written <= node.count.max &&
             std::find(lacking.begin(), lacking.end(), 1) == lacking.end();
    };
    // The sets after one more member: by literal, or -1 for another key.
    const auto next = [&](const Set& set) {
      std::vector<std::pair<int, Set>> result;
      std::size_t leading = 0;
      while (leading < node.leading && set.seen[leading]) ++leading;
      for (std::size_t i = 0; i < count; ++i) {
        if (set.seen[i] || !live_[node.children[i].index()]) continue;
        if (leading < node.leading && i != leading) continue;
        if (node.documented_order && i < set.passed) continue;
        Set then     = set;
        then.seen[i] = true;
        then.passed  = i + 1;
        then.written = std::min(cap, set.written + 1);
        result.emplace_back(static_cast<int>(i), then);
      }
      if (leading == node.leading) {
        Set then     = set;
        then.passed  = count;
        then.written = std::min(cap, set.written + 1);
        result.emplace_back(-1, then);
      }
      return result;
    };
    const bool open =
        std::any_of(node.others.begin(), node.others.end(), [&](const KeyedSet::OtherKeys& others) {
          if (others.key->empty() || !live_[others.value.index()]) return false;
          std::set<std::string> shadows;
          for (const auto& [text, i] : keys) shadows.insert(name_of(node, text).text);
          return ends_elsewhere(node, *others.key, 0, "", shadows);
        });
    // Whether a set can become complete at all, found by trying.
    std::map<Set, bool> known;
    const auto can_complete = [&](const auto& self, const Set& set) -> bool {
      if (set.written > node.count.max) return false;
      if (is_complete(set)) return true;
      if (set.written >= cap) return false;
      if (const auto found = known.find(set); found != known.end()) return found->second;
      bool can = false;
      for (const auto& [member, then] : next(set)) {
        can = can || ((member >= 0 || open) && self(self, then));
      }
      return known[set] = can;
    };
    Result result;
    std::set<std::tuple<Set, std::size_t, bool>> met;
    std::vector<std::tuple<Set, std::size_t, bool>> work;
    const auto visit = [&](const Set& set, std::size_t position, bool first) {
      if (met.emplace(set, position, first).second) work.emplace_back(set, position, first);
    };
    const Set none{Members(count), 0, 0, {}};
    visit(none, start, true);
    if (is_complete(none)) result.ends.insert(start);
    while (!work.empty()) {
      const auto [set, position, first] = work.back();
      work.pop_back();
      auto options = next(set);
      std::erase_if(options, [&](const auto& option) {
        return (option.first < 0 && !open) || !can_complete(can_complete, option.second);
      });
      if (options.empty()) continue;
      std::set<std::size_t> starts{position};
      if (!first) {
        const Result& separator = at(node.separator, position);
        result.is_prefix |= separator.is_prefix;
        starts = separator.ends;
      }
      const auto visit_ends = [&](const Set& then, std::size_t from, const Result& one) {
        result.is_prefix |= one.is_prefix;
        for (const std::size_t end : one.ends) {
          if (is_complete(then)) result.ends.insert(end);
          if (end > from) visit(then, end, false);
        }
      };
      for (const auto& [which, then] : options) {
        for (const std::size_t from : starts) {
          for (const auto& [text, i] : keys) {
            if (static_cast<int>(i) != which) continue;
            visit_ends(then, from, member(node, text, node.children[i], from));
          }
          if (which >= 0) continue;
          for (const KeyedSet::OtherKeys& others : node.others) {
            const bool counts = node.distinct || owes(set);
            for (const auto& [name, one] :
                 other(node, others, from, counts ? set.others : std::set<std::string>())) {
              Set after = then;
              if (counts) after.others.insert(name);
              visit_ends(after, from, one);
            }
          }
        }
      }
    }
    return result;
  }

  const Grammar& grammar_;
  std::string_view text_;
  std::vector<char> live_;
  std::map<std::pair<NodeId, std::size_t>, Result> known_;
};

[[nodiscard]] inline bool matches(const Grammar& grammar, NodeId root, std::string_view text) {
  return Matcher(grammar, text).at(root, 0).ends.count(text.size()) != 0;
}

[[nodiscard]] inline bool is_prefix(const Grammar& grammar, NodeId root, std::string_view text) {
  return Matcher(grammar, text).at(root, 0).is_prefix;
}

}  // namespace tooldecode::slow
