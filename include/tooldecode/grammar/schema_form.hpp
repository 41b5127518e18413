/// \file
/// SchemaForm: the normal form of a schema: for each type, the alternatives of which a value of
/// that type meets one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/keys_together.hpp>
#include <tooldecode/grammar/number.hpp>
#include <tooldecode/grammar/schema_texts.hpp>

namespace tooldecode {

/// Number of a form among its SchemaForms.
using FormId                         = std::uint32_t;
inline constexpr FormId any_form     = 0;  ///< every value
inline constexpr FormId nothing_form = 1;  ///< no value

/// Numbers: of one grain, between bounds, multiples of each of some numbers.
struct NumberForm {
  enum class Grain : std::uint8_t { any, integer, fraction };
  Grain grain = Grain::any;
  NumberBounds bounds{};
  std::vector<Decimal> multiples{};
};

/// Strings: of some length, passing tests, one of some texts, none of others.
struct TextForm {
  Occurrences length{};
  TextTests tests{};
  std::optional<std::vector<std::string>> values{};  ///< ascending
  std::vector<std::string> excluded{};               ///< ascending
  friend bool operator==(const TextForm&, const TextForm&) = default;
};

/// Arrays: forms of the first items, of all further ones, and how many conform to others.
struct ArrayForm {
  struct Contains {
    FormId item = any_form;
    Occurrences count{1};
    std::size_t from                                         = 0;  ///< only items from this one on
    friend bool operator==(const Contains&, const Contains&) = default;
  };
  std::vector<FormId> prefix{};
  FormId rest = any_form;
  Occurrences length{};
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
    TextTests keys{};
    FormId value                                         = any_form;
    friend bool operator==(const Others&, const Others&) = default;
  };
  /// The keys that other keywords have evaluated.
  struct Evaluated {
    bool all = false;
    std::vector<std::string> names{};
    std::vector<std::uint32_t> patterns{};  ///< sets of texts
    friend bool operator==(const Evaluated&, const Evaluated&) = default;
  };
  std::vector<Member> members{};
  std::vector<Others> others{{}};
  Occurrences count{};
  std::vector<std::pair<std::string, std::string>> dependent{};
  Evaluated evaluated{};
  using Together = KeysTogether<std::string>;
  std::vector<Together> together{};
  friend bool operator==(const ObjectForm&, const ObjectForm&) = default;

  [[nodiscard]] const Member* find(const std::string& name) const {
    const auto at = std::find_if(members.begin(), members.end(),
                                 [&](const Member& member) { return member.name == name; });
    return at == members.end() ? nullptr : &*at;
  }
};

/// The values of a schema: those that meet one of the alternatives of their type.
struct SchemaForm {
  bool null = false, truth = false, falsehood = false;
  std::vector<NumberForm> numbers{};
  std::vector<TextForm> texts{};
  std::vector<ArrayForm> arrays{};
  std::vector<ObjectForm> objects{};

  [[nodiscard]] static SchemaForm anything() { return {true, true, true, {{}}, {{}}, {{}}, {{}}}; }
  [[nodiscard]] bool empty() const noexcept {
    return !null && !truth && !falsehood && numbers.empty() && texts.empty() && arrays.empty() &&
           objects.empty();
  }
  [[nodiscard]] std::size_t alternatives() const noexcept {
    return numbers.size() + texts.size() + arrays.size() + objects.size();
  }
};

/// About how much memory an alternative, or a form, takes.
[[nodiscard]] inline std::size_t bytes_of(const NumberForm& form) {
  return sizeof(form) + sizeof(Decimal) * form.multiples.size();
}
[[nodiscard]] inline std::size_t bytes_of(const TextForm& form) {
  const std::size_t texts = form.excluded.size() + (form.values ? form.values->size() : 0);
  return sizeof(form) + sizeof(std::string) * texts;
}
[[nodiscard]] inline std::size_t bytes_of(const ArrayForm& form) {
  return sizeof(form) + sizeof(FormId) * form.prefix.size() +
         sizeof(ArrayForm::Contains) * form.contains.size();
}
[[nodiscard]] inline std::size_t bytes_of(const ObjectForm& form) {
  return sizeof(form) + sizeof(ObjectForm::Member) * form.members.size() +
         sizeof(ObjectForm::Others) * form.others.size() +
         2 * sizeof(std::string) * form.dependent.size() +
         6 * sizeof(std::string) * form.together.size() +
         sizeof(std::string) * form.evaluated.names.size();
}
template <class Form>
[[nodiscard]] std::size_t bytes_of(const std::vector<Form>& forms) {
  std::size_t all = 0;
  for (const Form& form : forms) all += bytes_of(form);
  return all;
}
[[nodiscard]] inline std::size_t bytes_of(const SchemaForm& form) {
  return bytes_of(form.numbers) + bytes_of(form.texts) + bytes_of(form.arrays) +
         bytes_of(form.objects);
}

/// Steps that looking at an alternative takes, see BuildBudget.
[[nodiscard]] inline std::uint64_t steps_of(const NumberForm& /*form*/) noexcept {
  return 30;
}
[[nodiscard]] inline std::uint64_t steps_of(const TextForm& form) noexcept {
  return 10 + 2 * (form.excluded.size() + (form.values ? form.values->size() : 0));
}
[[nodiscard]] inline std::uint64_t steps_of(const ArrayForm& form) noexcept {
  return 10 + form.prefix.size() + form.contains.size();
}
[[nodiscard]] inline std::uint64_t steps_of(const ObjectForm& form) noexcept {
  return 20 + 3 * form.members.size() + 4 * form.others.size() + 4 * form.dependent.size() +
         2 * form.evaluated.names.size() + 40 * form.together.size();
}

/// Less than, equal to or greater than zero as a is to b.
[[nodiscard]] inline int compare(const Decimal& a, const Decimal& b) {
  const bool below_a = a.negative && !a.is_zero(), below_b = b.negative && !b.is_zero();
  if (below_a != below_b) return below_a ? -1 : 1;
  const int sign = below_a ? -1 : 1;
  if (a.integer.size() != b.integer.size()) {
    return a.integer.size() < b.integer.size() ? -sign : sign;
  }
  const int whole = a.integer.compare(b.integer);
  const int order = whole != 0 ? whole : a.fraction.compare(b.fraction);
  return order == 0 ? 0 : order < 0 ? -sign : sign;
}
/// Whether they are one number.
[[nodiscard]] inline bool operator==(const Decimal& a, const Decimal& b) {
  return compare(a, b) == 0;
}

/// Whether a number is a multiple of another; nothing where the numbers are too long to tell.
[[nodiscard]] inline std::optional<bool> is_multiple(const Decimal& number, const Decimal& of) {
  const std::size_t places = std::max(number.fraction.size(), of.fraction.size());
  const auto digits        = [&](const Decimal& one) {
    return one.integer + one.fraction + std::string(places - one.fraction.size(), '0');
  };
  const std::string divisor_digits = digits(of);
  const std::size_t first          = divisor_digits.find_first_not_of('0');
  if (first == std::string::npos || divisor_digits.size() - first > 17) return std::nullopt;
  const std::uint64_t divisor = std::stoull(divisor_digits);
  std::uint64_t rest          = 0;
  for (const char digit : digits(number)) {
    rest = (rest * 10 + static_cast<std::uint64_t>(digit - '0')) % divisor;
  }
  return rest == 0;
}

/// The least number that is a multiple of all of them; nothing where it is too long.
[[nodiscard]] inline std::optional<Decimal> common_multiple(const std::vector<Decimal>& numbers) {
  std::size_t places = 0;
  for (const Decimal& one : numbers) places = std::max(places, one.fraction.size());
  std::uint64_t all = 1;
  for (const Decimal& one : numbers) {
    const std::string digits =
        one.integer + one.fraction + std::string(places - one.fraction.size(), '0');
    if (digits.size() > 9) return std::nullopt;
    all = std::lcm(all, std::stoull(digits));
    if (all > 1'000'000'000) return std::nullopt;
  }
  std::string digits = std::to_string(all);
  if (digits.size() <= places) digits.insert(0, places + 1 - digits.size(), '0');
  return Decimal::parse(places == 0 ? digits
                                    : digits.substr(0, digits.size() - places) + '.' +
                                          digits.substr(digits.size() - places));
}

/// Whether they are one bound.
[[nodiscard]] inline bool operator==(const NumberBounds::Bound& a, const NumberBounds::Bound& b) {
  return a.exclusive == b.exclusive && a.value == b.value;
}
/// Whether they are written alike.
[[nodiscard]] inline bool operator==(const NumberForm& a, const NumberForm& b) {
  return a.grain == b.grain && a.bounds.minimum == b.bounds.minimum &&
         a.bounds.maximum == b.bounds.maximum && a.multiples == b.multiples;
}

/// The only number of a form, where its bounds leave one.
[[nodiscard]] inline const Decimal* find_point(const NumberForm& form) {
  const auto& least = form.bounds.minimum;
  const auto& most  = form.bounds.maximum;
  if (!least || !most || least->exclusive || most->exclusive) return nullptr;
  return least->value == most->value ? &least->value : nullptr;
}

}  // namespace tooldecode
