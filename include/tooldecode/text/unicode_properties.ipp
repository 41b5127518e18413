#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include <tooldecode/text/unicode_properties.hpp>

namespace tooldecode::text::detail {

TOOLDECODE_INLINE char32_t take_number(std::string_view& runs) {
  char32_t value = 0;
  for (unsigned shift = 0;; shift += 5) {
    const auto digit = static_cast<unsigned char>(runs.front());
    runs.remove_prefix(1);
    if (digit < '^') return value | static_cast<char32_t>(digit - '0') << shift;
    value |= static_cast<char32_t>(digit - '^') << shift;
  }
}

TOOLDECODE_INLINE std::optional<CodePointSet> general_category(std::string_view name) {
  const auto is_named = [&](const UnicodeName& one) {
    return name == one.alias || name == one.name;
  };
  const auto one = std::find_if(categories.begin(), categories.end(), is_named);
  if (one != categories.end()) {
    const auto number = static_cast<std::size_t>(one - categories.begin());
    return of_categories([&](std::size_t category) { return category == number; });
  }
  const auto group = std::find_if(category_groups.begin(), category_groups.end(), is_named);
  if (group == category_groups.end()) return std::nullopt;
  if (group->alias == "LC") return of_categories([](std::size_t category) { return category < 3; });
  return of_categories(
      [&](std::size_t category) { return categories[category].alias.starts_with(group->alias); });
}

TOOLDECODE_INLINE std::optional<CodePointSet> script(std::string_view name) {
  const auto one = std::find_if(scripts.begin(), scripts.end(), [&](const UnicodeScript& each) {
    return name == each.alias || name == each.name;
  });
  if (one == scripts.end()) return std::nullopt;
  std::vector<CodePointSet::Range> ranges;
  char32_t first = 0;
  for (std::string_view runs = one->runs; !runs.empty();) {
    first += take_number(runs);
    const char32_t length = take_number(runs);
    ranges.emplace_back(first, first + length - 1);
    first += length;
  }
  return CodePointSet(std::move(ranges));
}

TOOLDECODE_INLINE std::optional<CodePointSet> find_property(std::string_view property) {
  const std::size_t equals   = property.find('=');
  const std::string_view key = property.substr(0, equals);
  if (equals != std::string_view::npos) {
    const std::string_view value = property.substr(equals + 1);
    if (key == "General_Category" || key == "gc") return general_category(value);
    if (key == "Script" || key == "sc") return script(value);
    return std::nullopt;
  }
  if (key == "Any") return CodePointSet::all();
  if (key == "ASCII") return CodePointSet{{0, 0x7F}};
  if (key == "Assigned") return ~*general_category("Cn");
  return general_category(key);
}

}  // namespace tooldecode::text::detail

namespace tooldecode::text {

TOOLDECODE_INLINE std::optional<CodePointSet> unicode_property(std::string_view property) {
  static std::mutex mutex;
  static std::map<std::string, CodePointSet, std::less<>> known;  // bounded by the number of names
  const std::lock_guard lock(mutex);
  if (const auto at = known.find(property); at != known.end()) return at->second;
  std::optional<CodePointSet> set = detail::find_property(property);
  if (set) known.emplace(property, *set);
  return set;
}

TOOLDECODE_INLINE const CodePointSet& unicode_space() {
  static const CodePointSet set{
      std::vector<CodePointSet::Range>(white_space_ranges.begin(), white_space_ranges.end())};
  return set;
}

TOOLDECODE_INLINE const CodePointSet& unicode_word() {
  static const CodePointSet set = [] {
    // Joiners, and letters in circles and squares, which are alphabetic symbols.
    CodePointSet all{{0x200C, 0x200D},
                     {0x24B6, 0x24E9},
                     {0x1F130, 0x1F149},
                     {0x1F150, 0x1F169},
                     {0x1F170, 0x1F189}};
    for (const char* category : {"L", "M", "Nd", "Nl", "Pc"}) {
      all = all | *unicode_property(category);
    }
    return all;
  }();
  return set;
}

TOOLDECODE_INLINE bool is_property_name(std::string_view property) {
  const auto lists = [](std::string_view names, std::string_view name) {
    if (name.empty() || name.find(' ') != name.npos) return false;
    for (std::size_t at = names.find(name); at != names.npos; at = names.find(name, at + 1)) {
      if (names[at - 1] == ' ' && names[at + name.size()] == ' ') return true;
    }
    return false;
  };
  const std::size_t equals   = property.find('=');
  const std::string_view key = property.substr(0, equals);
  if (equals == property.npos) {
    return detail::find_property(key).has_value() || lists(detail::binary_properties, key);
  }
  const std::string_view value = property.substr(equals + 1);
  if (key == "General_Category" || key == "gc") return detail::general_category(value).has_value();
  if (key != "Script" && key != "sc" && key != "Script_Extensions" && key != "scx") return false;
  return detail::script(value).has_value() || lists(detail::other_scripts, value);
}

}  // namespace tooldecode::text
