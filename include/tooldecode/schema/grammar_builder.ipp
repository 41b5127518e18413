#pragma once

#include <algorithm>
#include <set>

#include <tooldecode/schema/grammar_builder.hpp>
#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/json_pointer.hpp>

namespace tooldecode::schema {

TOOLDECODE_INLINE GrammarBuilder::GrammarBuilder(Grammar& grammar, Reader& reader, Spellings& text,
                                                 bool documented_order,
                                                 const text::NumberLimits& limits)
    : grammar_(grammar),
      reader_(reader),
      text_(text),
      limits_(limits),
      inner_{.assign = text.colon(), .documented_order = documented_order} {}

TOOLDECODE_INLINE NodeId GrammarBuilder::value(FormId id) {
  const auto [at, fresh] = nodes_.try_emplace(id);
  MadeNode& made         = at->second;  // map references stay valid
  if (!fresh) {
    if (!made.node) made.node = grammar_.reserve();
    return *made.node;
  }
  if (++depth_ > max_nested) {
    throw Error(Errc::limit_exceeded, reader_.forms.place_of(id), "schemas nest too deeply");
  }
  const NodeId content = value(id, inner_);
  --depth_;
  if (made.node) {
    grammar_.define(*made.node, content);
  } else {
    made.node = content;
  }
  return *made.node;
}

TOOLDECODE_INLINE NodeId GrammarBuilder::value(FormId id, const Members& written) {
  try {
    return content(reader_.written(id), written);
  } catch (const Error& error) {
    throw error.under(reader_.forms.place_of(id));
  }
}

TOOLDECODE_INLINE NodeId GrammarBuilder::members(ObjectForm form, const Members& written) {
  const bool is_fixed = written.documented_order || !written.leading_keys.empty();
  std::vector<NodeId> choices;
  visit_by_conditions(
      std::move(form), reader_.forms, is_fixed ? MemberOrder::fixed : MemberOrder::any,
      [&](ObjectForm one) { choices.push_back(member_set(std::move(one), written)); });
  return choices.size() == 1 ? choices[0] : one_of(std::move(choices));
}

TOOLDECODE_INLINE NodeId GrammarBuilder::member_set(ObjectForm form, const Members& written) {
  if (const auto missing = form.lead(written.leading_keys)) {
    throw Error(Errc::invalid_option, *missing, "must be a property, and lead once");
  }
  KeyedSet set{.members          = {},
               .others           = {},
               .separator        = text_.comma(),
               .count            = form.count,
               .documented_order = written.documented_order,
               .leading          = written.leading_keys.size()};
  if (!written.plain) set.strings = text_.syntax();
  set.every_spelling = text_.every_spelling();
  set.members.reserve(form.members.size());
  bool has_tags = false;
  for (const auto& [name, id, required] : form.members) {
    if (!written.plain && text_.holds_excluded(name)) {
      throw Error(Errc::unsupported_name, text::extend_pointer("/properties", name),
                  "the call format cannot write the name \"" + name +
                      "\": its readers take that for an end");
    }
    NodeId content       = value(id);
    const auto tag       = written.tags.find(name);
    const bool is_tagged = tag != written.tags.end();
    has_tags |= is_tagged;
    if (is_tagged) content = grammar_.tagged(tag->second, content);
    if (written.every_mark) content = grammar_.tagged(*written.every_mark, content);
    auto spellings = written.plain ? std::vector{name} : text_.key(name);
    // No other member has the same tag, so there is no node to share, nor is there a set.
    set.members.push_back({std::move(spellings),
                           is_tagged ? grammar_.sequence({written.assign, content})
                                     : sequence({written.assign, content}),
                           required});
  }
  add_conditions(set, form);  // leading keys have moved
  for (const ObjectForm::OtherKeys& other : form.others) {
    NodeId any = value(other.value);
    if (written.every_mark) any = grammar_.tagged(*written.every_mark, any);
    const NodeId content = sequence({written.assign, any});
    if (const auto few = few_keys(other.keys, form, written.plain)) {
      for (const std::string& name : *few) {
        set.members.push_back({written.plain ? std::vector{name} : text_.key(name), content});
      }
      continue;
    }
    for (const text::DfaPointer& key : keys(other.keys, written.plain)) {
      if (!key->empty()) set.others.push_back({key, content});
    }
  }
  return has_tags ? grammar_.keyed_set(set) : shared_set(set);
}

TOOLDECODE_INLINE NodeId GrammarBuilder::content(const Form& form, const Members& written) {
  std::vector<NodeId> choices;
  std::vector<std::pair<std::string, NodeId>> words;
  const auto word = [&](bool has, const Json& value) {
    if (!has) return;
    for (std::string& text : text_.spellings(value)) words.emplace_back(std::move(text), end());
  };
  word(form.null, Json());
  word(form.truth, Json(true));
  word(form.falsehood, Json(false));
  add_numbers(form.numbers, words, choices);
  add_texts(form.texts, words, choices);
  if (words.size() == 1 && words[0].second == end()) {
    choices.push_back(
        shared(made_literals_, words[0].first, [&] { return grammar_.literal(words[0].first); }));
  } else if (!words.empty()) {
    std::string key;
    for (const auto& [text, node] : words) key += text + '\n' + std::to_string(node.number()) + ' ';
    choices.push_back(shared(made_literals_, key, [&] { return grammar_.trie(words); }));
  }
  std::vector<ArrayForm> plain;
  for (const ArrayForm& array : form.arrays) {
    if (array.unique || !array.contains.empty()) {
      choices.push_back(array_of(array));
    } else {
      plain.push_back(array);
    }
  }
  if (!plain.empty()) {
    choices.push_back(sequence({text_.opening('['), items_of(plain), text_.closing(']')}));
  }
  for (const ObjectForm& object : form.objects) {
    choices.push_back(sequence({text_.opening('{'), members(object, written), text_.closing('}')}));
  }
  return one_of(std::move(choices));
}

TOOLDECODE_INLINE NodeId GrammarBuilder::sequence(std::vector<NodeId> parts) {
  return shared(made_sequences_, parts, [&] { return grammar_.sequence(parts); });
}

TOOLDECODE_INLINE NodeId GrammarBuilder::shared_set(const KeyedSet& set) {
  std::string key;
  const auto put = [&](std::uint64_t number) {
    key.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  put(set.strings.has_value()), put(set.every_spelling), put(set.documented_order),
      put(set.distinct), put(set.leading), put(set.count.min), put(set.count.max);
  put(set.members.size());
  for (const KeyedSet::Member& member : set.members) {
    put(member.value.number()), put(member.required);
    put(member.spellings.size());
    for (const std::string& text : member.spellings) put(text.size()), key += text;
  }
  put(set.others.size());
  for (const auto& other : set.others) put(other.key->hash()), put(other.value.number());
  put(set.dependent.size());
  for (const auto& [a, b] : set.dependent) put(a), put(b);
  for (const KeyedSet::Together& together : set.together) {
    put(together.allowed), put(together.keys.size());
    for (const std::uint32_t one : together.keys) put(one);
  }
  return shared(made_sets_, key, [&] { return grammar_.keyed_set(set); });
}

TOOLDECODE_INLINE void GrammarBuilder::add_numbers(
    const std::vector<NumberForm>& forms, std::vector<std::pair<std::string, NodeId>>& words,
    std::vector<NodeId>& choices) {
  const bool is_open = std::find(forms.begin(), forms.end(), NumberForm{}) != forms.end();
  if (is_open) return choices.push_back(number({}));
  std::map<std::string, std::vector<NodeId>> constants;  // continuations by beginning
  for (const NumberForm& form : forms) {
    const text::Decimal* point = find_point(form);
    if (point == nullptr) choices.push_back(number(form));
    if (point == nullptr) continue;
    for (auto& beginning : Numbers::beginnings(*point, form.kinds, limits_)) {
      std::string text = std::exchange(beginning.text, "");
      const auto node  = [&] { return grammar_.lexeme(Numbers::rest(beginning, limits_)); };
      constants[std::move(text)].push_back(shared(made_rests_, beginning, node));
    }
  }
  for (auto& [text, rests] : constants) {
    std::sort(rests.begin(), rests.end());
    rests.erase(std::unique(rests.begin(), rests.end()), rests.end());
    words.emplace_back(
        text, rests.size() == 1 ? rests[0] : shared(made_choices_, rests, [&, &all = rests] {
          return grammar_.choice(all);
        }));
  }
}

TOOLDECODE_INLINE NodeId GrammarBuilder::number(const NumberForm& form) {
  return shared(made_numbers_, Numbers::key(form), [&] {
    text::NumberLexeme lexeme = Numbers::lexeme(form, limits_);
    return grammar_.lexeme(std::move(lexeme.dfa), lexeme.units);
  });
}

TOOLDECODE_INLINE void GrammarBuilder::add_texts(const std::vector<StringForm>& forms,
                                                 std::vector<std::pair<std::string, NodeId>>& words,
                                                 std::vector<NodeId>& choices) {
  const bool is_open = std::find(forms.begin(), forms.end(), StringForm{}) != forms.end();
  if (is_open) return choices.push_back(string({}));
  for (const StringForm& form : forms) {
    if (!form.values) {
      choices.push_back(string(form));
      continue;
    }
    BuildBudget::spend(20 * form.values->size());
    for (const std::string& one : *form.values) {
      for (std::string& text : text_.spellings(Json(one))) {
        words.emplace_back(std::move(text), end());
      }
    }
  }
}

TOOLDECODE_INLINE NodeId GrammarBuilder::string(const StringForm& form) {
  const std::tuple key{form.length.min, form.length.max, form.tests, form.excluded};
  return shared(made_strings_, key, [&] {
    if (form.tests.empty() && form.excluded.empty()) return text_.string({}, form.length);
    const std::string* format = reader_.forms.texts.find_format(form.tests);
    if (format != nullptr && form.excluded.empty()) {
      return text_.format(*format, reader_.forms.texts.texts(form.tests), form.length);
    }
    text::TextDfa text = reader_.forms.texts.texts(form.tests);
    if (!form.excluded.empty()) text = difference(text, texts_of(form.excluded));
    return text_.string(text, form.length);
  });
}

TOOLDECODE_INLINE std::optional<std::vector<std::string>> GrammarBuilder::few_keys(
    const StringTests& tests, const ObjectForm& form, bool plain) {
  const auto required = std::ranges::count_if(form.members, &ObjectForm::Member::required);
  if (tests.empty() || std::cmp_less_equal(form.count.min, required)) return std::nullopt;
  std::set<std::string> named;
  for (const ObjectForm::Member& member : form.members) {
    if (reader_.forms.texts.holds(tests, member.name)) named.insert(member.name);
  }
  const text::TextDfa* texts = &reader_.forms.texts.texts(tests);
  std::optional<text::TextDfa> identifiers;
  if (plain) texts = &identifiers.emplace(Spellings::identifiers_among(*texts));
  const auto more = static_cast<std::uint32_t>(named.size());
  if (form.count.min > text::Occurrences::unbounded - more ||
      !texts->has_at_least(form.count.min + more)) {
    if (texts->has_at_least(max_listed_keys + more + 1)) {
      irreducible("there are fewer keys of a pattern than members, which have to be listed",
                  "/minProperties");
    }
    std::vector<std::string> keys;
    for (const std::u32string& text : texts->texts()) {
      std::string name;
      for (const char32_t c : text) text::append_utf8(name, c);
      const bool is_written = plain || !text_.holds_excluded(name);
      if (is_written && !named.contains(name)) keys.push_back(std::move(name));
    }
    return keys;
  }
  return std::nullopt;
}

TOOLDECODE_INLINE const std::vector<text::DfaPointer>& GrammarBuilder::keys(
    const StringTests& tests, bool plain) {
  const auto [known, fresh] = made_keys_[plain].try_emplace(tests);
  if (fresh) {
    known->second =
        text_.other_keys(tests.empty() ? nullptr : &reader_.forms.texts.texts(tests), plain);
  }
  return known->second;
}

TOOLDECODE_INLINE NodeId GrammarBuilder::array_of(const ArrayForm& form) {
  if (form.unique && form.length.max > 1) {
    return sequence({text_.opening('['), unique_items(form), text_.closing(']')});
  }
  ItemCounts items(grammar_, reader_.forms, text_.comma(), [this](FormId id) { return value(id); });
  return sequence({text_.opening('['), items(form), text_.closing(']')});
}

TOOLDECODE_INLINE NodeId GrammarBuilder::items_of(std::span<const ArrayForm> forms) {
  struct ItemNode {
    std::size_t before;  // index of the parent in the trie
    FormId item;
    std::size_t depth;
    std::vector<NodeId> then{};  // continuations after the item
  };
  std::vector<ItemNode> trie{{0, any_form, 0}};
  std::map<std::pair<std::size_t, FormId>, std::size_t> known;
  for (const ArrayForm& form : forms) {
    BuildBudget::spend(20 + 4 * form.prefix.size());
    const auto count = static_cast<std::uint32_t>(form.prefix.size());
    std::size_t at   = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      auto& then = trie[at].then;
      if (form.length.min <= i && (then.empty() || then.back() != end())) then.push_back(end());
      const auto [next, fresh] = known.try_emplace({at, form.prefix[i]}, trie.size());
      if (fresh) {
        BuildBudget::spend(20, 150);
        trie.push_back({at, form.prefix[i], i + std::size_t{1}});
      }
      at = next->second;
    }
    const auto left = [&](std::uint32_t bound) {
      return bound == text::Occurrences::unbounded ? bound : bound > count ? bound - count : 0;
    };
    const text::Occurrences more{left(form.length.min), left(form.length.max)};
    const NodeId rest = value(form.rest);
    trie[at].then.push_back(count == 0 ? repeat(rest, more, text_.comma())
                                       : repeat(sequence({text_.comma(), rest}), more, end()));
  }
  for (std::size_t at = trie.size(); at-- > 1;) {
    const NodeId item = value(trie[at].item);
    const NodeId then = one_of(std::move(trie[at].then));
    trie[trie[at].before].then.push_back(
        trie[at].depth == 1 ? sequence({item, then}) : sequence({text_.comma(), item, then}));
  }
  return one_of(std::move(trie[0].then));
}

TOOLDECODE_INLINE NodeId GrammarBuilder::one_of(std::vector<NodeId> choices) {
  std::sort(choices.begin(), choices.end());
  choices.erase(std::unique(choices.begin(), choices.end()), choices.end());
  if (choices.size() == 1) return choices[0];
  return shared(made_choices_, choices, [&] { return grammar_.choice(choices); });
}

TOOLDECODE_INLINE NodeId GrammarBuilder::repeat(NodeId item, const text::Occurrences& count,
                                                NodeId separator) {
  return shared(made_repeats_, std::tuple{item, count.min, count.max, separator},
                [&] { return grammar_.repeat(item, count, separator); });
}

TOOLDECODE_INLINE NodeId GrammarBuilder::unique_items(const ArrayForm& form) {
  if (!form.contains.empty()) {
    irreducible("items that do not repeat beside \"contains\" have no grammar", "/uniqueItems");
  }
  if (!form.prefix.empty()) return unique_prefix(form);
  const UniqueItems items = listed(form.rest);
  KeyedSet set{.members = {}, .others = {}, .separator = text_.comma(), .count = form.length};
  if (items.is_open) irreducible(not_remembered, "/uniqueItems");
  if (!items.texts.empty()) {
    // Only strings are compared in all their spellings.
    if (items.has_other_than_strings) irreducible(not_remembered, "/uniqueItems");
    set.strings        = text_.syntax();
    set.every_spelling = text_.every_spelling();
    set.distinct       = true;
    for (const auto& [name, spelt] : items.listed) {
      if (text_.holds_excluded(name)) {
        irreducible("items that do not repeat have no escapes for what the call format excludes",
                    "/uniqueItems");
      }
      set.members.push_back({text_.key(name.substr(1)), end(), false});
    }
    for (const text::DfaPointer& key : unique_texts(items.texts, form.length)) {
      set.others.push_back({key, end()});
    }
    return shared_set(set);
  }
  for (const auto& [value, spelt] : items.listed) set.members.push_back({spelt, end(), false});
  return shared_set(set);
}

TOOLDECODE_INLINE GrammarBuilder::UniqueItems GrammarBuilder::listed(FormId id) {
  const Form& form = reader_.forms[id];
  UniqueItems items{.is_open = !form.arrays.empty() || !form.objects.empty()};
  const auto add = [&](bool has, const Json& value) {
    if (has) items.listed.emplace(value.text(), text_.spellings(value));
  };
  add(form.null, Json()), add(form.truth, Json(true)), add(form.falsehood, Json(false));
  for (const NumberForm& number : form.numbers) {
    const text::Decimal* point = find_point(number);
    items.is_open |= point == nullptr;
    if (point == nullptr) continue;
    items.listed.emplace(point->plain(), Numbers::spellings(*point, number.kinds, limits_));
  }
  items.has_other_than_strings = items.is_open || !items.listed.empty();
  for (const StringForm& text : form.texts) {
    if (!text.values) {
      items.texts.push_back(text);
      continue;
    }
    for (const std::string& one : *text.values) {
      // With quotes, which no value of another type has; a set of strings alone takes the text.
      items.listed.emplace('"' + one, text_.spellings(Json(one)));
    }
  }
  return items;
}

TOOLDECODE_INLINE std::vector<text::DfaPointer> GrammarBuilder::unique_texts(
    const std::vector<StringForm>& forms, const text::Occurrences& count) {
  std::optional<text::TextDfa> all;
  for (const StringForm& form : forms) {
    text::TextDfa one = reader_.forms.texts.texts(form.tests);
    if (!form.excluded.empty()) one = difference(one, texts_of(form.excluded));
    if (form.length != text::Occurrences{}) one = one.bounded(form.length);
    all = all ? united(*all, one) : std::move(one);
  }
  // Behind a comma there must be an item that was not written.
  if (!all->has_at_least(count.max)) {
    irreducible("there are fewer texts than items, which can be refused one by one only",
                "/uniqueItems");
  }
  return text_.other_keys(&*all, false);
}

TOOLDECODE_INLINE NodeId GrammarBuilder::unique_prefix(const ArrayForm& form) {
  struct Step {
    std::size_t at;
    std::set<std::size_t> used;  // numbers of values
    auto operator<=>(const Step&) const = default;
  };
  std::map<Step, NodeId> made;
  std::map<std::string, std::size_t> numbers;
  const auto after = [&](const auto& self, Step step) -> NodeId {
    if (const auto known = made.find(step); known != made.end()) return known->second;
    BuildBudget::spend(50 + step.used.size(), 200);
    std::vector<NodeId> choices;
    if (step.at >= form.length.min) choices.push_back(end());
    std::vector<std::pair<std::string, NodeId>> words;
    const UniqueItems items =
        step.at < form.length.max ? listed(form.item(step.at)) : UniqueItems{};
    // Each step before this one is a call that has not made its node yet.
    if (items.is_open || !items.texts.empty() || made.size() + step.at > max_unique) {
      irreducible(not_remembered, "/uniqueItems");
    }
    for (const auto& [value, spelt] : items.listed) {
      const std::size_t number = numbers.try_emplace(value, numbers.size()).first->second;
      if (step.used.contains(number)) continue;
      Step next{step.at + 1, step.used};
      next.used.insert(number);
      const NodeId then = self(self, std::move(next));
      for (const std::string& text : spelt) words.emplace_back(text, then);
    }
    if (!words.empty()) {
      const NodeId item = grammar_.trie(words);
      choices.push_back(step.at == 0 ? item : sequence({text_.comma(), item}));
    }
    return made[step] = one_of(std::move(choices));
  };
  return after(after, {0, {}});
}

}  // namespace tooldecode::schema
