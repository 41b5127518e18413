/// \file
/// FormTable: numbered forms, computed on first use.
#pragma once

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

/// The source of a table's forms: schemas known by number.
class FormSource {
 public:
  /// Reads the form of a schema, by the number that `FormTable::add_read` received.
  [[nodiscard]] virtual Form read(std::uint32_t schema) = 0;

 protected:
  ~FormSource() = default;
};

/// Forms by number: schemas that are not read yet, intersections, unions and complements. Members
/// and items hold numbers, so recursion terminates: a conjunction is identified by the set of its
/// parts, of which there are finitely many.
///
/// \par Complexity  O(log forms) per form, plus computing it once
/// \par Threads     one at a time
/// \par Errors      Error{malformed_schema} for a form that contains itself directly,
///                  Error{limit_exceeded} for schemas that nest too deeply, and see BuildBudget
class FormTable {
 public:
  static constexpr std::uint32_t max_nested = 250;

  /// \param source  reads forms; null if you add all of them with `add`
  explicit FormTable(FormSource* source = nullptr);
  virtual ~FormTable()                   = default;
  FormTable(const FormTable&)            = delete;
  FormTable& operator=(const FormTable&) = delete;

  /// While it lives, sets the place of the current keyword, which new forms keep for their errors.
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

  /// Adds a form that is read on first use.
  ///
  /// \param schema  number for the source
  /// \param place   of the schema
  [[nodiscard]] FormId add_read(std::uint32_t schema, const std::string& place);
  [[nodiscard]] FormId add(Form form);

  [[nodiscard]] FormId both(FormId a, FormId b);
  [[nodiscard]] FormId either(FormId a, FormId b);
  [[nodiscard]] FormId complement(FormId id);

  [[nodiscard]] const Form& operator[](FormId id);

  /// A form that may not be needed; null if there is none, or it is made of one that is being
  /// computed.
  [[nodiscard]] const Form* find(FormId id);

  /// Whether computing forms that may not be needed could pass max_nested.
  [[nodiscard]] bool nests_deeply() const noexcept { return depth_ > max_nested / 2; }
  /// The place of the keyword that a form comes from.
  [[nodiscard]] const std::string& place_of(FormId id) const { return nodes_[id.index()].origin; }

 protected:
  virtual Form complement_of(const Form& form)            = 0;
  virtual Form conjunction(std::span<const FormId> parts) = 0;

  /// The form of which `id` was made as the complement, if it was.
  [[nodiscard]] std::optional<FormId> find_negated(FormId id) const;

 private:
  struct Node {
    std::vector<FormId> parts{};  // of a conjunction or a union; ascending
    bool is_union = false;
    std::optional<FormId> complement_of{};
    std::optional<std::uint32_t> read{};
    std::string origin{};
    bool busy = false;
    std::optional<Form> form{};
  };
  // Marks a form as being computed.
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
