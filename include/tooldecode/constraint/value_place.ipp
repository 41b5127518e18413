#pragma once

#include <array>
#include <cstddef>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include <tooldecode/constraint/value_place.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/schema/document.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/text/json_pointer.hpp>
#include <tooldecode/text/value_reader.hpp>

namespace tooldecode::constraint {

TOOLDECODE_INLINE ValuePlace ValuePlace::after(std::string_view text) {
  struct Level {
    bool is_array;
    bool in_value;  // of a member or an item
    bool in_scalar    = false;
    std::size_t index = 0;
    std::string key{};
  };
  std::vector<Level> levels;
  const auto end_value = [&] {
    if (!levels.empty()) levels.back().in_value = levels.back().in_scalar = false;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '{' || c == '[') {
      levels.push_back({.is_array = c == '[', .in_value = c == '['});
    } else if (c == '}' || c == ']') {
      if (!levels.empty()) levels.pop_back();
      end_value();
    } else if (c == '"' || c == '\'') {
      const std::size_t begin = i;
      while (++i < text.size() && text[i] != c) i += text[i] == '\\' ? 1 : 0;
      if (i >= text.size()) break;
      if (levels.empty()) continue;
      Level& level = levels.back();
      if (!level.is_array && !level.in_value) {
        const auto key = text::find_json(text.substr(begin, i + 1 - begin));
        level.key      = key ? key->string() : std::string(text.substr(begin + 1, i - begin - 1));
      } else {
        end_value();
      }
    } else if (!levels.empty() && c == ':') {
      levels.back().in_value = true;
    } else if (!levels.empty() && c == ',') {
      Level& level = levels.back();
      end_value();
      level.in_value = level.is_array;
      ++level.index;
    } else if (!levels.empty()) {
      Level& level        = levels.back();
      const bool is_space = c == ' ' || c == '\n' || c == '\t' || c == '\r';
      if (is_space && level.in_scalar) end_value();
      level.in_scalar = level.in_value && !is_space;
    }
  }
  ValuePlace place;
  for (Level& level : levels) {
    if (!level.in_value) break;
    place.steps.push_back(
        {level.is_array ? std::to_string(level.index) : std::move(level.key), level.is_array});
  }
  return place;
}

TOOLDECODE_INLINE std::string ValuePlace::pointer() const {
  std::string pointer;
  for (const Step& step : steps) pointer = text::extend_pointer(std::move(pointer), step.key);
  return pointer;
}

namespace value_place {

/// Follows a place into a document.
class Search {
 public:
  using Json     = JsonValue;
  using Location = schema::Document::Location;

  Search(const ValuePlace& place, const Json& schema, const schema::DocumentRules& rules)
      : place_(place), document_(schema, rules.draft, rules.documents, rules.place) {
    const auto root = document_.resource_of(schema, {});
    visit({&schema, rules.place, root}, 0, true);
  }

  [[nodiscard]] std::vector<std::string> found() && { return std::move(found_); }

 private:
  // A schema that a step or a reference leads to describes the place alone; one in a composition
  // only if it leads further.
  void visit(const Location& at, std::size_t depth, bool is_alone) {
    if (!visited_.emplace(at.schema, depth, is_alone).second) return;
    const Json& schema     = *at.schema;
    const auto reference   = schema.find("$ref");
    const bool is_referred = reference != schema.end() && reference->is_string();
    if (is_alone && !is_referred && depth >= depth_) {
      if (depth > depth_) found_.clear();
      depth_ = depth;
      found_.push_back(at.pointer);
    }
    if (!schema.is_object()) return;
    if (is_referred) {
      visit(document_.find(reference->string(), at.resource, at.pointer + "/$ref"), depth,
            is_alone);
    }
    for (const char* keyword : {"then", "else"}) {
      const auto child = schema.find(keyword);
      if (child != schema.end())
        visit(below(*child, text::extend_pointer(at.pointer, keyword), at), depth, false);
    }
    for (const char* keyword : {"allOf", "anyOf", "oneOf", "dependentSchemas"}) {
      const auto content = schema.find(keyword);
      if (content == schema.end()) continue;
      const std::string pointer = text::extend_pointer(at.pointer, keyword);
      each(*content, [&](const std::string& key, const Json& child) {
        visit(below(child, text::extend_pointer(pointer, key), at), depth, false);
      });
    }
    if (depth < place_.steps.size()) step(at, depth);
  }

  void step(const Location& at, std::size_t depth) {
    const std::string& key = place_.steps[depth].key;
    const bool is_item     = place_.steps[depth].is_item;
    const Json& schema     = *at.schema;
    bool is_named          = false;
    const auto go = [&](const Json& child, const char* keyword, std::string_view part = {}) {
      std::string pointer = text::extend_pointer(at.pointer, keyword);
      if (part.data() != nullptr) pointer = text::extend_pointer(std::move(pointer), part);
      visit(below(child, std::move(pointer), at), depth + 1, true);
      is_named = true;
    };
    if (is_item) {
      for (const char* keyword : {"prefixItems", "items"}) {
        const auto list = schema.find(keyword);
        if (list == schema.end() || !list->is_array()) continue;
        const auto index = text::item_index(key, list->size());
        if (index) go((*list)[*index], keyword, key);
      }
    } else {
      if (const auto map = schema.find("properties"); map != schema.end()) {
        if (const auto child = map->find(key); child != map->end()) go(*child, "properties", key);
      }
      if (const auto map = schema.find("patternProperties"); map != schema.end()) {
        each(*map, [&](const std::string& pattern, const Json& child) {
          if (matches(pattern, key)) go(child, "patternProperties", pattern);
        });
      }
    }
    if (is_named) return;
    static constexpr std::array rest_of_items{"items", "additionalItems", "unevaluatedItems"};
    static constexpr std::array rest_of_keys{"additionalProperties", "unevaluatedProperties"};
    const auto rest = is_item ? std::span<const char* const>(rest_of_items) : rest_of_keys;
    for (const char* keyword : rest) {
      const auto other = schema.find(keyword);
      if (other != schema.end() && !other->is_array()) return go(*other, keyword);
    }
  }

  static bool matches(const std::string& pattern, const std::string& key) {
    const grammar::Automaton keys(Grammar::json_schema(Json{{"pattern", pattern}}));
    const auto end = keys.advance(keys.initial(), Json(key).text());
    return end && keys.is_accepting(*end);
  }

  template <class Visit>
  static void each(const Json& content, const Visit& visit) {
    if (content.is_object()) {
      for (const auto& [key, child] : content.items()) visit(key, child);
    } else if (content.is_array()) {
      for (std::size_t i = 0; i < content.size(); ++i) visit(std::to_string(i), content[i]);
    }
  }

  [[nodiscard]] Location below(const Json& schema, std::string pointer, const Location& at) const {
    return {&schema, std::move(pointer), document_.resource_of(schema, at.resource)};
  }

  const ValuePlace& place_;
  schema::Document document_;
  std::set<std::tuple<const Json*, std::size_t, bool>> visited_;
  std::size_t depth_ = 0;
  std::vector<std::string> found_;
};

}  // namespace value_place

TOOLDECODE_INLINE std::vector<std::string> schemas_at(const ValuePlace& place,
                                                      const JsonValue& schema,
                                                      const schema::DocumentRules& rules) {
  return value_place::Search(place, schema, rules).found();
}

}  // namespace tooldecode::constraint
