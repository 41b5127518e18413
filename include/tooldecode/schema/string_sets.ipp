#pragma once

#include <algorithm>
#include <utility>

#include <tooldecode/schema/string_sets.hpp>

namespace tooldecode::schema {

TOOLDECODE_INLINE StringTests united(const StringTests& a, const StringTests& b) {
  StringTests all;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(all));
  return all;
}

TOOLDECODE_INLINE std::uint32_t StringSets::pattern(const std::string& text,
                                                    const std::string& pointer) {
  const auto [at, fresh] = patterns_.emplace(text, static_cast<std::uint32_t>(sets_.size()));
  if (fresh) sets_.push_back({text, pointer, nullptr});
  return at->second;
}

TOOLDECODE_INLINE std::uint32_t StringSets::add(TextsPointer texts, const StringTests& part_of) {
  sets_.push_back({"", "", std::move(texts)});
  for (const StringTest& test : part_of) {
    if (!sets_[test.set].is_partial) continue;
    sets_.back().is_partial = true;
    sets_.back().text       = sets_[test.set].text;
  }
  return static_cast<std::uint32_t>(sets_.size() - 1);
}

TOOLDECODE_INLINE std::optional<std::uint32_t> StringSets::format(const std::string& name,
                                                                  const std::string& pointer) {
  if (!text::is_standard_format(name)) return std::nullopt;
  const auto known = formats_.find(name);
  if (known != formats_.end()) return known->second;
  TextsPointer texts = text::string_format(name);
  if (!texts) {
    throw Error(Errc::unsupported_keyword, pointer, "the format \"" + name + "\" has no automaton");
  }
  const std::uint32_t id = add(std::move(texts));
  sets_[id].text         = name;
  sets_[id].pointer      = pointer;
  sets_[id].is_partial   = text::is_partial_format(name);
  formats_.emplace(name, id);
  return id;
}

TOOLDECODE_INLINE const std::string* StringSets::find_format(const StringTests& tests) const {
  if (tests.size() != 1 || tests[0].negated) return nullptr;
  const std::string& name = sets_[tests[0].set].text;
  const auto known        = formats_.find(name);
  return known != formats_.end() && known->second == tests[0].set ? &name : nullptr;
}

TOOLDECODE_INLINE bool StringSets::holds(const StringTests& tests, const std::string& text) {
  if (tests.empty()) return true;
  const std::u32string characters = text::decode_utf8(text);
  return std::all_of(tests.begin(), tests.end(), [&](const StringTest& test) {
    const text::TextDfa& one = set(test.set);
    BuildBudget::spend(characters.size() * (1 + one.classes().size()));
    const bool accepts = one.accepts(characters);
    if (!accepts && sets_[test.set].is_partial) refuse_partial(test.set);
    return accepts != test.negated;
  });
}

TOOLDECODE_INLINE const text::TextDfa& StringSets::texts(const StringTests& tests) {
  const auto known = products_.find(tests);
  if (known != products_.end()) return *known->second;
  for (const StringTest& test : tests) {
    if (test.negated && sets_[test.set].is_partial) refuse_partial(test.set);
  }
  TextsPointer all;
  if (tests.empty()) {
    all = std::make_shared<const text::TextDfa>(text::TextDfa::repeated(text::CodePointSet::all()));
  } else if (tests.size() == 1 && !tests[0].negated) {
    (void)set(tests[0].set);
    all = sets_[tests[0].set].texts;
  } else {
    const StringTest& last      = tests.back();
    const text::TextDfa& before = texts({tests.begin(), tests.end() - 1});
    const text::TextDfa& own    = set(last.set);
    all = std::make_shared<const text::TextDfa>(last.negated ? difference(before, own)
                                                             : intersection(before, own));
  }
  return *products_.emplace(tests, std::move(all)).first->second;
}

TOOLDECODE_INLINE bool StringSets::excludes_all(const StringTests& tests) {
  for (std::size_t i = 0; i + 1 < tests.size(); ++i) {
    if (tests[i].set == tests[i + 1].set) return true;  // a test and its opposite
  }
  if (!has_partial(tests)) return texts(tests).empty();
  StringTests whole = tests;
  std::erase_if(whole, [&](const StringTest& test) { return sets_[test.set].is_partial; });
  return texts(whole).empty();
}

TOOLDECODE_INLINE bool StringSets::has_partial(const StringTests& tests) const {
  return std::any_of(tests.begin(), tests.end(),
                     [&](const StringTest& test) { return sets_[test.set].is_partial; });
}

TOOLDECODE_INLINE void StringSets::refuse_partial(std::uint32_t id) const {
  throw Error(Errc::unsupported_keyword, "",
              "not all texts of the format \"" + sets_[id].text +
                  "\" are known, so others cannot be told from them");
}

TOOLDECODE_INLINE text::TextDfa StringSets::without(const text::TextDfa& a,
                                                    const text::TextDfa& b) {
  return difference(a, b);
}

TOOLDECODE_INLINE const text::TextDfa& StringSets::set(std::uint32_t id) {
  Set& one = sets_[id];
  if (!one.texts) {
    try {
      one.texts = std::make_shared<const text::TextDfa>(text::compile_pattern(one.text));
    } catch (const Error& error) {
      throw error.within(one.pointer);
    }
  }
  return *one.texts;
}

}  // namespace tooldecode::schema
