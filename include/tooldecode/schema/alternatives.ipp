#pragma once

#include <iterator>
#include <memory>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/schema/alternatives.hpp>

namespace tooldecode::schema {

namespace detail {

TOOLDECODE_INLINE void TextList::add(const std::u32string& text) {
  std::size_t shared = 0;
  while (shared < last_.size() && shared < text.size() && last_[shared] == text[shared]) ++shared;
  finish(shared);
  for (std::size_t i = shared; i < text.size(); ++i) {
    path_.back().next.emplace_back(text[i], 0);
    path_.emplace_back();
  }
  path_.back().accepting = true;
  last_                  = text;
}

TOOLDECODE_INLINE text::TextDfa TextList::dfa() {
  finish(0);
  const text::TextDfa::State start = number(std::move(path_[0]));
  // The start has the last number and must have the first.
  const auto renumbered = [&](text::TextDfa::State state) { return start - state; };
  using Step            = std::pair<text::TextDfa::State, text::TextDfa::State>;
  std::map<char32_t, std::vector<Step>> steps_of;
  for (const auto& [state, at] : numbers_) {
    for (const auto& [c, to] : state.next) steps_of[c].emplace_back(at, to);
  }
  std::map<std::vector<Step>, std::vector<text::CodePointSet::Range>> letters;
  for (auto& [c, steps] : steps_of) {
    std::ranges::sort(steps);
    letters[std::move(steps)].emplace_back(c, c);
  }
  if (letters.size() > text::TextDfa::max_cells / numbers_.size()) {
    throw Error(Errc::limit_exceeded, "", "a list of texts needs too many states");
  }
  std::vector<text::TextDfa::Row> rows(
      numbers_.size(), {std::vector<text::TextDfa::State>(letters.size(), text::TextDfa::dead)});
  for (const auto& [state, at] : numbers_) rows[renumbered(at)].accepting = state.accepting;
  std::vector<text::CodePointSet> classes;
  for (auto& [steps, ranges] : letters) {
    for (const auto& [from, to] : steps) {
      rows[renumbered(from)].next[classes.size()] = renumbered(to);
    }
    classes.emplace_back(std::move(ranges));
  }
  return text::TextDfa(std::move(classes), std::move(rows));
}

TOOLDECODE_INLINE void TextList::finish(std::size_t length) {
  while (path_.size() > length + 1) {
    const text::TextDfa::State to = number(std::move(path_.back()));
    path_.pop_back();
    path_.back().next.back().second = to;
  }
}

TOOLDECODE_INLINE text::TextDfa::State TextList::number(State state) {
  const auto next = static_cast<text::TextDfa::State>(numbers_.size());
  return numbers_.emplace(std::move(state), next).first->second;
}

}  // namespace detail

TOOLDECODE_INLINE text::TextDfa texts_of(const std::vector<std::string>& list) {
  std::vector<std::u32string> texts;
  std::size_t characters = 0;
  for (const std::string& text : list) {
    texts.push_back(text::decode_utf8(text));
    characters += 1 + texts.back().size();
  }
  BuildBudget::spend(20 * characters);
  std::ranges::sort(texts);
  detail::TextList all;
  for (const std::u32string& text : texts) all.add(text);
  return all.dfa();
}

TOOLDECODE_INLINE void irreducible(const std::string& what, const std::string& keyword) {
  throw Error(Errc::unsupported_keyword, keyword, what);
}

TOOLDECODE_INLINE text::Occurrences intersection(const text::Occurrences& a,
                                                 const text::Occurrences& b) noexcept {
  return {std::max(a.min, b.min), std::min(a.max, b.max)};
}

TOOLDECODE_INLINE std::vector<text::Occurrences> complement(const text::Occurrences& bounds) {
  std::vector<text::Occurrences> result;
  if (bounds.min > 0) result.push_back({0, bounds.min - 1});
  if (bounds.max != text::Occurrences::unbounded) {
    result.push_back({bounds.max + 1, text::Occurrences::unbounded});
  }
  return result;
}

TOOLDECODE_INLINE std::optional<NumberForm> intersection(const NumberForm& a, const NumberForm& b) {
  using Bound    = std::optional<text::NumberBounds::Bound>;
  NumberForm all = a;
  all.kinds      = a.kinds & b.kinds;
  if (all.kinds == text::NumberKinds::none) return std::nullopt;
  const auto tighten = [](Bound& bound, const Bound& other, int sign) {
    if (!other) return;
    const int order = bound ? sign * text::compare(other->value, bound->value) : 1;
    if (order > 0 || (order == 0 && other->exclusive)) bound = other;
  };
  tighten(all.bounds.minimum, b.bounds.minimum, 1);
  tighten(all.bounds.maximum, b.bounds.maximum, -1);
  std::vector<text::Decimal>& multiples = all.bounds.multiples;
  for (const text::Decimal& multiple : b.bounds.multiples) {
    if (std::find(multiples.begin(), multiples.end(), multiple) == multiples.end()) {
      multiples.push_back(multiple);
    }
  }
  const Bound &min = all.bounds.minimum, &max = all.bounds.maximum;
  if (min && max) {
    const int order = text::compare(min->value, max->value);
    if (order > 0 || (order == 0 && (min->exclusive || max->exclusive))) return std::nullopt;
  }
  if (const text::Decimal* point = find_point(all)) {
    const text::NumberKinds possible =
        point->is_integral() ? text::NumberKinds::integers : text::NumberKinds::fractions;
    all.kinds = all.kinds & possible;
    if (all.kinds == text::NumberKinds::none) return std::nullopt;
    for (const text::Decimal& multiple : multiples) {
      const auto fits = text::is_multiple(*point, multiple);
      if (!fits) irreducible("the numbers are too long to be compared");
      if (!*fits) return std::nullopt;
    }
    if (all.kinds == possible) all.kinds = text::NumberKinds::any;
    multiples.clear();
  }
  return all;
}

TOOLDECODE_INLINE std::vector<NumberForm> difference(const NumberForm& from,
                                                     const NumberForm& what) {
  std::vector<NumberForm> result;
  const auto add = [&](const NumberForm& other) {
    if (auto some = intersection(from, other)) result.push_back(std::move(*some));
  };
  using Bound     = text::NumberBounds::Bound;
  const auto& min = what.bounds.minimum;
  const auto& max = what.bounds.maximum;
  if (min) add({.bounds = {.maximum = Bound{min->value, !min->exclusive}}});
  if (max) add({.bounds = {.minimum = Bound{max->value, !max->exclusive}}});
  add({.kinds = ~what.kinds});
  for (const text::Decimal& multiple : what.bounds.multiples) {
    const auto& known = from.bounds.multiples;
    const bool shared = std::find(known.begin(), known.end(), multiple) != known.end();
    if (!shared) irreducible("what is no multiple of a number has no grammar");
  }
  return result;
}

TOOLDECODE_INLINE std::optional<StringForm> intersection(const StringForm& a, const StringForm& b,
                                                         StringSets& sets) {
  StringForm all{intersection(a.length, b.length), united(a.tests, b.tests), a.values, {}};
  if (all.length.min > all.length.max) return std::nullopt;
  std::set_union(a.excluded.begin(), a.excluded.end(), b.excluded.begin(), b.excluded.end(),
                 std::back_inserter(all.excluded));
  if (a.values && b.values) {
    all.values.emplace();
    std::set_intersection(a.values->begin(), a.values->end(), b.values->begin(), b.values->end(),
                          std::back_inserter(*all.values));
  } else if (b.values) {
    all.values = b.values;
  }
  for (std::size_t i = 0; i + 1 < all.tests.size(); ++i) {
    if (all.tests[i].set == all.tests[i + 1].set) return std::nullopt;
  }
  if (!all.values) return all;
  if (all.length != text::Occurrences{} || !all.tests.empty() || !all.excluded.empty()) {
    std::erase_if(*all.values, [&](const std::string& text) {
      const std::size_t length = text::decode_utf8(text).size();
      return length < all.length.min || length > all.length.max || !sets.holds(all.tests, text) ||
             std::binary_search(all.excluded.begin(), all.excluded.end(), text);
    });
  }
  if (all.values->empty()) return std::nullopt;
  return StringForm{.values = std::move(all.values)};
}

TOOLDECODE_INLINE std::vector<StringForm> difference(const StringForm& from, const StringForm& what,
                                                     StringSets& sets) {
  std::vector<StringForm> result;
  const auto add = [&](const StringForm& other) {
    if (auto some = intersection(from, other, sets)) result.push_back(std::move(*some));
  };
  for (const text::Occurrences& length : complement(what.length)) add({.length = length});
  for (const StringTest& test : what.tests) add({.tests = {{test.set, !test.negated}}});
  if (what.values) add({.excluded = *what.values});
  if (!what.excluded.empty()) add({.values = what.excluded});
  return result;
}

TOOLDECODE_INLINE StringTests tests_of(const std::vector<StringForm>& forms, StringSets& sets) {
  std::vector<StringTests> all;
  for (const StringForm& form : forms) {
    StringTests tests = form.tests;
    const auto limit  = [&](text::TextDfa texts, bool negated) {
      const auto set = sets.add(std::make_shared<const text::TextDfa>(std::move(texts)));
      tests          = united(tests, {{set, negated}});
    };
    if (form.length != text::Occurrences{}) {
      limit(text::TextDfa::repeated(text::CodePointSet::all()).bounded(form.length), false);
    }
    if (form.values) limit(texts_of(*form.values), false);
    if (!form.excluded.empty()) limit(texts_of(form.excluded), true);
    all.push_back(std::move(tests));
  }
  if (all.size() == 1) return all[0];
  text::TextDfa any({}, {});
  StringTests parts;
  for (const StringTests& tests : all) {
    any   = united(any, sets.texts(tests));
    parts = united(parts, tests);
  }
  return {{sets.add(std::make_shared<const text::TextDfa>(std::move(any)), parts)}};
}

TOOLDECODE_INLINE bool settle(ArrayForm& form) {
  for (std::size_t i = 0; i < form.prefix.size(); ++i) {
    if (form.prefix[i] != nothing_form) continue;
    form.length.max = std::min(form.length.max, static_cast<std::uint32_t>(i));
  }
  if (form.rest == nothing_form) {
    form.length.max = std::min(form.length.max, static_cast<std::uint32_t>(form.prefix.size()));
  }
  if (form.prefix.size() >= form.length.max) {
    form.prefix.resize(form.length.max, any_form);
    form.rest = nothing_form;
  }
  while (!form.prefix.empty() && form.prefix.back() == form.rest) form.prefix.pop_back();
  if (form.unique && form.length.max <= 1) form.unique = false;
  for (const ArrayForm::Contains& contains : form.contains) {
    if (contains.count.min > contains.count.max) return false;
    form.length.min = std::max(form.length.min, contains.count.min);
  }
  return form.length.min <= form.length.max;
}

TOOLDECODE_INLINE bool settle(ObjectForm& form) {
  std::erase_if(form.others,
                [](const ObjectForm::OtherKeys& other) { return other.value == nothing_form; });
  std::uint32_t required = 0;
  for (const ObjectForm::Member& member : form.members) {
    if (!member.required) continue;
    if (member.value == nothing_form) return false;
    ++required;
  }
  if (form.others.empty()) {
    // All other keys are impossible anyway.
    std::erase_if(form.members, [](const auto& one) { return one.value == nothing_form; });
    if (form.count.min > form.members.size()) return false;
  }
  for (ObjectForm::Together& together : form.together) {
    for (std::size_t i = 0; i < together.keys.size(); ++i) {
      const ObjectForm::Member* member = form.find(together.keys[i]);
      if (member != nullptr ? member->value == nothing_form : form.others.empty()) {
        together.forbid(i);
      } else if (member != nullptr && member->required) {
        together.require(i);
      }
    }
    if (together.allowed == 0) return false;
  }
  std::erase_if(form.together, [](const auto& one) { return one.allowed == one.sets(); });
  return form.count.min <= form.count.max && required <= form.count.max;
}

TOOLDECODE_INLINE void add_alternatives(Form& into, const Form& other) {
  if (!into.hull.empty() || !other.hull.empty()) {
    if (into.hull.empty()) into.hull = into.objects;
    append(into.hull, other.compared_objects());
  }
  into.null |= other.null;
  into.truth |= other.truth;
  into.falsehood |= other.falsehood;
  append(into.numbers, other.numbers);
  for (const StringForm& form : other.texts) {
    const auto list = std::find_if(into.texts.begin(), into.texts.end(),
                                   [](const StringForm& one) { return one.values.has_value(); });
    if (!form.values || list == into.texts.end()) {
      append(into.texts, {form});
      continue;
    }
    std::vector<std::string> all;
    std::set_union(list->values->begin(), list->values->end(), form.values->begin(),
                   form.values->end(), std::back_inserter(all));
    list->values = std::move(all);
  }
  append(into.arrays, other.arrays);
  append(into.objects, other.objects);
}

}  // namespace tooldecode::schema
