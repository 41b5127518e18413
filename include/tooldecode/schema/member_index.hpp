/// \file
/// MemberIndex: looks up the members of an object form by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/schema/form.hpp>

namespace tooldecode::schema {

/// Finds members by name in constant time; scans if there are only a few. While you use the index,
/// change the form's members only with `add`.
///
/// \par Complexity  construction O(members), O(length of the name) per call
/// \par Threads     one at a time
/// \par Errors      Error{limit_exceeded}, see BuildBudget
class MemberIndex {
 public:
  explicit MemberIndex(const ObjectForm& form);

  [[nodiscard]] std::optional<std::uint32_t> find(const std::string& name) const;
  [[nodiscard]] const ObjectForm::Member* member(const std::string& name) const;
  /// Appends a member with a new name to the indexed form; returns its index.
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
