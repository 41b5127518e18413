#pragma once

#include <algorithm>
#include <iterator>

#include <tooldecode/schema/form_table.hpp>

namespace tooldecode::schema {

TOOLDECODE_INLINE FormTable::FormTable(FormSource* source) : source_(source) {
  nodes_.resize(2);  // any_form and nothing_form
}

TOOLDECODE_INLINE FormTable::Origin::Origin(FormTable& forms, std::string place)
    : forms_(forms), outer_(std::exchange(forms.origin_, std::move(place))) {}

TOOLDECODE_INLINE FormTable::Origin::~Origin() {
  forms_.origin_ = std::move(outer_);
}

TOOLDECODE_INLINE FormId FormTable::add_read(std::uint32_t schema, const std::string& place) {
  return add(Node{.read = schema, .origin = place});
}

TOOLDECODE_INLINE FormId FormTable::add(Form form) {
  BuildBudget::spend(0, bytes_of(form));
  return add(Node{.origin = origin_, .form = std::move(form)});
}

TOOLDECODE_INLINE FormId FormTable::both(FormId a, FormId b) {
  if (a == nothing_form || b == nothing_form) return nothing_form;
  if (a == any_form || a == b) return b;
  if (b == any_form) return a;
  const auto parts = [&](FormId id) {
    const Node& node = nodes_[id.index()];
    return node.parts.empty() || node.is_union ? std::vector<FormId>{id} : node.parts;
  };
  const std::vector<FormId> of_a = parts(a), of_b = parts(b);
  BuildBudget::spend(5 + of_a.size() + of_b.size());
  std::vector<FormId> all;
  std::set_union(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(), std::back_inserter(all));
  for (const FormId part : all) {
    const auto inverse = complements_.find(part);
    if (inverse != complements_.end() &&
        std::binary_search(all.begin(), all.end(), inverse->second)) {
      return nothing_form;
    }
  }
  const auto known = conjunctions_.find(all);
  if (known != conjunctions_.end()) return known->second;
  const FormId id = add(Node{.parts = all, .origin = origin_});
  conjunctions_.emplace(std::move(all), id);
  return id;
}

TOOLDECODE_INLINE FormId FormTable::either(FormId a, FormId b) {
  if (a == any_form || b == any_form) return any_form;
  if (a == nothing_form || a == b) return b;
  if (b == nothing_form) return a;
  const std::pair<FormId, FormId> key = std::minmax(a, b);
  const auto known                    = unions_.find(key);
  if (known != unions_.end()) return known->second;
  const FormId id =
      add(Node{.parts = {key.first, key.second}, .is_union = true, .origin = origin_});
  unions_.emplace(key, id);
  return id;
}

TOOLDECODE_INLINE FormId FormTable::complement(FormId id) {
  if (id == any_form) return nothing_form;
  if (id == nothing_form) return any_form;
  const auto known = complements_.find(id);
  if (known != complements_.end()) return known->second;
  const FormId inverse = add(Node{.complement_of = id, .origin = origin_});
  complements_.emplace(id, inverse);
  complements_.emplace(inverse, id);
  return inverse;
}

TOOLDECODE_INLINE const Form& FormTable::operator[](FormId id) {
  static const Form anything = Form::anything(), nothing{};
  if (id == any_form) return anything;
  if (id == nothing_form) return nothing;
  Node& node = nodes_[id.index()];
  if (node.form) return *node.form;
  if (node.busy) {
    throw Error(Errc::malformed_schema, node.origin, "references go round in a circle");
  }
  if (depth_ >= max_nested) {
    throw Error(Errc::limit_exceeded, node.origin, "schemas nest too deeply");
  }
  try {
    const Working working(*this, node);
    node.form = node.read            ? source_->read(*node.read)
                : node.is_union      ? disjunction(node.parts)
                : node.complement_of ? complement_of((*this)[*node.complement_of])
                                     : conjunction(node.parts);
    BuildBudget::spend(0, bytes_of(*node.form));
  } catch (const Error& error) {
    throw error.under(node.origin);
  }
  return *node.form;
}

TOOLDECODE_INLINE const Form* FormTable::find(FormId id) {
  if (nodes_[id.index()].busy) return nullptr;
  try {
    return &(*this)[id];
  } catch (const Error& error) {
    if (error.code() == Errc::limit_exceeded || error.code() == Errc::cancelled) throw;
    return nullptr;
  }
}

TOOLDECODE_INLINE std::optional<FormId> FormTable::find_negated(FormId id) const {
  return nodes_[id.index()].complement_of;
}

TOOLDECODE_INLINE FormTable::Working::Working(FormTable& of, Node& one)
    : origin(of, one.origin), forms(of), node(one) {
  node.busy = true;
  ++forms.depth_;
}

TOOLDECODE_INLINE FormTable::Working::~Working() {
  node.busy = false;
  --forms.depth_;
}

TOOLDECODE_INLINE Form FormTable::disjunction(std::span<const FormId> parts) {
  Form all;
  for (const FormId part : parts) {
    const Form& one = (*this)[part];
    BuildBudget::spend(20 + 20 * one.alternatives());
    add_alternatives(all, one);
  }
  return all;
}

TOOLDECODE_INLINE FormId FormTable::add(Node node) {
  BuildBudget::spend(20, sizeof(Node) + node.origin.size() + 8 * node.parts.size());
  nodes_.push_back(std::move(node));
  return FormId(static_cast<std::uint32_t>(nodes_.size() - 1));
}

}  // namespace tooldecode::schema
