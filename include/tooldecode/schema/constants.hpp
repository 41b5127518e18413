/// \file
/// Constants: the forms of `const` and `enum`.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/schema/form.hpp>
#include <tooldecode/schema/form_algebra.hpp>
#include <tooldecode/text/exact_number.hpp>

#include <nlohmann/json.hpp>

namespace tooldecode::schema {

/// Makes known values forms like any other: a number is its own bounds, an array its items, an
/// object its members and no others. So equality is that of JSON Schema: 1 is 1.0, and keys have no
/// order.
///
/// \par Complexity  O(size of the values)
/// \par Threads     one at a time per FormAlgebra
/// \par Errors      Error{limit_exceeded} for values that nest too deeply or numbers too long
class Constants {
 public:
  using Json = nlohmann::ordered_json;

  explicit Constants(FormAlgebra& forms) : forms_(forms) {}

  /// The form of a list of values.
  [[nodiscard]] Form operator()(const std::vector<Json>& values) {
    Form all;
    std::vector<std::pair<std::string_view, std::uint32_t>> listed;
    for (const Json& value : values) {
      switch (value.type()) {
        case Json::value_t::null:
          all.null = true;
          break;
        case Json::value_t::boolean:
          (value.get<bool>() ? all.truth : all.falsehood) = true;
          break;
        case Json::value_t::string:
          listed.emplace_back(value.get_ref<const std::string&>(), 0);
          break;
        case Json::value_t::array: {
          ArrayForm form{.rest = nothing_form};
          for (const Json& item : value) form.prefix.push_back(constant(item));
          form.length.min = form.length.max = static_cast<std::uint32_t>(value.size());
          all.arrays.push_back(std::move(form));
          break;
        }
        case Json::value_t::object: {
          ObjectForm form;
          form.others.clear();
          for (const auto& [name, item] : value.items()) {
            form.members.push_back({name, constant(item), true});
          }
          all.objects.push_back(std::move(form));
          break;
        }
        default: {
          const text::NumberBounds::Bound bound{
              text::Decimal::parse(text::ExactNumber::text(value)), false};
          all.numbers.push_back({.bounds = {bound, bound}});
        }
      }
    }
    if (!listed.empty()) {
      core::sort_by_bytes(listed);
      listed.erase(std::unique(listed.begin(), listed.end()), listed.end());
      std::vector<std::string> texts;
      texts.reserve(listed.size());
      for (const auto& [text, value] : listed) texts.emplace_back(text);
      all.texts.push_back({.values = std::move(texts)});
    }
    return all;
  }

 private:
  [[nodiscard]] FormId constant(const Json& value) {
    if (++depth_ > FormAlgebra::max_nested) {
      throw Error(Errc::limit_exceeded, "", "a constant nests too deeply");
    }
    Form form = (*this)(std::vector<Json>(1, value));
    --depth_;
    return forms_.add(std::move(form));
  }

  FormAlgebra& forms_;
  std::uint32_t depth_ = 0;
};

}  // namespace tooldecode::schema
