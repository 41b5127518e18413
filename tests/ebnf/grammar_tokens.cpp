#include <string>

#include <tooldecode/ebnf/grammar_tokens.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

#include <support/accepts.hpp>
#include <support/catch.hpp>
#include <support/code_of.hpp>

using namespace tooldecode;
using namespace tooldecode::ebnf;

namespace {

const Vocabulary& vocabulary() {
  static const Vocabulary all({{"a", TokenType::normal},
                               {"<call>", TokenType::control},
                               {"<end>", TokenType::control},
                               {"<note>", TokenType::user_defined},
                               {"", TokenType::unused}},
                              {.end_tokens = {2}});
  return all;
}

using test::error_of;

std::string control(const std::string& name) {
  return control_open + name + control_close;
}

}  // namespace

TEST_CASE("GrammarTokens finds tokens by number and by text") {
  const GrammarTokens tokens(&vocabulary());
  CHECK(tokens.bytes(tokens.find("a", ""), "") == "a");
  CHECK(tokens.bytes(tokens.find(std::int64_t{1}, ""), "") == control("<call>"));
  CHECK(tokens.bytes(tokens.find("<call>", ""), "") == control("<call>"));
  CHECK(tokens.bytes(tokens.find("<note>", ""), "") == "<note>");
  CHECK(tokens.control_name(tokens.find("<end>", ""), "") == "<end>");
}

TEST_CASE(
    "GrammarTokens throws at the place of tokens that are unknown, end tokens or without text") {
  const GrammarTokens tokens(&vocabulary()), none(nullptr);
  CHECK(error_of([&] { return tokens.find("b", "byte 3"); }) == "unknown_token byte 3");
  CHECK(error_of([&] { return tokens.find(std::int64_t{5}, "byte 3"); }) == "unknown_token byte 3");
  CHECK(error_of([&] { return tokens.bytes(2, "byte 3"); }) == "unsupported_keyword byte 3");
  CHECK(error_of([&] { return tokens.bytes(4, "byte 3"); }) == "unsupported_keyword byte 3");
  CHECK(error_of([&] { return tokens.control_name(0, "byte 3"); }) == "unsupported_keyword byte 3");
  CHECK(error_of([&] { return none.find("a", "byte 3"); }) == "unsupported_keyword byte 3");
}

TEST_CASE("any_tokens accepts every control token except those excluded") {
  const auto some = any_tokens({"<a>", "<ab>", "b"});
  for (const std::string name : {"<c>", "<a", "<abc>", "a", "bb", "<ab", "<b>"}) {
    CHECK(test::accepts(*some, "x" + control(name) + "é" + control(name)));
    CHECK_FALSE(test::accepts(*some, "x" + control(name).substr(0, name.size() + 1)));
  }
  for (const std::string name : {"<a>", "<ab>", "b", ""}) {
    CHECK_FALSE(test::accepts(*some, control(name)));
    CHECK(test::accepts(*some, name));
  }
  CHECK(test::accepts(*some, ""));
  CHECK_FALSE(test::accepts(*some, {&control_close, 1}));
  CHECK(test::accepts(*any_tokens({}), control("<a>")));
}
