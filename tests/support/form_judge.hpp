/// \file
/// test::FormJudge: decides whether a value is in a form, alternative by alternative.
#pragma once

#include <algorithm>
#include <string>

#include <tooldecode/schema/form_algebra.hpp>
#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/exact_number.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <nlohmann/json.hpp>

namespace tooldecode::test {

/// Judges values by the definition of each alternative.
class FormJudge {
 public:
  using Json = tooldecode::JsonValue;

  explicit FormJudge(schema::FormAlgebra& forms) : forms_(forms) {}

  bool operator()(schema::FormId id, const Json& value) {
    const schema::Form& form = forms_[id];
    switch (value.type()) {
      case Json::Type::null:
        return form.null;
      case Json::Type::boolean:
        return value.get<bool>() ? form.truth : form.falsehood;
      case Json::Type::string:
        return meets(form.texts, value);
      case Json::Type::array:
        return meets(form.arrays, value);
      case Json::Type::object:
        return meets(form.objects, value);
      default:
        return meets(form.numbers, value);
    }
  }

 private:
  template <class Forms>
  bool meets(const Forms& forms, const Json& value) {
    return std::any_of(forms.begin(), forms.end(),
                       [&](const auto& form) { return conforms(form, value); });
  }
  static bool within(const text::Occurrences& bounds, std::size_t count) {
    return count >= bounds.min &&
           (bounds.max == text::Occurrences::unbounded || count <= bounds.max);
  }
  bool conforms(const schema::NumberForm& form, const Json& value) {
    const text::Decimal number   = text::Decimal::parse(value.text());
    const auto& min              = form.bounds.minimum;
    const auto& max              = form.bounds.maximum;
    const int low                = min ? text::compare(number, min->value) : 1;
    const int high               = max ? text::compare(number, max->value) : -1;
    const std::string text       = value.text();
    const bool is_digits         = text.find_first_of(".eE") == text.npos;
    const text::NumberKinds kind = !number.is_integral() ? text::NumberKinds::fractions
                                   : is_digits           ? text::NumberKinds::digits
                                                         : text::NumberKinds::pointed;
    return low >= (min && min->exclusive ? 1 : 0) && high <= (max && max->exclusive ? -1 : 0) &&
           has(form.kinds, kind) &&
           std::all_of(form.bounds.multiples.begin(), form.bounds.multiples.end(),
                       [&](const text::Decimal& multiple) {
                         return text::is_multiple(number, multiple).value();
                       });
  }
  bool conforms(const schema::StringForm& form, const Json& value) {
    const auto text = value.get<std::string>();
    const auto has  = [&](const std::vector<std::string>& list) {
      return std::find(list.begin(), list.end(), text) != list.end();
    };
    return within(form.length, text::decode_utf8(text).size()) &&
           forms_.texts.holds(form.tests, text) && (!form.values || has(*form.values)) &&
           !has(form.excluded);
  }
  bool conforms(const schema::ArrayForm& form, const Json& value) {
    if (!within(form.length, value.size())) return false;
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (!(*this)(form.item(i), value[i])) return false;
    }
    for (const schema::ArrayForm::Contains& contains : form.contains) {
      std::size_t count = 0;
      for (std::size_t i = contains.from; i < value.size(); ++i) {
        count += (*this)(contains.item, value[i]) ? 1 : 0;
      }
      if (!within(contains.count, count)) return false;
    }
    for (std::size_t i = 0; form.unique && i < value.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (nlohmann::json::parse(value[i].text()) == nlohmann::json::parse(value[j].text())) {
          return false;
        }
      }
    }
    return true;
  }
  bool conforms(const schema::ObjectForm& form, const Json& value) {
    if (!within(form.count, value.size())) return false;
    for (const auto& [name, member] : value.items()) {
      if (!(*this)(forms_.value_of(form, name), member)) return false;
    }
    for (const schema::ObjectForm::Member& member : form.members) {
      if (member.required && !value.contains(member.name)) return false;
    }
    for (const schema::ObjectForm::Together& together : form.together) {
      std::uint32_t set = 0;
      for (std::size_t i = 0; i < together.keys.size(); ++i) {
        if (value.contains(together.keys[i])) set |= 1U << i;
      }
      if (!together.allows(set)) return false;
    }
    return std::all_of(form.dependent.begin(), form.dependent.end(), [&](const auto& pair) {
      return !value.contains(pair.first) || value.contains(pair.second);
    });
  }

  schema::FormAlgebra& forms_;
};

}  // namespace tooldecode::test
