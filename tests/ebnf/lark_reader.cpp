#include <string>
#include <string_view>

#include <tooldecode/ebnf/lark_reader.hpp>

#include <support/catch.hpp>
#include <support/code_of.hpp>

using namespace tooldecode;
using namespace tooldecode::ebnf;

namespace {

using Kind = LarkExpression::Kind;

std::string error_of(std::string_view text) {
  return test::error_of([&] { return LarkReader(text).read(); });
}

}  // namespace

TEST_CASE("LarkReader continues a rule at a bar on the next line") {
  const LarkFile file =
      LarkReader("?start: a -> first // one\n\n  | \"b\" # two\na: A\n_A: /x/\nA: _A").read();
  REQUIRE(file.rules.size() == 4);
  const LarkExpression& body = file.rules.at("start").body;
  REQUIRE(body.kind == Kind::choice);
  CHECK(body.parts.at(0).text == "a");
  CHECK(body.parts.at(1).kind == Kind::string);
  CHECK(file.rules.at("a").at == 41);
}

TEST_CASE("LarkReader reads counts, string escapes, flags and tokens") {
  const LarkFile file =
      LarkReader(R"(start: "\u0041\x42\n\ud83d\ude00"i~2..3 [a]{,4} <[1-2,5]> <|x|>)").read();
  const auto& parts = file.rules.at("start").body.parts;
  REQUIRE(parts.size() == 4);
  CHECK(parts[0].count == text::Occurrences{2, 3});
  CHECK(parts[0].parts.at(0).text == "AB\n\U0001F600");
  CHECK(parts[0].parts.at(0).flags == "i");
  CHECK(parts[1].count == text::Occurrences{0, 4});
  CHECK(parts[2].text == "<[1-2,5]>");
  CHECK(parts[3].kind == Kind::token);
}

TEST_CASE("LarkReader reads statements, attributes and nested grammars") {
  const LarkFile file = LarkReader(
                            "%llguidance {\"allow_initial_skip\": true}\n%ignore /a/ | \"b\"\n"
                            "x[lazy, capture=\"c\"]: /d/\ny[suffix=\"e\"]: /f/\n"
                            "start: %lark {\n start: \"g\"\n} %json {\"a\": \"}\"}")
                            .read();
  CHECK(file.may_begin_ignored);
  CHECK(file.ignored.size() == 1);
  CHECK(file.rules.at("x").is_lazy);
  CHECK(file.rules.at("y").suffix.at(0).text == "e");
  CHECK(file.nested.at(0).rules.contains("start"));
  CHECK(file.rules.at("start").body.parts.at(1).text == R"({"a": "}"})");
}

TEST_CASE("LarkReader errors name the byte of malformed text") {
  CHECK(error_of("start \"a\"") == "malformed_grammar byte 6");
  CHECK(error_of("start: (\"a\"") == "malformed_grammar byte 7");
  CHECK(error_of("start: \"a") == "malformed_grammar byte 7");
  CHECK(error_of("start: /a") == "malformed_grammar byte 7");
  CHECK(error_of("start: \"\\q\"") == "malformed_grammar byte 8");
  CHECK(error_of("start: \"\\ud800\"") == "malformed_grammar byte 8");
  CHECK(error_of("start: \"\\ud800\\u0041\"") == "malformed_grammar byte 8");
  CHECK(error_of("start: \"\\ud800\\ud800\"") == "malformed_grammar byte 8");
  CHECK(error_of("start: \"\\udc00\"") == "malformed_grammar byte 8");
  CHECK(error_of("start: \"a\"{3,2}") == "malformed_grammar byte 10");
  CHECK(error_of("start: \"ab\"..\"c\"") == "malformed_grammar byte 7");
  CHECK(error_of("start: \"a\" ->") == "malformed_grammar byte 13");
  CHECK(error_of("start: \"a\" -> X") == "malformed_grammar byte 14");
  CHECK(error_of("start: fooBar") == "malformed_grammar byte 7");
  CHECK(error_of("a: \"x\"\na: \"y\"") == "malformed_grammar byte 7");
  CHECK(error_of("%import common.NONE") == "malformed_grammar byte 0");
  CHECK(error_of("start: %json {") == "malformed_grammar byte 13");
  CHECK(error_of("%llguidance {\"no_forcing\": 1}") == "malformed_grammar byte 12");
  CHECK(error_of("start: " + std::string(300, '(')).starts_with("limit_exceeded"));
}

TEST_CASE("LarkReader throws unsupported_keyword for unsupported syntax") {
  for (const char* text :
       {"start[max_tokens=3]: /a/", "start[stop=\"a\"]: /a/", "start[temperature=1]: /a/",
        "%declare A", "%override a: \"b\"", "%import python.A", "start: @other", "start{x}: x",
        "start: a{b}", "start::_: \"a\"", "start: a::1", "start.2: \"a\"",
        "%llguidance {\"other\": true}"}) {
    INFO(text);
    CHECK(error_of(text).starts_with("unsupported_keyword byte "));
  }
}
