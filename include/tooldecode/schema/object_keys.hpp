/// \file
/// Object keys: the classes that patterns divide them into, and restrictions of a form's keys.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/schema/alternatives.hpp>
#include <tooldecode/schema/form.hpp>
#include <tooldecode/schema/form_algebra.hpp>
#include <tooldecode/schema/member_index.hpp>
#include <tooldecode/schema/string_sets.hpp>

namespace tooldecode::schema {

/// The member with a name, added to the form if it has none.
///
/// \param members  the index of the form
ObjectForm::Member& member_of(ObjectForm& form, MemberIndex& members, const std::string& name,
                              FormAlgebra& forms);
/// Makes names required.
void require_names(ObjectForm& form, const std::vector<std::string>& names, FormAlgebra& forms);
/// Intersects a member's value form with those of the patterns that its name matches.
///
/// \param patterns  sets of texts, and the forms of their keys' values
[[nodiscard]] FormId value_among(const std::vector<std::pair<std::uint32_t, FormId>>& patterns,
                                 const std::string& name, FormId value, FormAlgebra& forms);
/// Divides the keys into classes by patterns.
///
/// \param patterns  sets of texts, and the forms of their keys' values
/// \param rest      the form of the values of keys that match no pattern
[[nodiscard]] std::vector<ObjectForm::OtherKeys> key_classes(
    const std::vector<std::pair<std::uint32_t, FormId>>& patterns, FormId rest, FormAlgebra& forms);

/// Keeps only the keys that are texts of a form.
void restrict_names(ObjectForm& form, const Form& names, FormAlgebra& forms);

}  // namespace tooldecode::schema

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/schema/object_keys.ipp>
#endif
