#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/carried_name.hpp>
#include <tooldecode/formats/delimiter.hpp>
#include <tooldecode/formats/element_values.hpp>
#include <tooldecode/schema/key_conditions.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/json_pointer.hpp>
#include <tooldecode/text/number_bounds.hpp>
#include <tooldecode/text/regex.hpp>
#include <tooldecode/text/string_lexeme.hpp>

namespace tooldecode::formats {

TOOLDECODE_INLINE KeyedElements::KeyedElements(KeyedSet& set, std::string_view before_key,
                                               std::string_view after_key)
    : set_(set), before_(delimiter_spellings(before_key)), after_(delimiter_spellings(after_key)) {}

TOOLDECODE_INLINE void KeyedElements::add(const std::string& key, NodeId value, bool required) {
  KeyedSet::Member member{{}, value, required};
  for (const std::string& before : before_) {
    for (const std::string& after : after_) member.spellings.push_back(before + key + after);
  }
  set_.members.push_back(std::move(member));
}

TOOLDECODE_INLINE void KeyedElements::add_others(NodeId value) {
  for (const std::string& before : before_) {
    for (const std::string& after : after_) {
      set_.others.push_back({schema::Spellings::identifier(before, after), value});
    }
  }
}

TOOLDECODE_INLINE void KeyedElements::add_others(NodeId value, const text::TextDfa& keys) {
  const text::Dfa words = schema::Spellings::identifiers(keys);
  if (words.empty()) return;
  for (const std::string& before : before_) {
    for (const std::string& after : after_) {
      set_.others.push_back({schema::Spellings::identifier(before, words, after), value});
    }
  }
}

TOOLDECODE_INLINE void refuse_unlisted_keys(const std::string& place) {
  throw Error(
      Errc::unsupported_keyword, place,
      "a key that is not listed cannot be repeated behind its value: list it as a property");
}

TOOLDECODE_INLINE ElementValues::ElementValues(Grammar& grammar, const Json& schema,
                                               const ElementStyle& style,
                                               const SchemaOptions& options)
    : grammar_(grammar),
      schema_(schema),
      style_(style),
      documented_order_(options.documented_order),
      first_(static_cast<std::uint32_t>(grammar.size())),
      reader_(schema, options.rules),
      spellings_(grammar, text::ValueSyntax::json, options.whitespace, options.every_spelling,
                 style.ends_of_values()),
      json_(grammar, reader_, spellings_, options.documented_order,
            options.every_spelling ? options.numbers.as_judged() : options.numbers.as_written()),
      plain_(grammar, style.text_end(), style.ends_of_values()) {}

TOOLDECODE_INLINE NodeId ElementValues::objects() {
  const schema::FormId id  = reader_.form(schema_, "#");
  const schema::Form& form = reader_.written(id);
  if (form.objects.empty() && !form.empty()) {
    throw Error(Errc::unsupported_keyword, "#", "elements are written of objects alone");
  }
  const auto objects = form.objects;
  const NodeId node = elements(objects, "#", types_of([&] { return ElementTypes(reader_, {id}); }));
  if (grammar_.is_satisfiable(node, first_)) return node;
  throw Error(Errc::unsatisfiable_schema, "#", "no object conforms to this schema");
}

TOOLDECODE_INLINE NodeId ElementValues::value(const Json& schema, const std::string& pointer) {
  const schema::FormId id = reader_.form(schema, pointer);
  const NodeId node       = content(id, types_of([&] { return ElementTypes(reader_, {id}); }));
  if (grammar_.is_satisfiable(node, first_)) return node;
  throw Error(Errc::unsatisfiable_schema, pointer, "no value conforms to this schema");
}

TOOLDECODE_INLINE NodeId ElementValues::elements(const std::vector<schema::ObjectForm>& objects,
                                                 const std::string& place,
                                                 const ElementTypes& types) {
  std::vector<NodeId> all;
  const auto order = documented_order_ ? schema::MemberOrder::fixed : schema::MemberOrder::any;
  for (const schema::ObjectForm& object : objects) {
    schema::visit_by_conditions(object, reader_.forms, order, [&](const schema::ObjectForm& one) {
      all.push_back(element_set(one, place, types));
    });
  }
  return grammar_.choice(std::move(all));
}

TOOLDECODE_INLINE NodeId ElementValues::element_set(const schema::ObjectForm& object,
                                                    const std::string& place,
                                                    const ElementTypes& types) {
  KeyedSet set{.members          = {},
               .others           = {},
               .separator        = separator(),
               .count            = object.count,
               .documented_order = documented_order_};
  KeyedElements elements(set, style_.before_key, style_.after_key);
  for (const schema::ObjectForm::Member& member : object.members) {
    const std::string written = key(member.name, place);
    if (style_.by_document && style_.is_item(member.name) && types.has(ElementKind::array)) {
      refuse_name(text::extend_pointer(place + "/properties", member.name), member.name,
                  "a list may stand here, whose items are written alike");
    }
    const NodeId inner = content(member.value, types_of([&] { return types.member(member.name); }));
    std::vector<NodeId> value{inner, delimiter(grammar_, style_.after_value)};
    if (style_.repeats_key()) value.push_back(grammar_.literal(written + style_.after_end_key));
    value.push_back(spellings_.space());
    elements.add(written, grammar_.sequence(std::move(value)), member.required);
  }
  schema::add_conditions(set, object);
  add_others(set, elements, object, place);
  return grammar_.sequence({spellings_.space(), grammar_.keyed_set(set)});
}

TOOLDECODE_INLINE void ElementValues::add_others(KeyedSet& set, KeyedElements& elements,
                                                 const schema::ObjectForm& object,
                                                 const std::string& place) {
  for (const schema::ObjectForm::OtherKeys& others : object.others) {
    if (others.value == schema::nothing_form) continue;
    if (style_.repeats_key()) {
      // A schema for keys in general does not require a key.
      if (others.value == schema::any_form) continue;
      refuse_unlisted_keys(place);
    }
    const NodeId value = grammar_.sequence(
        {content(others.value, {}), delimiter(grammar_, style_.after_value), spellings_.space()});
    if (!others.keys.empty()) {
      elements.add_others(value, reader_.forms.texts.texts(others.keys));
      continue;
    }
    if (!style_.escapes) {
      elements.add_others(value);
      continue;
    }
    const text::TextDfa keys = text::compile_whole_pattern(
        pattern_of(style_.before_key) + "(?:[^\\u0000\"&<>]|&amp;|&lt;|&gt;|&quot;)+" +
        pattern_of(style_.after_key));
    set.others.push_back({std::make_shared<const text::Dfa>(text::utf8_lexeme(keys)), value});
  }
}

TOOLDECODE_INLINE std::string ElementValues::key(const std::string& name,
                                                 const std::string& place) const {
  const auto refuse = [&](const std::string& why) {
    refuse_name(text::extend_pointer(place + "/properties", name), name, why);
  };
  if (!style_.escapes) {
    if (!style_.carries_bare(name)) refuse("it runs into what stands around it");
    const std::vector<std::string_view> delimiters{style_.before_key, style_.after_value};
    if (const auto why = why_not_carried(name, delimiters, style_.after_key)) refuse(*why);
    return name;
  }
  if (!style_.carries(name)) refuse("it is empty or holds a zero");
  return style_.written_key(name);
}

TOOLDECODE_INLINE NodeId ElementValues::content(schema::FormId id, const ElementTypes& types) {
  static constexpr std::size_t max_nested = 250;
  const auto [at, fresh]                  = contents_.try_emplace({id, types.forms()});
  std::optional<NodeId>& made             = at->second;  // references into a map stay valid
  if (!fresh) {
    if (!made) made = grammar_.reserve();
    return *made;
  }
  if (++depth_ > max_nested) {
    throw Error(Errc::limit_exceeded, reader_.forms.place_of(id), "schemas nest too deeply");
  }
  const NodeId node = make_content(id, types);
  --depth_;
  if (made) {
    grammar_.define(*made, node);
  } else {
    made = node;
  }
  return *made;
}

TOOLDECODE_INLINE NodeId ElementValues::make_content(schema::FormId id, const ElementTypes& types) {
  const std::string place = reader_.forms.place_of(id);
  schema::Form form       = reader_.written(id);
  if (style_.repeats_key() && !style_.by_document && id == schema::any_form) {
    throw Error(Errc::unsupported_keyword, place, "this style has no elements of any value");
  }
  if (style_.by_document) {
    const bool has_text = types.has(ElementKind::text);
    if (has_text && types.has_words()) form.texts = told(std::move(form.texts), types);
    if (has_text) form.arrays = filled(std::move(form.arrays));
    if (has_text || types.has(ElementKind::array)) form.objects = filled(std::move(form.objects));
  }
  std::vector<std::pair<ElementKind, NodeId>> values;
  if (!form.texts.empty()) values.emplace_back(ElementKind::text, text(form, place));
  const auto add_json = [&](ElementKind kind, schema::Form part) {
    if (!part.empty()) values.emplace_back(kind, padded(json(std::move(part), place)));
  };
  if (!style_.has_kinds() && !style_.nests()) {
    schema::Form rest = form;
    rest.texts.clear();
    add_json(ElementKind::object, std::move(rest));
  } else {
    const std::size_t kinds = !form.texts.empty() + !form.numbers.empty() + form.null +
                              (form.truth || form.falsehood) + !form.arrays.empty() +
                              !form.objects.empty();
    add_json(ElementKind::number, {.numbers = form.numbers});
    // Alone, a number has the kind number; beside other kinds an integer may have the kind integer.
    if (kinds > 1 && !style_.kinds[static_cast<std::size_t>(ElementKind::integer)].empty()) {
      schema::Form integers{.numbers = form.numbers};
      for (schema::NumberForm& one : integers.numbers) {
        one.kinds = one.kinds & text::NumberKinds::integers;
      }
      std::erase_if(integers.numbers, [](const schema::NumberForm& one) {
        return one.kinds == text::NumberKinds::none;
      });
      add_json(ElementKind::integer, std::move(integers));
    }
    add_json(ElementKind::truth, {.truth = form.truth, .falsehood = form.falsehood});
    add_json(ElementKind::null, {.null = form.null});
    if (!style_.nests()) {
      add_json(ElementKind::array, {.arrays = form.arrays});
      add_json(ElementKind::object, {.objects = form.objects});
    } else {
      if (!form.arrays.empty()) {
        values.emplace_back(ElementKind::array,
                            grammar_.sequence({delimiter(grammar_, style_.before_list),
                                               padded(lists(form.arrays, place, types)),
                                               delimiter(grammar_, style_.after_list)}));
      }
      if (!form.objects.empty()) {
        values.emplace_back(ElementKind::object,
                            grammar_.sequence({delimiter(grammar_, style_.before_object),
                                               elements(form.objects, place, types),
                                               delimiter(grammar_, style_.after_object)}));
      }
    }
  }
  std::vector<NodeId> choices;
  for (const auto& [kind, value] : values) {
    if (!style_.has_kinds()) {
      choices.push_back(value);
      continue;
    }
    const std::string& name = style_.kinds[static_cast<std::size_t>(kind)];
    choices.push_back(grammar_.sequence(
        {delimiter(grammar_, style_.before_kind + name + style_.after_kind), value}));
  }
  const NodeId value = grammar_.choice(std::move(choices));
  if (style_.before_value.empty()) return value;
  return grammar_.sequence({spellings_.space(), delimiter(grammar_, style_.before_value), value});
}

TOOLDECODE_INLINE std::vector<schema::StringForm> ElementValues::told(
    std::vector<schema::StringForm> texts, const ElementTypes& types) {
  std::uint32_t words = 0;  // a set of reader_.forms.texts
  bool is_known       = false;
  for (schema::StringForm& one : texts) {
    if (one.values) {
      std::erase_if(*one.values,
                    [&](const std::string& value) { return types.find_word(value).has_value(); });
      continue;
    }
    if (!std::exchange(is_known, true)) {
      words = reader_.forms.texts.add(std::make_shared<const text::TextDfa>(types.words()));
    }
    one.tests = schema::united(one.tests, {{.set = words, .negated = true}});
  }
  std::erase_if(texts,
                [](const schema::StringForm& one) { return one.values && one.values->empty(); });
  return texts;
}

template <class Form>
std::vector<Form> ElementValues::filled(std::vector<Form> forms) {
  const auto count = [](Form& one) -> text::Occurrences& {
    if constexpr (std::is_same_v<Form, schema::ArrayForm>) {
      return one.length;
    } else {
      return one.count;
    }
  };
  std::erase_if(forms, [&](Form& one) { return count(one).max == 0; });
  for (Form& one : forms) count(one).min = std::max(count(one).min, 1U);
  return forms;
}

TOOLDECODE_INLINE NodeId ElementValues::text(const schema::Form& form, const std::string& place) {
  const bool is_open =
      std::find(form.texts.begin(), form.texts.end(), schema::StringForm{}) != form.texts.end();
  schema::Form texts;
  texts.texts             = is_open ? std::vector<schema::StringForm>{{}} : form.texts;
  const schema::FormId id = reader_.forms.add(std::move(texts));
  const NodeId node       = grammar_.sequence({delimiter(grammar_, style_.before_text),
                                               plain_.value_or_nothing(reader_, id, place, json_),
                                               delimiter(grammar_, style_.after_text)});
  return is_open || style_.padding != ElementPadding::any ? node : padded(node);
}

TOOLDECODE_INLINE NodeId ElementValues::json(schema::Form form, const std::string& place) {
  try {
    return json_.value(reader_.forms.add(std::move(form)));
  } catch (const Error& error) {
    throw error.under(place);
  }
}

TOOLDECODE_INLINE NodeId ElementValues::lists(const std::vector<schema::ArrayForm>& arrays,
                                              const std::string& place, const ElementTypes& types) {
  std::vector<NodeId> all;
  for (const schema::ArrayForm& array : arrays) all.push_back(items(array, place, types));
  return grammar_.choice(std::move(all));
}

TOOLDECODE_INLINE NodeId ElementValues::items(const schema::ArrayForm& array,
                                              const std::string& place, const ElementTypes& types) {
  if (array.unique || !array.contains.empty()) {
    throw Error(Errc::unsupported_keyword, place,
                "items as elements cannot be counted or kept apart");
  }
  if (array.length.max == 0) return array.length.min == 0 ? grammar_.empty() : grammar_.nothing();
  const std::uint32_t least = std::max(1U, array.length.min);
  const auto count          = static_cast<std::uint32_t>(array.prefix.size());
  const auto left           = [&](std::uint32_t bound) {
    return bound == text::Occurrences::unbounded ? bound : bound > count ? bound - count : 0;
  };
  const NodeId next  = separator();
  const auto item_at = [&](std::size_t i) {
    return item(array.item(i), types_of([&] { return types.item(i); }));
  };
  NodeId some = item_at(count);
  if (count > 0) some = grammar_.sequence({next, some});
  some = grammar_.repeat(some, {left(least), left(array.length.max)},
                         count > 0 ? grammar_.empty() : next);
  for (std::uint32_t i = count; i-- > 0;) {
    std::vector<NodeId> then;
    if (least <= i) then.push_back(grammar_.empty());
    if (i < array.length.max) {
      then.push_back(grammar_.sequence({i > 0 ? next : grammar_.empty(), item_at(i), some}));
    }
    some = grammar_.choice(std::move(then));
  }
  // Styles without padding around values have white space around the items of a list instead.
  if (style_.padding == ElementPadding::none) {
    some = grammar_.sequence({spellings_.space(), some});
  }
  return array.length.min == 0 ? grammar_.optional(some) : some;
}

TOOLDECODE_INLINE NodeId ElementValues::item(schema::FormId id, const ElementTypes& types) {
  const std::string& end = style_.item_end();
  std::vector<NodeId> parts{delimiter(grammar_, style_.before_item), content(id, types),
                            delimiter(grammar_, end)};
  if (style_.padding == ElementPadding::none) parts.push_back(spellings_.space());
  return grammar_.sequence(std::move(parts));
}

TOOLDECODE_INLINE NodeId ElementValues::separator() {
  if (style_.separator.empty()) return grammar_.empty();
  return grammar_.sequence({grammar_.literal(style_.separator), spellings_.space()});
}

TOOLDECODE_INLINE NodeId ElementValues::padded(NodeId node) {
  if (style_.padding == ElementPadding::none) return node;
  return grammar_.sequence({spellings_.space(), node, spellings_.space()});
}

}  // namespace tooldecode::formats
