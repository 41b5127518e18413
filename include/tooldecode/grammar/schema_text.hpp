/// \file
/// SchemaText: how a schema's constants, separators, strings and free keys are written in either
/// syntax.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/grammar/code_points.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/schema_keywords.hpp>
#include <tooldecode/grammar/string_lexeme.hpp>
#include <tooldecode/grammar/text_dfa.hpp>

#include <nlohmann/json.hpp>

namespace tooldecode {

/// Adds the texts of known values, and of what stands between values, to a Grammar.
///
/// \par Complexity  O(size of the value); a key of a free-form object O(bytes of the names it
///                  avoids)
/// \par Threads     one at a time per Grammar
/// \par Errors      none
class SchemaText {
 public:
  using Json = nlohmann::ordered_json;

  /// \param whitespace  most bytes of optional whitespace; 0: ", " and ": " only
  SchemaText(Grammar& grammar, ValueSyntax syntax, std::uint32_t whitespace = 40)
      : grammar_(grammar),
        syntax_(syntax),
        end_(grammar.empty()),
        space_(whitespace == 0 ? end_ : grammar.lexeme(any_whitespace(), {0, whitespace})),
        comma_(separator(',')),
        colon_(separator(':')) {}

  /// The empty text.
  [[nodiscard]] NodeId end() const noexcept { return end_; }
  /// Optional whitespace.
  [[nodiscard]] NodeId space() const noexcept { return space_; }
  /// A comma between values, and a colon after a key.
  [[nodiscard]] NodeId comma() const noexcept { return comma_; }
  [[nodiscard]] NodeId colon() const noexcept { return colon_; }

  /// The ways in which a scalar is written: strings plainly and with every non-ASCII character
  /// escaped, in Python between either quote; an integral number with and without a point.
  [[nodiscard]] std::vector<std::string> spellings(const Json& value) const {
    const bool python = syntax_ == ValueSyntax::python;
    if (value.is_null()) return {python ? "None" : "null"};
    if (value.is_boolean()) {
      if (python) return {value.get<bool>() ? "True" : "False"};
      return {value.get<bool>() ? "true" : "false"};
    }
    std::vector<std::string> texts;
    if (value.is_string()) {
      const auto text = value.get<std::string>();
      for (const bool ascii : {false, true}) {
        if (!python) {
          texts.push_back(value.dump(-1, ' ', ascii, Json::error_handler_t::replace));
          continue;
        }
        for (const char quote : {'\'', '"'}) texts.push_back(python_string(text, quote, ascii));
      }
    } else {
      texts.push_back(value.dump());
      if (is_integral(value) && std::abs(value.get<double>()) < 0x1p53) {
        const Json integer(static_cast<std::int64_t>(value.get<double>()));
        texts.push_back(integer.dump());
        if (value.is_number_float()) texts.push_back(integer.dump() + ".0");
      }
    }
    std::sort(texts.begin(), texts.end());
    texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
    return texts;
  }
  /// A scalar in any of its spellings; an array or object with its members in their order.
  [[nodiscard]] NodeId constant(const Json& value) {
    if (value.is_structured()) return structure(value);
    const std::vector<std::string> texts = spellings(value);
    if (texts.size() == 1) return grammar_.literal(texts[0]);
    std::vector<std::pair<std::string, NodeId>> alternatives;
    for (const std::string& text : texts) alternatives.emplace_back(text, end_);
    return grammar_.trie(alternatives);
  }

  /// A string of some length whose text an automaton accepts; any text where there is none.
  [[nodiscard]] NodeId string(const std::optional<TextDfa>& text, const Occurrences& length) {
    if (length.min > length.max) return grammar_.nothing();
    std::vector<NodeId> quotes;
    for (const char quote : {'"', '\''}) {
      if (quote == '\'' && syntax_ == ValueSyntax::json) continue;
      quotes.push_back(
          grammar_.lexeme(text ? std::make_shared<const Dfa>(string_lexeme(*text, syntax_, quote))
                               : any_string(syntax_, quote),
                          length));
    }
    return grammar_.choice(std::move(quotes));
  }

  /// A key that is none of these names: a string, or an identifier where keys are written plainly.
  [[nodiscard]] NodeId other_key(const std::vector<std::string>& names, bool plain) {
    if (!plain) return string(names.empty() ? std::nullopt : std::optional(other_text(names)), {});
    const TextDfa text = other_text(names);
    // An identifier needs no quotes and no escapes: its bytes are its text.
    std::vector<Dfa::Row> rows(text.rows().size());
    for (std::size_t s = 0; s < rows.size(); ++s) {
      for (unsigned b = 0; b < 128; ++b) {
        const auto c     = static_cast<char>(b);
        const bool digit = c >= '0' && c <= '9';
        if (!(c == '_' || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (digit && s != 0))) {
          continue;
        }
        for (std::size_t k = 0; k < text.classes().size(); ++k) {
          if (text.classes()[k].contains(b)) rows[s].next[b] = text.rows()[s].next[k];
        }
      }
      rows[s].accepting = text.rows()[s].accepting && s != 0;
    }
    return grammar_.lexeme(std::make_shared<const Dfa>(std::move(rows)));
  }

 private:
  NodeId separator(char mark) {
    if (space_ == end_) return grammar_.literal(std::string(1, mark) + ' ');
    return grammar_.sequence({space_, grammar_.literal({&mark, 1}), space_});
  }

  NodeId structure(const Json& value) {
    std::vector<NodeId> parts{grammar_.literal(value.is_array() ? "[" : "{"), space_};
    bool first = true;
    for (const auto& [key, member] : value.items()) {
      if (!first) parts.push_back(comma_);
      first = false;
      if (value.is_object()) parts.insert(parts.end(), {constant(Json(key)), colon_});
      parts.push_back(constant(member));
    }
    parts.insert(parts.end(), {space_, grammar_.literal(value.is_array() ? "]" : "}")});
    return grammar_.sequence(std::move(parts));
  }

  static std::string python_string(const std::string& text, char quote, bool ascii) {
    const auto hexadecimal = [](char32_t c, int digits) {
      std::string result(static_cast<std::size_t>(digits), '0');
      for (int i = digits; i-- > 0; c >>= 4) {
        result[static_cast<std::size_t>(i)] = "0123456789abcdef"[c & 15];
      }
      return result;
    };
    std::string result(1, quote);
    for (const char32_t c : decode_utf8(text)) {
      if (c == '\\' || c == static_cast<unsigned char>(quote)) {
        result += {'\\', static_cast<char>(c)};
      } else if (c == '\n' || c == '\r' || c == '\t') {
        result += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
      } else if (c < 0x20 || c == 0x7F || (ascii && c >= 0x80 && c < 0x100)) {
        result += "\\x" + hexadecimal(c, 2);
      } else if (ascii && c >= 0x10000) {
        result += "\\U" + hexadecimal(c, 8);
      } else if (ascii && c >= 0x80) {
        result += "\\u" + hexadecimal(c, 4);
      } else {
        append_utf8(result, c);
      }
    }
    return result + quote;
  }

  // Every text but the names: a trie of them beside one state for having left it. That state is
  // never the first one, so an identifier's first character is known by its state.
  static TextDfa other_text(const std::vector<std::string>& names) {
    std::vector<std::u32string> texts;
    std::map<char32_t, std::size_t> class_of;
    for (const std::string& name : names) {
      texts.push_back(decode_utf8(name));
      for (const char32_t c : texts.back()) class_of.emplace(c, class_of.size());
    }
    std::vector<CodePointSet> classes(class_of.size());
    std::vector<CodePointSet::Range> all;
    for (const auto& [c, k] : class_of) {
      classes[k] = {{c, c}};
      all.emplace_back(c, c);
    }
    classes.push_back(~CodePointSet(all));
    std::vector<TextDfa::Row> rows;
    const auto add = [&](bool accepting) {
      rows.push_back({std::vector<TextDfa::State>(classes.size(), 1), accepting});
      return static_cast<TextDfa::State>(rows.size() - 1);
    };
    add(true);
    add(true);
    for (const std::u32string& text : texts) {
      TextDfa::State at = 0;
      for (const char32_t c : text) {
        const std::size_t k = class_of[c];
        if (rows[at].next[k] == 1) {
          const TextDfa::State fresh = add(true);
          rows[at].next[k]           = fresh;
        }
        at = rows[at].next[k];
      }
      rows[at].accepting = false;
    }
    return TextDfa(std::move(classes), std::move(rows));
  }

  Grammar& grammar_;
  ValueSyntax syntax_;
  NodeId end_, space_, comma_, colon_;
};

}  // namespace tooldecode
