#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/schema/alternatives.hpp>
#include <tooldecode/schema/key_conditions.hpp>
#include <tooldecode/schema/member_index.hpp>
#include <tooldecode/schema/object_keys.hpp>

namespace tooldecode::schema {

namespace detail {

TOOLDECODE_INLINE std::size_t count_shared(const std::vector<std::string>& a,
                                           const std::vector<std::string>& b) {
  return static_cast<std::size_t>(std::count_if(a.begin(), a.end(), [&](const std::string& one) {
    return std::find(b.begin(), b.end(), one) != b.end();
  }));
}

// Makes conditions one that have keys in common; gives false where a set of members cannot keep
// them: they have too many keys, or more is asked of which members there are.
TOOLDECODE_INLINE bool join_conditions(ObjectForm& form, MemberOrder order) {
  if (form.together.empty()) return true;
  if (form.count != text::Occurrences{} || !form.dependent.empty() || order == MemberOrder::fixed) {
    return false;
  }
  auto& all = form.together;
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = i + 1; j < all.size();) {
      BuildBudget::spend(20);
      const std::size_t shared = count_shared(all[i].keys, all[j].keys);
      if (shared == 0) {
        ++j;
        continue;
      }
      if (all[i].keys.size() + all[j].keys.size() - shared > ObjectForm::Together::max_keys) {
        return false;
      }
      all[i] = ObjectForm::Together::joined(all[i], all[j]);
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(j));
      j = i + 1;
    }
  }
  return true;
}

// A condition with its keys as places, ascending.
TOOLDECODE_INLINE KeyedSet::Together with_places(
    const ObjectForm::Together& together, std::vector<std::pair<std::uint32_t, std::size_t>> keys) {
  std::sort(keys.begin(), keys.end());
  KeyedSet::Together result;
  for (const auto& [place, key] : keys) result.keys.push_back(place);
  for (std::uint32_t set = 0; set < 1U << keys.size(); ++set) {
    std::uint32_t own = 0;
    for (std::size_t i = 0; i < keys.size(); ++i) own |= (set >> i & 1) << keys[i].second;
    result.allowed |= std::uint64_t{together.allows(own)} << set;
  }
  return result;
}

}  // namespace detail

TOOLDECODE_INLINE void visit_by_conditions(ObjectForm form, FormAlgebra& forms, MemberOrder order,
                                           const std::function<void(ObjectForm)>& visit) {
  if (detail::join_conditions(form, order)) {
    MemberIndex index(form);
    for (const auto& [name, needed] : form.dependent) {
      for (const std::string& one : {name, needed}) (void)member_of(form, index, one, forms);
    }
    for (const ObjectForm::Together& together : form.together) {
      for (const std::string& one : together.keys) (void)member_of(form, index, one, forms);
    }
    visit(std::move(form));
    return;
  }
  const ObjectForm::Together together = std::move(form.together.back());
  form.together.pop_back();
  for (std::uint32_t set = 0; set < 1U << together.keys.size(); ++set) {
    if (!together.allows(set)) continue;
    BuildBudget::spend(50 + 5 * form.members.size());
    ObjectForm one = form;
    MemberIndex index(one);
    for (std::size_t i = 0; i < together.keys.size(); ++i) {
      ObjectForm::Member& member = member_of(one, index, together.keys[i], forms);
      if ((set >> i & 1) != 0) {
        member.required = true;
      } else {
        member.value = nothing_form;
      }
    }
    if (settle(one)) visit_by_conditions(std::move(one), forms, order, visit);
  }
}

TOOLDECODE_INLINE void add_conditions(KeyedSet& set, const ObjectForm& form) {
  const MemberIndex places(form);
  for (const auto& [name, needed] : form.dependent) {
    set.dependent.emplace_back(*places.find(name), *places.find(needed));
  }
  for (const ObjectForm::Together& together : form.together) {
    std::vector<std::pair<std::uint32_t, std::size_t>> keys;
    for (std::size_t i = 0; i < together.keys.size(); ++i) {
      keys.emplace_back(*places.find(together.keys[i]), i);
    }
    set.together.push_back(detail::with_places(together, std::move(keys)));
  }
}

}  // namespace tooldecode::schema
