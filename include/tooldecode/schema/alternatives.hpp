/// \file
/// What two alternatives of one type have in common, as far as it needs no other forms.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/schema/form.hpp>
#include <tooldecode/schema/string_sets.hpp>
#include <tooldecode/text/code_points.hpp>

namespace tooldecode::schema {

/// An automaton of a list of texts.
[[nodiscard]] text::TextDfa texts_of(const std::vector<std::string>& list);

/// Says that a combination of keywords has no grammar; whoever knows the place adds it.
///
/// \param keyword  with a slash before it; empty where the place names it
[[noreturn]] void irreducible(const std::string& what, const std::string& keyword = "");

/// What both bounds allow.
[[nodiscard]] text::Occurrences intersection(const text::Occurrences& a,
                                             const text::Occurrences& b) noexcept;
/// What bounds do not allow: too few, and too many.
[[nodiscard]] std::vector<text::Occurrences> complement(const text::Occurrences& bounds);

/// The numbers of both forms; nothing where bounds or kinds exclude each other.
[[nodiscard]] std::optional<NumberForm> intersection(const NumberForm& a, const NumberForm& b);

/// The numbers of one form that are not in another.
[[nodiscard]] std::vector<NumberForm> difference(const NumberForm& from, const NumberForm& what);

/// The strings of both forms; nothing where they are known to exclude each other.
[[nodiscard]] std::optional<StringForm> intersection(const StringForm& a, const StringForm& b,
                                                     StringSets& sets);

/// The strings of one form that are not in another.
[[nodiscard]] std::vector<StringForm> difference(const StringForm& from, const StringForm& what,
                                                 StringSets& sets);

/// Tests that hold for the texts of the forms, and for no others.
[[nodiscard]] StringTests tests_of(const std::vector<StringForm>& forms, StringSets& sets);

/// Takes what an array's bounds and impossible items say of each other into account; gives false
/// where no array is left.
[[nodiscard]] bool settle(ArrayForm& form);

/// Takes what an object's bounds and impossible members say of each other into account; gives
/// false where no object is left.
[[nodiscard]] bool settle(ObjectForm& form);

/// Appends what is not there yet, as far as that is easily told.
template <class Form>
void append(std::vector<Form>& into, const std::vector<Form>& more) {
  for (const Form& form : more) {
    if (into.size() < 64 && std::find(into.begin(), into.end(), form) != into.end()) continue;
    into.push_back(form);
  }
}

/// Adds the alternatives of another form; lists of texts become one list.
void add_alternatives(Form& into, const Form& other);

}  // namespace tooldecode::schema

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/schema/alternatives.ipp>
#endif
