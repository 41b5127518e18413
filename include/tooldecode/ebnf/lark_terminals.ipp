#pragma once

#include <array>
#include <utility>

#include <tooldecode/ebnf/lark_terminals.hpp>
#include <tooldecode/text/value_reader.hpp>

namespace tooldecode::ebnf {

TOOLDECODE_INLINE std::optional<std::string_view> find_lark_common(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 24> all{{
      {"DIGIT", "[0-9]"},
      {"HEXDIGIT", "[0-9A-Fa-f]"},
      {"INT", "[0-9]+"},
      {"SIGNED_INT", "[+-]?[0-9]+"},
      {"DECIMAL", R"([0-9]+\.[0-9]*|\.[0-9]+)"},
      {"_EXP", "[eE][+-]?[0-9]+"},
      {"FLOAT", R"([0-9]+[eE][+-]?[0-9]+|([0-9]+\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?)"},
      {"SIGNED_FLOAT",
       R"([+-]?([0-9]+[eE][+-]?[0-9]+|([0-9]+\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?))"},
      {"NUMBER", R"(([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?)"},
      {"SIGNED_NUMBER", R"([+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?)"},
      {"ESCAPED_STRING", R"("([^"\\]|\\.)*")"},
      {"LCASE_LETTER", "[a-z]"},
      {"UCASE_LETTER", "[A-Z]"},
      {"LETTER", "[A-Za-z]"},
      {"WORD", "[A-Za-z]+"},
      {"CNAME", "[A-Za-z_][A-Za-z0-9_]*"},
      {"WS_INLINE", R"([ \t]+)"},
      {"WS", R"([ \t\f\r\n]+)"},
      {"CR", R"(\r)"},
      {"LF", R"(\n)"},
      {"NEWLINE", R"((\r?\n)+)"},
      {"SH_COMMENT", R"(#[^\n]*)"},
      {"CPP_COMMENT", R"(//[^\n]*)"},
      {"SQL_COMMENT", R"(--[^\n]*)"},
  }};
  if (name == "C_COMMENT") return R"(/\*([^*]|\*+[^*/])*\*+/)";
  for (const auto& [known, pattern] : all) {
    if (known == name) return pattern;
  }
  return std::nullopt;
}

TOOLDECODE_INLINE text::TextDfa LarkTerminals::compile(const LarkExpression& expression) {
  try {
    if (!is_plain(expression)) return combined(expression);
    std::string pattern;
    write(expression, pattern);
    return text::compile_whole_pattern(pattern);
  } catch (const Error& error) {
    throw error.under("byte " + std::to_string(expression.at));
  }
}

TOOLDECODE_INLINE void LarkTerminals::fail(const std::string& what, std::size_t at) {
  throw Error(Errc::malformed_grammar, "byte " + std::to_string(at), what);
}

TOOLDECODE_INLINE LarkTerminals::Descent::Descent(LarkTerminals& terminals, std::size_t at)
    : depth(terminals.depth_) {
  if (++depth <= max_nested) return;
  --depth;
  throw Error(Errc::limit_exceeded, "byte " + std::to_string(at), "terminals nested too deeply");
}

TOOLDECODE_INLINE LarkTerminals::Descent::~Descent() {
  --depth;
}

TOOLDECODE_INLINE bool LarkTerminals::is_plain(const LarkExpression& expression) {
  const Descent descent(*this, expression.at);
  if (expression.kind == Kind::intersection || expression.kind == Kind::negation) return false;
  if (expression.kind == Kind::name) {
    if (const auto known = is_plain_.find(expression.text); known != is_plain_.end()) {
      return known->second;
    }
    return is_plain_[expression.text] =
               with_body(expression, [&](const LarkExpression& body) { return is_plain(body); });
  }
  for (const LarkExpression& part : expression.parts) {
    if (!is_plain(part)) return false;
  }
  return true;
}

TOOLDECODE_INLINE text::TextDfa LarkTerminals::combined(const LarkExpression& expression) {
  const Descent descent(*this, expression.at);
  switch (expression.kind) {
    case Kind::name:
      return with_body(expression, [&](const LarkExpression& body) { return compile(body); });
    case Kind::negation:
      return difference(text::TextDfa::repeated(text::CodePointSet::all()),
                        compile(expression.parts[0]));
    case Kind::intersection:
    case Kind::choice: {
      text::TextDfa all = compile(expression.parts[0]);
      for (std::size_t i = 1; i < expression.parts.size(); ++i) {
        const text::TextDfa part = compile(expression.parts[i]);
        all = expression.kind == Kind::choice ? united(all, part) : intersection(all, part);
      }
      return all;
    }
    default:
      throw Error(Errc::unsupported_keyword, "byte " + std::to_string(expression.at),
                  "an intersection or a negation inside a sequence or a repetition");
  }
}

TOOLDECODE_INLINE void LarkTerminals::require_room(const LarkExpression& expression,
                                                   const std::string& out, std::size_t most) {
  if (out.size() <= most) return;
  throw Error(Errc::limit_exceeded, "byte " + std::to_string(expression.at),
              "a terminal that is too long");
}

TOOLDECODE_INLINE void LarkTerminals::write(const LarkExpression& expression, std::string& out) {
  const Descent descent(*this, expression.at);
  require_room(expression, out, max_pattern);
  switch (expression.kind) {
    case Kind::sequence:
      for (const LarkExpression& part : expression.parts) write(part, out);
      return;
    case Kind::choice:
      out += "(?:";
      for (const LarkExpression& part : expression.parts) {
        write(part, out);
        out += '|';
      }
      out.back() = ')';
      return;
    case Kind::repeat:
      out += "(?:";
      write(expression.parts[0], out);
      out += "){" + std::to_string(expression.count.min) + ',';
      if (expression.count.max != text::Occurrences::unbounded) {
        out += std::to_string(expression.count.max);
      }
      out += '}';
      return;
    case Kind::name: {
      std::string& known = patterns_[expression.text];
      if (known.empty()) {
        known = with_body(expression, [&](const LarkExpression& body) {
          std::string made = "(?:";
          write(body, made);
          return made + ')';
        });
      }
      out += known;
      return;
    }
    case Kind::string:
      for (const char32_t c : text::decode_utf8(expression.text)) {
        const text::CodePointSet one{{c, c}};
        write_pattern(expression.flags.empty() ? one : either_case(one), out);
      }
      return;
    case Kind::range: {
      const std::u32string ends = text::decode_utf8(expression.text);
      return write_pattern(text::CodePointSet{{ends[0], ends[1]}}, out);
    }
    case Kind::regex:
      try {
        out += lark_pattern(expression.text, expression.flags);
      } catch (const Error& error) {
        throw error.within("byte " + std::to_string(expression.at));
      }
      return;
    case Kind::substring:
      return write_substring(expression, out);
    case Kind::token:
      fail("a token inside a terminal", expression.at);
    case Kind::json:
      fail("%json inside a terminal", expression.at);
    default:
      fail("%lark inside a terminal", expression.at);
  }
}

TOOLDECODE_INLINE void LarkTerminals::write_substring(const LarkExpression& expression,
                                                      std::string& out) {
  std::vector<std::u32string> chunks = chunks_of(expression);
  if (chunks.size() > max_chunks) {
    throw Error(Errc::limit_exceeded, "byte " + std::to_string(expression.at),
                "%regex of more than " + std::to_string(max_chunks) + " chunks");
  }
  out += "(?:";
  for (std::size_t first = 0; first < chunks.size(); ++first) {
    for (std::size_t i = first; i < chunks.size(); ++i) {
      out += "(?:";
      for (const char32_t c : chunks[i]) write_pattern(c, out);
      require_room(expression, out, max_substrings);
    }
    for (std::size_t i = first; i < chunks.size(); ++i) out += ")?";
    out += '|';
  }
  out += ')';
}

TOOLDECODE_INLINE std::vector<std::u32string> LarkTerminals::chunks_of(
    const LarkExpression& expression) {
  const auto json = text::find_json(expression.text).value_or(JsonValue());
  if (!json.is_object()) fail("%regex needs a JSON object", expression.at);
  if (json.size() != 1) fail("%regex needs one field", expression.at);
  const std::string& field = json.begin().key();
  const auto& value        = json.begin().value();
  std::vector<std::u32string> chunks;
  if (field == "substring_chunks" && value.is_array()) {
    for (const auto& chunk : value) {
      if (!chunk.is_string()) fail("the chunks of %regex are texts", expression.at);
      chunks.push_back(text::decode_utf8(chunk.string()));
    }
    return chunks;
  }
  if ((field != "substring_chars" && field != "substring_words") || !value.is_string()) {
    fail("%regex has no such field, or it is of another type", expression.at);
  }
  const std::u32string all = text::decode_utf8(value.string());
  // Words are runs of letters, digits and underscores, of white space, or of other characters.
  static const text::CodePointSet word = text::unicode_word() | *text::unicode_property("No");
  int before                           = -1;
  for (const char32_t c : all) {
    const int kind = word.contains(c) ? 0 : text::unicode_space().contains(c) ? 1 : 2;
    if (field == "substring_chars" || kind != before) chunks.emplace_back();
    chunks.back() += c;
    before = kind;
  }
  return chunks;
}

}  // namespace tooldecode::ebnf
