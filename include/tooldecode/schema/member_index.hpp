/// \file
/// MemberIndex: the members of an object's form by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

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
  explicit MemberIndex(const ObjectForm& form);

  /// The place of a member.
  [[nodiscard]] std::optional<std::uint32_t> find(const std::string& name) const;
  /// The member of a name, or null.
  [[nodiscard]] const ObjectForm::Member* member(const std::string& name) const;
  /// Appends a member to the form that was given, whose name none has yet; gives its place.
  std::uint32_t add(ObjectForm& form, ObjectForm::Member member);

 private:
  static constexpr std::size_t max_looked_through = 12;

  void index();

  const ObjectForm& form_;
  std::unordered_map<std::string, std::uint32_t> by_name_;
};

}  // namespace tooldecode::schema

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/schema/member_index.ipp>
#endif
