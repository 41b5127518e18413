/// \file
/// Form: the normal form of a schema: for each type, the alternatives of which a value of
/// that type meets one.
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

/// Number of a form among its FormAlgebra.
using FormId = core::Id<struct Form>;
inline constexpr FormId any_form{0};      ///< every value
inline constexpr FormId nothing_form{1};  ///< no value

/// Numbers: of some kinds, between bounds, multiples of each of some numbers.
struct NumberForm {
  text::NumberKinds kinds = text::NumberKinds::any;
  text::NumberBounds bounds{};
  friend bool operator==(const NumberForm&, const NumberForm&) = default;
};

/// Strings: of some length, passing tests, one of some texts, none of others.
struct StringForm {
  text::Occurrences length{};
  StringTests tests{};
  std::optional<std::vector<std::string>> values{};  ///< ascending
  std::vector<std::string> excluded{};               ///< ascending
  friend bool operator==(const StringForm&, const StringForm&) = default;
};

/// Arrays: forms of the first items, of all further ones, and how many conform to others.
struct ArrayForm {
  struct Contains {
    FormId item = any_form;
    text::Occurrences count{1};
    std::size_t from                                         = 0;  ///< only items from this one on
    friend bool operator==(const Contains&, const Contains&) = default;
  };
  std::vector<FormId> prefix{};
  FormId rest = any_form;
  text::Occurrences length{};
  std::vector<Contains> contains{};
  bool unique           = false;
  std::size_t evaluated = 0;  ///< so many first items are known to other keywords
  friend bool operator==(const ArrayForm&, const ArrayForm&) = default;

  [[nodiscard]] FormId item(std::size_t i) const { return i < prefix.size() ? prefix[i] : rest; }
};

/// Objects: named members, and the classes of all other keys with the forms of their values.
struct ObjectForm {
  struct Member {
    std::string name;
    FormId value                                         = any_form;
    bool required                                        = false;
    friend bool operator==(const Member&, const Member&) = default;
  };
  /// Keys, other than members' names, that pass tests; classes exclude each other.
  struct Others {
    StringTests keys{};
    FormId value                                         = any_form;
    friend bool operator==(const Others&, const Others&) = default;
  };
  /// The keys that other keywords have evaluated.
  struct Evaluated {
    bool all = false;
    std::vector<std::string> names{};       ///< ascending
    std::vector<std::uint32_t> patterns{};  ///< sets of texts, ascending
    friend bool operator==(const Evaluated&, const Evaluated&) = default;
  };
  std::vector<Member> members{};
  std::vector<Others> others{{}};
  text::Occurrences count{};
  std::vector<std::pair<std::string, std::string>> dependent{};
  Evaluated evaluated{};
  Evaluated named{};       ///< the keys that schemas name, see DocumentRules::close_objects
  bool closes    = false;  ///< whether they are all, unless `named.all`
  using Together = grammar::KeysTogether<std::string>;
  std::vector<Together> together{};
  friend bool operator==(const ObjectForm&, const ObjectForm&) = default;

  [[nodiscard]] const Member* find(const std::string& name) const;
};

/// The values of a schema: those that meet one of the alternatives of their type.
struct Form {
  bool null = false, truth = false, falsehood = false;
  std::vector<NumberForm> numbers{};
  std::vector<StringForm> texts{};
  std::vector<ArrayForm> arrays{};
  std::vector<ObjectForm> objects{};

  [[nodiscard]] static Form anything() { return {true, true, true, {{}}, {{}}, {{}}, {{}}}; }
  [[nodiscard]] bool empty() const noexcept;
  [[nodiscard]] std::size_t alternatives() const noexcept;
};

/// The keys that are in one of two.
[[nodiscard]] ObjectForm::Evaluated united(const ObjectForm::Evaluated& a,
                                           const ObjectForm::Evaluated& b);

/// About how much memory an alternative, or a form, takes.
[[nodiscard]] std::size_t bytes_of(const NumberForm& form);
/// The same of strings.
[[nodiscard]] std::size_t bytes_of(const StringForm& form);
/// The same of arrays.
[[nodiscard]] std::size_t bytes_of(const ArrayForm& form);
/// The same of objects.
[[nodiscard]] std::size_t bytes_of(const ObjectForm& form);
/// The same of some alternatives.
template <class Form>
[[nodiscard]] std::size_t bytes_of(const std::vector<Form>& forms) {
  std::size_t all = 0;
  for (const Form& form : forms) all += bytes_of(form);
  return all;
}
/// The same of all alternatives of a form.
[[nodiscard]] std::size_t bytes_of(const Form& form);

/// Steps that looking at an alternative takes, see BuildBudget.
[[nodiscard]] std::uint64_t steps_of(const NumberForm& /*form*/) noexcept;
/// The same of strings.
[[nodiscard]] std::uint64_t steps_of(const StringForm& form) noexcept;
/// The same of arrays.
[[nodiscard]] std::uint64_t steps_of(const ArrayForm& form) noexcept;
/// The same of objects.
[[nodiscard]] std::uint64_t steps_of(const ObjectForm& form) noexcept;

/// The only number of a form, where its bounds leave one.
[[nodiscard]] const text::Decimal* find_point(const NumberForm& form);

}  // namespace tooldecode::schema

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/schema/form.ipp>
#endif
