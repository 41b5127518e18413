/// \file
/// Definitions of regex.hpp.
#pragma once

#include <algorithm>
#include <map>
#include <utility>

#include <tooldecode/text/regex.hpp>

namespace tooldecode::text::detail {

TOOLDECODE_INLINE PatternTerms::PatternTerms(const Pattern& pattern)
    : pattern_(pattern),
      classes_(partition()),
      terms_(classes_.size()),
      plain_(2 * pattern.nodes().size(), none) {}

TOOLDECODE_INLINE PatternTerms::Term PatternTerms::anywhere() {
  const Term all = terms_.all(), later = build(pattern_.root(), all, false);
  return terms_.any_of(
      {build(pattern_.root(), all, true), terms_.concat(terms_.any(), terms_.concat(all, later))});
}

TOOLDECODE_INLINE PatternTerms::Before PatternTerms::after(std::size_t letter) const {
  return has_edges_ && is_word_[letter] ? after_word : after_other;
}

TOOLDECODE_INLINE PatternTerms::Term PatternTerms::derivative(Term term, std::size_t letter,
                                                              Before before) {
  terms_.spend(1);
  const Node node = terms_[term];
  if (node.kind == Kind::set) return terms_.has(term, letter) ? terms_.empty() : terms_.nothing();
  if (node.kind == Kind::concat && terms_[node.a].kind == Kind::set) {
    return terms_.has(node.a, letter) ? node.b : terms_.nothing();
  }
  const std::size_t places = classes_.size() * (node.on_before ? 3 : 1);
  if (memo_at_.size() <= term) memo_at_.resize(terms_.size(), none);
  if (memo_at_[term] == none) {
    if (memo_.size() + places > max_memo) RegexTerms::too_large();
    memo_at_[term] = static_cast<std::uint32_t>(memo_.size());
    memo_.resize(memo_.size() + places, none);
  }
  const std::size_t place =
      memo_at_[term] + letter + (node.on_before ? before : 0) * classes_.size();
  if (memo_[place] != none) return memo_[place];
  const Descent descent(depth_);
  return memo_[place] = derive(term, letter, before);
}

TOOLDECODE_INLINE PatternTerms::Descent::Descent(std::size_t& depth) : depth_(depth) {
  if (++depth > 2000) --depth, RegexTerms::too_large();
}

TOOLDECODE_INLINE PatternTerms::Descent::~Descent() {
  --depth_;
}

TOOLDECODE_INLINE std::vector<CodePointSet> PatternTerms::partition() {
  std::vector<const CodePointSet*> sets;
  static const CodePointSet word = PatternReader::word();
  for (const CodePointSet& set : pattern_.sets()) sets.push_back(&set);
  for (const Pattern::Node& node : pattern_.nodes()) {
    if (node.kind == Pattern::Kind::edge) has_edges_ = true;
  }
  if (has_edges_) sets.push_back(&word);
  std::vector<std::pair<char32_t, std::size_t>> flips{{0, 0}};
  for (std::size_t s = 0; s < sets.size(); ++s) {
    for (const auto& [first, last] : sets[s]->ranges()) {
      flips.emplace_back(first, s), flips.emplace_back(last + 1, s);
    }
  }
  std::sort(flips.begin() + 1, flips.end());
  std::vector<std::uint64_t> members(sets.size() / 64 + 1, 0);
  std::map<std::vector<std::uint64_t>, std::vector<CodePointSet::Range>> parts;
  for (std::size_t i = 0; i < flips.size();) {
    const char32_t from = flips[i].first;
    if (i == 0) ++i;
    for (; i < flips.size() && flips[i].first == from; ++i) {
      members[flips[i].second / 64] ^= std::uint64_t{1} << (flips[i].second % 64);
    }
    const char32_t next = i < flips.size() ? flips[i].first : CodePointSet::last_code_point + 1;
    if (from < next) parts[members].emplace_back(from, next - 1);
  }
  std::vector<CodePointSet> classes;
  for (auto& [in, ranges] : parts) {
    CodePointSet set(std::move(ranges));
    if (set.empty()) continue;
    is_word_.push_back(word.contains(set.ranges()[0].first) ? 1 : 0);
    classes.push_back(std::move(set));
  }
  return classes;
}

TOOLDECODE_INLINE PatternTerms::Term PatternTerms::set_of(const CodePointSet& set) {
  RegexTerms::Bits bits(classes_.size() / 64 + 1, 0);
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    if (set.contains(classes_[c].ranges()[0].first)) bits[c / 64] |= std::uint64_t{1} << (c % 64);
  }
  return terms_.set(bits);
}

TOOLDECODE_INLINE PatternTerms::Term PatternTerms::build(Pattern::Index index, Term rest,
                                                         bool begins) {
  const Pattern::Node& node = pattern_[index];
  if (!node.has_look) return terms_.concat(plain(index, begins), rest);
  const Descent descent(depth_);
  Term made = rest;
  switch (node.kind) {
    case Pattern::Kind::sequence:
      for (std::size_t i = node.children.size(); i-- > 0;) {
        made = build(node.children[i], made, begins);
      }
      break;
    case Pattern::Kind::choice: {
      std::vector<Term> list;
      for (const Pattern::Index child : node.children) list.push_back(build(child, rest, begins));
      made = terms_.any_of(std::move(list));
      break;
    }
    case Pattern::Kind::repeat:
      if (pattern_[node.children[0]].can_empty && node.count != Occurrences{0, 1}) {
        throw Error(Errc::unsupported_pattern, "",
                    "the repetition of a look-ahead beside which nothing need be read");
      }
      made = loop(node.children[0], node.count, rest, begins);
      break;
    default: {
      const Term inside = build(node.children[0], terms_.all(), begins);
      made              = terms_.all_of({node.negated ? terms_.negation(inside) : inside, rest});
      break;
    }
  }
  return made;
}

TOOLDECODE_INLINE PatternTerms::Term PatternTerms::loop(Pattern::Index index, Occurrences count,
                                                        Term rest, bool begins) {
  if (count.max == 0) return rest;
  return terms_.loop(index, count, rest, begins ? 1 : 0);
}

TOOLDECODE_INLINE PatternTerms::Term PatternTerms::unrolled(const Node& node) {
  const Occurrences more{
      node.count.min == 0 ? 0 : node.count.min - 1,
      node.count.max == Occurrences::unbounded ? Occurrences::unbounded : node.count.max - 1};
  const bool begins = node.c != 0;
  const Term once   = build(node.a, loop(node.a, more, node.b, begins), begins);
  return node.count.min == 0 ? terms_.any_of({once, node.b}) : once;
}

TOOLDECODE_INLINE PatternTerms::Term PatternTerms::plain(Pattern::Index index, bool begins) {
  Term& known = plain_[2 * index + (begins ? 1 : 0)];
  if (known != none) return known;
  const Pattern::Node& node = pattern_[index];
  Term made                 = terms_.empty();
  switch (node.kind) {
    case Pattern::Kind::set:
      made = set_of(pattern_.sets()[node.set]);
      break;
    case Pattern::Kind::begin:
      made = begins ? terms_.begin() : terms_.nothing();
      break;
    case Pattern::Kind::end:
      made = terms_.end();
      break;
    case Pattern::Kind::edge:
      made = terms_.edge(node.negated);
      break;
    case Pattern::Kind::repeat:
      made = terms_.repeat(plain(node.children[0], begins), node.count);
      break;
    case Pattern::Kind::choice: {
      std::vector<Term> list;
      for (const Pattern::Index child : node.children) list.push_back(plain(child, begins));
      made = terms_.any_of(std::move(list));
      break;
    }
    default:
      for (std::size_t i = node.children.size(); i-- > 0;) {
        made = terms_.concat(plain(node.children[i], begins), made);
      }
      break;
  }
  return plain_[2 * index + (begins ? 1 : 0)] = made;
}

TOOLDECODE_INLINE bool PatternTerms::nullable(Term term, Before before, std::size_t letter) {
  const bool at_end = letter == classes_.size();
  const Node node   = terms_[term];
  if (!node.on_before) return at_end ? node.end : node.mid;
  terms_.spend(1);
  const Descent descent(depth_);
  const auto is_nullable = [&](Term one) { return nullable(one, before, letter); };
  switch (node.kind) {
    case Kind::begin:
      return before == at_begin;
    case Kind::edge:
      return ((before == after_word) != (!at_end && is_word_[letter])) == (node.a == 0);
    case Kind::concat:
      return is_nullable(node.a) && is_nullable(node.b);
    case Kind::repeat:
      return node.count.min == 0 || is_nullable(node.a);
    case Kind::any_of:
    case Kind::all_of: {
      const std::vector<Term> list = terms_.list(term);  // a copy: loops add lists
      return node.kind == Kind::any_of ? std::any_of(list.begin(), list.end(), is_nullable)
                                       : std::all_of(list.begin(), list.end(), is_nullable);
    }
    case Kind::negation:
      return !is_nullable(node.a);
    default:
      return is_nullable(unrolled(node));
  }
}

TOOLDECODE_INLINE PatternTerms::Term PatternTerms::derive(Term term, std::size_t letter,
                                                          Before before) {
  const Node node    = terms_[term];
  const auto of      = [&](Term one) { return derivative(one, letter, before); };
  const auto of_list = [&] {
    std::vector<Term> list = terms_.list(term);
    for (Term& one : list) one = of(one);
    return list;
  };
  switch (node.kind) {
    case Kind::concat: {
      const Term first = terms_.concat(of(node.a), node.b);
      if (!nullable(node.a, before, letter)) return first;
      return terms_.any_of({first, of(node.b)});
    }
    case Kind::repeat: {
      // If the empty text matches here, the first repetitions may be skipped.
      const bool may_skip = nullable(node.a, before, letter);
      const Occurrences more{
          may_skip || node.count.min == 0 ? 0 : node.count.min - 1,
          node.count.max == Occurrences::unbounded ? Occurrences::unbounded : node.count.max - 1};
      return terms_.concat(of(node.a), terms_.repeat(node.a, more));
    }
    case Kind::any_of:
      return terms_.any_of(of_list());
    case Kind::all_of:
      return terms_.all_of(of_list());
    case Kind::negation:
      return terms_.negation(of(node.a));
    case Kind::loop:
      return of(unrolled(node));
    default:
      return terms_.nothing();
  }
}

TOOLDECODE_INLINE TextDfa pattern_automaton(PatternTerms& terms, PatternTerms::Term start) {
  using State               = std::pair<PatternTerms::Term, PatternTerms::Before>;
  const std::size_t classes = terms.classes().size();
  std::vector<State> order{{start, PatternTerms::at_begin}};
  std::map<State, TextDfa::State> number{{order[0], 0}};
  std::vector<TextDfa::Row> rows;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto [term, before] = order[i];
    TextDfa::Row row{std::vector<TextDfa::State>(classes, TextDfa::dead), terms.ends(term, before)};
    for (std::size_t c = 0; c < classes; ++c) {
      State next{terms.derivative(term, c, before), terms.after(c)};
      if (terms.is_nothing(next.first)) continue;
      if (!terms.depends_on_before(next.first)) next.second = PatternTerms::after_other;
      const auto [known, fresh] = number.emplace(next, static_cast<TextDfa::State>(order.size()));
      if (fresh) order.push_back(next);
      row.next[c] = known->second;
    }
    rows.push_back(std::move(row));
    if (order.size() > TextDfa::max_states || order.size() * classes > TextDfa::max_cells) {
      RegexTerms::too_large();
    }
  }
  return TextDfa(terms.classes(), std::move(rows));
}

}  // namespace tooldecode::text::detail

namespace tooldecode::text {

TOOLDECODE_INLINE TextDfa compile_pattern(std::string_view pattern) {
  const Pattern tree(pattern);
  detail::PatternTerms terms(tree);
  return detail::pattern_automaton(terms, terms.anywhere());
}

TOOLDECODE_INLINE TextDfa compile_whole_pattern(std::string_view pattern) {
  const Pattern tree(pattern);
  detail::PatternTerms terms(tree);
  return detail::pattern_automaton(terms, terms.whole());
}

}  // namespace tooldecode::text
