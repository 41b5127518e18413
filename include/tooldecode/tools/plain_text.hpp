/// \file
/// Strings without quotes and escapes: which schemas have them, and their texts up to a closing
/// mark.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/code_points.hpp>
#include <tooldecode/grammar/dfa.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/regex.hpp>
#include <tooldecode/grammar/schema_keywords.hpp>
#include <tooldecode/grammar/string_lexeme.hpp>
#include <tooldecode/grammar/text_dfa.hpp>

#include <nlohmann/json.hpp>

namespace tooldecode {

/// How the values of a schema are written where strings may go without quotes.
enum class PlainForm : std::uint8_t {
  json,      ///< as JSON: none is a string
  mixed,     ///< as JSON: some are strings, which need their quotes
  text,      ///< strings, without quotes
  nullable,  ///< strings without quotes, or `null`, which is never a string
};

namespace detail {

/// A schema's type is none, or one of these.
struct PlainTypes {
  bool text = true, null = true, other = true;

  [[nodiscard]] PlainTypes operator&(const PlainTypes& o) const {
    return {text && o.text, null && o.null, other && o.other};
  }
  [[nodiscard]] PlainTypes operator|(const PlainTypes& o) const {
    return {text || o.text, null || o.null, other || o.other};
  }
};

inline PlainTypes plain_type(const nlohmann::ordered_json& value) {
  return {value.is_string(), value.is_null(), !value.is_string() && !value.is_null()};
}

inline PlainTypes listed_types(const nlohmann::ordered_json& type) {
  if (type.is_array()) {
    PlainTypes types{false, false, false};
    for (const auto& one : type) types = types | listed_types(one);
    return types;
  }
  return {type == "string", type == "null", type != "string" && type != "null"};
}

/// The types of a schema's values; any, where to find out takes more than `budget` steps.
inline PlainTypes plain_types(const nlohmann::ordered_json& schema,
                              const nlohmann::ordered_json& root, int& budget) {
  if (!schema.is_object() || budget == 0) return {};
  --budget;
  PlainTypes types;
  if (schema.contains("type")) types = types & listed_types(schema["type"]);
  if (schema.contains("$ref")) {
    types = types & plain_types(resolve(root, schema["$ref"], ""), root, budget);
  }
  for (const char* keyword : {"anyOf", "oneOf"}) {
    if (!schema.contains(keyword)) continue;
    PlainTypes any{false, false, false};
    for (const auto& branch : schema[keyword]) any = any | plain_types(branch, root, budget);
    types = types & any;
  }
  if (schema.contains("enum")) {
    PlainTypes any{false, false, false};
    for (const auto& value : schema["enum"]) any = any | plain_type(value);
    types = types & any;
  }
  if (schema.contains("const")) types = types & plain_type(schema["const"]);
  return types;
}

}  // namespace detail

/// The form of a schema that SchemaCompiler takes.
[[nodiscard]] inline PlainForm plain_form(const nlohmann::ordered_json& schema,
                                          const nlohmann::ordered_json& root) {
  int budget                     = 1000;
  const detail::PlainTypes types = detail::plain_types(schema, root, budget);
  if (!types.text) return PlainForm::json;
  if (types.other || budget == 0) return PlainForm::mixed;
  return types.null ? PlainForm::nullable : PlainForm::text;
}

/// Adds strings without quotes to a Grammar: UTF-8 text that does not hold the mark behind it.
///
/// \par Complexity  O(size of the schema x bytes of the mark)
/// \par Threads     one at a time per Grammar
/// \par Errors      Error{limit_exceeded} for a pattern that needs too many states beside its
/// length
class PlainText {
 public:
  using Json = nlohmann::ordered_json;

  /// \param mark  ASCII, not empty
  PlainText(Grammar& grammar, std::string mark) : grammar_(grammar), mark_(std::move(mark)) {}

  /// The values of a schema whose form is text or nullable, and which SchemaCompiler takes.
  [[nodiscard]] NodeId value(const Json& schema, const Json& root, const std::string& pointer) {
    const auto first = static_cast<NodeId>(grammar_.size());
    try {
      const NodeId node = value(schema, root, detail::PlainTypes{});
      if (grammar_.satisfiable(first)[node]) return node;
    } catch (const Error& error) {
      throw Error(error.code(), pointer, error.what());
    }
    throw Error(Errc::unsatisfiable_schema, pointer, "no text without its closing mark conforms");
  }

 private:
  NodeId value(const Json& schema, const Json& root, detail::PlainTypes types) {
    if (!schema.is_object()) return grammar_.nothing();  // false: true has other types
    if (schema.contains("type")) types = types & detail::listed_types(schema["type"]);
    if (schema.contains("$ref")) return value(resolve(root, schema["$ref"], ""), root, types);
    for (const char* keyword : {"anyOf", "oneOf"}) {
      if (!schema.contains(keyword)) continue;
      std::vector<NodeId> branches;
      for (const Json& branch : schema[keyword]) branches.push_back(value(branch, root, types));
      return grammar_.choice(std::move(branches));
    }
    std::vector<NodeId> choices;
    if (schema.contains("const") || schema.contains("enum")) {
      std::vector<std::pair<std::string, NodeId>> texts;
      const NodeId end = grammar_.empty();
      for (const Json& one :
           schema.contains("const") ? Json::array({schema["const"]}) : schema["enum"]) {
        if (one.is_null() && types.null) texts.emplace_back("null", end);
        if (!one.is_string() || !types.text) continue;
        texts.emplace_back(one.get<std::string>(), end);
        if (texts.back().first.find(mark_) == std::string::npos) continue;
        throw Error(Errc::unsupported_keyword, "", "a value holds the mark that closes it");
      }
      return grammar_.trie(texts);
    }
    if (types.null) choices.push_back(grammar_.literal("null"));
    if (types.text) choices.push_back(string(schema));
    return grammar_.choice(std::move(choices));
  }

  NodeId string(const Json& schema) {
    const auto bound = [&](const char* keyword, std::uint32_t otherwise) {
      if (!schema.contains(keyword)) return otherwise;
      return static_cast<std::uint32_t>(
          std::min(schema[keyword].get<double>(), static_cast<double>(Occurrences::unbounded)));
    };
    Occurrences length{bound("minLength", 0), bound("maxLength", Occurrences::unbounded)};
    if (length.min > length.max) return grammar_.nothing();
    if (!schema.contains("pattern")) {
      if (!any_) any_ = std::make_shared<const Dfa>(lexeme(without_mark(TextDfa::repeated(all()))));
      return grammar_.lexeme(any_, length);
    }
    TextDfa text = without_mark(compile_pattern(schema["pattern"].get<std::string>()));
    if (!text.is_free_of_dead_ends(length)) {
      text   = text.bounded(length);
      length = {};
    }
    return grammar_.lexeme(std::make_shared<const Dfa>(lexeme(text)), length);
  }
  static CodePointSet all() { return CodePointSet::all(); }

  // Those texts that do not hold the mark: the text's states beside how much of the mark they end
  // with.
  [[nodiscard]] TextDfa without_mark(const TextDfa& text) const {
    if (text.empty()) return text;
    struct Class {
      std::size_t of_text;  // [classes of the text]
      char mark;            // its one character; 0: none of the mark's
    };
    std::vector<CodePointSet> sets;
    std::vector<Class> classes;
    const std::string letters = [&] {
      std::string sorted = mark_;
      std::sort(sorted.begin(), sorted.end());
      sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
      return sorted;
    }();
    for (std::size_t k = 0; k < text.classes().size(); ++k) {
      CodePointSet rest = text.classes()[k];
      for (const char c : letters) {
        const auto code = static_cast<char32_t>(c);
        if (!rest.contains(code)) continue;
        rest = rest & ~CodePointSet{{code, code}};
        sets.push_back({{code, code}});
        classes.push_back({k, c});
      }
      if (rest.empty()) continue;
      sets.push_back(rest);
      classes.push_back({k, '\0'});
    }
    const auto matched_after = [&](std::size_t matched, char c) {
      if (c == '\0') return std::size_t{0};
      const std::string seen = mark_.substr(0, matched) + c;
      std::size_t longest    = std::min(seen.size(), mark_.size());
      while (!seen.ends_with(std::string_view(mark_).substr(0, longest))) --longest;
      return longest;
    };
    std::vector<std::pair<TextDfa::State, std::size_t>> order{{0, 0}};
    std::map<std::pair<TextDfa::State, std::size_t>, TextDfa::State> number{{order[0], 0}};
    std::vector<TextDfa::Row> rows;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const auto [state, matched] = order[i];
      TextDfa::Row row{std::vector<TextDfa::State>(classes.size(), TextDfa::dead),
                       text.rows()[state].accepting};
      for (std::size_t k = 0; k < classes.size(); ++k) {
        const std::pair next{text.rows()[state].next[classes[k].of_text],
                             matched_after(matched, classes[k].mark)};
        if (next.first == TextDfa::dead || next.second == mark_.size()) continue;
        const auto [known, fresh] = number.emplace(next, static_cast<TextDfa::State>(order.size()));
        if (fresh) order.push_back(next);
        row.next[k] = known->second;
      }
      rows.push_back(std::move(row));
    }
    return TextDfa(std::move(sets), std::move(rows));
  }

  // The text in UTF-8; its states are those of the text, then those inside a character.
  static Dfa lexeme(const TextDfa& text) {
    using detail::SpellingTree;
    if (text.empty()) return Dfa({});
    const SpellingTree tree(text.classes(), ValueSyntax::json, '"');
    std::vector<Dfa::Row> rows(text.rows().size());
    std::map<std::vector<Dfa::State>, Dfa::State> index;
    std::map<std::pair<int, std::size_t>, Dfa::State> made;
    const auto follow = [&](auto&& self, int node, std::size_t state) -> Dfa::State {
      if (node == SpellingTree::dead) return Dfa::dead;
      if (node < 0) {
        return text.rows()[state].next[static_cast<std::size_t>(SpellingTree::class_of(node))];
      }
      const auto known = made.find({node, state});
      if (known != made.end()) return known->second;
      std::vector<Dfa::State> next(256, Dfa::dead);
      for (unsigned b = 0x80; b < 0xC0; ++b) next[b] = self(self, tree[node][b], state);
      Dfa::State number = Dfa::dead;
      if (std::any_of(next.begin(), next.end(), [](Dfa::State t) { return t != Dfa::dead; })) {
        const auto [entry, fresh] = index.emplace(next, static_cast<Dfa::State>(rows.size()));
        if (fresh) rows.push_back({.next = std::move(next)});
        number = entry->second;
      }
      return made[{node, state}] = number;
    };
    for (std::size_t s = 0; s < text.rows().size(); ++s) {
      for (unsigned b = 0; b < 0x80; ++b) {
        for (std::size_t k = 0; k < text.classes().size(); ++k) {
          if (text.classes()[k].contains(b)) rows[s].next[b] = text.rows()[s].next[k];
        }
      }
      for (unsigned b = 0xC2; b < 0xF5; ++b) {
        const Dfa::State next = follow(follow, tree[tree.root()][b], s);
        rows[s].next[b]       = next;
      }
      rows[s].accepting = text.rows()[s].accepting;
      rows[s].boundary  = true;
    }
    return Dfa(std::move(rows));
  }

  Grammar& grammar_;
  std::string mark_;
  DfaPointer any_;
};

}  // namespace tooldecode
