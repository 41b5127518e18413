#pragma once

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include <tooldecode/text/pattern.hpp>

namespace tooldecode::text {

TOOLDECODE_INLINE Pattern::Pattern(std::string_view pattern) : text_(pattern) {
  root_ = alternatives();
  if (!text_.at_end()) text_.fail("unmatched ')'");
  check_references();
  text_.check();
}

TOOLDECODE_INLINE Pattern::Index Pattern::add(Node node) {
  const auto some = [&](auto is) {
    return std::any_of(node.children.begin(), node.children.end(),
                       [&](Index child) { return is(nodes_[child]); });
  };
  const auto empties = [](const Node& child) { return child.can_empty; };
  node.has_look =
      node.kind == Kind::lookahead || some([](const Node& child) { return child.has_look; });
  switch (node.kind) {
    case Kind::set:
      node.can_empty = false;
      break;
    case Kind::sequence:
      node.can_empty = !some([](const Node& child) { return !child.can_empty; });
      break;
    case Kind::choice:
      node.can_empty = some(empties);
      break;
    case Kind::repeat:
      node.can_empty = node.count.min == 0 || some(empties);
      break;
    default:
      break;
  }
  BuildBudget::spend(4, sizeof(Node));
  nodes_.push_back(std::move(node));
  return static_cast<Index>(nodes_.size() - 1);
}

TOOLDECODE_INLINE Pattern::Index Pattern::characters(CodePointSet set) {
  const auto [known, fresh] = set_nodes_.try_emplace(set.ranges());
  if (fresh) {
    if ((ranges_ += set.ranges().size()) > max_ranges) {
      throw Error(Errc::limit_exceeded, text_.place(text_.at()),
                  "a pattern with classes of too many ranges");
    }
    BuildBudget::spend(set.ranges().size(), 2 * set.ranges().size() * sizeof(CodePointSet::Range));
    known->second = add({.kind = Kind::set, .set = static_cast<Index>(sets_.size())});
    sets_.push_back(std::move(set));
  }
  return known->second;
}

TOOLDECODE_INLINE Pattern::Index Pattern::alternatives() {
  if (++depth_ > max_nested) {
    throw Error(Errc::limit_exceeded, text_.place(text_.at()), "groups are nested too deeply");
  }
  // Names must be unique, except in alternatives of which only one can match.
  const std::size_t before = names_.size();
  std::vector<std::u32string> others;
  std::vector<Index> all;
  do {
    std::move(names_.begin() + static_cast<std::ptrdiff_t>(before), names_.end(),
              std::back_inserter(others));
    names_.resize(before);
    all.push_back(terms());
  } while (text_.take('|'));
  std::move(others.begin(), others.end(), std::back_inserter(names_));
  --depth_;
  return all.size() == 1 ? all[0] : add({.kind = Kind::choice, .children = std::move(all)});
}

TOOLDECODE_INLINE Pattern::Index Pattern::terms() {
  std::vector<Index> all;
  while (!text_.at_end() && !text_.has('|') && !text_.has(')')) all.push_back(term());
  return all.size() == 1 ? all[0] : add({.kind = Kind::sequence, .children = std::move(all)});
}

TOOLDECODE_INLINE Pattern::Index Pattern::term() {
  const Index one         = atom();
  const std::size_t begin = text_.at();
  const auto count        = quantifier();
  if (!count) return one;
  if (is_assertion_) text_.fail("a quantifier follows an assertion", begin);
  text_.take('?');  // a lazy quantifier matches the same texts
  const std::size_t second = text_.at();
  if (quantifier()) text_.fail("a quantifier follows a quantifier", second);
  return add({.kind = Kind::repeat, .children = {one}, .count = *count});
}

TOOLDECODE_INLINE std::optional<Occurrences> Pattern::quantifier() {
  if (text_.take('*')) return Occurrences{};
  if (text_.take('+')) return Occurrences{1};
  if (text_.take('?')) return Occurrences{0, 1};
  if (!text_.has('{')) return std::nullopt;
  const std::size_t begin = text_.at();
  (void)text_.take('{');
  const std::u32string min = text_.digits();
  const bool is_range      = text_.take(',');
  const std::u32string max = is_range ? text_.digits() : min;
  if (!text_.take('}') || (min.empty() && !is_range)) {
    text_.go_to(begin);  // an unpaired brace
    return std::nullopt;
  }
  // Other dialects read a minimum of 0, annex B reads literal characters.
  if (min.empty()) text_.fail("a quantifier without a minimum", begin);
  const bool is_open = max.empty();
  if (!is_open && std::pair(min.size(), min) > std::pair(max.size(), max)) {
    text_.fail("a quantifier whose minimum exceeds its maximum", begin);
  }
  constexpr std::uint32_t endless = 0x7FFF'FFFF;
  const auto value                = [](const std::u32string& number) {
    std::uint64_t sum = 0;
    for (const char32_t digit : number) {
      sum = std::min<std::uint64_t>(sum * 10 + (digit - '0'), endless);
    }
    return static_cast<std::uint32_t>(sum);
  };
  if (is_open || value(max) == endless) return Occurrences{value(min)};
  return Occurrences{value(min), value(max)};
}

TOOLDECODE_INLINE Pattern::Index Pattern::atom() {
  const std::size_t begin = text_.at();
  const char32_t c        = text_.any("");
  is_assertion_           = false;
  const auto assertion    = [&](Kind kind, bool negated = false) {
    is_assertion_ = true;
    return add({.kind = kind, .negated = negated});
  };
  switch (c) {
    case '(':
      return group();
    case '[':
      return characters(text_.bracket());
    case '.':
      return characters(~CodePointSet{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}});
    case '^':
      return assertion(Kind::begin);
    case '$':
      return assertion(Kind::end);
    case '*':
    case '+':
    case '?':
    case '{':
      text_.go_to(begin);
      if (quantifier()) text_.fail("a quantifier follows nothing", begin);
      (void)text_.take(c);
      return characters({{c, c}});
    case '\\':
      if (text_.take('b')) return assertion(Kind::edge);
      if (text_.take('B')) return assertion(Kind::edge, true);
      if (text_.take('k')) return named_reference(begin);
      if (text_.has_digit() && !text_.has('0')) return reference(begin);
      return characters(text_.escape().set);
    default:
      return characters({{c, c}});
  }
}

TOOLDECODE_INLINE Pattern::Index Pattern::reference(std::size_t begin) {
  std::uint64_t number = 0;
  for (const char32_t digit : text_.digits()) {
    number = std::min<std::uint64_t>(number * 10 + (digit - '0'), PatternReader::max_characters);
  }
  references_.push_back({begin, number, {}});
  return add({.kind = Kind::sequence});
}

TOOLDECODE_INLINE Pattern::Index Pattern::named_reference(std::size_t begin) {
  if (!text_.take('<')) text_.fail("'\\k' needs a group's name", begin);
  references_.push_back({begin, 0, text_.group_name()});
  return add({.kind = Kind::sequence});
}

TOOLDECODE_INLINE void Pattern::check_references() {
  for (const Reference& one : references_) {
    const bool known = one.name.empty()
                           ? one.number <= groups_
                           : std::find(names_.begin(), names_.end(), one.name) != names_.end();
    if (!known) text_.fail("a back-reference to a group that is not there", one.begin);
    text_.refuse("back-references are not supported", one.begin);
  }
}

TOOLDECODE_INLINE Pattern::Index Pattern::group() {
  const std::size_t begin = text_.at() - 1;
  const auto inside       = [&] {
    const Index all = alternatives();
    if (!text_.take(')')) text_.fail("a group is not closed", begin);
    is_assertion_ = false;
    return all;
  };
  if (!text_.take('?')) {
    ++groups_;
    return inside();
  }
  if (text_.has('=') || text_.has('!')) {
    const bool negated = text_.any("") == '!';
    const Index look   = add({.kind = Kind::lookahead, .children = {inside()}, .negated = negated});
    is_assertion_      = true;
    return look;
  }
  if (text_.take('<')) {
    if (text_.has('=') || text_.has('!')) {
      (void)text_.any("");
      text_.refuse("look-behind is not supported", begin);
      const Index look = inside();
      is_assertion_    = true;
      return look;
    }
    ++groups_;
    const std::size_t name = text_.at();
    names_.push_back(text_.group_name());
    if (std::find(names_.begin(), names_.end() - 1, names_.back()) != names_.end() - 1) {
      text_.fail("two groups have one name", name);
    }
    return inside();
  }
  if (!text_.take(':')) flags(begin);
  return inside();
}

TOOLDECODE_INLINE void Pattern::flags(std::size_t begin) {
  if (text_.has('P')) {
    text_.fail("'(?P' is of another dialect; ECMA-262 writes '(?<name>...)'", begin);
  }
  std::u32string letters;
  bool is_right = true;
  bool removes  = false;
  while (is_right && !text_.take(':')) {
    const char32_t c = text_.any("a group is not closed");
    if (c == '-' && !removes) {
      removes = true;
      continue;
    }
    is_right = (c == 'i' || c == 'm' || c == 's') && letters.find(c) == letters.npos;
    letters += c;
  }
  if (!is_right || letters.empty()) text_.fail("'(?' begins no group that ECMA-262 has", begin);
  text_.refuse("flags within a pattern are not supported", begin);
}

}  // namespace tooldecode::text
