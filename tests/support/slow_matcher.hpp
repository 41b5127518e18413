/// \file
/// slow::matches and slow::is_prefix: what a Grammar accepts, by sets of end positions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <tooldecode/grammar/grammar.hpp>

namespace tooldecode::slow {

/// Matches one text against the nodes of a grammar, by the definition of each kind.
///
/// For a node and a start it gives every position where a match may end, and whether the rest of
/// the text is a prefix of a match (the whole match included). Left recursion is not supported.
class Matcher {
 public:
  Matcher(const Grammar& grammar, std::string_view text)
      : grammar_(grammar), text_(text), live_(grammar.satisfiable()) {}

  /// Where a match of the node that starts at `start` may end, and whether it may go on past the
  /// text.
  struct Result {
    std::set<std::size_t> ends;
    bool is_prefix = false;
  };

  const Result& at(NodeId id, std::size_t start) {
    const auto key = std::pair{id, start};
    if (const auto known = known_.find(key); known != known_.end()) return known->second;
    Result result = live_[id] ? compute(id, start) : Result{};
    if (result.ends.count(text_.size()) != 0) result.is_prefix = true;
    return known_.emplace(key, std::move(result)).first->second;
  }

 private:
  using Kind = Grammar::Kind;

  Result compute(NodeId id, std::size_t start) {
    const Grammar::Node& node = grammar_[id];
    switch (node.kind) {
      case Kind::nothing:
        return {};
      case Kind::empty:
        return {{start}, false};
      case Kind::literal:
        return literal(node.text, start);
      case Kind::sequence:
        return sequence(node.children, start);
      case Kind::choice:
        return choice(node.children, start);
      case Kind::repeat:
        return repeat(node, start);
      case Kind::lexeme:
        return lexeme(node, start);
      case Kind::trie:
        return trie(node, start);
      case Kind::keyed_set:
        return keyed_set(node, start);
      case Kind::reference:
      case Kind::tag:
        return at(node.children[0], start);
    }
    return {};
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

  Result repeat(const Grammar::Node& node, std::size_t start) {
    Result result;
    if (node.occurrences.min == 0) result.ends.insert(start);
    std::set<std::size_t> starts{start};
    for (std::uint32_t count = 1; count <= node.occurrences.max && !starts.empty(); ++count) {
      std::set<std::size_t> ends;
      for (const std::size_t from : starts) {
        const Result& one = at(node.children[0], from);
        ends.insert(one.ends.begin(), one.ends.end());
        // An item may begin here; what is still missing can be written if a separator can.
        const bool completes = count >= node.occurrences.min || live_[node.separator];
        result.is_prefix |= one.is_prefix && completes;
      }
      if (count >= node.occurrences.min) result.ends.insert(ends.begin(), ends.end());
      starts.clear();
      if (count == node.occurrences.max) break;
      for (const std::size_t from : ends) {
        const Result& one = at(node.separator, from);
        result.is_prefix |= one.is_prefix && live_[node.children[0]];
        starts.insert(one.ends.begin(), one.ends.end());
      }
      // Items are not empty, so a text has fewer of them than bytes.
      if (count > text_.size() + 1) break;
    }
    return result;
  }

  // One unit more or less past the bounds is all that a count can tell.
  static std::uint32_t capped(const Occurrences& units, std::uint32_t count) {
    const std::uint32_t most = units.max == Occurrences::unbounded ? units.min : units.max + 1;
    return std::min(count, most);
  }

  using LexemeState = std::pair<Dfa::State, std::uint32_t>;

  static std::optional<LexemeState> step(const Grammar::Node& node, LexemeState at,
                                         std::uint8_t byte) {
    const Dfa& dfa        = *node.dfa;
    const Dfa::State next = dfa.next(at.first, byte);
    if (next == Dfa::dead) return std::nullopt;
    if (dfa.boundary(at.first)) {
      if (dfa.closing(next)) {
        if (at.second < node.occurrences.min) return std::nullopt;
      } else {
        if (at.second >= node.occurrences.max) return std::nullopt;
        at.second = capped(node.occurrences, at.second + 1);
      }
    }
    return LexemeState{next, at.second};
  }

  // A lexeme without a closing transition must have its units by the time that it ends.
  static bool accepts(const Grammar::Node& node, LexemeState at) {
    return node.dfa->accepting(at.first) &&
           (node.dfa->closing(at.first) || at.second >= node.occurrences.min);
  }

  static bool completes(const Grammar::Node& node, LexemeState from) {
    std::set<LexemeState> seen{from};
    std::vector<LexemeState> work{from};
    while (!work.empty()) {
      const LexemeState at = work.back();
      work.pop_back();
      if (accepts(node, at)) return true;
      std::set<Dfa::State> tried;
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

  Result lexeme(const Grammar::Node& node, std::size_t start) const {
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

  // Every literal of a trie with its index.
  static std::vector<std::pair<std::string, std::uint32_t>> literals(const Grammar::Trie& trie) {
    std::vector<std::pair<std::string, std::uint32_t>> result;
    std::vector<std::pair<std::uint32_t, std::string>> work{{0, ""}};
    while (!work.empty()) {
      const std::uint32_t position = work.back().first;
      const std::string text       = work.back().second;
      work.pop_back();
      if (trie.positions[position].literal) {
        result.emplace_back(text, *trie.positions[position].literal);
      }
      trie.positions[position].next.for_each([&](std::uint8_t byte) {
        work.emplace_back(trie.child(position, byte), text + static_cast<char>(byte));
      });
    }
    return result;
  }

  // A literal, then a node.
  Result prefixed(std::string_view bytes, NodeId continuation, std::size_t start) {
    Result result;
    if (!live_[continuation]) return result;
    const Result head = literal(bytes, start);
    for (const std::size_t from : head.ends) add(result, at(continuation, from));
    result.is_prefix |= head.is_prefix;
    return result;
  }

  Result trie(const Grammar::Node& node, std::size_t start) {
    Result result;
    for (const auto& [text, index] : literals(node.trie)) {
      add(result, prefixed(text, node.children[index], start));
    }
    return result;
  }

  Result keyed_set(const Grammar::Node& node, std::size_t start) {
    const auto keys     = literals(node.trie);
    const auto required = [&](std::size_t i) {
      return (node.required[i / 64] >> (i % 64) & 1) != 0;
    };
    using Members      = std::vector<bool>;
    const auto missing = [&](const Members& seen, std::size_t before) {
      for (std::size_t i = 0; i < before; ++i) {
        if (required(i) && !seen[i]) return true;
      }
      return false;
    };
    Result result;
    const std::size_t count = node.children.size();
    // (members written, further members allowed only, position, at the start of the set)
    std::set<std::tuple<Members, bool, std::size_t, bool>> seen_states;
    std::vector<std::tuple<Members, bool, std::size_t, bool>> work;
    const auto visit = [&](Members seen, bool tail, std::size_t position, bool first) {
      const auto state = std::tuple{std::move(seen), tail, position, first};
      if (seen_states.insert(state).second) work.push_back(state);
    };
    visit(Members(count), false, start, true);
    if (!missing(Members(count), count)) result.ends.insert(start);
    while (!work.empty()) {
      const auto [seen, tail, position, first] = work.back();
      work.pop_back();
      std::set<std::size_t> starts{position};
      std::vector<std::pair<Members, NodeId>> options;
      std::vector<std::string> texts;
      std::size_t leading = 0;  // members of the leading ones that have been written, in order
      const auto leads    = [&](std::size_t i) {
        return i / 64 < node.leading.size() && (node.leading[i / 64] >> (i % 64) & 1) != 0;
      };
      while (leads(leading) && seen[leading]) ++leading;
      for (const auto& [text, i] : keys) {
        bool available = !seen[i] && !tail && live_[node.children[i]];
        available      = available && (!leads(leading) || i == leading);
        if (node.documented_order) {
          available = available && !missing(seen, i);
          for (std::size_t j = i; j < count; ++j) available = available && !seen[j];
        }
        if (!available) continue;
        options.emplace_back(seen, node.children[i]);
        options.back().first[i] = true;
        texts.push_back(text);
      }
      const bool adds = node.additional && live_[*node.additional] && !leads(leading) &&
                        !(node.documented_order && missing(seen, count));
      if (adds) options.emplace_back(seen, *node.additional), texts.emplace_back();
      if (!first) {
        starts.clear();
        if (options.empty()) continue;
        const Result& separator = at(node.separator, position);
        result.is_prefix |= separator.is_prefix;
        starts = separator.ends;
      }
      for (std::size_t o = 0; o < options.size(); ++o) {
        const auto& [after, value] = options[o];
        if (missing(after, count) && !live_[node.separator]) continue;
        for (const std::size_t from : starts) {
          const Result one = prefixed(texts[o], value, from);
          result.is_prefix |= one.is_prefix;
          for (const std::size_t end : one.ends) {
            if (!missing(after, count)) result.ends.insert(end);
            if (end == from) continue;
            const bool closes = node.documented_order && adds && o + 1 == options.size();
            visit(after, tail || closes, end, false);
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

/// Whether the whole text matches a node.
[[nodiscard]] inline bool matches(const Grammar& grammar, NodeId root, std::string_view text) {
  return Matcher(grammar, text).at(root, 0).ends.count(text.size()) != 0;
}

/// Whether the text begins some text that matches a node.
[[nodiscard]] inline bool is_prefix(const Grammar& grammar, NodeId root, std::string_view text) {
  return Matcher(grammar, text).at(root, 0).is_prefix;
}

}  // namespace tooldecode::slow
