#pragma once

#include <unordered_set>
#include <utility>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/formats/call_format.hpp>
#include <tooldecode/formats/listed_arguments.hpp>
#include <tooldecode/schema/keywords.hpp>
#include <tooldecode/schema/member_index.hpp>
#include <tooldecode/schema/string_sets.hpp>
#include <tooldecode/text/json_pointer.hpp>

namespace tooldecode::formats {

TOOLDECODE_INLINE ArgumentSchema argument_schema(const Tool& tool, const std::string& key) {
  static const JsonValue any = true;
  const auto listed          = tool.parameters.find("properties");
  if (listed != tool.parameters.end() && listed->contains(key)) {
    return {&(*listed)[key], text::extend_pointer(tool.parameters_pointer + "/properties", key)};
  }
  const auto extra = tool.parameters.find("additionalProperties");
  return {extra == tool.parameters.end() ? &any : &*extra,
          tool.parameters_pointer + "/additionalProperties"};
}

TOOLDECODE_INLINE ArgumentSchema plain_argument_schema(const Tool& tool, const std::string& key) {
  static const JsonValue text{{"type", "string"}};
  static const JsonValue nullable{{"type", {"string", "null"}}};
  ArgumentSchema argument = argument_schema(tool, key);
  if (tool.strict) return argument;
  const auto listed = tool.documented.find("properties");
  if (listed == tool.documented.end() || !listed->contains(key)) return argument;
  const auto form = find_plain_form((*listed)[key], tool.documented);
  if (form == PlainForm::text) argument.schema = &text;
  if (form == PlainForm::nullable) argument.schema = &nullable;
  return argument;
}

TOOLDECODE_INLINE bool says_nothing_of_all(std::string_view keyword) {
  for (const char* one :
       {"$defs", "additionalProperties", "definitions", "format", "items", "maxItems", "maxLength",
        "maximum", "minItems", "minLength", "minimum", "multipleOf", "pattern", "properties",
        "required", "type", "uniqueItems"}) {
    if (keyword == one) return true;
  }
  return false;
}

TOOLDECODE_INLINE bool are_listed(const Tool& tool) {
  for (const auto& member : tool.parameters.items()) {
    const auto keyword = schema::find_keyword(member.first);
    if (keyword && keyword->shape != schema::KeywordShape::annotation &&
        !says_nothing_of_all(member.first)) {
      return false;
    }
  }
  return true;
}

TOOLDECODE_INLINE std::optional<PlainForm> find_argument_form(const Tool& tool,
                                                              const std::string& key) {
  if (are_listed(tool)) {
    return find_plain_form(*plain_argument_schema(tool, key).schema, tool.parameters);
  }
  const BuildBudget budget;
  try {
    schema::Reader reader(tool.parameters, parameter_rules(tool));
    return ListedArguments(tool, reader).plain_form(key);
  } catch (const Error&) {
    return std::nullopt;
  }
}

TOOLDECODE_INLINE ListedArguments::ListedArguments(const Tool& tool, schema::Reader& reader)
    : tool_(tool), reader_(reader) {
  objects_ = reader_.written(reader_.form(tool.parameters, tool.parameters_pointer)).objects;
  std::vector<std::string> names = argument_names(tool);
  std::unordered_set<std::string> known(names.begin(), names.end());
  for (const schema::ObjectForm& object : objects_) {
    BuildBudget::spend(steps_of(object));
    for (const schema::ObjectForm::Member& member : object.members) {
      if (known.insert(member.name).second) names.push_back(member.name);
    }
  }
  for (schema::ObjectForm& object : objects_) list_members(object, names);
}

TOOLDECODE_INLINE void ListedArguments::list_members(schema::ObjectForm& object,
                                                     const std::vector<std::string>& names) {
  BuildBudget::spend(4 * names.size());
  const schema::MemberIndex index(object);
  std::vector<schema::ObjectForm::Member> members;
  for (const std::string& name : names) {
    const schema::ObjectForm::Member* const known = index.member(name);
    schema::ObjectForm::Member member =
        known != nullptr
            ? *known
            : schema::ObjectForm::Member{name, reader_.forms.value_of_other(object, name)};
    if (known == nullptr && member.value == schema::nothing_form) continue;
    kinds_[name].add(reader_.forms[plain_value(name, member.value)]);
    members.push_back(std::move(member));
  }
  object.members = std::move(members);
}

TOOLDECODE_INLINE schema::FormId ListedArguments::plain_value(const std::string& key,
                                                              schema::FormId value) const {
  if (tool_.strict) return value;
  const auto listed = tool_.documented.find("properties");
  if (listed == tool_.documented.end() || !listed->contains(key)) return value;
  const auto plain = find_plain_form((*listed)[key], tool_.documented);
  if (plain != PlainForm::text && plain != PlainForm::nullable) return value;
  schema::Form form;
  form.null  = plain == PlainForm::nullable;
  form.texts = {{}};
  return reader_.forms.add(std::move(form));
}

TOOLDECODE_INLINE std::vector<schema::FormId> ListedArguments::plain_values(
    const std::string& key) const {
  std::vector<schema::FormId> values;
  for (const schema::ObjectForm& object : objects_) {
    const schema::FormId value = reader_.forms.value_of(object, key);
    if (value != schema::nothing_form) values.push_back(plain_value(key, value));
  }
  return values;
}

TOOLDECODE_INLINE void ListedArguments::Kinds::add(const schema::Form& form) noexcept {
  text |= !form.texts.empty();
  null |= form.null;
  other |= form.truth || form.falsehood || !form.numbers.empty() || !form.arrays.empty() ||
           !form.objects.empty();
}

TOOLDECODE_INLINE PlainForm ListedArguments::Kinds::plain_form() const noexcept {
  if (!text) return PlainForm::json;
  if (other) return PlainForm::mixed;
  return null ? PlainForm::nullable : PlainForm::text;
}

TOOLDECODE_INLINE PlainForm ListedArguments::plain_form(const std::string& key) const {
  if (const auto known = kinds_.find(key); known != kinds_.end()) return known->second.plain_form();
  Kinds kinds;
  for (const schema::ObjectForm& object : objects_) {
    kinds.add(reader_.forms[reader_.forms.value_of_other(object, key)]);
  }
  return kinds.plain_form();
}

TOOLDECODE_INLINE PlainForm
ListedArguments::plain_form(const schema::ObjectForm::OtherKeys& others) const {
  bool is_parted = false;
  for (const schema::ObjectForm& object : objects_) {
    for (const auto& one : object.others) is_parted = is_parted || !one.keys.empty();
  }
  if (!is_parted) return plain_form(std::string());
  const PlainForm form = formats::plain_form(reader_.forms[others.value]);
  for (const schema::ObjectForm& object : objects_) {
    for (const auto& one : object.others) {
      BuildBudget::spend(20);
      const schema::StringTests keys = schema::united(others.keys, one.keys);
      if (reader_.forms[one.value].empty() ||
          formats::plain_form(reader_.forms[one.value]) == form ||
          (!keys.empty() && reader_.forms.texts.excludes_all(keys))) {
        continue;
      }
      throw Error(Errc::unsupported_keyword, pointer_to_others(),
                  "a key has strings here and other values there, and no name: list it as a "
                  "property");
    }
  }
  return form;
}

TOOLDECODE_INLINE std::string ListedArguments::pointer(const std::string& key,
                                                       schema::FormId value) const {
  const auto listed = tool_.parameters.find("properties");
  if (listed != tool_.parameters.end() && listed->contains(key)) {
    return argument_schema(tool_, key).pointer;
  }
  const std::string& place = reader_.forms.place_of(value);
  return place.empty() ? tool_.parameters_pointer : place;
}

TOOLDECODE_INLINE std::string ListedArguments::pointer_to_others() const {
  for (const char* keyword : {"patternProperties", "propertyNames", "additionalProperties"}) {
    if (tool_.parameters.contains(keyword)) return tool_.parameters_pointer + '/' + keyword;
  }
  return tool_.parameters_pointer;
}

TOOLDECODE_INLINE void ListedArguments::refuse(const std::string& what) const {
  throw Error(Errc::unsatisfiable_schema, tool_.parameters_pointer, what);
}

}  // namespace tooldecode::formats
