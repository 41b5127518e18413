#pragma once

#include <algorithm>
#include <numeric>
#include <string_view>
#include <unordered_set>

#include <tooldecode/schema/reader.hpp>
#include <tooldecode/text/json_pointer.hpp>

namespace tooldecode::schema {

TOOLDECODE_INLINE Reader::Reader(const Json& root, DocumentRules rules)
    : rules_(std::move(rules)), document_(root, rules_.draft, rules_.documents, rules_.place) {
  scopes_.push_back({});
}

TOOLDECODE_INLINE FormId Reader::form(const Json& schema, const std::string& pointer) {
  return form_at({&schema, pointer, document_.resource_of(schema, {})}, {}, Role::describes);
}

TOOLDECODE_INLINE const Form& Reader::written(FormId id) {
  const auto known = closed_.find(id);
  if (known != closed_.end()) return known->second;
  const Form& open        = forms[id];
  const auto closes_alone = [](const ObjectForm& one) { return one.closes && !one.named.all; };
  if (std::none_of(open.objects.begin(), open.objects.end(), closes_alone)) return open;
  Form all = open;
  all.objects.clear();
  std::vector<Tags> tags;
  for (const ObjectForm& one : open.objects) tags.push_back(tags_of(one));
  for (std::size_t i = 0; i < open.objects.size(); ++i) {
    const ObjectForm& one = open.objects[i];
    if (!closes_alone(one)) {
      all.objects.push_back(one);
      continue;
    }
    // An object that meets several alternatives has the keys of each.
    ObjectForm::Evaluated keys = one.named;
    for (std::size_t j = 0; j < open.objects.size(); ++j) {
      const ObjectForm& other = open.objects[j];
      if (i == j || !closes_alone(other) || differ_by_tag(tags[i], tags[j])) continue;
      BuildBudget::spend(steps_of(other));
      if (open.objects.size() > max_compared || may_share(one, other)) {
        keys = united(keys, other.named);
      }
    }
    Form before, closed;
    before.objects = {one}, closed.objects = {with_keys(keys, nothing_form)};
    closed = forms.intersection(before, closed);
    if (closed.objects.empty()) closed = std::move(before);
    for (ObjectForm& object : closed.objects) {
      object.named  = {.all = true};
      object.closes = false;
    }
    forms.unite(all, closed);
  }
  merge_objects(all, forms);
  return closed_.emplace(id, std::move(all)).first->second;
}

TOOLDECODE_INLINE Reader::Tags Reader::tags_of(const ObjectForm& form) {
  Tags tags;
  for (const ObjectForm::Member& member : form.members) {
    BuildBudget::spend(1);
    const Form* value    = member.required ? forms.find(member.value) : nullptr;
    const bool has_texts = value != nullptr && !value->null && !value->truth && !value->falsehood &&
                           !value->texts.empty() && value->alternatives() == value->texts.size() &&
                           std::ranges::all_of(value->texts, [](const StringForm& one) {
                             return one.values.has_value();
                           });
    if (!has_texts) continue;
    std::vector<std::string>& texts = tags[member.name];
    for (const StringForm& one : value->texts) {
      texts.insert(texts.end(), one.values->begin(), one.values->end());
    }
    std::ranges::sort(texts);
  }
  return tags;
}

TOOLDECODE_INLINE bool Reader::differ_by_tag(const Tags& a, const Tags& b) {
  BuildBudget::spend(1 + a.size());
  return std::ranges::any_of(a, [&](const auto& tag) {
    const auto other = b.find(tag.first);
    if (other == b.end()) return false;
    return std::ranges::none_of(tag.second, [&](const std::string& text) {
      return std::ranges::binary_search(other->second, text);
    });
  });
}

TOOLDECODE_INLINE bool Reader::keep_named(Form& form) {
  const auto is_named = [&](const ObjectForm::Evaluated& named, const std::string& name) {
    return std::ranges::binary_search(named.names, name) ||
           std::ranges::any_of(named.patterns,
                               [&](std::uint32_t set) { return forms.texts.holds({{set}}, name); });
  };
  std::vector<ObjectForm> kept;
  for (const ObjectForm& one : form.objects) {
    BuildBudget::spend(steps_of(one));
    const bool requires_more =
        one.closes && !one.named.all && std::ranges::any_of(one.members, [&](const auto& member) {
          return member.required && !is_named(one.named, member.name);
        });
    if (!requires_more) kept.push_back(one);
  }
  if (kept.empty() || kept.size() == form.objects.size()) return false;
  form.objects = std::move(kept);
  return true;
}

TOOLDECODE_INLINE bool Reader::may_share(const ObjectForm& a, const ObjectForm& b) {
  Form left, right;
  left.objects = {a}, right.objects = {b};
  return !forms.are_disjoint(left, right);
}

TOOLDECODE_INLINE FormId Reader::child(const Site& site, const Json& schema,
                                       const std::string& part) {
  return child(site, schema, part, site.role);
}

TOOLDECODE_INLINE FormId Reader::test(const Site& site, const Json& schema,
                                      const std::string& part) {
  return child(site, schema, part, Role::tests);
}

TOOLDECODE_INLINE FormId Reader::child(const Site& site, const Json& schema,
                                       const std::string& part, Role role) {
  BuildBudget::spend(10 + site.pointer.size() / 16);
  return form_at({&schema, site.pointer + '/' + part, document_.resource_of(schema, site.resource)},
                 site.scope, role);
}

TOOLDECODE_INLINE std::optional<FormId> Reader::find_by_type(const Site& site, const Json& schema) {
  const Json* type = nullptr;
  for (const auto& [name, content] : schema.items()) {
    const std::string_view key = name;
    if (key == "description" || key == "title" || key == "default") continue;
    if (key != "type") return std::nullopt;
    type = &content;
  }
  // In draft 4 an integer is a matter of spelling.
  const Document::Resource& resource = document_[site.resource];
  if (type == nullptr || document_.has_unevaluated() || resource.draft == SchemaDraft::draft4 ||
      !resource.without.empty()) {
    return std::nullopt;
  }
  static const std::array<std::pair<const char*, Form>, 7> forms_of_types{
      {{"string", {.texts = {{}}}},
       {"integer", {.numbers = {{text::NumberKinds::integers}}}},
       {"number", {.numbers = {{}}}},
       {"boolean", {.truth = true, .falsehood = true}},
       {"array", {.arrays = {{}}}},
       {"object", {.objects = {{}}}},
       {"null", {.null = true}}}};
  for (std::size_t i = 0; i < forms_of_types.size(); ++i) {
    if (*type != forms_of_types[i].first) continue;
    BuildBudget::spend(20);
    if (!by_type_[i]) by_type_[i] = forms.add(forms_of_types[i].second);
    return by_type_[i];
  }
  return std::nullopt;
}

TOOLDECODE_INLINE Reader::ScopeId Reader::entered(ScopeId scope, ResourceId resource) {
  if (!document_.has_dynamic()) return {};
  Scope inner = scopes_[scope.index()];
  if (!adds_anchor(inner, document_[resource])) return scope;
  inner.push_back(resource);
  const auto known = std::find(scopes_.begin(), scopes_.end(), inner);
  if (known != scopes_.end()) return ScopeId(static_cast<std::uint32_t>(known - scopes_.begin()));
  if (scopes_.size() >= max_scopes) {
    throw Error(Errc::limit_exceeded, document_[resource].pointer, "too many dynamic scopes");
  }
  scopes_.push_back(std::move(inner));
  return ScopeId(static_cast<std::uint32_t>(scopes_.size() - 1));
}

TOOLDECODE_INLINE bool Reader::adds_anchor(const Scope& scope,
                                           const Document::Resource& resource) const {
  const auto is_new = [&](const auto& has) {
    return std::none_of(scope.begin(), scope.end(),
                        [&](ResourceId outer) { return has(document_[outer]); });
  };
  return (resource.is_recursive &&
          is_new([](const Document::Resource& outer) { return outer.is_recursive; })) ||
         std::any_of(resource.dynamic.begin(), resource.dynamic.end(), [&](const auto& anchor) {
           return is_new([&](const Document::Resource& outer) {
             return outer.dynamic.contains(anchor.first);
           });
         });
}

TOOLDECODE_INLINE FormId Reader::form_at(Location place, ScopeId scope, Role role) {
  if (!rules_.close_objects) role = Role::describes;
  std::unordered_set<const Json*> passed;
  while (true) {
    scope              = entered(scope, place.resource);
    const Json& schema = *place.schema;
    if (schema.is_boolean()) return schema.get<bool>() ? any_form : nothing_form;
    if (!schema.is_object()) {
      throw Error(Errc::malformed_schema, place.pointer, "a schema must be an object or a boolean");
    }
    BuildBudget::spend(5 + 2 * schema.size() + place.pointer.size() / 16);
    const SchemaDraft draft = document_[place.resource].draft;
    bool is_empty = true, is_reference = schema.contains("$ref"), is_negation = true;
    for (const auto& [name, content] : schema.items()) {
      const std::string_view key = name;
      const auto keyword         = find_keyword(key);
      if (!keyword || keyword->shape == KeywordShape::annotation || !keyword->is_in(draft) ||
          key == "$defs" || key == "definitions") {
        continue;
      }
      is_empty = false;
      is_negation &= key == "not";
      if (key != "$ref" && draft > SchemaDraft::draft7) is_reference = false;
    }
    if (is_empty) return any_form;
    if (rules_.nullable && is_nullable(schema, place.pointer)) is_negation = is_reference = false;
    if (is_negation && !document_.has_unevaluated() && depth_ < max_negations &&
        document_[place.resource].without.empty())
      return negation(place, scope);
    if (!is_reference) break;
    if (!passed.insert(place.schema).second) {
      throw Error(Errc::malformed_schema, place.pointer, "references go round in a circle");
    }
    place = target(place, "$ref");
  }
  const auto [known, fresh] = known_.try_emplace({place.schema, scope, role});
  if (fresh) {
    BuildBudget::spend(20, 100 + place.pointer.size());
    known->second = forms.add_read(static_cast<std::uint32_t>(sites_.size()), place.pointer);
    sites_.push_back({std::move(place), scope, role});
  }
  return known->second;
}

TOOLDECODE_INLINE FormId Reader::negation(const Location& place, ScopeId scope) {
  const Json& inner = (*place.schema)["not"];
  ++depth_;
  const FormTable::Origin origin(forms, place.pointer + "/not");
  const FormId of =
      form_at({&inner, place.pointer + "/not", document_.resource_of(inner, place.resource)}, scope,
              Role::tests);
  const FormId result = forms.complement(of);
  --depth_;
  return result;
}

TOOLDECODE_INLINE Reader::Location Reader::target(const Location& place,
                                                  const char* keyword) const {
  const std::string pointer = place.pointer + '/' + keyword;
  const Json& reference     = (*place.schema)[keyword];
  if (!reference.is_string()) {
    throw Error(Errc::malformed_schema, pointer, "must be a string");
  }
  return document_.find(reference.get<std::string>(), place.resource, pointer);
}

TOOLDECODE_INLINE Reader::Location Reader::dynamic_target(const Location& place, ScopeId scope,
                                                          const char* keyword) const {
  Location found                     = target(place, keyword);
  const Document::Resource& resource = document_[found.resource];
  const bool recursive               = std::string_view(keyword) == "$recursiveRef";
  std::string name;
  for (const auto& [anchor, schema] : resource.dynamic) {
    const auto& text = (*place.schema)[keyword].string();
    if (schema == found.schema && text.ends_with('#' + anchor)) name = anchor;
  }
  if (recursive ? !resource.is_recursive : name.empty()) return found;
  for (const ResourceId outer : scopes_[scope.index()]) {
    const Document::Resource& other = document_[outer];
    if (recursive && other.is_recursive) return {other.root, other.pointer, outer};
    if (recursive) continue;
    const auto at = other.dynamic.find(name);
    if (at != other.dynamic.end()) return {at->second, other.pointers.at(at->second), outer};
  }
  return found;
}

TOOLDECODE_INLINE Form Reader::read(std::uint32_t site) {
  const auto& [place, scope, role] = sites_[site];
  return read(place, scope, role);
}

TOOLDECODE_INLINE Form Reader::read(const Location& place, ScopeId scope, Role role) {
  const SchemaDraft draft = document_[place.resource].draft;
  const Site site{
      *place.schema,
      place.pointer,
      place.resource,
      scope,
      role,
      Assertions(*place.schema, draft, place.pointer, document_[place.resource].without)};
  const bool nullable = rules_.nullable && is_nullable(site.schema, site.pointer);
  if (nullable && draft <= SchemaDraft::draft7 && site.has.find("$ref") != nullptr) {
    Form referred = forms[form_at(target(place, "$ref"), scope, role)];
    referred.null = true;
    return referred;
  }
  Form all        = own(site);
  const auto with = [&](const char* keyword, const auto& apply) {
    if (site.has.find(keyword) == nullptr) return;
    try {
      const FormTable::Origin origin(forms, site.has.place(keyword));
      apply();
    } catch (const Error& error) {
      throw error.under(site.has.place(keyword));
    }
  };
  const auto and_form = [&](FormId id) { all = forms.intersection(all, forms[id]); };
  with("$ref", [&] { and_form(form_at(target(place, "$ref"), scope, role)); });
  for (const char* keyword : {"$dynamicRef", "$recursiveRef"}) {
    with(keyword, [&] { and_form(form_at(dynamic_target(place, scope, keyword), scope, role)); });
  }
  with("const", [&] {
    all = forms.intersection(all, constants_(std::vector<Json>(1, *site.has.find("const"))));
  });
  with("enum", [&] {
    const Json& list = *site.has.find("enum");
    if (!list.is_array()) site.has.malformed("enum", "must be an array");
    all = forms.intersection(all, constants_(list.list()));
  });
  with("allOf", [&] { all = forms.within(std::move(all), branches(site, "allOf", role)); });
  with("anyOf", [&] { all = forms.intersection(all, any_of(branches(site, "anyOf", role))); });
  with("oneOf", [&] {
    const auto ids    = branches(site, "oneOf", role);
    const bool closes = rules_.close_objects && role == Role::describes;
    all               = one_of(all, ids, closes ? branches(site, "oneOf", Role::tests) : ids);
  });
  with("not", [&] { all = forms.without(all, test(site, *site.has.find("not"), "not")); });
  with("if", [&] { all = conditional(site, all); });
  with("dependentSchemas", [&] { all = dependent(site, all, "dependentSchemas"); });
  with("dependencies", [&] { all = dependent(site, all, "dependencies"); });
  with("unevaluatedProperties", [&] { close_objects(site, all); });
  with("unevaluatedItems", [&] { close_arrays(site, all); });
  all.null = all.null || nullable;
  return all;
}

TOOLDECODE_INLINE std::vector<FormId> Reader::branches(const Site& site, const char* keyword,
                                                       Role role) {
  const Json& list = *site.has.find_list(keyword);
  if (list.empty()) site.has.malformed(keyword, "must be an array of schemas that is not empty");
  std::vector<FormId> result(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    result[i] = child(site, list[i], std::string(keyword) + '/' + std::to_string(i), role);
  }
  return result;
}

TOOLDECODE_INLINE Form Reader::any_of(const std::vector<FormId>& ids) {
  Form all;
  for (const FormId id : ids) {
    const Form& one = forms[id];
    // A value that meets several branches has been evaluated by each.
    if (document_.has_unevaluated()) forms.unite(all, forms.intersection(all, one));
    forms.unite(all, one);
  }
  merge_objects(all, forms);
  return all;
}

TOOLDECODE_INLINE Form Reader::one_of(const Form& outer, const std::vector<FormId>& ids,
                                      const std::vector<FormId>& others) {
  Form all;
  const auto with_text = ids.size() > max_compared ? find_tag(ids) : std::nullopt;
  // By branch, the lists of `with_text` that have it.
  std::vector<std::vector<const std::vector<std::size_t>*>> lists(ids.size());
  if (with_text) {
    for (const auto& [text, branches] : *with_text) {
      for (const std::size_t i : branches) lists[i].push_back(&branches);
    }
  }
  std::vector<std::size_t> rivals(ids.size());
  std::iota(rivals.begin(), rivals.end(), std::size_t{0});
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (with_text) {
      rivals.clear();
      for (const std::vector<std::size_t>* const list : lists[i]) {
        BuildBudget::spend(list->size());
        rivals.insert(rivals.end(), list->begin(), list->end());
      }
      std::ranges::sort(rivals);
      rivals.erase(std::unique(rivals.begin(), rivals.end()), rivals.end());
    }
    Form own = forms.intersection(outer, forms[ids[i]]);
    for (const std::size_t j : rivals) {
      if (j != i && !own.empty() && !forms.are_disjoint(ids[i], ids[j])) {
        own = forms.difference(own, forms[others[j]]);
      }
      if (own.objects.size() > max_compared / ids.size() && keep_named(own) && own.hull.empty()) {
        own.hull = forms.intersection(outer, forms[ids[i]]).objects;
      }
    }
    forms.unite(all, own);
  }
  merge_objects(all, forms);
  return all;
}

TOOLDECODE_INLINE std::optional<Reader::BranchesByText> Reader::find_tag(
    const std::vector<FormId>& ids) {
  if (forms.nests_deeply()) return std::nullopt;
  std::map<std::string, BranchesByText> with;  // by key
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const Form& form                       = forms[ids[i]];
    const std::vector<ObjectForm>& objects = form.compared_objects();
    if (objects.empty() || form.alternatives() != form.objects.size()) return std::nullopt;
    for (const ObjectForm& one : objects) {
      const Tags tags     = tags_of(one);
      const bool is_first = i == 0 && &one == &objects.front();
      std::erase_if(with, [&](const auto& known) { return !tags.contains(known.first); });
      for (const auto& [key, texts] : tags) {
        if (!is_first && !with.contains(key)) continue;
        for (const std::string& text : texts) {
          BuildBudget::spend(10, 2 * sizeof(std::size_t));
          std::vector<std::size_t>& branches = with[key][text];
          if (branches.empty() || branches.back() != i) branches.push_back(i);
        }
      }
    }
  }
  if (with.empty()) return std::nullopt;
  // Of several keys, the one with the most texts tells most branches apart.
  return std::ranges::max_element(with, {}, [](const auto& key) { return key.second.size(); })
      ->second;
}

TOOLDECODE_INLINE Form Reader::conditional(const Site& site, const Form& outer) {
  const Json* then_part = site.has.find("then");
  const Json* else_part = site.has.find("else");
  if (then_part == nullptr && else_part == nullptr && !document_.has_unevaluated()) return outer;
  const Form& condition = forms[test(site, *site.has.find("if"), "if")];
  Form yes              = forms.intersection(outer, condition);
  if (then_part == nullptr && else_part == nullptr) {
    // A lone `if` only evaluates. `outer` has evaluated less, so it may also hold what conforms to
    // the condition, which may have no complement.
    forms.unite(yes, outer);
    merge_objects(yes, forms);
    return yes;
  }
  Form no = forms.difference(outer, condition);
  if (then_part != nullptr) {
    yes = forms.intersection(yes, forms[test(site, *then_part, "then")]);
  }
  if (else_part != nullptr) no = forms.intersection(no, forms[test(site, *else_part, "else")]);
  forms.unite(yes, no);
  merge_objects(yes, forms);
  return yes;
}

TOOLDECODE_INLINE Form Reader::dependent(const Site& site, Form all, const char* keyword) {
  for (const auto& [name, content] : site.has.find_map(keyword)->items()) {
    const std::string part = text::extend_pointer(keyword, name);
    const bool lists_names =
        std::string_view(keyword) == "dependencies" && (content.is_array() || content.is_string());
    if (lists_names) continue;  // see `object`
    const Form& inner = forms[test(site, content, part)];
    Form absent       = Form::anything();
    Form present;
    absent.objects[0].members = {{name, nothing_form, false}};
    present.objects           = {{.members = {{name, any_form, true}}}};
    present                   = forms.intersection(present, inner);
    forms.unite(absent, present);
    merge_objects(absent, forms);
    all = forms.intersection(all, absent);
  }
  return all;
}

TOOLDECODE_INLINE ObjectForm Reader::with_keys(const ObjectForm::Evaluated& keys, FormId rest) {
  ObjectForm known;
  std::vector<std::pair<std::uint32_t, FormId>> patterns;
  for (const std::uint32_t set : keys.patterns) patterns.push_back({set, any_form});
  known.others = key_classes(patterns, rest, forms);
  for (const std::string& name : keys.names) known.members.push_back({name});
  return known;
}

TOOLDECODE_INLINE void Reader::close_objects(const Site& site, Form& all) {
  const FormId rest = child(site, *site.has.find("unevaluatedProperties"), "unevaluatedProperties");
  Form closed       = all;
  closed.objects.clear();
  for (const ObjectForm& object : all.objects) {
    if (!object.evaluated.all) {
      Form a, b;
      a.objects = {object}, b.objects = {with_keys(object.evaluated, rest)};
      a = forms.intersection(a, b);
      for (ObjectForm& one : a.objects) one.evaluated = {.all = true};
      forms.unite(closed, a);
    } else {
      closed.objects.push_back(object);
    }
  }
  all = std::move(closed);
}

TOOLDECODE_INLINE void Reader::close_arrays(const Site& site, Form& all) {
  const FormId rest = child(site, *site.has.find("unevaluatedItems"), "unevaluatedItems");
  Form closed       = all;
  closed.arrays.clear();
  for (const ArrayForm& array : all.arrays) {
    if (array.evaluated == all_items) {
      closed.arrays.push_back(array);
      continue;
    }
    ArrayForm known{.rest = forms.either(rest, array.evaluated_items), .evaluated = all_items};
    known.prefix.resize(array.evaluated, any_form);
    Form a, b;
    a.arrays = {array}, b.arrays = {known};
    forms.unite(closed, forms.intersection(a, b));
  }
  all = std::move(closed);
}

TOOLDECODE_INLINE Form Reader::own(const Site& site) {
  const Assertions::Types types = site.has.types();
  Form form{types.null, types.boolean, types.boolean};
  if (types.integer) {
    if (auto some = schema::intersection(site.has.numbers(), NumberForm{})) {
      form.numbers.push_back(std::move(*some));
    }
  }
  if (types.string) {
    if (auto some = text(site)) form.texts.push_back(std::move(*some));
  }
  if (types.array) {
    ArrayForm one = array(site);
    if (settle(one)) form.arrays.push_back(std::move(one));
  }
  if (types.object) {
    ObjectForm one = object(site);
    if (settle(one)) form.objects.push_back(std::move(one));
  }
  return form;
}

TOOLDECODE_INLINE std::optional<StringForm> Reader::text(const Site& site) {
  StringForm form{.length = site.has.occurrences("minLength", "maxLength")};
  if (const auto pattern = site.has.find_text("pattern")) {
    form.tests = {{forms.texts.pattern(*pattern, site.has.place("pattern"))}};
  }
  if (const auto format = site.has.find_text("format");
      format && (rules_.assert_format || document_[site.resource].asserts_format)) {
    if (const auto set = forms.texts.format(*format, site.has.place("format"))) {
      form.tests = united(form.tests, {{*set}});
    }
  }
  return schema::intersection(form, StringForm{}, forms.texts);
}

TOOLDECODE_INLINE ArrayForm Reader::array(const Site& site) {
  ArrayForm form{.length = site.has.occurrences("minItems", "maxItems")};
  const Json* items    = site.has.find("items");
  const Json* rest     = items;
  const char* rest_key = "items";
  const auto places    = [&](const Json& list, const std::string& keyword) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      form.prefix.push_back(child(site, list[i], keyword + '/' + std::to_string(i)));
    }
  };
  if (const Json* prefix = site.has.find_list("prefixItems")) places(*prefix, "prefixItems");
  if (items != nullptr && items->is_array()) {
    if (form.prefix.empty()) places(*items, "items");
    rest     = site.has.find("additionalItems");
    rest_key = "additionalItems";
  }
  if (rest != nullptr) {
    const auto typed = find_by_type(site, *rest);
    form.rest        = typed ? *typed : child(site, *rest, rest_key);
  }
  if (document_.has_unevaluated()) {
    form.evaluated = rest != nullptr ? all_items : form.prefix.size();
  }
  form.unique = site.has.is_set("uniqueItems");
  if (const Json* contains = site.has.find("contains")) {
    text::Occurrences count = site.has.occurrences("minContains", "maxContains");
    if (site.has.find("minContains") == nullptr) count.min = 1;
    if (count != text::Occurrences{} || document_.has_unevaluated()) {
      form.contains.push_back({test(site, *contains, "contains"), count});
    }
    if (document_.has_unevaluated() && document_[site.resource].draft >= SchemaDraft::draft2020) {
      form.evaluated_items = test(site, *contains, "contains");
    }
  }
  return form;
}

TOOLDECODE_INLINE ObjectForm Reader::object(const Site& site) {
  ObjectForm form{.count = site.has.occurrences("minProperties", "maxProperties")};
  std::vector<std::pair<std::uint32_t, FormId>> patterns;
  if (const Json* map = site.has.find_map("patternProperties")) {
    for (const auto& [pattern, schema] : map->items()) {
      const std::string part = text::extend_pointer("patternProperties", pattern);
      patterns.emplace_back(forms.texts.pattern(pattern, site.pointer + '/' + part),
                            child(site, schema, part));
    }
  }
  const Json* additional = site.has.find("additionalProperties");
  const FormId rest =
      additional != nullptr ? child(site, *additional, "additionalProperties") : any_form;
  form.others = key_classes(patterns, rest, forms);
  if (const Json* map = site.has.find_map("properties")) {
    form.members.reserve(map->size());
    for (const auto& [name, schema] : map->items()) {
      const auto typed = find_by_type(site, schema);
      const FormId value =
          typed ? *typed : child(site, schema, text::extend_pointer("properties", name));
      form.members.push_back({name, value_among(patterns, name, value, forms)});
    }
  }
  if (document_.has_unevaluated()) {
    form.evaluated.all = additional != nullptr;
    for (const auto& member : form.members) form.evaluated.names.push_back(member.name);
    for (const auto& one : patterns) form.evaluated.patterns.push_back(one.first);
    std::sort(form.evaluated.names.begin(), form.evaluated.names.end());
    std::sort(form.evaluated.patterns.begin(), form.evaluated.patterns.end());
  }
  if (const Json* required = site.has.find("required")) {
    require_names(form, Assertions::names(*required, site.has.place("required")), forms);
  }
  if (const Json* names = site.has.find("propertyNames")) {
    restrict_names(form, forms[child(site, *names, "propertyNames")], forms);
  }
  for (const char* keyword : {"dependentRequired", "dependencies"}) {
    const Json* map = site.has.find_map(keyword);
    if (map == nullptr) continue;
    for (const auto& [name, needed] : map->items()) {
      if (needed.is_string()) form.dependent.emplace_back(name, needed.string());
      const bool may_be_schema = std::string_view(keyword) == "dependencies";
      if (may_be_schema && !needed.is_array()) continue;
      for (const auto& other : Assertions::names(needed, site.has.place(keyword))) {
        form.dependent.emplace_back(name, other);
      }
    }
  }
  if (rules_.close_objects) {
    for (const auto& one : patterns) form.named.patterns.push_back(one.first);
    name_keys(site, form);
  }
  return form;
}

TOOLDECODE_INLINE void Reader::name_keys(const Site& site, ObjectForm& form) const {
  ObjectForm::Evaluated& named = form.named;
  for (const char* keyword : {"additionalProperties", "unevaluatedProperties", "propertyNames"}) {
    named.all |= site.has.find(keyword) != nullptr;
  }
  const Json* properties = site.has.find_map("properties");
  form.closes = site.role == Role::describes && properties != nullptr && !properties->empty();
  if (named.all) return;
  for (const ObjectForm::Member& member : form.members) named.names.push_back(member.name);
  for (const auto& [name, needed] : form.dependent) named.names.push_back(needed);
  std::sort(named.names.begin(), named.names.end());
  named.names.erase(std::unique(named.names.begin(), named.names.end()), named.names.end());
  std::sort(named.patterns.begin(), named.patterns.end());
}

}  // namespace tooldecode::schema
