#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/ebnf/grammar_text.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

#include <nlohmann/json.hpp>
#include <support/catch.hpp>
#include <support/data.hpp>

using namespace tooldecode;
using namespace tooldecode::ebnf;
using namespace tooldecode::grammar;

namespace {

Automaton run(std::string_view grammar) {
  return Automaton(parse_grammar(grammar));
}

enum Verdict { refused, begun, accepted };
Verdict judge(const Automaton& automaton, std::string_view text) {
  auto state = std::optional(automaton.initial());
  for (const char c : text) {
    if (state) state = automaton.step(*state, static_cast<std::uint8_t>(c));
  }
  if (!state) return refused;
  return automaton.is_accepting(*state) ? accepted : begun;
}

void check(std::string_view grammar, const std::vector<std::string>& good,
           const std::vector<std::string>& bad) {
  INFO(grammar);
  const Automaton automaton = run(grammar);
  for (const std::string& text : good) {
    INFO(text);
    CHECK(judge(automaton, text) == accepted);
  }
  for (const std::string& text : bad) {
    INFO(text);
    CHECK(judge(automaton, text) != accepted);
  }
}

// Checks the code and the place of an error.
void check_error(std::string_view grammar, Errc code, const std::string& where) {
  INFO(grammar);
  try {
    (void)parse_grammar(grammar);
    FAIL("accepted");
  } catch (const Error& error) {
    INFO(error.what());
    CHECK(error.code() == code);
    CHECK(error.where() == where);
  }
}

}  // namespace

TEST_CASE("parse_grammar reads each construct of GBNF and EBNF") {
  check(R"(root ::= "a\n\t\\\"" "\x41\u00e9\U0001F600")", {"a\n\t\\\"A\u00E9\U0001F600"}, {""});
  check("root ::= [a-c\u00E0-\u00E9\\]\\x2d]", {"b", "\u00E8", "]", "-"}, {"d", "\u00EA", "bb"});
  check("root ::= [^\"\\\\\\n-] [-a] [a-]", {"x-a", "\u20ACa-"}, {"\"aa", "-aa", "xba"});
  check("root ::= .", {"a", "\n", "\u20AC"}, {"", "ab", "\x80"});
  check("root ::= [] | \"a\"", {"a"}, {""});
  check("root ::= [^]", {"a", "\n"}, {""});
  check("root ::= \"ab\"* \"c\"+ \"d\"?", {"c", "ababccd", "ccc"}, {"", "abbc", "abd"});
  check("root ::= \"a\"{2} (\"b\" | \"c\"){1,} \"d\"{ 0 , 2 }", {"aab", "aacbdd"},
        {"aa", "aabddd"});
  check("root ::= \"a\"{2}{2} \"b\"?*", {"aaaa", "aaaabb"}, {"aa", "aaaaaa"});
  check("root ::= | \"a\" | (|\"b\" root)", {"", "a", "b", "bba"}, {"ab"});
  check("root ::= \"\" \"a\" \"\" | \"\"{3,5}", {"", "a"}, {"aa"});
  check("root ::= /[0-9]{2}\\/x?/ \"y\"", {"12/y", "34/xy"}, {"12/", "1/y"});
  check(R"(root ::= /\\d[^\]\\]\//)", {"\\dx/"}, {"5x/", "\\5x/", "\\d\\/", "\\d]/"});
  check(R"(root ::= /\\/)", {"\\"}, {"", "/", "\\\\"});
  check("root ::= /a*/ /b|/", {"", "aab", "b"}, {"ba"});
  check("root ::= \"a\"{3,2000000000}", {"aaa", std::string(1000, 'a')}, {"aa"});
  check("root ::= (\"a\" | \"bc\"){3,2000000000}", {"aaa", "abca"}, {"aa", "aab"});
}

TEST_CASE("parse_grammar ends a rule where the next one begins") {
  check(
      "# first\nroot ::= # empty\n  a-1\n  | b_2 # last\na-1 ::= \"x\"\n\nb_2::=\"y\" c c ::= \"z\"#",
      {"x", "yz"}, {"", "xy", "y"});
  check("root ::=\n\n  \"x\"*\nother ::= root", {"", "xx"}, {"y"});
  check("root::=\"a\"\r\n|\"b\"\r\n", {"a", "b"}, {""});
  check("root ::= \"a\" # c\r | \"b\"", {"a", "b"}, {""});
}

TEST_CASE("parse_grammar reads left-recursive grammars of arithmetic expressions") {
  const std::vector<std::string> good{"1", "1+2*3", "(1+23)*4-5", "((1))/(2-3)-4"};
  const std::vector<std::string> bad{"", "+", "1+", "(1", "1)", "1++2", "()", "1 2"};
  check(R"g(root ::= root [-+] term | term
           term ::= term [*/] factor | factor
           factor ::= "(" root ")" | [0-9]+)g",
        good, bad);
  check(R"g(root ::= root [-+*/] root | "(" root ")" | number
           number ::= number digit | digit
           digit ::= [0-9])g",
        good, bad);
  check(R"g(root ::= sum
           sum ::= nothing difference nothing "+" product | difference
           difference ::= nothing sum "-" product | product
           product ::= (product [*/])? atom nothing
           atom ::= (sum-in-brackets | [0-9])+ 
           sum-in-brackets ::= "(" sum ")" 
           nothing ::= | nothing)g",
        {"1", "1+2*3", "(1+23)*4-5"}, {"", "1+", "(1", "1++2"});
}

TEST_CASE("parse_grammar of a JSON grammar accepts what a JSON parser accepts") {
  const Automaton json = run(R"gbnf(
root    ::= ws value
value   ::= (object | array | string | number | "true" | "false" | "null") ws
object  ::= "{" ws members? "}"
members ::= members "," ws member | member
member  ::= string ws ":" ws value
array   ::= "[" ws (value ("," ws value)*)? "]"
string  ::= "\"" (
    [^"\\\x00-\x1F] |
    "\\" (["\\/bfnrt] | "u" ([0-9a-cA-Ce-fE-F] hex hex hex | [dD] [0-7] hex hex)) # no surrogates
  )* "\""
hex     ::= [0-9a-fA-F]
number  ::= "-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)? ([eE] [-+]? [0-9]+)?
ws      ::= ([ \t\n\r] ws)?
)gbnf");
  std::istringstream lines(test::read_text(test::example_data("tiny/heldout.jsonl")));
  std::mt19937 random(1);
  std::size_t good = 0, bad = 0;
  for (std::string line; std::getline(lines, line) && good < 40; ++good) {
    if (good % 2 == 1) line = tooldecode::text::parse_json(line).text({.indent = 2});
    REQUIRE(judge(json, line) == accepted);
    for (int i = 0; i < 20; ++i) {
      std::string changed  = line;
      const std::size_t at = random() % line.size();
      switch (random() % 3) {
        case 0:
          changed.erase(at, 1 + random() % 3);
          break;
        case 1:
          changed.insert(at, 1, "\"{}[]:,\\0e-. \n\x01\x80"[random() % 16]);
          break;
        default:
          changed.resize(at);
          REQUIRE(judge(json, changed) == begun);
          break;
      }
      // Only the parser rejects numbers out of a double's range.
      const bool expected = nlohmann::json::accept(changed);
      bad += !expected;
      if ((judge(json, changed) == accepted) != expected) FAIL(changed);
    }
  }
  CHECK(good == 40);
  CHECK(bad > 400);
  CHECK(json.size() < 20'000);
}

TEST_CASE("parse_grammar errors name the code and the byte") {
  const auto malformed = Errc::malformed_grammar;
  check_error("", malformed, "");
  check_error("rot ::= \"a\"", malformed, "");
  check_error("root = \"a\"", malformed, "byte 5");
  check_error("root ::= \"a", malformed, "byte 9");
  check_error("root ::= \"a\nb\"", malformed, "byte 9");
  check_error("root ::= [a", malformed, "byte 9");
  check_error("root ::= \"x\" (\"a\"", malformed, "byte 13");
  check_error("root ::= \"a\")", malformed, "byte 12");
  check_error("root ::= a b\na ::= \"x\"", malformed, "byte 11");
  check_error("root ::= \"a\"\nroot ::= \"b\"", malformed, "byte 13");
  check_error("root ::= \"\\q\"", malformed, "byte 10");
  check_error("root ::= \"\\x4\"", malformed, "byte 13");
  check_error("root ::= \"\\ud800\"", malformed, "byte 10");
  check_error("root ::= [\\U00110000]", malformed, "byte 10");
  check_error("root ::= [z-a]", malformed, "byte 10");
  check_error("root ::= \"\xFF\"", malformed, "byte 10");
  check_error("root ::= *", malformed, "byte 9");
  check_error("root ::= \"a\"{3,2}", malformed, "byte 12");
  check_error("root ::= \"a\"{,2}", malformed, "byte 13");
  check_error("root ::= \"a\"{2", malformed, "byte 12");
  check_error("root ::= <think>", Errc::unsupported_keyword, "byte 9");
  check_error("root ::= <[12>", malformed, "byte 9");
  check_error("root ::= \"a\" <b", malformed, "byte 13");
  check_error("root ::= !<[12]>*", Errc::unsupported_keyword, "byte 10");
  check_error("root ::= \"a\" $", malformed, "byte 13");
  check_error("root ::= \"a\"{3000000000}", Errc::limit_exceeded, "byte 13");
  check_error("root ::= " + std::string(300, '('), Errc::limit_exceeded, "byte 209");
  check_error("root ::= /a/ /(b/", Errc::malformed_pattern, "byte 13");
  check_error("root ::= /a", malformed, "byte 9");
}

TEST_CASE("parse_grammar reads tokens by name and number and repeats of all other tokens") {
  const Vocabulary vocabulary({{"a", TokenType::normal},
                               {"<think>", TokenType::control},
                               {"</think>", TokenType::control},
                               {"<end>", TokenType::control}},
                              {.end_tokens = {3}});
  const auto control = [](std::string_view name) {
    return control_open + std::string(name) + control_close;
  };
  const auto judged = [&](std::string_view grammar, const std::string& text) {
    Grammar parsed = parse_grammar(grammar, "root", &vocabulary);
    return judge(Automaton(parsed), text);
  };
  const std::string open = control("<think>"), close = control("</think>");
  const char* thought = "root ::= <think> !</think>* <[2]> [a-z]+";
  CHECK(judged(thought, open + "so " + open + control("<end>") + close + "a") == accepted);
  CHECK(judged(thought, open + close + "a") == accepted);
  CHECK(judged(thought, open + close + close) == refused);
  CHECK(judged("root ::= <think> !<[2]>+ </think>", open + close) == refused);
  CHECK(judged("root ::= <think> !<[2]>+ </think>", open + "a" + close) == accepted);
  CHECK(judged("root ::= (<think> | <[0]>)+", "a" + open + "a") == accepted);
  const auto code_of = [&](std::string_view grammar) {
    try {
      (void)parse_grammar(grammar, "root", &vocabulary);
    } catch (const Error& error) {
      return std::string(name(error.code())) + ' ' + error.where();
    }
    return std::string("none");
  };
  CHECK(code_of("root ::= <none>") == "unknown_token byte 9");
  CHECK(code_of("root ::= <[4]>") == "unknown_token byte 9");
  CHECK(code_of("root ::= <end>") == "unsupported_keyword byte 9");
  CHECK(code_of("root ::= !<think>") == "unsupported_keyword byte 9");
  CHECK(code_of("root ::= !<think>{2}") == "unsupported_keyword byte 9");
  CHECK(code_of("root ::= !<[0]>*") == "unsupported_keyword byte 10");
}
