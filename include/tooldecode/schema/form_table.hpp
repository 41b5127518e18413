/// \file
/// FormTable: forms by number, each worked out when it is first asked for.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
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

namespace tooldecode::schema {

/// What a table's forms are read from: schemas that others know by numbers.
class FormSource {
 public:
  /// The form of a schema, by the number that `FormTable::add_read` was given.
  [[nodiscard]] virtual Form read(std::uint32_t schema) = 0;

 protected:
  ~FormSource() = default;
};

/// Forms under numbers: schemas that are not read yet, what several forms have in common, what a
/// form excludes. Members and items hold numbers, so that recursion ends by itself: a conjunction
/// is known by the set of its parts, of which there are finitely many.
///
/// \par Complexity  O(log forms) per form, and what working it out costs, once
/// \par Threads     one at a time
/// \par Errors      Error{malformed_schema} for a form that is made of itself,
///                  Error{limit_exceeded} for schemas that nest too deeply, and see BuildBudget
class FormTable {
 public:
  static constexpr std::uint32_t max_nested = 250;

  /// \param source  of forms that are read; none where all are added as they are known
  explicit FormTable(FormSource* source = nullptr) : source_(source) {
    nodes_.push_back({.form = Form::anything()});
    nodes_.push_back({.form = Form{}});
  }
  virtual ~FormTable()                   = default;
  FormTable(const FormTable&)            = delete;
  FormTable& operator=(const FormTable&) = delete;

  /// Sets, while it lives, the place of the keyword at work: that of forms that it makes, for their
  /// errors.
  class Origin {
   public:
    Origin(FormTable& forms, std::string place)
        : forms_(forms), outer_(std::exchange(forms.origin_, std::move(place))) {}
    ~Origin() { forms_.origin_ = std::move(outer_); }
    Origin(const Origin&)            = delete;
    Origin& operator=(const Origin&) = delete;

   private:
    FormTable& forms_;
    std::string outer_;
  };

  /// A form that is read when it is first asked for.
  ///
  /// \param schema  for the source
  /// \param place   where the schema stands
  [[nodiscard]] FormId add_read(std::uint32_t schema, const std::string& place) {
    return add(Node{.read = schema, .origin = place});
  }
  /// A form that is known.
  [[nodiscard]] FormId add(Form form) {
    BuildBudget::spend(0, bytes_of(form));
    return add(Node{.origin = origin_, .form = std::move(form)});
  }

  /// What two forms have in common.
  [[nodiscard]] FormId both(FormId a, FormId b) {
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
  /// What is in one of two forms.
  [[nodiscard]] FormId either(FormId a, FormId b) {
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
  /// What a form excludes.
  [[nodiscard]] FormId complement(FormId id) {
    if (id == any_form) return nothing_form;
    if (id == nothing_form) return any_form;
    const auto known = complements_.find(id);
    if (known != complements_.end()) return known->second;
    const FormId inverse = add(Node{.complement_of = id, .origin = origin_});
    complements_.emplace(id, inverse);
    complements_.emplace(inverse, id);
    return inverse;
  }

  /// A form, worked out.
  [[nodiscard]] const Form& operator[](FormId id) {
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

  /// Where the keyword stands that a form comes from.
  [[nodiscard]] const std::string& place_of(FormId id) const { return nodes_[id.index()].origin; }

 protected:
  /// The form of what another excludes.
  virtual Form complement_of(const Form& form) = 0;
  /// The form of what all parts have in common.
  virtual Form conjunction(std::span<const FormId> parts) = 0;

  /// What a form is the complement of, where it was made so.
  [[nodiscard]] std::optional<FormId> find_negated(FormId id) const {
    return nodes_[id.index()].complement_of;
  }
  [[nodiscard]] bool is_busy(FormId id) const { return nodes_[id.index()].busy; }

 private:
  struct Node {
    std::vector<FormId> parts{};  // of a conjunction, or of a union; ascending
    bool is_union = false;
    std::optional<FormId> complement_of{};
    std::optional<std::uint32_t> read{};
    std::string origin{};
    bool busy = false;
    std::optional<Form> form{};
  };
  // A form that is being worked out.
  struct Working {
    Working(FormTable& of, Node& one) : origin(of, one.origin), forms(of), node(one) {
      node.busy = true;
      ++forms.depth_;
    }
    ~Working() {
      node.busy = false;
      --forms.depth_;
    }
    Working(const Working&)            = delete;
    Working& operator=(const Working&) = delete;
    Origin origin;
    FormTable& forms;
    Node& node;
  };

  Form disjunction(std::span<const FormId> parts) {
    Form all;
    for (const FormId part : parts) {
      const Form& one = (*this)[part];
      BuildBudget::spend(20 + 20 * one.alternatives());
      add_alternatives(all, one);
    }
    return all;
  }
  FormId add(Node node) {
    BuildBudget::spend(20, sizeof(Node) + node.origin.size() + 8 * node.parts.size());
    nodes_.push_back(std::move(node));
    return FormId(static_cast<std::uint32_t>(nodes_.size() - 1));
  }

  FormSource* source_;
  std::string origin_;
  std::deque<Node> nodes_;
  std::map<std::vector<FormId>, FormId> conjunctions_;
  std::map<FormId, FormId> complements_;
  std::map<std::pair<FormId, FormId>, FormId> unions_;
  std::uint32_t depth_ = 0;
};

}  // namespace tooldecode::schema
