/// \file
/// The keys of objects: the classes that patterns make of them, and those that a form leaves.
#pragma once

#include <cstddef>
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

/// The member of a name, which the form gets where it has none.
///
/// \param members  those of the form
ObjectForm::Member& member_of(ObjectForm& form, MemberIndex& members, const std::string& name,
                              FormAlgebra& forms);
/// Makes names required.
void require_names(ObjectForm& form, const std::vector<std::string>& names, FormAlgebra& forms);
/// The form of a member's values, which those of the patterns that its name matches are, too.
///
/// \param patterns  sets of texts, and the forms of the values that their keys have
[[nodiscard]] FormId value_among(const std::vector<std::pair<std::uint32_t, FormId>>& patterns,
                                 const std::string& name, FormId value, FormAlgebra& forms);
/// The classes of keys that patterns make.
///
/// \param patterns  sets of texts, and the forms of the values that their keys have
/// \param rest      the form of the values of keys that match none
[[nodiscard]] std::vector<ObjectForm::Others> key_classes(
    const std::vector<std::pair<std::uint32_t, FormId>>& patterns, FormId rest, FormAlgebra& forms);

/// Leaves the keys that are texts of a form.
void restrict_names(ObjectForm& form, const Form& names, FormAlgebra& forms);

}  // namespace tooldecode::schema

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/schema/object_keys.ipp>
#endif
