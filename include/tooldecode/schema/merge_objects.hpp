/// \file
/// merge_objects: merges object alternatives that one alternative can express.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/schema/alternatives.hpp>
#include <tooldecode/schema/form.hpp>
#include <tooldecode/schema/member_index.hpp>

namespace tooldecode::schema {

namespace detail {

// What an object says of a key.
struct KeyUse {
  FormId value;
  bool required;
  bool operator==(const KeyUse&) const = default;
};

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
  std::vector<MemberIndex> of_some;
  for (const ObjectForm* one : some) of_some.emplace_back(*one);
  std::vector<const std::string*> keys;
  std::vector<KeyUse> uses;          // [keys, alternatives]
  std::vector<std::size_t> varying;  // indices of keys
  bool same_values = true;
  for (std::size_t from = 0; from < some.size(); ++from) {
    for (const ObjectForm::Member& member : some[from]->members) {
      const auto names_it = [&](const MemberIndex& one) {
        return one.member(member.name) != nullptr;
      };
      if (std::any_of(of_some.begin(), of_some.begin() + static_cast<std::ptrdiff_t>(from),
                      names_it)) {
        continue;
      }
      const std::size_t row = uses.size();
      FormId value          = nothing_form;
      bool varies           = false;
      for (std::size_t i = 0; i < some.size(); ++i) {
        const ObjectForm::Member* own = of_some[i].member(member.name);
        uses.push_back(own != nullptr ? KeyUse{own->value, own->required}
                                      : KeyUse{forms.value_of_other(*some[i], member.name), false});
        const KeyUse& use = uses.back();
        varies |= use != uses[row];
        if (use.value == nothing_form) continue;
        same_values &= value == nothing_form || value == use.value;
        value = use.value;
      }
      if (varies) varying.push_back(keys.size());
      if (varying.size() > (same_values ? ObjectForm::Together::max_keys : 1)) return std::nullopt;
      keys.push_back(&member.name);
    }
  }
  ObjectForm all = first;
  for (const ObjectForm* one : some) all.named = united(all.named, one->named);
  all.members.clear();
  for (const std::string* key : keys) all.members.push_back({*key});
  const MemberIndex of_all(all);
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
  const auto uses_of = [&](std::size_t key) {
    return std::span(uses).subspan(key * some.size(), some.size());
  };
  for (std::size_t key = 0; key < keys.size(); ++key) {
    ObjectForm::Member& member = all.members[key];
    member.value               = nothing_form;
    for (const KeyUse& use : uses_of(key)) member.value = forms.either(member.value, use.value);
    member.required = std::ranges::all_of(uses_of(key), &KeyUse::required);
  }
  if (varying.size() < 2) return all;
  std::ranges::sort(varying, {}, [&](std::size_t key) -> const std::string& { return *keys[key]; });
  ObjectForm::Together together;
  for (const std::size_t key : varying) together.keys.push_back(*keys[key]);
  for (std::size_t i = 0; i < some.size(); ++i) {
    ObjectForm::Together one{together.keys, together.sets()};
    for (std::size_t k = 0; k < varying.size(); ++k) {
      const KeyUse& use = uses_of(varying[k])[i];
      if (use.value == nothing_form) one.forbid(k);
      if (use.required) one.require(k);
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
