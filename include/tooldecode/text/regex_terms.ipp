#pragma once

#include <algorithm>
#include <tuple>

#include <tooldecode/text/regex_terms.hpp>

namespace tooldecode::text {

TOOLDECODE_INLINE RegexTerms::RegexTerms(std::size_t letters) {
  nothing_ = intern({.kind = Kind::nothing});
  empty_   = intern({.kind = Kind::empty});
  Bits bits(letters / 64 + 1, 0);
  for (std::size_t c = 0; c < letters; ++c) bits[c / 64] |= std::uint64_t{1} << (c % 64);
  any_ = set(bits);
  all_ = repeat(any_, {});
}

TOOLDECODE_INLINE bool RegexTerms::has(Term set, std::size_t letter) const {
  return sets_[terms_[set].a][letter / 64] >> (letter % 64) & 1;
}

TOOLDECODE_INLINE RegexTerms::Term RegexTerms::set(const Bits& bits) {
  if (std::all_of(bits.begin(), bits.end(), [](std::uint64_t word) { return word == 0; })) {
    return nothing_;
  }
  return intern({.kind = Kind::set, .a = number(bits, sets_, set_index_)});
}

TOOLDECODE_INLINE RegexTerms::Term RegexTerms::edge(bool negated) {
  return intern({.kind = Kind::edge, .a = negated ? 1U : 0U});
}

TOOLDECODE_INLINE RegexTerms::Term RegexTerms::concat(Term a, Term b) {
  if (a == nothing_ || b == nothing_) return nothing_;
  if (a == empty_) return b;
  if (b == empty_) return a;
  std::vector<Term> heads;
  for (; terms_[a].kind == Kind::concat; a = terms_[a].b) heads.push_back(terms_[a].a);
  heads.push_back(a);
  spend(heads.size());
  for (std::size_t i = heads.size(); i-- > 0;) {
    const bool repeated = heads[i] == all_ && (b == all_ || head(b).first == all_);
    if (!repeated) b = intern({.kind = Kind::concat, .a = heads[i], .b = b});
  }
  return b;
}

TOOLDECODE_INLINE RegexTerms::Term RegexTerms::repeat(Term a, Occurrences count) {
  if (a == empty_ || count.max == 0) return empty_;
  if (a == nothing_) return count.min == 0 ? empty_ : nothing_;
  if (count == Occurrences{1, 1}) return a;
  const Node node = terms_[a];
  if (!node.on_before && node.mid && node.end) count.min = 0;
  if (node.kind == Kind::repeat && node.count.max == Occurrences::unbounded &&
      node.count.min <= 1) {
    // (x*){n,m} is x*, and (x+){n,m} is x{n,}.
    if (node.count.min == 0) return a;
    return repeat(node.a, {count.min, Occurrences::unbounded});
  }
  return intern({.kind = Kind::repeat, .a = a, .count = count});
}

TOOLDECODE_INLINE RegexTerms::Term RegexTerms::any_of(std::vector<Term> list) {
  flatten(Kind::any_of, list);
  spend(list.size());
  sort(list);
  merge_sets(list);
  if (list.size() > 1) merge_repeats(list);
  if (std::binary_search(list.begin(), list.end(), all_)) return all_;
  std::erase(list, nothing_);
  const auto is_nullable = [&](Term term) {
    return term != empty_ && !terms_[term].on_before && terms_[term].mid && terms_[term].end;
  };
  if (std::any_of(list.begin(), list.end(), is_nullable)) std::erase(list, empty_);
  if (list.empty()) return nothing_;
  return list.size() == 1
             ? list[0]
             : intern({.kind = Kind::any_of, .a = number(std::move(list), lists_, list_index_)});
}

TOOLDECODE_INLINE RegexTerms::Term RegexTerms::all_of(std::vector<Term> list) {
  flatten(Kind::all_of, list);
  spend(list.size());
  sort(list);
  std::erase(list, all_);
  for (const Term term : list) {
    const bool clashes = terms_[term].kind == Kind::negation &&
                         std::binary_search(list.begin(), list.end(), terms_[term].a);
    if (term == nothing_ || clashes) return nothing_;
  }
  if (list.empty()) return all_;
  return list.size() == 1
             ? list[0]
             : intern({.kind = Kind::all_of, .a = number(std::move(list), lists_, list_index_)});
}

TOOLDECODE_INLINE RegexTerms::Term RegexTerms::negation(Term a) {
  if (a == nothing_) return all_;
  if (a == all_) return nothing_;
  if (terms_[a].kind == Kind::negation) return terms_[a].a;
  return intern({.kind = Kind::negation, .a = a});
}

TOOLDECODE_INLINE RegexTerms::Term RegexTerms::loop(Term a, Occurrences count, Term b, Term c) {
  return intern({.kind = Kind::loop, .a = a, .b = b, .c = c, .count = count});
}

TOOLDECODE_INLINE void RegexTerms::spend(std::size_t steps) {
  BuildBudget::spend(3 * steps);
  if ((work_ += steps) > max_work) too_large();
}

TOOLDECODE_INLINE void RegexTerms::too_large() {
  throw Error(Errc::limit_exceeded, "", "a pattern that needs too many states");
}

TOOLDECODE_INLINE RegexTerms::Term RegexTerms::intern(Node node) {
  std::uint64_t hash = 0;
  hash = core::hash_combine(hash, static_cast<std::uint64_t>(node.kind) << 32 | node.a);
  hash = core::hash_combine(hash, std::uint64_t{node.b} << 32 | node.c);
  hash = core::hash_combine(hash, std::uint64_t{node.count.min} << 32 | node.count.max);
  const auto equals = [&](Term known) {
    const Node& other = terms_[known];
    return std::tie(other.kind, other.a, other.b, other.c, other.count) ==
           std::tie(node.kind, node.a, node.b, node.c, node.count);
  };
  return index_.intern(hash, equals, [&] {
    if (terms_.size() >= max_terms) too_large();
    BuildBudget::spend(5);
    describe(node);
    terms_.push_back(node);
    return static_cast<Term>(terms_.size() - 1);
  });
}

TOOLDECODE_INLINE void RegexTerms::describe(Node& node) const {
  const auto join = [&](bool all) {
    node.mid = node.end = all;
    for (const Term one : lists_[node.a]) {
      const Node& child = terms_[one];
      node.on_before    = node.on_before || child.on_before;
      node.mid          = all ? node.mid && child.mid : node.mid || child.mid;
      node.end          = all ? node.end && child.end : node.end || child.end;
    }
  };
  switch (node.kind) {
    case Kind::nothing:
    case Kind::set:
      break;
    case Kind::empty:
      node.mid = node.end = true;
      break;
    case Kind::end:
      node.end = true;
      break;
    case Kind::begin:
    case Kind::edge:
    case Kind::loop:
      node.on_before = true;
      break;
    case Kind::concat: {
      const Node &a = terms_[node.a], &b = terms_[node.b];
      // After a mandatory character, the context before no longer matters.
      node.on_before = a.on_before || (b.on_before && (a.mid || a.end));
      node.mid       = a.mid && b.mid;
      node.end       = a.end && b.end;
      break;
    }
    case Kind::repeat: {
      const Node& a  = terms_[node.a];
      node.on_before = a.on_before;
      node.mid       = node.count.min == 0 || a.mid;
      node.end       = node.count.min == 0 || a.end;
      break;
    }
    case Kind::any_of:
      join(false);
      break;
    case Kind::all_of:
      join(true);
      break;
    case Kind::negation: {
      const Node& a  = terms_[node.a];
      node.on_before = a.on_before;
      node.mid       = !a.mid;
      node.end       = !a.end;
      break;
    }
  }
}

TOOLDECODE_INLINE std::pair<RegexTerms::Term, RegexTerms::Term> RegexTerms::head(Term term) const {
  if (terms_[term].kind != Kind::concat) return {term, empty_};
  return {terms_[term].a, terms_[term].b};
}

TOOLDECODE_INLINE void RegexTerms::flatten(Kind kind, std::vector<Term>& list) const {
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (terms_[list[i]].kind != kind) continue;
    const std::vector<Term>& inner = lists_[terms_[list[i]].a];
    list[i]                        = inner[0];
    list.insert(list.end(), inner.begin() + 1, inner.end());
  }
}

TOOLDECODE_INLINE void RegexTerms::sort(std::vector<Term>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

TOOLDECODE_INLINE void RegexTerms::merge_sets(std::vector<Term>& list) {
  const auto is_set = [&](Term term) { return terms_[term].kind == Kind::set; };
  if (std::count_if(list.begin(), list.end(), is_set) < 2) return;
  Bits bits(sets_[0].size(), 0);
  for (const Term term : list) {
    if (!is_set(term)) continue;
    for (std::size_t w = 0; w < bits.size(); ++w) bits[w] |= sets_[terms_[term].a][w];
  }
  std::erase_if(list, is_set);
  list.push_back(set(bits));
  sort(list);
}

TOOLDECODE_INLINE void RegexTerms::merge_repeats(std::vector<Term>& list) {
  struct Entry {
    Term of, rest;
    Occurrences count;
  };
  std::vector<Entry> entries;
  const auto is_repeat = [&](Term term) { return terms_[head(term).first].kind == Kind::repeat; };
  for (const Term term : list) {
    if (!is_repeat(term)) continue;
    const auto [first, rest] = head(term);
    entries.push_back({terms_[first].a, rest, terms_[first].count});
  }
  if (entries.size() < 2) return;
  std::sort(entries.begin(), entries.end(), [](const Entry& x, const Entry& y) {
    return std::tie(x.of, x.rest, x.count.min, x.count.max) <
           std::tie(y.of, y.rest, y.count.min, y.count.max);
  });
  std::size_t kept = 0;
  for (std::size_t i = 1; i < entries.size(); ++i) {
    Entry& last = entries[kept];
    if (entries[i].of == last.of && entries[i].rest == last.rest &&
        (last.count.max == Occurrences::unbounded || entries[i].count.min <= last.count.max + 1)) {
      last.count.max = std::max(last.count.max, entries[i].count.max);
    } else {
      entries[++kept] = entries[i];
    }
  }
  if (++kept == entries.size()) return;
  std::erase_if(list, is_repeat);
  for (std::size_t i = 0; i < kept; ++i) {
    list.push_back(concat(repeat(entries[i].of, entries[i].count), entries[i].rest));
  }
  sort(list);
}

}  // namespace tooldecode::text
