/// \file
/// Operations on two alternatives of one type that need no other forms.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/schema/form.hpp>
#include <tooldecode/schema/string_sets.hpp>
#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/text_dfa.hpp>

namespace tooldecode::schema {

namespace detail {

// Builds the smallest automaton of texts that come in ascending order.
//
// A trie with a row for each node and a column for each character would be quadratic: here equal
// ends of texts are one state, and characters with the same steps are one class.
//
// Source: Daciuk et al., Incremental Construction of Minimal Acyclic Finite-State Automata, 2000.
class TextList {
 public:
  void add(const std::u32string& text);
  // Throws Error{limit_exceeded} if states x classes pass TextDfa::max_cells.
  [[nodiscard]] text::TextDfa dfa();

 private:
  struct State {
    bool accepting = false;
    std::vector<std::pair<char32_t, text::TextDfa::State>> next{};  // ascending
    friend auto operator<=>(const State&, const State&) = default;
  };

  // Numbers the states of the last text past a length.
  void finish(std::size_t length);
  text::TextDfa::State number(State state);

  std::u32string last_;
  std::vector<State> path_{{}};  // [last_.size() + 1], the states of the last text
  std::map<State, text::TextDfa::State> numbers_;
};

}  // namespace detail

/// An automaton for a list of texts; Error{limit_exceeded} if they differ in too many characters
/// at too many places.
[[nodiscard]] text::TextDfa texts_of(const std::vector<std::string>& list);

/// Throws: this combination of keywords has no grammar. A caller that knows the place adds it.
///
/// \param keyword  with a leading slash; empty if the place already names it
[[noreturn]] void irreducible(const std::string& what, const std::string& keyword = "");

/// The counts that both bounds allow.
[[nodiscard]] text::Occurrences intersection(const text::Occurrences& a,
                                             const text::Occurrences& b) noexcept;
/// The counts that bounds exclude: below the minimum and above the maximum.
[[nodiscard]] std::vector<text::Occurrences> complement(const text::Occurrences& bounds);

/// The numbers of both forms; nullopt if bounds or kinds exclude each other.
[[nodiscard]] std::optional<NumberForm> intersection(const NumberForm& a, const NumberForm& b);

/// The numbers of `from` that are not in `what`.
[[nodiscard]] std::vector<NumberForm> difference(const NumberForm& from, const NumberForm& what);

/// The strings of both forms; nullopt if they are known to be disjoint.
[[nodiscard]] std::optional<StringForm> intersection(const StringForm& a, const StringForm& b,
                                                     StringSets& sets);

/// The strings of `from` that are not in `what`.
[[nodiscard]] std::vector<StringForm> difference(const StringForm& from, const StringForm& what,
                                                 StringSets& sets);

/// Tests that hold for exactly the texts of the forms.
[[nodiscard]] StringTests tests_of(const std::vector<StringForm>& forms, StringSets& sets);

/// Applies what an array's bounds and impossible items imply for each other; returns false if no
/// array is left.
[[nodiscard]] bool settle(ArrayForm& form);

/// Applies what an object's bounds and impossible members imply for each other; returns false if no
/// object is left.
[[nodiscard]] bool settle(ObjectForm& form);

/// Appends forms that are not there yet; long lists are not searched for duplicates.
template <class Form>
void append(std::vector<Form>& into, const std::vector<Form>& more) {
  for (const Form& form : more) {
    if (into.size() < 64 && std::find(into.begin(), into.end(), form) != into.end()) continue;
    into.push_back(form);
  }
}

/// Adds the alternatives of another form; lists of texts are joined.
void add_alternatives(Form& into, const Form& other);

}  // namespace tooldecode::schema

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/schema/alternatives.ipp>
#endif
