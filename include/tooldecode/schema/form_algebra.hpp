/// \file
/// FormAlgebra: union, intersection and difference of forms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/schema/alternatives.hpp>
#include <tooldecode/schema/form.hpp>
#include <tooldecode/schema/form_table.hpp>
#include <tooldecode/schema/member_index.hpp>
#include <tooldecode/schema/merge_objects.hpp>
#include <tooldecode/schema/string_sets.hpp>

namespace tooldecode::schema {

/// Computes unions, intersections and differences of forms, and whether they are disjoint,
/// alternative by alternative.
///
/// \par Complexity  O(pairs of alternatives x their members) per form
/// \par Threads     one at a time
/// \par Errors      Error{unsupported_keyword} if a result has no form; Error{limit_exceeded}, see
///                  BuildBudget
class FormAlgebra : public FormTable {
 public:
  using FormTable::FormTable;

  StringSets texts;
  void unite(Form& into, const Form& other);

  [[nodiscard]] Form intersection(const Form& a, const Form& b);

  [[nodiscard]] Form difference(const Form& from, const Form& what);

  /// The difference, but if `what` is a complement, the intersection of `from` and the form that it
  /// complements.
  [[nodiscard]] Form without(const Form& from, FormId what);

  /// The intersection of `from` and all of `ids`. Complements come last, as differences: what is
  /// left of few values may have a form where the complement alone has none.
  [[nodiscard]] Form within(Form from, std::span<const FormId> ids);

  /// Whether no value is in both forms; false if unknown.
  [[nodiscard]] bool are_disjoint(const Form& a, const Form& b, std::uint32_t depth = 0);

  [[nodiscard]] bool are_disjoint(FormId a, FormId b, std::uint32_t depth = 0);

  [[nodiscard]] FormId value_of(const ObjectForm& form, const std::string& name);
  /// The form of the values of a key that no member has.
  [[nodiscard]] FormId value_of_other(const ObjectForm& form, const std::string& name);

 private:
  static constexpr std::uint32_t max_looked_into = 6;
  static constexpr std::size_t max_kept          = 64;

  Form complement_of(const Form& form) override;
  Form conjunction(std::span<const FormId> parts) override;

  [[nodiscard]] std::optional<ArrayForm> intersection(const ArrayForm& a, const ArrayForm& b);

  [[nodiscard]] std::optional<ObjectForm> intersection(const ObjectForm& a, const ObjectForm& b);
  // False if no object is in both; true if unknown.
  [[nodiscard]] bool may_meet(const ObjectForm& a, const ObjectForm& b);

  // A difference is a list of disjoint parts, unless there are very many: each part breaks one rule
  // and keeps the ones before, so that differences of many forms do not multiply.

  [[nodiscard]] std::vector<ArrayForm> difference(ArrayForm from, const ArrayForm& what);

  [[nodiscard]] std::vector<ObjectForm> difference(ObjectForm from, const ObjectForm& what);

  // Adds the objects with a key that is no member of either form and whose value `what` forbids.
  void subtract_others(const ObjectForm& from, const ObjectForm& what,
                       std::vector<ObjectForm>& result);
  // Whether another form's classes together contain all keys of a class.
  bool is_covered(const ObjectForm::OtherKeys& own, const ObjectForm& what);

  // Whether alternatives of one type are disjoint; false if it is not easy to see.

  bool are_disjoint(const NumberForm& a, const NumberForm& b, std::uint32_t);
  bool are_disjoint(const StringForm& a, const StringForm& b, std::uint32_t);
  bool are_disjoint(const ArrayForm& a, const ArrayForm& b, std::uint32_t depth);
  bool are_disjoint(const ObjectForm& a, const ObjectForm& b, std::uint32_t depth);

  std::map<std::pair<FormId, FormId>, bool> disjoint_;
};

}  // namespace tooldecode::schema

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/schema/form_algebra.ipp>
#endif
