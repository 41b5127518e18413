#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include <tooldecode/schema/constants.hpp>

namespace tooldecode::schema {

TOOLDECODE_INLINE Form Constants::operator()(const std::vector<Json>& values) {
  Form all;
  std::vector<std::pair<std::string_view, std::uint32_t>> listed;
  for (const Json& value : values) {
    switch (value.type()) {
      case Json::Type::null:
        all.null = true;
        break;
      case Json::Type::boolean:
        (value.get<bool>() ? all.truth : all.falsehood) = true;
        break;
      case Json::Type::string:
        listed.emplace_back(value.string(), 0);
        break;
      case Json::Type::array: {
        ArrayForm form{.rest = nothing_form};
        for (const Json& item : value) form.prefix.push_back(constant(item));
        form.length.min = form.length.max = static_cast<std::uint32_t>(value.size());
        all.arrays.push_back(std::move(form));
        break;
      }
      case Json::Type::object: {
        ObjectForm form;
        form.others.clear();
        for (const auto& [name, item] : value.items()) {
          form.members.push_back({name, constant(item), true});
        }
        all.objects.push_back(std::move(form));
        break;
      }
      default: {
        const text::NumberBounds::Bound bound{text::Decimal::parse(value.text()), false};
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

TOOLDECODE_INLINE FormId Constants::constant(const Json& value) {
  if (++depth_ > FormAlgebra::max_nested) {
    throw Error(Errc::limit_exceeded, "", "a constant nests too deeply");
  }
  Form form = (*this)(std::vector<Json>(1, value));
  --depth_;
  return forms_.add(std::move(form));
}

}  // namespace tooldecode::schema
