#include <string>

#include <tooldecode/core/error.hpp>
#include <tooldecode/ebnf/grammar_tokens.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

#include <support/accepts.hpp>
#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::ebnf;

namespace {

const Vocabulary& vocabulary() {
  static const Vocabulary all({{"a", TokenType::normal},
                               {"<call>", TokenType::control},
                               {"<end>", TokenType::control},
                               {"", TokenType::unused}},
                              {.end_tokens = {2}});
  return all;
}

template <class Read>
std::string error_of(const Read& read) {
  try {
    (void)read();
  } catch (const Error& error) {
    return std::string(name(error.code())) + ' ' + error.where();
  }
  return "none";
}

std::string control(const std::string& name) {
  return control_open + name + control_close;
}

}  // namespace

TEST_CASE("GrammarTokens finds tokens by number and by text") {
  const GrammarTokens tokens(&vocabulary());
  CHECK(tokens.bytes(tokens.find("a", ""), "") == "a");
  CHECK(tokens.bytes(tokens.find(std::int64_t{1}, ""), "") == control("<call>"));
  CHECK(tokens.bytes(tokens.find("<call>", ""), "") == control("<call>"));
  CHECK(tokens.control_name(tokens.find("<end>", ""), "") == "<end>");
}

TEST_CASE(
    "GrammarTokens throws at the place of tokens that are unknown, end tokens or without text") {
  const GrammarTokens tokens(&vocabulary()), none(nullptr);
  CHECK(error_of([&] { return tokens.find("b", "byte 3"); }) == "unknown_token byte 3");
  CHECK(error_of([&] { return tokens.find(std::int64_t{4}, "byte 3"); }) == "unknown_token byte 3");
  CHECK(error_of([&] { return tokens.bytes(2, "byte 3"); }) == "unsupported_keyword byte 3");
  CHECK(error_of([&] { return tokens.bytes(3, "byte 3"); }) == "unsupported_keyword byte 3");
  CHECK(error_of([&] { return tokens.control_name(0, "byte 3"); }) == "unsupported_keyword byte 3");
  CHECK(error_of([&] { return none.find("a", "byte 3"); }) == "unsupported_keyword byte 3");
}

TEST_CASE("any_tokens rejects only the excluded names") {
  const auto some = any_tokens({"<call>"});
  CHECK(test::accepts(*some, "text" + control("<end>") + control("<call>>")));
  CHECK_FALSE(test::accepts(*some, "text" + control("<call>")));
}
