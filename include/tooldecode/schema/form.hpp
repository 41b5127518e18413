/// \file
/// Form: the normal form of a schema: a list of alternatives for each type, of which a value must
/// meet one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/core/id.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/keys_together.hpp>
#include <tooldecode/schema/string_sets.hpp>
#include <tooldecode/text/number_bounds.hpp>

namespace tooldecode::schema {

/// Number of a form in its FormAlgebra.
using FormId = core::Id<struct Form>;
inline constexpr FormId any_form{0};      ///< every value
inline constexpr FormId nothing_form{1};  ///< no value

/// Numbers of some kinds, between bounds, that are multiples of each of some numbers.
struct NumberForm {
  text::NumberKinds kinds = text::NumberKinds::any;
  text::NumberBounds bounds{};
  friend bool operator==(const NumberForm&, const NumberForm&) = default;
};

/// Strings of some length that pass tests, are one of `values` and none of `excluded`.
struct StringForm {
  text::Occurrences length{};
  StringTests tests{};
  std::optional<std::vector<std::string>> values{};  ///< ascending
  std::vector<std::string> excluded{};               ///< ascending
  friend bool operator==(const StringForm&, const StringForm&) = default;
};

/// Arrays: forms of the first items, of all later ones, and how many items conform to other forms.
struct ArrayForm {
  struct Contains {
    FormId item = any_form;
    text::Occurrences count{1};
    std::size_t from = 0;  ///< counts items from this index
                           ///< on
    friend bool operator==(const Contains&, const Contains&) = default;
  };
  std::vector<FormId> prefix{};
  FormId rest = any_form;
  text::Occurrences length{};
  std::vector<Contains> contains{};
  bool unique            = false;
  std::size_t evaluated  = 0;  ///< number of first items that other keywords have evaluated
  FormId evaluated_items = nothing_form;  ///< items that a `contains` evaluates, at any place
  friend bool operator==(const ArrayForm&, const ArrayForm&) = default;

  [[nodiscard]] FormId item(std::size_t i) const { return i < prefix.size() ? prefix[i] : rest; }
};

/// Objects: named members, and classes of all other keys with the forms of their values.
struct ObjectForm {
  struct Member {
    std::string name;
    FormId value                                         = any_form;
    bool required                                        = false;
    friend bool operator==(const Member&, const Member&) = default;
  };
  /// Keys that pass tests and are not members' names; classes are disjoint.
  struct OtherKeys {
    StringTests keys{};
    FormId value                                               = any_form;
    friend bool operator==(const OtherKeys&, const OtherKeys&) = default;
  };
  struct Evaluated {
    bool all = false;
    std::vector<std::string> names{};       ///< ascending
    std::vector<std::uint32_t> patterns{};  ///< sets of texts, ascending
    friend bool operator==(const Evaluated&, const Evaluated&) = default;
  };
  std::vector<Member> members{};
  std::vector<OtherKeys> others{{}};
  text::Occurrences count{};
  std::vector<std::pair<std::string, std::string>> dependent{};
  Evaluated evaluated{};
  Evaluated named{};       ///< keys that schemas name, see DocumentRules::close_objects
  bool closes    = false;  ///< whether only named keys are allowed, unless `named.all`
  using Together = grammar::KeysTogether<std::string>;
  std::vector<Together> together{};
  friend bool operator==(const ObjectForm&, const ObjectForm&) = default;

  [[nodiscard]] const Member* find(const std::string& name) const;
  /// Moves the members of some keys to the front. Returns the first key that has no member or is
  /// there twice.
  [[nodiscard]] std::optional<std::string> lead(const std::vector<std::string>& keys);
};

/// The values of a schema: those that meet an alternative of their type.
struct Form {
  bool null = false, truth = false, falsehood = false;
  std::vector<NumberForm> numbers{};
  std::vector<StringForm> texts{};
  std::vector<ArrayForm> arrays{};
  std::vector<ObjectForm> objects{};
  /// Objects that include those of the schema, if `objects` lacks some that closing would remove.
  std::vector<ObjectForm> hull{};

  [[nodiscard]] static Form anything() { return {true, true, true, {{}}, {{}}, {{}}, {{}}}; }
  [[nodiscard]] bool empty() const noexcept;
  [[nodiscard]] std::size_t alternatives() const noexcept;
  /// What to compare with another schema's objects.
  [[nodiscard]] const std::vector<ObjectForm>& compared_objects() const noexcept {
    return hull.empty() ? objects : hull;
  }
};

/// The union of two sets of keys.
[[nodiscard]] ObjectForm::Evaluated united(const ObjectForm::Evaluated& a,
                                           const ObjectForm::Evaluated& b);

/// Approximate bytes of an alternative or a form.
[[nodiscard]] std::size_t bytes_of(const NumberForm& form);
/// For strings.
[[nodiscard]] std::size_t bytes_of(const StringForm& form);
/// For arrays.
[[nodiscard]] std::size_t bytes_of(const ArrayForm& form);
/// For objects.
[[nodiscard]] std::size_t bytes_of(const ObjectForm& form);
/// For a list of alternatives.
template <class Form>
[[nodiscard]] std::size_t bytes_of(const std::vector<Form>& forms) {
  std::size_t all = 0;
  for (const Form& form : forms) all += bytes_of(form);
  return all;
}
/// For all alternatives of a form.
[[nodiscard]] std::size_t bytes_of(const Form& form);

/// Steps that BuildBudget charges for looking at an alternative.
[[nodiscard]] std::uint64_t steps_of(const NumberForm& /*form*/) noexcept;
/// For strings.
[[nodiscard]] std::uint64_t steps_of(const StringForm& form) noexcept;
/// For arrays.
[[nodiscard]] std::uint64_t steps_of(const ArrayForm& form) noexcept;
/// For objects.
[[nodiscard]] std::uint64_t steps_of(const ObjectForm& form) noexcept;

/// The only number that a form's bounds allow, else null.
[[nodiscard]] const text::Decimal* find_point(const NumberForm& form);

}  // namespace tooldecode::schema

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/schema/form.ipp>
#endif
