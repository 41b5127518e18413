/// \file
/// merge_objects: merges object alternatives that one alternative can express.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/schema/alternatives.hpp>
#include <tooldecode/schema/form.hpp>
#include <tooldecode/schema/member_index.hpp>

namespace tooldecode::schema {

namespace detail {

// One alternative equal to the union of some; nullopt if it needs more than a condition on few
// keys, or the values of one member.
template <class Forms>
[[nodiscard]] std::optional<ObjectForm> find_union(const std::vector<const ObjectForm*>& some,
                                                   Forms& forms) {
  const ObjectForm& first = *some[0];
  for (const ObjectForm* one : some) {
    BuildBudget::spend(2 * steps_of(*one));
    if (one->count != text::Occurrences{} || !one->dependent.empty() || !one->together.empty() ||
        one->others != first.others || one->evaluated != first.evaluated ||
        one->closes != first.closes || (one->closes && one->named != first.named)) {
      return std::nullopt;
    }
  }
  ObjectForm all = first;
  for (const ObjectForm* one : some) all.named = united(all.named, one->named);
  MemberIndex of_all(all);
  for (const ObjectForm* one : some) {
    for (const ObjectForm::Member& member : one->members) {
      if (!of_all.find(member.name)) of_all.add(all, {member.name});
    }
  }
  // The order of members must agree with that of each alternative.
  for (const ObjectForm* one : some) {
    std::uint32_t next = 0;
    for (const ObjectForm::Member& member : one->members) {
      if (member.value == nothing_form) continue;
      const std::uint32_t place = *of_all.find(member.name);
      if (place < next) return std::nullopt;
      next = place + 1;
    }
  }
  std::vector<MemberIndex> of_some;
  for (const ObjectForm* one : some) of_some.emplace_back(*one);
  std::vector<std::vector<ObjectForm::Member>> varying;  // [keys, alternatives]
  bool same_values = true;
  for (ObjectForm::Member& member : all.members) {
    std::vector<ObjectForm::Member> ways;
    FormId value = nothing_form;
    for (std::size_t i = 0; i < some.size(); ++i) {
      const ObjectForm::Member* own = of_some[i].member(member.name);
      ways.push_back(own != nullptr ? *own
                                    : ObjectForm::Member{member.name, forms.value_of_other(
                                                                          *some[i], member.name)});
      const FormId one = ways.back().value;
      if (one == nothing_form) continue;
      same_values &= value == nothing_form || value == one;
      value = forms.either(value, one);
    }
    member.value    = value;
    member.required = std::all_of(ways.begin(), ways.end(),
                                  [](const ObjectForm::Member& way) { return way.required; });
    if (std::all_of(ways.begin(), ways.end(), [&](const auto& way) { return way == ways[0]; })) {
      continue;
    }
    varying.push_back(std::move(ways));
    if (varying.size() > (same_values ? ObjectForm::Together::max_keys : 1)) return std::nullopt;
  }
  if (varying.size() < 2) return all;
  std::sort(varying.begin(), varying.end(),
            [](const auto& a, const auto& b) { return a[0].name < b[0].name; });
  ObjectForm::Together together;
  for (const auto& ways : varying) together.keys.push_back(ways[0].name);
  for (std::size_t i = 0; i < some.size(); ++i) {
    ObjectForm::Together one{together.keys, together.sets()};
    for (std::size_t k = 0; k < varying.size(); ++k) {
      if (varying[k][i].value == nothing_form) one.forbid(k);
      if (varying[k][i].required) one.require(k);
    }
    together.allowed |= one.allowed;
  }
  all.together.push_back(std::move(together));
  if (!settle(all)) return std::nullopt;
  return all;
}

}  // namespace detail

/// Merges object alternatives that differ only in which keys are present, or only in one member, so
/// that combinations with other forms do not multiply.
///
/// \par Complexity  O(alternatives^2 x their members), for few alternatives
/// \par Threads     one at a time per `forms`
/// \par Errors      Error{limit_exceeded}, see BuildBudget
template <class Forms>
void merge_objects(Form& form, Forms& forms) {
  constexpr std::size_t max_merged = 16;
  auto& objects                    = form.objects;
  if (objects.size() < 2 || objects.size() > max_merged) return;
  const auto of = [&](std::initializer_list<std::size_t> places) {
    std::vector<const ObjectForm*> some;
    for (const std::size_t i : places) some.push_back(&objects[i]);
    return some;
  };
  std::vector<const ObjectForm*> all;
  for (const ObjectForm& one : objects) all.push_back(&one);
  if (auto one = detail::find_union(all, forms)) {
    objects = {std::move(*one)};
    return;
  }
  for (std::size_t i = 0; i < objects.size(); ++i) {
    for (std::size_t j = i + 1; j < objects.size();) {
      if (auto one = detail::find_union(of({i, j}), forms)) {
        objects[i] = std::move(*one);
        objects.erase(objects.begin() + static_cast<std::ptrdiff_t>(j));
        j = i + 1;
      } else {
        ++j;
      }
    }
  }
}

}  // namespace tooldecode::schema
