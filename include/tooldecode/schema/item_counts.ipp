#pragma once

#include <algorithm>
#include <utility>

#include <tooldecode/schema/item_counts.hpp>

namespace tooldecode::schema {

TOOLDECODE_INLINE ItemCounts::ItemCounts(Grammar& grammar, FormAlgebra& forms, NodeId comma,
                                         std::function<NodeId(FormId)> value)
    : grammar_(grammar), forms_(forms), comma_(comma), value_(std::move(value)) {}

TOOLDECODE_INLINE NodeId ItemCounts::operator()(const ArrayForm& form) {
  form_  = &form;
  known_ = {};
  if (form.contains.size() > 4) irreducible("too many forms that an array must contain");
  const bool open = form.length.max == text::Occurrences::unbounded;
  least_          = form.length.min;
  last_           = form.prefix.size() + 1;
  for (const ArrayForm::Contains& contains : form.contains) {
    last_ = std::max(last_, contains.from + 1);
    // Arrays with so many conforming items are long enough: their lengths need no states.
    const std::uint32_t least = contains.count.min;
    if (least != 0 && contains.from + least >= form.length.min) least_ = 0;
  }
  last_ = std::max(last_, least_);
  if (!open) last_ = form.length.max;
  if (last_ > max_states) too_many();
  const NodeId first = after({0, std::vector<std::uint32_t>(form.contains.size(), 0)});
  // A list, because calls would nest as deeply as there are items.
  while (!open_.empty()) {
    const auto [state, node] = std::move(open_.back());
    open_.pop_back();
    grammar_.define(node, choices_after(state));
  }
  return first;
}

TOOLDECODE_INLINE bool ItemCounts::names_more(FormId form, FormId item) const {
  return std::ranges::any_of(forms_[item].objects, [&](const ObjectForm& closed) {
    return closed.closes && std::ranges::any_of(forms_[form].objects, [&](const ObjectForm& other) {
             return united(closed.named, other.named) != closed.named;
           });
  });
}

TOOLDECODE_INLINE void ItemCounts::too_many() {
  throw Error(Errc::limit_exceeded, "/contains",
              "an array that contains items needs too many states");
}

TOOLDECODE_INLINE NodeId ItemCounts::after(const State& state) {
  if (const auto known = known_.find(state); known != known_.end()) return known->second;
  if (known_.size() >= max_states) too_many();
  const NodeId node = grammar_.reserve();
  known_.emplace(state, node);
  open_.emplace_back(state, node);
  return node;
}

TOOLDECODE_INLINE NodeId ItemCounts::choices_after(const State& state) {
  const auto& contains = form_->contains;
  std::vector<NodeId> choices;
  bool may_end = state.items >= least_;
  for (std::size_t k = 0; k < contains.size(); ++k) {
    may_end &= state.counts[k] >= contains[k].count.min;
  }
  if (may_end) choices.push_back(grammar_.empty());
  const bool full =
      form_->length.max != text::Occurrences::unbounded && state.items >= form_->length.max;
  for (std::size_t chosen = 0; !full && chosen < std::size_t{1} << contains.size(); ++chosen) {
    add_item(state, chosen, choices);
  }
  return grammar_.choice(std::move(choices));
}

TOOLDECODE_INLINE void ItemCounts::add_item(const State& state, std::size_t chosen,
                                            std::vector<NodeId>& choices) {
  State next{std::min(state.items + 1, last_), state.counts};
  FormId item = form_->item(state.items);
  for (std::size_t k = 0; k < form_->contains.size(); ++k) {
    const auto& [form, count, from] = form_->contains[k];
    const bool counted              = (chosen >> k & 1) != 0;
    const bool open                 = count.max == text::Occurrences::unbounded;
    const bool settled              = state.items < from || (open && state.counts[k] >= count.min);
    if (settled && counted) {  // not counted any more, but may have the keys that the form names
      if (state.items < from || !names_more(form, item)) return;
      item = forms_.both(item, form);
      continue;
    }
    if (settled) continue;
    if (counted && ++next.counts[k] > count.max) return;
    if (counted) {
      item = forms_.both(item, form);
    } else if (!open) {
      item = forms_.both(item, forms_.complement(form));
    }
  }
  if (item == nothing_form) return;
  const NodeId content = value_(item);
  const NodeId rest    = after(next);
  choices.push_back(state.items == 0 ? grammar_.sequence({content, rest})
                                     : grammar_.sequence({comma_, content, rest}));
}

}  // namespace tooldecode::schema
