/// \file
/// MemberIndex: the members of an object's form by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/schema/form.hpp>

namespace tooldecode::schema {

/// Finds members by their names in time that does not grow with their number; a few are looked
/// through. The form keeps its members while the index is used, but for those that `add` adds.
///
/// \par Complexity  O(members) to construct, O(length of the name) per call
/// \par Threads     one at a time
/// \par Errors      Error{limit_exceeded}, see BuildBudget
class MemberIndex {
 public:
  explicit MemberIndex(const ObjectForm& form) : form_(form) {
    if (form.members.size() > max_looked_through) index();
  }

  /// The place of a member.
  [[nodiscard]] std::optional<std::uint32_t> find(const std::string& name) const {
    if (by_name_.empty()) {
      for (std::uint32_t i = 0; i < form_.members.size(); ++i) {
        if (form_.members[i].name == name) return i;
      }
      return std::nullopt;
    }
    const auto at = by_name_.find(name);
    return at == by_name_.end() ? std::nullopt : std::optional(at->second);
  }
  /// The member of a name, or null.
  [[nodiscard]] const ObjectForm::Member* member(const std::string& name) const {
    const auto at = find(name);
    return at ? &form_.members[*at] : nullptr;
  }
  /// Appends a member to the form that was given, whose name none has yet; gives its place.
  std::uint32_t add(ObjectForm& form, ObjectForm::Member member) {
    const auto place = static_cast<std::uint32_t>(form.members.size());
    if (!by_name_.empty()) by_name_.emplace(member.name, place);
    form.members.push_back(std::move(member));
    if (by_name_.empty() && form.members.size() > max_looked_through) index();
    return place;
  }

 private:
  static constexpr std::size_t max_looked_through = 12;

  void index() {
    BuildBudget::spend(4 * form_.members.size());
    by_name_.reserve(form_.members.size());
    // Of members of one name the first counts.
    for (std::uint32_t i = 0; i < form_.members.size(); ++i) {
      by_name_.emplace(form_.members[i].name, i);
    }
  }

  const ObjectForm& form_;
  std::unordered_map<std::string, std::uint32_t> by_name_;
};

}  // namespace tooldecode::schema
