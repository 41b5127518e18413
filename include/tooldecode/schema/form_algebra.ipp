#pragma once

#include <algorithm>

#include <tooldecode/schema/form_algebra.hpp>

namespace tooldecode::schema {

TOOLDECODE_INLINE void FormAlgebra::unite(Form& into, const Form& other) {
  BuildBudget::spend(20 + 20 * other.alternatives(), 0);
  add_alternatives(into, other);
  BuildBudget::require_room(bytes_of(into));
}

TOOLDECODE_INLINE Form FormAlgebra::intersection(const Form& a, const Form& b) {
  Form all{a.null && b.null, a.truth && b.truth, a.falsehood && b.falsehood};
  all.hull         = a.hull.empty() ? b.hull : a.hull;
  const auto pairs = [&](auto& into, const auto& left, const auto& right, const auto& meet) {
    std::size_t bytes = 0;
    for (const auto& x : left) {
      for (const auto& y : right) {
        BuildBudget::spend(steps_of(x) + steps_of(y));
        auto some = meet(x, y);
        if (!some) continue;
        into.push_back(std::move(*some));
        BuildBudget::require_room(bytes += bytes_of(into.back()));
      }
    }
  };
  pairs(all.numbers, a.numbers, b.numbers,
        [](const auto& x, const auto& y) { return schema::intersection(x, y); });
  pairs(all.texts, a.texts, b.texts,
        [&](const auto& x, const auto& y) { return schema::intersection(x, y, texts); });
  pairs(all.arrays, a.arrays, b.arrays,
        [&](const auto& x, const auto& y) { return intersection(x, y); });
  // Cases that one property tells apart, as in a list of conditions, would multiply.
  const bool may_multiply = a.objects.size() > 1 && b.objects.size() > 1;
  pairs(all.objects, a.objects, b.objects, [&](const auto& x, const auto& y) {
    return may_multiply && !may_meet(x, y) ? std::nullopt : intersection(x, y);
  });
  return all;
}

TOOLDECODE_INLINE Form FormAlgebra::difference(const Form& from, const Form& what) {
  Form rest{from.null && !what.null, from.truth && !what.truth, from.falsehood && !what.falsehood};
  rest.hull          = from.hull;
  const auto without = [&](const auto& alternatives, const auto& others, const auto& subtract) {
    auto left = alternatives;
    for (const auto& other : others) {
      auto next = left;
      next.clear();
      for (auto& one : left) {
        BuildBudget::spend(steps_of(one) + steps_of(other));
        if (are_disjoint(one, other, 0)) {
          next.push_back(std::move(one));
        } else {
          append(next, subtract(one, other));
        }
      }
      left = std::move(next);
      BuildBudget::spend(left.size());
      BuildBudget::require_room(bytes_of(left));
    }
    return left;
  };
  rest.numbers = without(from.numbers, what.numbers,
                         [](const auto& x, const auto& y) { return schema::difference(x, y); });
  rest.texts   = without(from.texts, what.texts, [&](const auto& x, const auto& y) {
    return schema::difference(x, y, texts);
  });
  rest.arrays  = without(from.arrays, what.arrays,
                         [&](const auto& x, const auto& y) { return difference(x, y); });
  rest.objects = without(from.objects, what.objects,
                         [&](const auto& x, const auto& y) { return difference(x, y); });
  return rest;
}

TOOLDECODE_INLINE Form FormAlgebra::without(const Form& from, FormId what) {
  if (const auto of = find_negated(what)) return intersection(from, (*this)[*of]);
  return difference(from, (*this)[what]);
}

TOOLDECODE_INLINE Form FormAlgebra::within(Form from, std::span<const FormId> ids) {
  for (const FormId id : ids) {
    if (!find_negated(id)) from = intersection(from, (*this)[id]);
  }
  for (const FormId id : ids) {
    const auto negated = find_negated(id);
    if (!negated) continue;
    try {
      const Origin origin(*this, place_of(id));
      from = difference(from, (*this)[*negated]);
    } catch (const Error& error) {
      throw error.under(place_of(id));
    }
  }
  return from;
}

TOOLDECODE_INLINE bool FormAlgebra::are_disjoint(const Form& a, const Form& b,
                                                 std::uint32_t depth) {
  if ((a.null && b.null) || (a.truth && b.truth) || (a.falsehood && b.falsehood)) return false;
  const auto none = [&](const auto& left, const auto& right) {
    for (const auto& x : left) {
      for (const auto& y : right) {
        BuildBudget::spend(10 + steps_of(x));
        if (!are_disjoint(x, y, depth)) return false;
      }
    }
    return true;
  };
  return none(a.numbers, b.numbers) && none(a.texts, b.texts) && none(a.arrays, b.arrays) &&
         none(a.compared_objects(), b.compared_objects());
}

TOOLDECODE_INLINE bool FormAlgebra::are_disjoint(FormId a, FormId b, std::uint32_t depth) {
  if (a == nothing_form || b == nothing_form) return true;
  if (a == any_form || b == any_form || a == b || depth >= max_looked_into) return false;
  BuildBudget::spend(12);
  const std::pair<FormId, FormId> key = std::minmax(a, b);
  const auto known                    = disjoint_.find(key);
  if (known != disjoint_.end()) return known->second;
  const Form* left  = find(a);
  const Form* right = left == nullptr ? nullptr : find(b);
  if (right == nullptr) return false;
  BuildBudget::spend(30, 64);
  disjoint_[key]    = false;  // until it is computed
  const bool result = are_disjoint(*left, *right, depth + 1);
  disjoint_[key]    = result;
  return result;
}

TOOLDECODE_INLINE FormId FormAlgebra::value_of(const ObjectForm& form, const std::string& name) {
  const ObjectForm::Member* member = form.find(name);
  return member != nullptr ? member->value : value_of_other(form, name);
}

TOOLDECODE_INLINE FormId FormAlgebra::value_of_other(const ObjectForm& form,
                                                     const std::string& name) {
  for (const ObjectForm::OtherKeys& other : form.others) {
    if (texts.holds(other.keys, name)) return other.value;
  }
  return nothing_form;
}

TOOLDECODE_INLINE Form FormAlgebra::complement_of(const Form& form) {
  Form rest = difference(Form::anything(), form);
  merge_objects(rest, *this);
  return rest;
}

TOOLDECODE_INLINE Form FormAlgebra::conjunction(std::span<const FormId> parts) {
  return within(Form::anything(), parts);
}

TOOLDECODE_INLINE std::optional<ArrayForm> FormAlgebra::intersection(const ArrayForm& a,
                                                                     const ArrayForm& b) {
  ArrayForm all{.rest            = both(a.rest, b.rest),
                .length          = schema::intersection(a.length, b.length),
                .contains        = a.contains,
                .unique          = a.unique || b.unique,
                .evaluated       = std::max(a.evaluated, b.evaluated),
                .evaluated_items = either(a.evaluated_items, b.evaluated_items)};
  for (std::size_t i = 0; i < std::max(a.prefix.size(), b.prefix.size()); ++i) {
    all.prefix.push_back(both(a.item(i), b.item(i)));
  }
  append(all.contains, b.contains);
  if (!settle(all)) return std::nullopt;
  return all;
}

TOOLDECODE_INLINE std::optional<ObjectForm> FormAlgebra::intersection(const ObjectForm& a,
                                                                      const ObjectForm& b) {
  ObjectForm all{.count = schema::intersection(a.count, b.count), .dependent = a.dependent};
  all.others.clear();
  const MemberIndex of_a(a), of_b(b);
  all.members.reserve(std::max(a.members.size(), b.members.size()));
  for (const auto& [name, value, required] : a.members) {
    const ObjectForm::Member* other = of_b.member(name);
    const FormId theirs             = other != nullptr ? other->value : value_of_other(b, name);
    all.members.push_back(
        {name, both(value, theirs), required || (other != nullptr && other->required)});
  }
  for (const auto& [name, value, required] : b.members) {
    if (of_a.member(name) != nullptr) continue;
    all.members.push_back({name, both(value_of_other(a, name), value), required});
  }
  for (const ObjectForm::OtherKeys& x : a.others) {
    for (const ObjectForm::OtherKeys& y : b.others) {
      BuildBudget::spend(10 + x.keys.size() + y.keys.size());
      StringTests keys   = united(x.keys, y.keys);
      const FormId value = both(x.value, y.value);
      const bool is_new  = keys != x.keys && keys != y.keys;
      if (value == nothing_form || (is_new && texts.excludes_all(keys))) continue;
      all.others.push_back({std::move(keys), value});
    }
  }
  append(all.dependent, b.dependent);
  all.together = a.together;
  append(all.together, b.together);
  all.evaluated = united(a.evaluated, b.evaluated);
  all.named     = united(a.named, b.named);
  all.closes    = a.closes || b.closes;
  if (!settle(all)) return std::nullopt;
  return all;
}

TOOLDECODE_INLINE bool FormAlgebra::may_meet(const ObjectForm& a, const ObjectForm& b) {
  return nests_deeply() || !are_disjoint(a, b, 0);
}

TOOLDECODE_INLINE std::vector<ArrayForm> FormAlgebra::difference(ArrayForm from,
                                                                 const ArrayForm& what) {
  std::vector<ArrayForm> result;
  std::size_t bytes = 0;
  bool some_left    = true;
  const auto split  = [&](const ArrayForm& broken, const ArrayForm& kept) {
    if (!some_left) return;
    BuildBudget::spend(2 * steps_of(from));
    if (auto some = intersection(from, broken)) {
      BuildBudget::require_room(bytes += bytes_of(*some));
      result.push_back(std::move(*some));
    }
    auto rest = intersection(from, kept);
    some_left = rest.has_value();
    if (rest) from = std::move(*rest);
  };
  for (const text::Occurrences& length : tooldecode::schema::complement(what.length)) {
    split({.length = length}, {.length = tooldecode::schema::complement(length).front()});
  }
  const std::size_t places = std::max(from.prefix.size(), what.prefix.size());
  for (std::size_t i = 0; i < places; ++i) {
    if (what.item(i) == from.item(i) || what.item(i) == any_form) continue;
    ArrayForm wrong{.length = {static_cast<std::uint32_t>(i + 1)}};
    wrong.prefix.resize(i, any_form);
    ArrayForm right{.prefix = wrong.prefix};
    wrong.prefix.push_back(complement(what.item(i)));
    right.prefix.push_back(what.item(i));
    split(wrong, right);
  }
  if (what.rest != from.rest && what.rest != any_form && from.rest != nothing_form) {
    ArrayForm right{.rest = what.rest};
    right.prefix.resize(places, any_form);
    if (what.rest == nothing_form) {
      split({.length = {static_cast<std::uint32_t>(places + 1)}}, right);
    } else {
      split({.contains = {{complement(what.rest), {1}, places}}}, right);
    }
  }
  for (const ArrayForm::Contains& contains : what.contains) {
    for (const text::Occurrences& count : tooldecode::schema::complement(contains.count)) {
      const text::Occurrences others = tooldecode::schema::complement(count).front();
      split({.contains = {{contains.item, count, contains.from}}},
            {.contains = {{contains.item, others, contains.from}}});
    }
  }
  if (some_left && what.unique && !from.unique) irreducible("items that repeat have no grammar");
  return result;
}

TOOLDECODE_INLINE std::vector<ObjectForm> FormAlgebra::difference(ObjectForm from,
                                                                  const ObjectForm& what) {
  std::vector<ObjectForm> result;
  std::size_t bytes = 0;
  bool some_left    = true;
  // With many rules, parts do not keep the rules before them: parts with all members would fill the
  // memory. The object that keeps all rules is then made once at the end.
  const bool is_long = from.members.size() + what.members.size() + what.dependent.size() > max_kept;
  ObjectForm all_kept;
  const auto split = [&](const ObjectForm& broken, ObjectForm kept) {
    if (!some_left) return;
    BuildBudget::spend(2 * steps_of(from));
    if (auto some = intersection(from, broken)) {
      BuildBudget::require_room(bytes += bytes_of(*some));
      result.push_back(std::move(*some));
    }
    if (is_long && kept.count == text::Occurrences{}) {
      for (ObjectForm::Member& member : kept.members) {
        if (!all_kept.members.empty() && all_kept.members.back().name == member.name) {
          all_kept.members.back().value = member.value;
        } else {
          all_kept.members.push_back(std::move(member));
        }
      }
      append(all_kept.dependent, kept.dependent);
      append(all_kept.together, kept.together);
      return;
    }
    auto rest = intersection(from, kept);
    some_left = rest.has_value();
    if (rest) from = std::move(*rest);
  };
  for (const text::Occurrences& count : tooldecode::schema::complement(what.count)) {
    split({.count = count}, {.count = tooldecode::schema::complement(count).front()});
  }
  const MemberIndex of_from(from), of_what(what);
  const auto own = [&](const std::string& name) {
    return is_long ? of_from.member(name) : from.find(name);
  };
  const auto split_value = [&](const std::string& name, FormId allowed) {
    if (allowed == any_form) return;
    const ObjectForm::Member* member = own(name);
    if (allowed == (member != nullptr ? member->value : value_of_other(from, name))) return;
    split({.members = {{name, complement(allowed), true}}}, {.members = {{name, allowed}}});
  };
  for (const auto& [name, value, required] : what.members) {
    const ObjectForm::Member* member = own(name);
    if (required && (member == nullptr || !member->required)) {
      // Absent or of another value: one part, because both are one alternative.
      const FormId own_value = member != nullptr ? member->value : value_of_other(from, name);
      const FormId other     = value == own_value ? nothing_form : complement(value);
      split({.members = {{name, other}}}, {.members = {{name, value, true}}});
    } else {
      split_value(name, value);
    }
  }
  for (const ObjectForm::Member& member : ObjectForm(from).members) {
    if (of_what.member(member.name) == nullptr) {
      split_value(member.name, value_of_other(what, member.name));
    }
  }
  for (const auto& [name, needed] : what.dependent) {
    if (name == needed) continue;
    split({.members = {{name, any_form, true}, {needed, nothing_form}}},
          {.dependent = {{name, needed}}});
  }
  for (const ObjectForm::Together& together : what.together) {
    split({.together = {together.opposite()}}, {.together = {together}});
  }
  if (some_left && is_long) {
    auto rest = intersection(from, all_kept);
    some_left = rest.has_value();
    if (rest) from = std::move(*rest);
  }
  if (some_left) subtract_others(from, what, result);
  return result;
}

TOOLDECODE_INLINE void FormAlgebra::subtract_others(const ObjectForm& from, const ObjectForm& what,
                                                    std::vector<ObjectForm>& result) {
  bool some_wrong = false, all_wrong = true;
  for (const ObjectForm::OtherKeys& own : from.others) {
    bool covered = false;
    for (const ObjectForm::OtherKeys& other : what.others) {
      const StringTests keys = united(own.keys, other.keys);
      if (keys != own.keys && keys != other.keys && texts.excludes_all(keys)) continue;
      covered |= keys == own.keys;
      if (other.value == any_form || other.value == own.value) {
        all_wrong = false;
      } else {
        some_wrong = true;
        all_wrong  = false;  // wrong for some values only
      }
    }
    some_wrong |= !covered && !is_covered(own, what);
  }
  if (!some_wrong) return;
  if (!all_wrong) irreducible("a further property with a value of its own has no grammar");
  // Every further key is wrong, so counting them is enough, given which members are present.
  ObjectForm named = from;
  MemberIndex of_named(named);
  for (const ObjectForm::Member& member : what.members) {
    if (of_named.find(member.name)) continue;
    of_named.add(named, {member.name, value_of_other(from, member.name)});
  }
  std::vector<std::size_t> optional;
  std::uint32_t present = 1;
  for (std::size_t i = 0; i < named.members.size(); ++i) {
    if (named.members[i].required) {
      ++present;
    } else if (named.members[i].value != nothing_form) {
      optional.push_back(i);
    }
  }
  if (optional.size() > 6) irreducible("an object with some further property has no grammar");
  for (std::size_t chosen = 0; chosen < std::size_t{1} << optional.size(); ++chosen) {
    ObjectForm some       = named;
    std::uint32_t members = present;
    for (std::size_t k = 0; k < optional.size(); ++k) {
      const bool is_there                = (chosen >> k & 1) != 0;
      some.members[optional[k]].required = is_there;
      if (is_there) {
        ++members;
      } else {
        some.members[optional[k]].value = nothing_form;
      }
    }
    some.count.min = std::max(some.count.min, members);
    if (settle(some)) result.push_back(std::move(some));
  }
}

TOOLDECODE_INLINE bool FormAlgebra::is_covered(const ObjectForm::OtherKeys& own,
                                               const ObjectForm& what) {
  if (texts.has_partial(own.keys)) return false;
  text::TextDfa rest = texts.texts(own.keys);
  for (const ObjectForm::OtherKeys& other : what.others) {
    rest = StringSets::without(rest, texts.texts(other.keys));
  }
  return rest.empty();
}

TOOLDECODE_INLINE bool FormAlgebra::are_disjoint(const NumberForm& a, const NumberForm& b,
                                                 std::uint32_t) {
  return !schema::intersection(a, b);
}

TOOLDECODE_INLINE bool FormAlgebra::are_disjoint(const StringForm& a, const StringForm& b,
                                                 std::uint32_t) {
  const auto common = schema::intersection(a, b, texts);
  if (!common) return true;
  if (common->values || a.tests.empty() || b.tests.empty()) return false;
  if (common->tests == a.tests || common->tests == b.tests) return false;
  return texts.excludes_all(common->tests);
}

TOOLDECODE_INLINE bool FormAlgebra::are_disjoint(const ArrayForm& a, const ArrayForm& b,
                                                 std::uint32_t depth) {
  const text::Occurrences length = schema::intersection(a.length, b.length);
  if (length.min > length.max) return true;
  const std::size_t places =
      std::min<std::size_t>(length.min, std::max(a.prefix.size(), b.prefix.size()) + 1);
  for (std::size_t i = 0; i < places; ++i) {
    if (are_disjoint(a.item(i), b.item(i), depth)) return true;
  }
  return false;
}

TOOLDECODE_INLINE bool FormAlgebra::are_disjoint(const ObjectForm& a, const ObjectForm& b,
                                                 std::uint32_t depth) {
  const text::Occurrences count = schema::intersection(a.count, b.count);
  if (count.min > count.max) return true;
  for (const ObjectForm* one : {&a, &b}) {
    const ObjectForm& other = one == &a ? b : a;
    const MemberIndex of_other(other);
    for (const ObjectForm::Member& member : one->members) {
      if (!member.required) continue;
      BuildBudget::spend(1);
      const ObjectForm::Member* known = of_other.member(member.name);
      const FormId value = known != nullptr ? known->value : value_of_other(other, member.name);
      if (are_disjoint(member.value, value, depth)) return true;
    }
  }
  return false;
}

}  // namespace tooldecode::schema
