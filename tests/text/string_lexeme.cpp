#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/regex.hpp>
#include <tooldecode/text/string_lexeme.hpp>

#include <nlohmann/json.hpp>
#include <support/accepts.hpp>
#include <support/cases.hpp>
#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::text;
using test::accepts;

namespace {

// Reference: spells each state of a text separately, between quotes, without shared rows.
Dfa slow_quoted(const TextDfa& text, const Spelling& spelling) {
  std::vector<Dfa::SparseRow> rows(text.rows().size() + 2);
  const auto quote   = static_cast<std::uint8_t>(spelling.quote);
  const auto closing = static_cast<Dfa::State>(rows.size() - 1);
  rows[0].edges.push_back({quote, quote, 1});
  rows[closing].accepting = rows[closing].closing = true;
  Speller speller(rows, spelling);
  for (TextDfa::State s = 0; s < text.rows().size(); ++s) {
    Speller::Edges edges;
    speller.literal(Speller::runs(text, s, 1), edges);
    if (text.rows()[s].accepting) edges.push_back({quote, quote, closing});
    rows[s + 1].edges    = std::move(edges);
    rows[s + 1].boundary = true;
  }
  return Dfa(rows);
}

// Whether both accept the same steps from their starts, with the same marks.
bool alike(const Dfa& a, const Dfa& b) {
  std::vector<std::pair<Dfa::State, Dfa::State>> work{{0, 0}};
  std::map<Dfa::State, Dfa::State> met{{0, 0}};
  for (std::size_t i = 0; i < work.size(); ++i) {
    const auto [in_a, in_b] = work[i];
    if (in_a >= a.size() || in_b >= b.size()) return false;
    if (a.accepting(in_a) != b.accepting(in_b) || a.boundary(in_a) != b.boundary(in_b) ||
        a.closing(in_a) != b.closing(in_b) || a.live(in_a) != b.live(in_b)) {
      return false;
    }
    for (unsigned byte = 0; byte < 256; ++byte) {
      const Dfa::State to_a = a.next(in_a, static_cast<std::uint8_t>(byte)),
                       to_b = b.next(in_b, static_cast<std::uint8_t>(byte));
      if ((to_a == Dfa::dead) != (to_b == Dfa::dead)) return false;
      if (to_a == Dfa::dead) continue;
      // Several states of `a` may equal one of `b`, never the reverse.
      const auto [known, fresh] = met.emplace(to_a, to_b);
      if (fresh) work.emplace_back(to_a, to_b);
      if (known->second != to_b) return false;
    }
  }
  return true;
}

std::string letters(std::size_t n) {
  return "^\\p{L}{1," + std::to_string(n) + "}$";
}

}  // namespace

TEST_CASE("quoted with shared rows equals a Dfa that spells each state separately") {
  const Spelling json, python{.syntax = ValueSyntax::python, .quote = '\''}, every{.every = true};
  for (const char* pattern :
       {"^\\p{L}{1,20}$", "^(\\p{Lu}\\p{Ll}{0,5}){1,9}$", "^(\\w+ ?){3}$", "^[^\\p{L}]{3}\\p{L}*$",
        "^(.\\p{Han}|\\p{sc=Greek}{2}x){12}$", "^[a-z]{3}$", "\\u00e9", "^$", "^(?!\\p{L}{5}).{9}$",
        "^[\\u0000-\\u001f\"\\\\]{2,7}\\p{Nd}{0,30}$"}) {
    std::string text(pattern);
    if (const auto at = text.find("\\p{Han}"); at != text.npos) text.replace(at, 7, "\\p{sc=Han}");
    const TextDfa dfa = compile_pattern(text);
    for (const Spelling& spelling : {json, python, every}) {
      INFO(text << ' ' << spelling.quote << spelling.every);
      const Dfa own = text::quoted(dfa, spelling), slow = slow_quoted(dfa, spelling);
      CHECK(alike(own, slow));
      if (own.size() <= 2000) CHECK(own == slow);  // small ones have the same state numbers too
    }
  }
}

TEST_CASE(
    "quoted of random patterns with wide classes equals a Dfa that spells each state separately") {
  const std::vector<std::string> sets{"\\p{Lu}", "\\p{Ll}", "[\\p{L}\\p{Nd}]", "\\d",
                                      "[^a\\p{Mn}]"};
  for (std::uint32_t seed = 0; seed < test::cases(12); ++seed) {
    std::mt19937 random(seed);
    std::string pattern = "^";
    for (int part = 0; part < 3; ++part) {
      pattern += '(' + sets[random() % sets.size()] + '|' + sets[random() % sets.size()] + 'x' +
                 "){" + std::to_string(random() % 3) + ',' + std::to_string(3 + random() % 4) + '}';
    }
    const TextDfa dfa = compile_pattern(pattern + '$');
    INFO("seed " << seed << ": " << pattern);
    CHECK(alike(text::quoted(dfa, {}), slow_quoted(dfa, {})));
  }
}

TEST_CASE(
    "string_lexeme of a repeated class needs rows of constant size and linearly many states") {
  std::vector<std::size_t> states, bytes;
  for (const std::size_t n : {200U, 400U, 800U}) {
    const TextDfa text = compile_pattern(letters(n));
    const Dfa lexeme   = string_lexeme(text, ValueSyntax::json, '"');
    CHECK(text.rows().size() == n + 1);
    states.push_back(lexeme.size()), bytes.push_back(lexeme.bytes());
    CHECK(utf8_lexeme(text).bytes() < 1'000'000);
  }
  CHECK(states[2] - states[1] == 2 * (states[1] - states[0]));
  CHECK(bytes[2] < 2 * bytes[1]);
  CHECK(bytes[2] < 1'000'000);
  CHECK(states[2] > 500'000);  // a separate row for each would need 36 bytes or more
}

TEST_CASE(
    "string_lexeme of equal patterns has equal hashes and of different patterns different ones") {
  const Dfa one   = string_lexeme(compile_pattern(letters(300)), ValueSyntax::json, '"'),
            two   = string_lexeme(compile_pattern(letters(300)), ValueSyntax::json, '"'),
            other = string_lexeme(compile_pattern(letters(301)), ValueSyntax::json, '"');
  CHECK(one == two);
  CHECK(one.hash() == two.hash());
  CHECK_FALSE(one == other);
  CHECK(one.hash() != other.hash());
}

TEST_CASE("string_lexeme charges the BuildBudget and throws when the steps run out") {
  const TextDfa wide = compile_pattern("^(\\p{L}\\p{N}|\\p{N}\\p{L}){1,50}$");
  const auto cost    = [&](std::uint64_t steps) {
    const BuildBudget budget({.steps = steps});
    (void)string_lexeme(wide, ValueSyntax::json, '"');
    return budget.spent();
  };
  const BuildLimits spent = cost(50'000'000);
  CHECK(spent.steps > 1'000);
  CHECK(spent.bytes > 1'000);
  CHECK_THROWS_AS(cost(spent.steps - 1), Error);
}

namespace {

using tooldecode::text::any_string;
using tooldecode::text::Dfa;
using tooldecode::text::ValueSyntax;

// The number of units of an accepted text; nothing if it is rejected.
std::optional<int> units(const Dfa& dfa, std::string_view text) {
  Dfa::State state = 0;
  int count        = 0;
  for (const char c : text) {
    const Dfa::State next = dfa.next(state, static_cast<std::uint8_t>(c));
    if (next == Dfa::dead) return std::nullopt;
    if (dfa.boundary(state) && !dfa.closing(next)) ++count;
    state = next;
  }
  return dfa.accepting(state) ? std::optional(count) : std::nullopt;
}

const Dfa& json() {
  return *any_string(ValueSyntax::json, '"');
}
const Dfa& python(char quote) {
  return *any_string(ValueSyntax::python, quote);
}

}  // namespace

TEST_CASE("any_string in JSON accepts the contents of one and two bytes that a JSON parser accepts",
          "[string_lexeme]") {
  int wrong = 0, accepted = 0;
  for (unsigned a = 0; a < 256; ++a) {
    for (unsigned b = 0; b <= 256; ++b) {
      std::string text = "\"" + std::string(1, static_cast<char>(a));
      if (b < 256) text += static_cast<char>(b);
      text += '"';
      // nlohmann-json reads a NUL after the value as the end of the input.
      const bool ok = a != 0 && b != 0 && nlohmann::json::accept(text);
      accepted += ok;
      wrong += units(json(), text).has_value() != ok;
    }
  }
  CHECK(wrong == 0);
  CHECK(accepted > 8000);
}

TEST_CASE(
    "any_string in JSON accepts and counts random escapes and raw bytes as a JSON parser does",
    "[string_lexeme]") {
  const std::string parts[] = {"\\u",
                               "d83d",
                               "de00",
                               "D800",
                               "0041",
                               "00e9",
                               "\\n",
                               "\\",
                               "\"",
                               "a",
                               "\xC3",
                               "\xA9",
                               "\xE2\x82",
                               "\xAC",
                               "\xED\xA0\x80",
                               "\xF0\x9F\x98\x80",
                               "\xF4\x90\x80\x80",
                               "\xC0\x80",
                               "\\ud83d\\ude00",
                               "\\uDBFF\\uDFFF",
                               "\\ud7ff",
                               "\\ue000",
                               "\\/",
                               "\x7F",
                               "\x1F"};
  std::mt19937 random(5);
  int accepted = 0;
  for (int i = 0; i < 100'000; ++i) {
    std::string text = "\"";
    for (auto k = random() % 5; k > 0; --k) text += parts[random() % std::size(parts)];
    text += '"';
    const bool ok = nlohmann::json::accept(text);
    accepted += ok;
    const auto counted = units(json(), text);
    if (counted.has_value() != ok)
      FAIL_CHECK("seed 5: " << nlohmann::json(text).dump(-1, ' ', true,
                                                         nlohmann::json::error_handler_t::replace));
    if (!ok || !counted) continue;
    // A unit is a code point: a byte of UTF-8 that is no continuation byte.
    int code_points = 0;
    for (const char c : nlohmann::json::parse(text).get<std::string>()) {
      code_points += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    }
    if (*counted != code_points) FAIL_CHECK("seed 5: " << text << " counts " << *counted);
  }
  CHECK(accepted > 10'000);
}

TEST_CASE("any_string in Python accepts Python's string literals in either quote",
          "[string_lexeme]") {
  struct Case {
    std::string text;
    std::optional<int> single, twice;
  };
  const Case cases[] = {
      {"''", 0, {}},
      {"\"\"", {}, 0},
      {"'a\"b'", 3, {}},
      {"\"it's\"", {}, 4},
      {"'\\'\\\"\\\\'", 3, {}},
      {"'\\a\\b\\f\\n\\r\\t\\v'", 7, {}},
      {"'\\x41\\u00e9\\U0001F600'", 3, {}},
      {"'\\U00110000'", {}, {}},
      {"'\\U0010FFFF'", 1, {}},
      {"'\\ud83d\\ude00'", {}, {}},  // two single surrogates
      {"'\\U0000D800'", {}, {}},
      {"'\\/'", {}, {}},
      {"'\\0'", {}, {}},
      {"'\\101'", {}, {}},
      {"'a\nb'", {}, {}},
      {"'\\\n'", {}, {}},
      {"'\\N{DASH}'", {}, {}},
      {"'\xC3\xA9\xF0\x9F\x98\x80'", 2, {}},
      {"'\xED\xA0\x80'", {}, {}},
      {"'a\"", {}, {}},
      {"'a'b'", {}, {}},
  };
  for (const auto& [text, single, twice] : cases) {
    INFO(text);
    CHECK(units(python('\''), text) == single);
    CHECK(units(python('"'), text) == twice);
  }
}

TEST_CASE("string_lexeme accepts raw and escaped characters and any_string has few states",
          "[string_lexeme]") {
  const tooldecode::text::TextDfa e_acute =
      tooldecode::text::TextDfa::repeated({{0xE9, 0xE9}, {0x1F600, 0x1F600}});
  const Dfa dfa = tooldecode::text::string_lexeme(e_acute, ValueSyntax::json, '"');
  CHECK(units(dfa, "\"\xC3\xA9\\u00e9\\u00E9\\uD83D\\ude00\xF0\x9F\x98\x80\"") == 5);
  CHECK_FALSE(units(dfa, "\"e\""));
  CHECK_FALSE(units(dfa, "\"\\ud83d\\ude01\""));
  CHECK_FALSE(units(dfa, "\"\\u00e8\""));
  CHECK(tooldecode::text::string_lexeme(tooldecode::text::TextDfa({}, {}), ValueSyntax::json, '"')
            .empty());
  CHECK(json().size() < 40);
  CHECK(python('"').size() < 40);
  CHECK(any_string(ValueSyntax::json, '"') == any_string(ValueSyntax::json, '"'));
  const tooldecode::text::DfaPointer& space = tooldecode::text::any_whitespace();
  CHECK(units(*space, "") == 0);
  CHECK(units(*space, " \n\r\t") == 4);  // counted by byte, so that a length bounds it
  CHECK_FALSE(units(*space, "\v"));
}

TEST_CASE("key_lexeme accepts each spelling of its key and no longer key", "[string_lexeme]") {
  std::mt19937 random(8);
  const std::u32string letters =
      U"a\"\\/\b\f\n\r\t\x01\x1F\x7F '\u00E9\u20AC\uFFFF\U0001F600\U0010FFFF";
  const auto digits = [&](char32_t c, int count) {
    std::string result;
    while (count-- > 0) {
      const char digit = "0123456789abcdef"[c >> 4 * count & 15];
      result += random() % 2 && digit > '9' ? static_cast<char>(digit - 32) : digit;
    }
    return result;
  };
  const auto spelt = [&](char32_t c, bool python, char quote) {
    std::string one;
    const bool is_free = c >= 0x20 && c != '\\' && c != static_cast<char32_t>(quote);
    if (is_free && random() % 2) {
      tooldecode::text::append_utf8(one, c);
      return one;
    }
    const std::string_view letter   = python ? "\\'\"abfnrtv" : "\\\"/bfnrt";
    const std::u32string_view meant = python ? U"\\'\"\a\b\f\n\r\t\v" : U"\\\"/\b\f\n\r\t";
    const auto at                   = meant.find(c);
    if (at != std::u32string_view::npos && random() % 2) return std::string{'\\', letter[at]};
    if (python && c < 0x100 && random() % 2) return "\\x" + digits(c, 2);
    if (python && (c > 0xFFFF || random() % 2)) return "\\U" + digits(c, 8);
    if (c <= 0xFFFF) return "\\u" + digits(c, 4);
    return "\\u" + digits(0xD800 + ((c - 0x10000) >> 10), 4) + "\\u" +
           digits(0xDC00 + (c & 0x3FF), 4);
  };
  for (int i = 0; i < 2000; ++i) {
    const bool python = i % 2 != 0;
    const char quote  = i % 4 == 3 ? '\'' : '"';
    std::u32string text;
    for (auto k = random() % 6; k > 0; --k) text += letters[random() % letters.size()];
    std::string key(1, quote), more;
    for (const char32_t c : text) key += spelt(c, python, quote);
    more = key + spelt(U'a', python, quote) + quote;
    key += quote;
    INFO("seed 8, " << i << ": " << key);
    const auto syntax = python ? ValueSyntax::python : ValueSyntax::json;
    REQUIRE(units(*any_string(syntax, quote), key) == static_cast<int>(text.size()));
    // The lexeme of one text accepts that text and no longer one.
    const Dfa one =
        tooldecode::text::key_lexeme(tooldecode::text::TextDfa::of(text), syntax, quote);
    REQUIRE(units(one, key) == static_cast<int>(text.size()));
    REQUIRE_FALSE(units(one, more));
  }
}

TEST_CASE("string_lexeme in JSON accepts the spellings of common writers, with DEL raw or escaped",
          "[string_lexeme]") {
  const tooldecode::text::TextDfa any =
      tooldecode::text::TextDfa::repeated(tooldecode::text::CodePointSet::all());
  const Dfa json_text = tooldecode::text::string_lexeme(any, ValueSyntax::json, '"');
  for (const char* text : {"\"\\u007f\"", "\"\x7F\"", "\"\\u007F\"", "\"\\u001f\\u00E9\""})
    CHECK(units(json_text, text));
  for (const char* other : {"\"\\u0061\"", "\"\\/\"", "\"\\u000a\"", "\"a", "a"})
    CHECK_FALSE(units(json_text, other));
}

TEST_CASE("string_lexeme in Python accepts the escapes that repr writes", "[string_lexeme]") {
  const tooldecode::text::TextDfa any =
      tooldecode::text::TextDfa::repeated(tooldecode::text::CodePointSet::all());
  const Dfa single = tooldecode::text::string_lexeme(any, ValueSyntax::python, '\'');
  const Dfa twice  = tooldecode::text::string_lexeme(any, ValueSyntax::python, '"');
  CHECK(units(single, "'a\"\\'\\\\\\n\\r\\t\\x07\\x7f\\xe9\\u20ac\\U0001f600\xE2\x82\xAC'") == 13);
  CHECK(units(twice, "\"it's\\\"\"") == 5);
  for (const char* other : {"'\\a'", "'\\u00e9'", "'\\x41'", "'\\\"'", "'\\U000020ac'", "'\n'"})
    CHECK_FALSE(units(single, other));
}

namespace {

Dfa one_of(const CodePointSet& set) {
  return utf8_lexeme(TextDfa({set}, {{{1}, false}, {{TextDfa::dead}, true}}));
}

std::string utf8(char32_t c) {
  std::string text;
  append_utf8(text, c);
  return text;
}

}  // namespace

TEST_CASE("utf8_lexeme accepts each code point of its set and no other") {
  const Dfa any  = one_of(~CodePointSet{{'\n', '\n'}});
  const Dfa some = one_of({{0x7F, 0x90}, {0x7FF, 0x801}, {0xFFFF, 0x10001}, {0x10FFFF, 0x10FFFF}});
  for (char32_t c = 0; c <= 0x10FFFF; c += c < 0x810 || (c > 0xFFF0 && c < 0x10010) ? 1 : 0x7F3) {
    const bool is_surrogate = c >= 0xD800 && c <= 0xDFFF;
    const bool is_in        = (c >= 0x7F && c <= 0x90) || (c >= 0x7FF && c <= 0x801) ||
                       (c >= 0xFFFF && c <= 0x10001) || c == 0x10FFFF;
    if (accepts(any, utf8(c)) != (c != '\n' && !is_surrogate)) FAIL("any: " << unsigned(c));
    if (accepts(some, utf8(c)) != is_in) FAIL("some: " << unsigned(c));
  }
  CHECK(accepts(some, utf8(0x10FFFF)));
}

TEST_CASE("utf8_lexeme accepts strict UTF-8 only") {
  const Dfa any = one_of(CodePointSet::all());
  std::mt19937 random(3);
  std::size_t valid = 0;
  for (int i = 0; i < 30'000; ++i) {
    std::string bytes;
    static const std::string leads = "\xC0\xC1\xC2\xDF\xE0\xE1\xED\xEF\xF0\xF3\xF4\xF5\x80z";
    bytes.push_back(leads[random() % leads.size()]);
    for (std::size_t n = random() % 4; n > 0; --n)
      bytes.push_back(static_cast<char>(random() % 8 ? 0x80 + random() % 64 : random() % 256));
    const std::u32string text = decode_utf8(bytes);
    const bool is_one         = text.size() == 1 && utf8(text[0]) == bytes;
    valid += is_one;
    if (accepts(any, bytes) != is_one) FAIL("bytes " << i);
  }
  CHECK(valid > 300);
}

TEST_CASE("utf8_lexeme of a repeated set accepts any number of its characters") {
  const Dfa run = utf8_lexeme(TextDfa::repeated({{'a', 'a'}, {0xE9, 0xE9}}));
  CHECK(accepts(run, ""));
  CHECK(accepts(run, "a\u00E9a"));
  CHECK_FALSE(accepts(run, "a\xC3"));
  CHECK(utf8_lexeme(TextDfa({}, {})).empty());
}
