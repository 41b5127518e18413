/// \file
/// ItemCounts: `contains` as a grammar: arrays in which a given number of items conform to a form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/schema/alternatives.hpp>
#include <tooldecode/schema/form.hpp>
#include <tooldecode/schema/form_algebra.hpp>

namespace tooldecode::schema {

/// Builds items one by one and counts those that conform to each form of a list. Counts saturate
/// where they no longer matter, to keep the nodes few. If there is only a minimum, an item may
/// conform without being counted, which avoids the form's complement.
///
/// \par Complexity  O(items that matter x counts that matter x subsets of the list)
/// \par Threads     one at a time per Grammar
/// \par Errors      Error{limit_exceeded} past `max_states`; those of FormAlgebra
class ItemCounts {
 public:
  static constexpr std::size_t max_states = 2000;

  ItemCounts(Grammar& grammar, FormAlgebra& forms, NodeId comma,
             std::function<NodeId(FormId)> value);

  /// The items of an array, without brackets.
  [[nodiscard]] NodeId operator()(const ArrayForm& form);

 private:
  struct State {
    std::size_t items;
    std::vector<std::uint32_t> counts;
    friend auto operator<=>(const State&, const State&) = default;
  };

  [[noreturn]] static void too_many();

  // The node of the items after a state, defined or to be defined.
  NodeId after(const State& state);
  // What may follow a state.
  NodeId choices_after(const State& state);

  // Whether an item that also conforms to a form may have more keys.
  [[nodiscard]] bool names_more(FormId form, FormId item) const;

  // Adds a further item that counts for the chosen forms.
  void add_item(const State& state, std::size_t chosen, std::vector<NodeId>& choices);

  Grammar& grammar_;
  FormAlgebra& forms_;
  NodeId comma_;
  std::function<NodeId(FormId)> value_;
  const ArrayForm* form_ = nullptr;
  std::size_t least_     = 0;  // items
  std::size_t last_      = 0;
  std::map<State, NodeId> known_;
  std::vector<std::pair<State, NodeId>> open_;  // known, but not defined
};

}  // namespace tooldecode::schema

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/schema/item_counts.ipp>
#endif
