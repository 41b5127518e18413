/// \file
/// FormTable: forms by number, each worked out when it is first asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
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
  explicit FormTable(FormSource* source = nullptr);
  virtual ~FormTable()                   = default;
  FormTable(const FormTable&)            = delete;
  FormTable& operator=(const FormTable&) = delete;

  /// Sets, while it lives, the place of the keyword at work: that of forms that it makes, for their
  /// errors.
  class Origin {
   public:
    Origin(FormTable& forms, std::string place);
    ~Origin();
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
  [[nodiscard]] FormId add_read(std::uint32_t schema, const std::string& place);
  /// A form that is known.
  [[nodiscard]] FormId add(Form form);

  /// What two forms have in common.
  [[nodiscard]] FormId both(FormId a, FormId b);
  /// What is in one of two forms.
  [[nodiscard]] FormId either(FormId a, FormId b);
  /// What a form excludes.
  [[nodiscard]] FormId complement(FormId id);

  /// A form, worked out.
  [[nodiscard]] const Form& operator[](FormId id);

  /// Where the keyword stands that a form comes from.
  [[nodiscard]] const std::string& place_of(FormId id) const { return nodes_[id.index()].origin; }

 protected:
  /// The form of what another excludes.
  virtual Form complement_of(const Form& form) = 0;
  /// The form of what all parts have in common.
  virtual Form conjunction(std::span<const FormId> parts) = 0;

  /// What a form is the complement of, where it was made so.
  [[nodiscard]] std::optional<FormId> find_negated(FormId id) const;
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
    Working(FormTable& of, Node& one);
    ~Working();
    Working(const Working&)            = delete;
    Working& operator=(const Working&) = delete;
    Origin origin;
    FormTable& forms;
    Node& node;
  };

  Form disjunction(std::span<const FormId> parts);
  FormId add(Node node);

  FormSource* source_;
  std::string origin_;
  std::deque<Node> nodes_;
  std::map<std::vector<FormId>, FormId> conjunctions_;
  std::map<FormId, FormId> complements_;
  std::map<std::pair<FormId, FormId>, FormId> unions_;
  std::uint32_t depth_ = 0;
};

}  // namespace tooldecode::schema

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/schema/form_table.ipp>
#endif
