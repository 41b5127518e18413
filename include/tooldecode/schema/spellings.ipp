#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>

#include <tooldecode/core/error.hpp>
#include <tooldecode/schema/spellings.hpp>
#include <tooldecode/text/utf8.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/text/value_text.hpp>
#include <tooldecode/text/without_match.hpp>

namespace tooldecode::schema {

TOOLDECODE_INLINE Spellings::Spellings(Grammar& grammar, text::ValueSyntax syntax,
                                       std::uint32_t whitespace, bool every_spelling,
                                       std::vector<std::string> excluded)
    : grammar_(grammar),
      syntax_(syntax),
      every_spelling_(every_spelling),
      excluded_(std::move(excluded)),
      end_(grammar.empty()),
      spaces_(std::to_string(whitespace)),
      space_(once(
          "",
          [&] {
            return whitespace == 0 ? end_ : grammar.lexeme(text::any_whitespace(), {0, whitespace});
          })),
      comma_(separator(',')),
      colon_(separator(':')) {}

TOOLDECODE_INLINE NodeId Spellings::opening(char bracket) const {
  return once({&bracket, 1}, [&] {
    const NodeId alone = grammar_.literal({&bracket, 1});
    return space_ == end_ ? alone : grammar_.sequence({alone, space_});
  });
}

TOOLDECODE_INLINE NodeId Spellings::closing(char bracket) const {
  return once({&bracket, 1}, [&] {
    const NodeId alone = grammar_.literal({&bracket, 1});
    return space_ == end_ ? alone : grammar_.sequence({space_, alone});
  });
}

TOOLDECODE_INLINE std::vector<std::string> Spellings::spellings(const Json& value) const {
  const bool python = syntax_ == text::ValueSyntax::python;
  if (value.is_null()) return {python ? "None" : "null"};
  if (value.is_boolean()) {
    if (python) return {value.get<bool>() ? "True" : "False"};
    return {value.get<bool>() ? "true" : "false"};
  }
  std::vector<std::string> texts;
  if (value.is_string()) {
    const auto& text = value.string();
    const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
      return c >= ' ' && c <= '~' && c != '"' && c != '\'' && c != '\\';
    });
    if (plain && !python) {
      return free_of_excluded({escape_excluded('"' + text + '"', excluded_)});
    }
    if (plain) return {'"' + text + '"', '\'' + text + '\''};
    for (const bool ascii : {false, true}) {
      if (!python) {
        texts.push_back(escape_excluded(value.text({.ascii = ascii}), excluded_));
        continue;
      }
      for (const char quote : {'\'', '"'}) {
        texts.push_back(python_string(text, quote, ascii));
        texts.push_back(text::StringEscape::quoted(text, syntax_, quote));
      }
    }
  } else {
    texts.push_back(value.text());
    if (is_integral(value) && std::abs(value.get<double>()) < 0x1p53) {
      const Json integer(static_cast<std::int64_t>(value.get<double>()));
      texts.push_back(integer.text());
      if (value.is_number_float()) texts.push_back(integer.text() + ".0");
    }
  }
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  return value.is_string() && !python ? free_of_excluded(std::move(texts)) : texts;
}

TOOLDECODE_INLINE std::vector<std::string> Spellings::free_of_excluded(
    std::vector<std::string> texts) const {
  const std::string first = texts.front();
  std::erase_if(texts, [this](const std::string& text) {
    return std::any_of(excluded_.begin(), excluded_.end(),
                       [&](const std::string& one) { return text.find(one) != text.npos; });
  });
  if (!texts.empty()) return texts;
  throw Error(Errc::unsupported_keyword, "",
              "every spelling of " + first + " has a text that is excluded");
}

TOOLDECODE_INLINE NodeId Spellings::string(const std::optional<text::TextDfa>& text,
                                           const text::Occurrences& length) {
  if (length.min > length.max) return grammar_.nothing();
  std::vector<NodeId> quotes;
  for (const char quote : {'"', '\''}) {
    if (quote == '\'' && syntax_ == text::ValueSyntax::json) continue;
    const auto spell = [&](const text::TextDfa& some) {
      return without_excluded(
          std::make_shared<const text::Dfa>(text::string_lexeme(some, syntax_, quote)));
    };
    quotes.push_back(
        text ? grammar_.lexeme(*text, length, spell)
             : grammar_.lexeme(without_excluded(text::any_string(syntax_, quote)), length));
  }
  return grammar_.choice(std::move(quotes));
}

TOOLDECODE_INLINE NodeId Spellings::format(const std::string& name, const text::TextDfa& texts,
                                           const text::Occurrences& length) {
  static std::mutex mutex;
  static std::map<std::tuple<std::string, text::ValueSyntax, char>, text::DfaPointer> known;
  std::vector<NodeId> quotes;
  for (const char quote : {'"', '\''}) {
    if (quote == '\'' && syntax_ == text::ValueSyntax::json) continue;
    const auto spell = [&](const text::TextDfa& some) {
      const auto made = [&] {
        return std::make_shared<const text::Dfa>(text::string_lexeme(some, syntax_, quote));
      };
      if (&some != &texts) return without_excluded(made());
      const std::lock_guard lock(mutex);
      text::DfaPointer& lexeme = known[{name, syntax_, quote}];
      if (!lexeme) {
        const BuildBudget::Pause once;
        lexeme = made();
      }
      return without_excluded(lexeme);
    };
    quotes.push_back(grammar_.lexeme(texts, length, spell));
  }
  return grammar_.choice(std::move(quotes));
}

TOOLDECODE_INLINE std::vector<std::string> Spellings::key(const std::string& name) const {
  if (syntax_ == text::ValueSyntax::json) return {text::StringEscape::quoted(name, syntax_, '"')};
  return {text::StringEscape::quoted(name, syntax_, '"'),
          text::StringEscape::quoted(name, syntax_, '\'')};
}

TOOLDECODE_INLINE bool Spellings::holds_excluded(const std::string& text) const {
  return std::any_of(excluded_.begin(), excluded_.end(),
                     [&](const std::string& one) { return text.find(one) != std::string::npos; });
}

TOOLDECODE_INLINE std::vector<text::DfaPointer> Spellings::other_keys(const text::TextDfa* texts,
                                                                      bool plain) const {
  if (plain && texts == nullptr) return {identifier("", "")};
  if (plain) return {std::make_shared<const text::Dfa>(identifiers(*texts))};
  std::vector<text::DfaPointer> keys;
  for (const char quote : {'"', '\''}) {
    if (quote == '\'' && syntax_ == text::ValueSyntax::json) continue;
    keys.push_back(without_excluded(
        texts == nullptr
            ? text::any_string(syntax_, quote)
            : std::make_shared<const text::Dfa>(text::key_lexeme(*texts, syntax_, quote))));
  }
  return keys;
}

TOOLDECODE_INLINE text::TextDfa Spellings::identifiers_among(const text::TextDfa& text) {
  const text::TextDfa words({{{'A', 'Z'}, {'_', '_'}, {'a', 'z'}}, {{'0', '9'}}},
                            {{{1, text::TextDfa::dead}, false}, {{1, 1}, true}});
  return intersection(text, words);
}

TOOLDECODE_INLINE text::Dfa Spellings::identifiers(const text::TextDfa& text) {
  const text::TextDfa both = identifiers_among(text);
  std::vector<text::Dfa::Row> rows(both.rows().size());
  for (std::size_t s = 0; s < rows.size(); ++s) {
    for (std::size_t k = 0; k < both.classes().size(); ++k) {
      for (const auto& [min, max] : both.classes()[k].ranges()) {
        for (char32_t c = min; c <= max; ++c) rows[s].next[c] = both.rows()[s].next[k];
      }
    }
    rows[s].accepting = both.rows()[s].accepting;
  }
  return text::Dfa(rows);
}

TOOLDECODE_INLINE text::DfaPointer Spellings::identifier(std::string_view before,
                                                         std::string_view after) {
  std::vector<text::Dfa::Row> rows(before.size() + after.size() + 2);
  const auto spell = [&](std::size_t from, std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      rows[from + i].next[static_cast<unsigned char>(text[i])] =
          static_cast<text::Dfa::State>(from + i + 1);
    }
  };
  spell(0, before);
  const std::size_t inside = before.size() + 1;
  spell(inside, after);
  for (unsigned b = 0; b < 128; ++b) {
    const auto c     = static_cast<char>(b);
    const bool digit = c >= '0' && c <= '9';
    if (!(c == '_' || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || digit)) continue;
    rows[inside].next[b] = static_cast<text::Dfa::State>(inside);
    if (!digit) rows[inside - 1].next[b] = static_cast<text::Dfa::State>(inside);
  }
  rows.back().accepting = true;
  return std::make_shared<const text::Dfa>(std::move(rows));
}

TOOLDECODE_INLINE text::DfaPointer Spellings::identifier(std::string_view before,
                                                         const text::Dfa& words,
                                                         std::string_view after) {
  if (words.empty()) return std::make_shared<const text::Dfa>(words);
  const std::size_t inside = before.size(), behind = inside + words.size();
  std::vector<text::Dfa::Row> rows(behind + after.size());
  const auto spell = [&](std::size_t from, std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      rows[from + i].next[static_cast<unsigned char>(text[i])] =
          static_cast<text::Dfa::State>(from + i + 1);
    }
  };
  spell(0, before);
  for (std::size_t s = 0; s < words.size(); ++s) {
    const auto state = static_cast<text::Dfa::State>(s);
    for (unsigned b = 0; b < 256; ++b) {
      const text::Dfa::State next = words.next(state, static_cast<std::uint8_t>(b));
      if (next != text::Dfa::dead) {
        rows[inside + s].next[b] = static_cast<text::Dfa::State>(inside + next);
      }
    }
    if (words.accepting(state) && !after.empty()) {
      rows[inside + s].next[static_cast<unsigned char>(after[0])] =
          static_cast<text::Dfa::State>(behind);
    } else {
      rows[inside + s].accepting = words.accepting(state);
    }
  }
  if (!after.empty()) {
    spell(behind, after.substr(1));
    rows.back().accepting = true;
  }
  return std::make_shared<const text::Dfa>(std::move(rows));
}

TOOLDECODE_INLINE NodeId Spellings::separator(char mark) {
  return once({&mark, 1}, [&] {
    if (space_ == end_) return grammar_.literal(std::string(1, mark) + ' ');
    return grammar_.sequence({space_, grammar_.literal({&mark, 1}), space_});
  });
}

TOOLDECODE_INLINE std::string Spellings::python_string(const std::string& text, char quote,
                                                       bool ascii) {
  const auto hexadecimal = [](char32_t c, int digits) {
    std::string result(static_cast<std::size_t>(digits), '0');
    for (int i = digits; i-- > 0; c >>= 4) {
      result[static_cast<std::size_t>(i)] = "0123456789abcdef"[c & 15];
    }
    return result;
  };
  std::string result(1, quote);
  for (const char32_t c : text::decode_utf8(text)) {
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
      text::append_utf8(result, c);
    }
  }
  return result + quote;
}

TOOLDECODE_INLINE text::DfaPointer Spellings::without_excluded(text::DfaPointer lexeme) const {
  static constexpr std::size_t max_states = 4'000, max_known = 256;
  if (excluded_.empty() || syntax_ != text::ValueSyntax::json || lexeme->size() > max_states) {
    return lexeme;
  }
  // The lexeme of any string is cached, because it is requested often.
  static std::mutex mutex;
  static std::map<std::vector<std::string>, text::DfaPointer> known;
  const bool is_any           = lexeme == text::any_string(syntax_, '"');
  const std::unique_lock lock = is_any ? std::unique_lock(mutex) : std::unique_lock<std::mutex>();
  if (is_any) {
    if (const auto made = known.find(excluded_); made != known.end()) return made->second;
  }
  std::optional<BuildBudget::Pause> once;
  if (is_any) once.emplace();
  for (const std::string& one : excluded_) {
    bool may_begin = false;
    for (text::Dfa::State state = 0; state < lexeme->size() && !may_begin; ++state) {
      may_begin = lexeme->live(state).contains(static_cast<std::uint8_t>(one[0]));
    }
    if (may_begin) lexeme = std::make_shared<const text::Dfa>(text::without_bytes(*lexeme, one));
  }
  if (is_any && known.size() < max_known) known.emplace(excluded_, lexeme);
  return lexeme;
}

TOOLDECODE_INLINE std::string escape_excluded(std::string json,
                                              std::span<const std::string> excluded) {
  for (const std::string& one : excluded) {
    if (json.find(one) == json.npos) continue;
    std::string written;
    bool in_string = false;
    for (std::size_t at = 0; at < json.size();) {
      if (!in_string || json[at] == '"') {
        in_string ^= json[at] == '"';
        written += json[at++];
        continue;
      }
      const bool is_escape   = json[at] == '\\';
      const bool is_number   = is_escape && json[at + 1] == 'u';  // stays: it is written so
      const auto raw         = text::find_code_point(json, at);
      const std::size_t size = is_number ? 6 : is_escape ? 2 : raw ? raw->bytes : 1;
      const std::string unit = json.substr(at, size);
      bool begins            = false;
      for (std::size_t i = at; i < at + size; ++i) begins |= json.compare(i, one.size(), one) == 0;
      if (begins && !is_number) {
        const std::string character = text::parse_json('"' + unit + '"').string();
        text::detail::append_escape(written, text::find_code_point(character, 0)->value);
      } else {
        written += unit;
      }
      at += size;
    }
    json = std::move(written);
  }
  return json;
}

}  // namespace tooldecode::schema
