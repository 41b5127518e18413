#include <string>
#include <string_view>

#include <tooldecode/core/error.hpp>
#include <tooldecode/ebnf/lark_reader.hpp>
#include <tooldecode/ebnf/lark_terminals.hpp>
#include <tooldecode/text/code_points.hpp>

#include <support/catch.hpp>
#include <support/code_of.hpp>

using namespace tooldecode;
using namespace tooldecode::ebnf;

namespace {

bool matches(std::string_view grammar, std::string_view text) {
  const LarkFile file = LarkReader(grammar).read();
  return LarkTerminals(file).compile(file.rules.at("T").body).accepts(text::decode_utf8(text));
}
std::string error_of(std::string_view grammar) {
  return test::error_of([&] { return matches(grammar, ""); });
}

}  // namespace

TEST_CASE("LarkTerminals compiles terminals that refer to terminals") {
  const char* signed_number = "T: SIGN? DIGIT+\nSIGN: \"+\" | \"-\"\nDIGIT: \"0\"..\"9\"\n";
  CHECK(matches(signed_number, "-12"));
  CHECK_FALSE(matches(signed_number, "-"));
  CHECK(matches("T: \"yes\"i [\"x\"]~2..3", "YeSxx"));
}

TEST_CASE("LarkTerminals compiles intersections and negations") {
  const char* grammar = "T: /[ab]+/ | /[cd]+/ & ~/.*cc.*/";
  CHECK(matches(grammar, "ab"));
  CHECK(matches(grammar, "cdc"));
  CHECK_FALSE(matches(grammar, "dcc"));
  CHECK(error_of("T: (/a/ & /b/) \"c\"") == "unsupported_keyword byte 3");
}

TEST_CASE("LarkTerminals compiles substrings of words, characters and chunks") {
  const char* words = R"(T: "<" %regex {"substring_words": "foo bar. baz"} ">")";
  CHECK(matches(words, "<foo bar>"));
  CHECK(matches(words, "<>"));
  CHECK(matches(words, "<. baz>"));
  CHECK_FALSE(matches(words, "<fo>"));
  CHECK(matches(R"(T: %regex {"substring_chars": "aba"})", "ba"));
  CHECK(matches(R"(T: %regex {"substring_chunks": ["ab", "c"]})", "abc"));
  CHECK(error_of(R"(T: %regex {})") == "malformed_grammar byte 3");
  CHECK(error_of(R"(T: %regex {"substring_words": 1})") == "malformed_grammar byte 3");
}

TEST_CASE("LarkTerminals imports Lark's common terminals") {
  CHECK(matches("T: NUMBER\n%import common.NUMBER", "1.5e-3"));
  CHECK(matches("T: STRING\n%import common.ESCAPED_STRING -> STRING", R"("a\"b")"));
  CHECK(matches("T: C_COMMENT\n%import common (C_COMMENT, WS)", "/* a **/"));
  CHECK_FALSE(matches("T: C_COMMENT\n%import common.C_COMMENT", "/* */ */"));
}

TEST_CASE("LarkTerminals throws at the place of invalid terminals") {
  CHECK(error_of("T: U") == "malformed_grammar byte 3");
  CHECK(error_of("T: U\nU: \"a\" T") == "malformed_grammar byte 3");
  CHECK(error_of("T: rule\nrule: \"a\"") == "malformed_grammar byte 3");
  CHECK(error_of("T: <a>") == "malformed_grammar byte 3");
  CHECK(error_of("T: %json {}") == "malformed_grammar byte 3");
  CHECK(error_of("T: \"a\" /[b/") == "malformed_pattern byte 7");
}

TEST_CASE("LarkTerminals refuses substrings whose pattern would be too long") {
  std::string chunks;
  for (int i = 0; i < 200; ++i) chunks += (i == 0 ? "\"" : ", \"") + std::string(1'000, 'a') + '"';
  const std::string terminal = R"(T: %regex {"substring_chunks": [)" + chunks + "]}";
  try {
    (void)matches(terminal, "");
    FAIL_CHECK("no error");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).ends_with("a terminal that is too long"));
    CHECK(error.where() == "byte 3");
  }
}
