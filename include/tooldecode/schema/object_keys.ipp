#pragma once

#include <algorithm>

#include <tooldecode/schema/object_keys.hpp>

namespace tooldecode::schema {

TOOLDECODE_INLINE ObjectForm::Member& member_of(ObjectForm& form, MemberIndex& members,
                                                const std::string& name, FormAlgebra& forms) {
  BuildBudget::spend(4);
  const auto known = members.find(name);
  return form.members[known ? *known : members.add(form, {name, forms.value_of_other(form, name)})];
}

TOOLDECODE_INLINE void require_names(ObjectForm& form, const std::vector<std::string>& names,
                                     FormAlgebra& forms) {
  MemberIndex members(form);
  for (const std::string& name : names) member_of(form, members, name, forms).required = true;
}

TOOLDECODE_INLINE FormId value_among(const std::vector<std::pair<std::uint32_t, FormId>>& patterns,
                                     const std::string& name, FormId value, FormAlgebra& forms) {
  BuildBudget::spend(5 + (2 + name.size() / 4) * patterns.size());
  for (const auto& [set, id] : patterns) {
    if (forms.texts.holds({{set}}, name)) value = forms.both(value, id);
  }
  return value;
}

TOOLDECODE_INLINE std::vector<ObjectForm::OtherKeys> key_classes(
    const std::vector<std::pair<std::uint32_t, FormId>>& patterns, FormId rest,
    FormAlgebra& forms) {
  // Disjoint patterns need one class each; the rest bounds the classes of patterns that overlap.
  const std::size_t max_classes = 64 + patterns.size();
  struct Class {
    ObjectForm::OtherKeys of;
    bool matched;
  };
  std::vector<Class> all{{{}, false}};
  for (const auto& [set, id] : patterns) {
    std::vector<Class> split;
    for (const Class& one : all) {
      StringTests keys = united(one.of.keys, {{set, false}});
      if (all.size() > 1 && forms.texts.excludes_all(keys)) {
        split.push_back(one);  // has no key of the pattern
        continue;
      }
      split.push_back({{std::move(keys), forms.both(one.of.value, id)}, true});
      keys = united(one.of.keys, {{set, true}});
      // For a class that matched nothing, its automaton decides later whether it has keys.
      if (one.matched && forms.texts.excludes_all(keys)) continue;
      split.push_back({{std::move(keys), one.of.value}, one.matched});
    }
    all = std::move(split);
    if (all.size() > max_classes) {
      irreducible("patterns that part the keys into too many classes", "/patternProperties");
    }
  }
  std::vector<ObjectForm::OtherKeys> result;
  for (Class& one : all) {
    if (!one.matched) one.of.value = rest;
    if (one.of.value != nothing_form) result.push_back(std::move(one.of));
  }
  return result;
}

TOOLDECODE_INLINE void restrict_names(ObjectForm& form, const Form& names, FormAlgebra& forms) {
  bool is_list = true;
  for (const StringForm& one : names.texts) {
    if (one == StringForm{}) return;
    is_list &= one.values.has_value();
  }
  if (is_list) {
    std::vector<std::string> listed;
    for (const StringForm& one : names.texts) {
      listed.insert(listed.end(), one.values->begin(), one.values->end());
    }
    MemberIndex members(form);
    for (const std::string& name : listed) (void)member_of(form, members, name, forms);
    std::sort(listed.begin(), listed.end());
    for (ObjectForm::Member& one : form.members) {
      if (!std::binary_search(listed.begin(), listed.end(), one.name)) one.value = nothing_form;
    }
    form.others.clear();
    return;
  }
  StringTests keys = tests_of(names.texts, forms.texts);
  for (ObjectForm::Member& one : form.members) {
    if (!forms.texts.holds(keys, one.name)) one.value = nothing_form;
  }
  for (ObjectForm::OtherKeys& one : form.others) one.keys = united(one.keys, keys);
  std::erase_if(form.others, [&](const ObjectForm::OtherKeys& one) {
    return one.keys.size() > 1 && forms.texts.excludes_all(one.keys);
  });
}

}  // namespace tooldecode::schema
