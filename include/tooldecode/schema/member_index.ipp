#pragma once

#include <utility>

#include <tooldecode/schema/member_index.hpp>

namespace tooldecode::schema {

TOOLDECODE_INLINE MemberIndex::MemberIndex(const ObjectForm& form) : form_(form) {
  if (form.members.size() > max_looked_through) index();
}

TOOLDECODE_INLINE std::optional<std::uint32_t> MemberIndex::find(const std::string& name) const {
  if (by_name_.empty()) {
    for (std::uint32_t i = 0; i < form_.members.size(); ++i) {
      if (form_.members[i].name == name) return i;
    }
    return std::nullopt;
  }
  const auto at = by_name_.find(name);
  return at == by_name_.end() ? std::nullopt : std::optional(at->second);
}

TOOLDECODE_INLINE const ObjectForm::Member* MemberIndex::member(const std::string& name) const {
  const auto at = find(name);
  return at ? &form_.members[*at] : nullptr;
}

TOOLDECODE_INLINE std::uint32_t MemberIndex::add(ObjectForm& form, ObjectForm::Member member) {
  const auto place = static_cast<std::uint32_t>(form.members.size());
  if (!by_name_.empty()) by_name_.emplace(member.name, place);
  form.members.push_back(std::move(member));
  if (by_name_.empty() && form.members.size() > max_looked_through) index();
  return place;
}

TOOLDECODE_INLINE void MemberIndex::index() {
  BuildBudget::spend(4 * form_.members.size());
  by_name_.reserve(form_.members.size());
  // The first of several members with one name counts.
  for (std::uint32_t i = 0; i < form_.members.size(); ++i) {
    by_name_.emplace(form_.members[i].name, i);
  }
}

}  // namespace tooldecode::schema
