#include <algorithm>
#include <string>
#include <vector>

#include <tooldecode/schema/spellings.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/pattern_reader.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <support/catch.hpp>
#include <support/slow_matcher.hpp>

namespace {

using tooldecode::Grammar;
using tooldecode::schema::Spellings;
using tooldecode::text::ValueSyntax;
using Json = tooldecode::JsonValue;

std::vector<std::string> spellings(const Json& value, ValueSyntax syntax) {
  Grammar grammar;
  std::vector<std::string> texts = Spellings(grammar, syntax).spellings(value);
  std::sort(texts.begin(), texts.end());
  return texts;
}
bool has(const std::vector<std::string>& list, const char* text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

}  // namespace

TEST_CASE("Spellings lists the texts of a scalar in JSON and Python", "[schema_text]") {
  CHECK(spellings(Json(), ValueSyntax::json) == std::vector<std::string>{"null"});
  CHECK(spellings(Json(), ValueSyntax::python) == std::vector<std::string>{"None"});
  CHECK(spellings(true, ValueSyntax::python) == std::vector<std::string>{"True"});
  CHECK(spellings(-3, ValueSyntax::json) == std::vector<std::string>{"-3"});
  CHECK(has(spellings(2.0, ValueSyntax::python), "2.0"));
  CHECK(has(spellings(2.0, ValueSyntax::json), "2"));
  CHECK(spellings(0.5, ValueSyntax::json) == std::vector<std::string>{"0.5"});
  // json.dumps with ensure_ascii=False, and with its default.
  const auto json = spellings("\xC3\xA9\xF0\x9F\x98\x80\n\"", ValueSyntax::json);
  CHECK(json.size() == 2);
  CHECK(has(json, "\"\xC3\xA9\xF0\x9F\x98\x80\\n\\\"\""));
  CHECK(has(json, "\"\\u00e9\\ud83d\\ude00\\n\\\"\""));
  // repr and ascii, in both quotes.
  const auto python = spellings("it's \xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\\", ValueSyntax::python);
  CHECK(has(python, "\"it's \xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\\\\\""));
  CHECK(has(python, "\"it's \\xe9\\u20ac\\U0001f600\\\\\""));
  CHECK(has(python, "'it\\'s \xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\\\\'"));
}

TEST_CASE("Spellings::other_keys accepts strings or identifiers and identifier adds marks",
          "[schema_text]") {
  Grammar grammar;
  const Spellings json(grammar, ValueSyntax::json), python(grammar, ValueSyntax::python);
  const auto accepts = [](const tooldecode::text::DfaPointer& dfa, std::string_view bytes) {
    tooldecode::text::Dfa::State state = 0;
    for (const char c : bytes) {
      if (state != tooldecode::text::Dfa::dead)
        state = dfa->next(state, static_cast<std::uint8_t>(c));
    }
    return state != tooldecode::text::Dfa::dead && dfa->accepting(state);
  };
  REQUIRE(json.other_keys(nullptr, false).size() == 1);
  CHECK(accepts(json.other_keys(nullptr, false)[0], R"("a b")"));
  REQUIRE(python.other_keys(nullptr, false).size() == 2);
  CHECK(accepts(python.other_keys(nullptr, false)[0], R"("a b")"));
  CHECK(accepts(python.other_keys(nullptr, false)[1], "'a b'"));
  CHECK(accepts(python.other_keys(nullptr, false)[1], R"('\x61\u0062')"));
  const auto two = tooldecode::text::TextDfa::of(U"a\u00E9");
  CHECK(accepts(json.other_keys(&two, false)[0], R"("\u0061\u00E9")"));
  CHECK_FALSE(accepts(json.other_keys(&two, false)[0], R"("ae")"));
  CHECK(json.key("a\n\"'\xC3\xA9") == std::vector<std::string>{R"("a\n\"')"
                                                               "\xC3\xA9\""});
  CHECK(python.key("\"'\v") == std::vector<std::string>{R"("\"'\x0b")", R"('"\'\x0b')"});
  const auto plain = python.other_keys(nullptr, true);
  REQUIRE(plain.size() == 1);
  for (const char* other : {"a", "abc", "b", "_", "a1"}) CHECK(accepts(plain[0], other));
  for (const char* name : {"1a", "", "a-b", "\"a\"", "a b"}) CHECK_FALSE(accepts(plain[0], name));
  const auto marked = Spellings::identifier("<p=", ">");
  CHECK(accepts(marked, "<p=a1>"));
  for (const char* name : {"<p=>", "<p=1>", "p=a>", "<p=a", "a"})
    CHECK_FALSE(accepts(marked, name));
}

TEST_CASE("Spellings::string accepts strings within the bounds and nothing for empty bounds",
          "[schema_text]") {
  Grammar grammar;
  Spellings text(grammar, ValueSyntax::python);
  const auto node    = text.string(std::nullopt, {1, 2});
  const auto accepts = [&](const char* bytes) {
    return tooldecode::slow::matches(grammar, node, bytes);
  };
  CHECK(accepts("'a'"));
  CHECK(accepts("\"\\u00e9\xC3\xA9\""));
  CHECK_FALSE(accepts("''"));
  CHECK_FALSE(accepts("'abc'"));
  CHECK_FALSE(accepts("'a\""));
  const auto none = text.string(std::nullopt, {2, 1});
  CHECK(grammar.satisfiable()[none.index()] == 0);
}

TEST_CASE("escape_excluded keeps the value and frees its strings of texts that escapes can free") {
  const auto escaped = [](const char* json, std::vector<std::string> excluded) {
    return tooldecode::schema::escape_excluded(json, excluded);
  };
  CHECK(escaped(R"({"o": {"k": {}}})", {"}}"}) == R"({"o": {"k": {}}})");
  CHECK(escaped(R"(["}}", [[1]]])", {"}}", "]]"}) == R"(["\u007d}", [[1]]])");
  CHECK(escaped(R"(["\\end"])", {"\\end"}) == R"(["\u005cend"])");
  CHECK(escaped(R"(["a\" />"])", {"\" />"}) == R"(["a\u0022 />"])");
  CHECK(escaped("[\"\xE2\x96\x81x\"]", {"\xE2\x96\x81"}) == R"(["\u2581x"])");
  CHECK(escaped("[\"\xF0\x9F\x98\x80\"]", {"\xF0\x9F\x98\x80"}) == R"(["\ud83d\ude00"])");
  CHECK(escaped(R"(["a\nb"])", {"\\n"}) == R"(["a\u000ab"])");
  std::mt19937 random{6};
  const std::vector<std::string> parts{"a", "b",  "0", "u",        "\\", "\"", "\n",
                                       "}", "]]", "<", "\xC3\xA9", "/",  "\t", "\xF0\x9F\x98\x80"};
  const auto text = [&](std::size_t most) {
    std::string made;
    for (std::size_t n = 1 + random() % most; n > 0; --n) made += parts[random() % parts.size()];
    return made;
  };
  for (int round = 0; round < 3000; ++round) {
    const Json value{{text(3), Json::array({text(8), Json::array({Json{{text(2), text(4)}}})})}};
    const std::vector<std::string> excluded{text(3), text(2)};
    CAPTURE(round, value.text(), excluded);
    for (const bool ascii : {false, true}) {
      const std::string json =
          tooldecode::schema::escape_excluded(value.text({.ascii = ascii}), excluded);
      REQUIRE(tooldecode::text::parse_json(json) == value);
    }
  }
}

TEST_CASE("Spellings refuses a text that no escape frees of what is excluded") {
  const auto code = [](const Json& value, const std::string& excluded) {
    Grammar grammar;
    try {
      static_cast<void>(
          Spellings(grammar, ValueSyntax::json, 40, false, {excluded}).spellings(value));
    } catch (const tooldecode::Error& error) {
      return std::string(tooldecode::name(error.code()));
    }
    return std::string("none");
  };
  for (const char* excluded : {"0", "u", "00", "\""}) {
    CAPTURE(excluded);
    CHECK(code("1u0\n", excluded) ==
          (std::string(excluded) == "00" ? "none" : "unsupported_keyword"));
  }
  CHECK(code("blue", "lu") == "none");
  CHECK(code(10, "0") == "none");  // a number is no string
}
