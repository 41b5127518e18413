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

TOOLDECODE_INLINE PatternTerms::Before PatternTerms::context_after(std::size_t letter) const {
  return has_edges_ && is_word_[letter] ? after_word : after_other;
}

TOOLDECODE_INLINE PatternTerms::Derivatives PatternTerms::derivatives(Term term, Before before) {
  terms_.spend(1);
  const Node node = terms_[term];
  if (node.kind == Kind::set) return {.set = term, .then = terms_.empty()};
  if (node.kind == Kind::concat && terms_[node.a].kind == Kind::set) {
    return {.set = node.a, .then = node.b};
  }
  const std::size_t width = classes_.size();
  if (memo_at_.size() <= term) memo_at_.resize(terms_.size(), none);
  if (memo_at_[term] == none) {
    const std::size_t places = width * (node.on_before ? 3 : 1);
    if (memo_.size() + places > max_memo) RegexTerms::too_large();
    memo_at_[term] = static_cast<std::uint32_t>(memo_.size());
    memo_.resize(memo_.size() + places, none);
  }
  const std::size_t row = memo_at_[term] + (node.on_before ? before : 0) * width;
  if (memo_[row] == open) RegexTerms::too_large();
  if (memo_[row] == none) {
    const Descent descent(depth_);
    memo_[row] = open;
    derive(term, before, row);
  }
  return {.row = row};
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
    if (from >= next) continue;
    BuildBudget::spend(1 + members.size() / 4);
    if (parts.size() * members.size() > max_bits) RegexTerms::too_large();
    parts[members].emplace_back(from, next - 1);
  }
  std::vector<CodePointSet> classes;
  for (auto& [in, ranges] : parts) {
    CodePointSet set(std::move(ranges));
    if (set.empty()) continue;
    is_word_.push_back(word.contains(set.ranges()[0].first) ? 1 : 0);
    in_.push_back(in);
    classes.push_back(std::move(set));
  }
  return classes;
}

TOOLDECODE_INLINE PatternTerms::Term PatternTerms::set_of(std::size_t set) {
  BuildBudget::spend(1 + classes_.size() / 16);
  RegexTerms::Bits bits(classes_.size() / 64 + 1, 0);
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    if (in_[c][set / 64] >> (set % 64) & 1) bits[c / 64] |= std::uint64_t{1} << (c % 64);
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
      made = set_of(node.set);
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

TOOLDECODE_INLINE void PatternTerms::derive(Term term, Before before, std::size_t row) {
  const Node node         = terms_[term];
  const std::size_t width = classes_.size();
  terms_.spend(1 + width / 4);
  // Fills the row; `make` is called once for equal keys, of which there are few.
  const auto fill = [&](const auto& key_of, const auto& make) {
    using Key                       = decltype(key_of(std::size_t{}));
    constexpr std::size_t max_known = 32;
    std::vector<std::pair<Key, Term>> known;
    for (std::size_t c = 0; c < width; ++c) {
      const Key key    = key_of(c);
      const auto found = std::ranges::find(known, key, &std::pair<Key, Term>::first);
      if (found != known.end()) {
        memo_[row + c] = found->second;
        continue;
      }
      const Term made = make(key);
      memo_[row + c]  = made;
      if (known.size() < max_known) known.emplace_back(key, made);
    }
  };
  switch (node.kind) {
    case Kind::concat: {
      const Derivatives first = derivatives(node.a, before);
      // What follows is asked for only where the first part may be empty: in a loop it may hold this
      // term.
      std::vector<char> skips(width);
      for (std::size_t c = 0; c < width; ++c) skips[c] = nullable(node.a, before, c) ? 1 : 0;
      const bool may_skip       = std::ranges::find(skips, 1) != skips.end();
      const Derivatives skipped = may_skip ? derivatives(node.b, before) : Derivatives{};
      fill(
          [&](std::size_t c) {
            return std::pair(after(first, c), skips[c] ? after(skipped, c) : terms_.nothing());
          },
          [&](const std::pair<Term, Term>& key) {
            const Term one = terms_.concat(key.first, node.b);
            return is_nothing(key.second) ? one : terms_.any_of({one, key.second});
          });
      break;
    }
    case Kind::repeat: {
      // If the empty text matches here, the first repetitions may be skipped.
      const Derivatives once = derivatives(node.a, before);
      fill([&](std::size_t c) { return std::pair(after(once, c), nullable(node.a, before, c)); },
           [&](const std::pair<Term, bool>& key) {
             const Occurrences more{key.second || node.count.min == 0 ? 0 : node.count.min - 1,
                                    node.count.max == Occurrences::unbounded
                                        ? Occurrences::unbounded
                                        : node.count.max - 1};
             return terms_.concat(key.first, terms_.repeat(node.a, more));
           });
      break;
    }
    case Kind::any_of:
    case Kind::all_of:
      derive_list(term, before, row);
      break;
    case Kind::negation: {
      const Derivatives of = derivatives(node.a, before);
      fill([&](std::size_t c) { return after(of, c); },
           [&](Term one) { return terms_.negation(one); });
      break;
    }
    case Kind::loop: {
      const Derivatives of = derivatives(unrolled(node), before);
      for (std::size_t c = 0; c < width; ++c) memo_[row + c] = after(of, c);
      break;
    }
    default:
      std::fill_n(memo_.begin() + static_cast<std::ptrdiff_t>(row), width, terms_.nothing());
      break;
  }
}

TOOLDECODE_INLINE void PatternTerms::derive_list(Term term, Before before, std::size_t row) {
  const std::vector<Term> list = terms_.list(term);  // a copy: derivatives add lists
  const std::size_t width      = classes_.size();
  const bool is_union          = terms_[term].kind == Kind::any_of;
  terms_.spend(list.size() * (1 + width / 4));
  // Characters after which every member goes on with the same term are one group: those of the group
  // that it was a part of, after all members but the last.
  struct Group {
    std::uint32_t before = 0;
    Term last = none, made = none;
  };
  struct Split {
    std::uint32_t from;
    Term by;
    std::uint32_t to;
  };
  std::vector<Group> groups(1);
  std::vector<std::uint32_t> group_of(width, 0);
  std::vector<Split> splits;
  for (const Term one : list) {
    const Derivatives of = derivatives(one, before);
    splits.clear();
    std::size_t compared = 0;
    for (std::size_t c = 0; c < width; ++c) {
      const Term by = after(of, c);
      if (is_union && is_nothing(by)) continue;
      const std::uint32_t from = group_of[c];
      const auto known         = std::ranges::find_if(
          splits, [&](const Split& split) { return split.from == from && split.by == by; });
      compared += static_cast<std::size_t>(known - splits.begin());
      if (known != splits.end()) {
        group_of[c] = known->to;
        continue;
      }
      group_of[c] = static_cast<std::uint32_t>(groups.size());
      splits.push_back({from, by, group_of[c]});
      groups.push_back({.before = from, .last = by});
    }
    terms_.spend(compared / 8);
  }
  for (std::size_t c = 0; c < width; ++c) {
    Group& group = groups[group_of[c]];
    if (group.made == none) {
      std::vector<Term> all;
      for (std::uint32_t at = group_of[c]; at != 0; at = groups[at].before) {
        all.push_back(groups[at].last);
      }
      group.made = is_union ? terms_.any_of(std::move(all)) : terms_.all_of(std::move(all));
    }
    memo_[row + c] = group.made;
  }
}

TOOLDECODE_INLINE TextDfa pattern_automaton(PatternTerms& terms, PatternTerms::Term start) {
  struct State {
    PatternTerms::Term term;
    PatternTerms::Before before;
  };
  const std::size_t classes = terms.classes().size();
  std::vector<State> order;
  std::vector<TextDfa::State> number;  // [terms, contexts]
  const auto number_of = [&](PatternTerms::Term term, PatternTerms::Before before) {
    const std::size_t place = 3 * std::size_t{term} + before;
    if (number.size() <= place) number.resize(3 * terms.size() + 3, TextDfa::dead);
    if (number[place] == TextDfa::dead) {
      number[place] = static_cast<TextDfa::State>(order.size());
      order.push_back({term, before});
    }
    return number[place];
  };
  number_of(start, PatternTerms::at_begin);
  std::vector<TextDfa::Row> rows;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto [term, before] = order[i];
    TextDfa::Row row{std::vector<TextDfa::State>(classes, TextDfa::dead), terms.ends(term, before)};
    const auto derivatives = terms.derivatives(term, before);
    terms.spend(classes / 4);
    for (std::size_t c = 0; c < classes; ++c) {
      const PatternTerms::Term next = terms.after(derivatives, c);
      if (terms.is_nothing(next)) continue;
      row.next[c] = number_of(
          next, terms.depends_on_before(next) ? terms.context_after(c) : PatternTerms::after_other);
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
