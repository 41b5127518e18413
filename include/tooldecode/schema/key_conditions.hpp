/// \file
/// What an object's form says of keys together, for sets of members.
#pragma once

#include <cstdint>
#include <functional>

#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/schema/form.hpp>
#include <tooldecode/schema/form_algebra.hpp>

namespace tooldecode::schema {

/// In which order members are written.
enum class MemberOrder : std::uint8_t { any, fixed };

/// Visits objects that together are those of a form, each with conditions that a KeyedSet keeps, and
/// a member for each key that one names.
///
/// \par Complexity  one object where the set keeps the conditions; else O(2^keys) of each that it
///                  does not, see BuildBudget
/// \par Threads     as the algebra
/// \par Errors      Error{limit_exceeded}
void visit_by_conditions(ObjectForm form, FormAlgebra& forms, MemberOrder order,
                         const std::function<void(ObjectForm)>& visit);

/// Gives a set the conditions of a form.
///
/// \param set  has the form's members, each in its place
void add_conditions(KeyedSet& set, const ObjectForm& form);

}  // namespace tooldecode::schema

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/schema/key_conditions.ipp>
#endif
