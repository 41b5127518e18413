/// \file
/// Patterns: ECMA-262 regular expressions, as JSON Schema uses them, to automata over code points.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/code_points.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/text_dfa.hpp>

namespace tooldecode {

namespace detail {

// Parses a pattern straight into a Thompson automaton.
class PatternNfa {
 public:
  enum class Edge : std::uint8_t { none, epsilon, set, begin, end };
  struct Node {
    Edge edge = Edge::none;
    CodePointSet set;
    std::vector<std::uint32_t> next;
  };

  explicit PatternNfa(std::string_view pattern) : text_(decode_utf8(pattern)) {
    const Fragment all = alternatives();
    if (at_ < text_.size()) fail("unmatched ')'");
    start_ = all.first;
    end_   = all.last;
  }

  std::vector<Node> nodes;
  [[nodiscard]] std::uint32_t start() const noexcept { return start_; }
  [[nodiscard]] std::uint32_t end() const noexcept { return end_; }

 private:
  struct Fragment {
    std::uint32_t first, last;
  };
  static constexpr std::size_t most_nodes    = 20'000;
  static constexpr std::uint32_t most_nested = 200;

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(Errc::malformed_pattern, "character " + std::to_string(at_), what);
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(Errc::unsupported_pattern, "character " + std::to_string(at_), what);
  }
  std::uint32_t node(Edge edge = Edge::epsilon, CodePointSet set = {}) {
    if (nodes.size() >= most_nodes) {
      throw Error(Errc::limit_exceeded, "", "a pattern with too many repetitions");
    }
    nodes.push_back({edge, std::move(set), {}});
    return static_cast<std::uint32_t>(nodes.size() - 1);
  }
  void link(std::uint32_t from, std::uint32_t to) { nodes[from].next.push_back(to); }
  Fragment single(Edge edge, CodePointSet set = {}) {
    const std::uint32_t first = node(edge, std::move(set));
    const std::uint32_t last  = node();
    link(first, last);
    return {first, last};
  }
  Fragment nothing_read() {
    const std::uint32_t only = node();
    return {only, only};
  }
  [[nodiscard]] bool has(char32_t c) const { return at_ < text_.size() && text_[at_] == c; }
  bool take(char32_t c) {
    if (!has(c)) return false;
    ++at_;
    return true;
  }
  char32_t any(const char* missing) {
    if (at_ >= text_.size()) fail(missing);
    return text_[at_++];
  }

  Fragment alternatives() {
    if (++depth_ > most_nested) fail("groups are nested too deeply");
    Fragment first = terms();
    if (has('|')) {
      const Fragment all{node(), node()};
      const auto add = [&](const Fragment& one) {
        link(all.first, one.first), link(one.last, all.last);
      };
      add(first);
      while (take('|')) add(terms());
      first = all;
    }
    --depth_;
    return first;
  }
  Fragment terms() {
    Fragment all = nothing_read();
    while (at_ < text_.size() && !has('|') && !has(')')) {
      const Fragment next = term();
      link(all.last, next.first);
      all.last = next.last;
    }
    return all;
  }
  Fragment term() {
    const std::size_t begin = at_;
    const Fragment one      = atom();
    const auto count        = quantifier();
    if (!count) return one;
    take('?');  // a lazy quantifier matches the same texts
    const std::size_t after = at_;
    // Counts are written out; each copy parses the atom again.
    Fragment all      = nothing_read();
    const auto append = [&](const Fragment& next) {
      link(all.last, next.first);
      all.last = next.last;
    };
    const auto copy = [&] {
      at_               = begin;
      const Fragment it = atom();
      at_               = after;
      return it;
    };
    for (std::uint32_t i = 0; i < count->min; ++i) append(i == 0 ? one : copy());
    if (count->max == Occurrences::unbounded) {
      const Fragment loop = count->min == 0 ? one : copy();
      const Fragment star{node(), node()};
      link(star.first, loop.first), link(loop.last, star.first), link(star.first, star.last);
      append(star);
    } else {
      for (std::uint32_t i = count->min; i < count->max; ++i) {
        const Fragment item = i == 0 ? one : copy();
        const Fragment maybe{node(), node()};
        link(maybe.first, item.first), link(item.last, maybe.last), link(maybe.first, maybe.last);
        append(maybe);
      }
    }
    return all;
  }
  std::optional<Occurrences> quantifier() {
    if (take('*')) return Occurrences{};
    if (take('+')) return Occurrences{1};
    if (take('?')) return Occurrences{0, 1};
    if (!has('{')) return std::nullopt;
    const std::size_t begin = at_++;
    const auto number       = [&]() -> std::optional<std::uint32_t> {
      std::optional<std::uint32_t> value;
      while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
        value = std::min<std::uint32_t>(value.value_or(0) * 10 + (text_[at_++] - '0'), 100'000);
      }
      return value;
    };
    const auto min = number();
    auto max       = min;
    if (min && take(',')) max = has('}') ? std::optional(Occurrences::unbounded) : number();
    if (!min || !max || !take('}')) {
      at_ = begin;
      fail("'{' starts no quantifier");
    }
    if (*min > *max) fail("a quantifier whose minimum exceeds its maximum");
    return Occurrences{*min, *max};
  }
  Fragment atom() {
    const char32_t c = any("an atom is missing");
    switch (c) {
      case '(':
        return group();
      case '[':
        return single(Edge::set, bracket());
      case '.':
        return single(Edge::set, ~CodePointSet{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}});
      case '^':
        return single(Edge::begin);
      case '$':
        return single(Edge::end);
      case '*':
      case '+':
      case '?':
        fail("a quantifier follows nothing");
      case '{':
      case '}':
      case ']':
        --at_;
        fail("a bracket stands alone");
      case '\\':
        if (has('b') || has('B')) refuse("word boundaries are not supported");
        return single(Edge::set, escape());
      default:
        return single(Edge::set, {{c, c}});
    }
  }
  Fragment group() {
    if (take('?')) {
      if (take('<')) {
        if (has('=') || has('!')) refuse("look-behind is not supported");
        while (!take('>')) (void)any("'(?<' needs a '>'");
      } else if (!take(':')) {
        refuse("look-ahead and flags are not supported");
      }
    }
    const Fragment inside = alternatives();
    if (!take(')')) fail("a group is not closed");
    return inside;
  }

  static CodePointSet word() { return {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}; }
  static CodePointSet space() {
    return {{9, 13},          {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680},
            {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F},
            {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
  }
  char32_t hex(int digits) {
    char32_t value = 0;
    for (int i = 0; i < digits; ++i) {
      const char32_t c = any("hexadecimal digits are missing");
      const char32_t d = c >= '0' && c <= '9'   ? c - '0'
                         : c >= 'a' && c <= 'f' ? c - 'a' + 10
                         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                : 16;
      if (d == 16) fail("a hexadecimal digit is missing");
      value = value * 16 + d;
    }
    return value;
  }
  // What follows a backslash.
  CodePointSet escape() {
    const char32_t c = any("a backslash ends the pattern");
    const auto one   = [](char32_t code) { return CodePointSet{{code, code}}; };
    switch (c) {
      case 'd':
        return {{'0', '9'}};
      case 'D':
        return ~CodePointSet{{'0', '9'}};
      case 'w':
        return word();
      case 'W':
        return ~word();
      case 's':
        return space();
      case 'S':
        return ~space();
      case 't':
        return one('\t');
      case 'n':
        return one('\n');
      case 'r':
        return one('\r');
      case 'f':
        return one('\f');
      case 'v':
        return one('\v');
      case '0':
        return one(0);
      case 'x':
        return one(hex(2));
      case 'c': {
        const char32_t letter = any("'\\c' needs a letter");
        return one(letter & 0x1F);
      }
      case 'u': {
        if (take('{')) {
          char32_t value = 0;
          while (!take('}')) {
            value = value * 16 + hex(1);
            if (value > CodePointSet::last_code_point) fail("a code point past U+10FFFF");
          }
          return one(value);
        }
        const char32_t high = hex(4);
        if (high >= 0xD800 && high <= 0xDBFF && has('\\') && at_ + 1 < text_.size() &&
            text_[at_ + 1] == 'u') {
          at_ += 2;
          return one(0x10000 + ((high - 0xD800) << 10) + (hex(4) - 0xDC00));
        }
        return one(high);
      }
      case 'p':
      case 'P':
        refuse("Unicode properties are not supported");
      case 'k':
        refuse("back-references are not supported");
      default:
        break;
    }
    if (c >= '1' && c <= '9') refuse("back-references are not supported");
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) fail("an unknown escape");
    return one(c);
  }
  CodePointSet bracket() {
    const bool negated = take('^');
    CodePointSet all;
    while (!take(']')) {
      const CodePointSet first = member();
      if (has('-') && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        const CodePointSet last = member();
        const auto code         = [&](const CodePointSet& set) {
          if (set.ranges().size() != 1 || set.ranges()[0].first != set.ranges()[0].second) {
            fail("a range between classes");
          }
          return set.ranges()[0].first;
        };
        if (code(first) > code(last)) fail("a range whose ends are out of order");
        all = all | CodePointSet{{code(first), code(last)}};
      } else {
        all = all | first;
      }
    }
    return negated ? ~all : all;
  }
  CodePointSet member() {
    const char32_t c = any("a class is not closed");
    if (c != '\\') return {{c, c}};
    if (take('b')) return {{'\b', '\b'}};
    if (take('-')) return {{'-', '-'}};
    return escape();
  }

  std::u32string text_;
  std::size_t at_      = 0;
  std::uint32_t depth_ = 0;
  std::uint32_t start_ = 0, end_ = 0;
};

}  // namespace detail

/// The texts in which a pattern matches somewhere, as JSON Schema means it: anchors are the
/// pattern's own affair.
///
/// Supported: alternation, groups, classes and their escapes, quantifiers greedy or lazy, `^`, `$`.
/// A pattern that is not regular, and Unicode properties and word boundaries, are refused.
///
/// \par Complexity  subset construction: exponential at worst, limited to 4,000 states
/// \par Threads     pure
/// \par Errors      Error{malformed_pattern, unsupported_pattern} with the character,
///                  Error{limit_exceeded}
/// \par Source      ECMA-262, section 22.2; Thompson 1968; JSON Schema 2020-12, section 6.3.3
[[nodiscard]] inline TextDfa compile_pattern(std::string_view pattern) {
  using detail::PatternNfa;
  const PatternNfa nfa(pattern);
  // Classes: the coarsest partition in which each set of the pattern is a union.
  std::vector<char32_t> cuts{0, CodePointSet::last_code_point + 1};
  for (const auto& node : nfa.nodes) {
    for (const auto& [first, last] : node.set.ranges())
      cuts.push_back(first), cuts.push_back(last + 1);
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  std::map<std::vector<char>, std::vector<CodePointSet::Range>> parts;
  std::vector<std::size_t> readers;
  for (std::size_t n = 0; n < nfa.nodes.size(); ++n) {
    if (nfa.nodes[n].edge == PatternNfa::Edge::set) readers.push_back(n);
  }
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    std::vector<char> members;
    for (const std::size_t n : readers)
      members.push_back(nfa.nodes[n].set.contains(cuts[i]) ? 1 : 0);
    parts[std::move(members)].emplace_back(cuts[i], cuts[i + 1] - 1);
  }
  std::vector<CodePointSet> classes;
  std::vector<std::vector<char>> reads;  // [classes][nodes]
  for (auto& [members, ranges] : parts) {
    CodePointSet set(std::move(ranges));
    if (set.empty()) continue;
    classes.push_back(std::move(set));
    std::vector<char> row(nfa.nodes.size(), 0);
    for (std::size_t r = 0; r < readers.size(); ++r) row[readers[r]] = members[r];
    reads.push_back(std::move(row));
  }
  // A position is a node, or a node after `$`, where nothing more may be read; one number past them
  // stands for "matched already": any text may follow.
  const auto count   = static_cast<std::uint32_t>(nfa.nodes.size());
  const auto matched = 2 * count;
  const auto close   = [&](std::vector<std::uint32_t> work, bool at_begin) {
    std::vector<char> in(matched + 1, 0);
    std::vector<std::uint32_t> all;
    const auto add = [&](std::uint32_t position) {
      if (in[position]) return;
      in[position] = 1;
      all.push_back(position);
    };
    for (const std::uint32_t position : work) add(position);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i] == matched) continue;
      const bool ended      = all[i] >= count;
      const std::uint32_t n = ended ? all[i] - count : all[i];
      const auto& node      = nfa.nodes[n];
      const bool is_past    = n == nfa.end() && !ended;
      if (is_past) add(matched);
      if (node.edge == PatternNfa::Edge::set ||
          (node.edge == PatternNfa::Edge::begin && !at_begin)) {
        continue;
      }
      const bool ends = ended || node.edge == PatternNfa::Edge::end;
      for (const std::uint32_t next : node.next) add(ends ? next + count : next);
    }
    if (in[matched]) return std::vector<std::uint32_t>{matched};
    std::sort(all.begin(), all.end());
    return all;
  };
  std::vector<std::vector<std::uint32_t>> order{close({nfa.start()}, true)};
  std::map<std::vector<std::uint32_t>, TextDfa::State> number;
  // The first state is unlike an equal set met later: only there does `^` hold.
  std::vector<TextDfa::Row> rows;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::vector<std::uint32_t> here = order[i];
    TextDfa::Row row{std::vector<TextDfa::State>(classes.size(), TextDfa::dead), false};
    const bool done = here == std::vector<std::uint32_t>{matched};
    row.accepting   = done || std::binary_search(here.begin(), here.end(), nfa.end() + count);
    for (std::size_t c = 0; c < classes.size(); ++c) {
      std::vector<std::uint32_t> next{nfa.start()};  // a match may begin at any later place
      if (done) {
        next = {matched};
      } else {
        for (const std::uint32_t position : here) {
          if (position >= count || !reads[c][position]) continue;
          next.insert(next.end(), nfa.nodes[position].next.begin(), nfa.nodes[position].next.end());
        }
        next = close(std::move(next), false);
      }
      const auto [entry, fresh] = number.emplace(next, static_cast<TextDfa::State>(order.size()));
      if (fresh) order.push_back(next);
      row.next[c] = entry->second;
      if (order.size() > TextDfa::most_states) {
        throw Error(Errc::limit_exceeded, "", "a pattern that needs too many states");
      }
    }
    rows.push_back(std::move(row));
  }
  return TextDfa(std::move(classes), std::move(rows));
}

}  // namespace tooldecode
