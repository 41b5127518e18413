// Hostile inputs: each gives a typed error, or an automaton whose size is bounded by its input.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/ebnf/grammar_text.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/text/regex.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <nlohmann/json.hpp>
#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::ebnf;
using namespace tooldecode::grammar;
using namespace tooldecode::text;

namespace {

std::string times(std::size_t count, std::string_view text) {
  std::string all;
  for (; count > 0; --count) all += text;
  return all;
}
// The texts of numbers from 0, joined.
std::string numbered(std::size_t count, const std::function<std::string(std::string)>& text,
                     std::string_view between = ",") {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) all += between;
    all += text(std::to_string(i));
  }
  return all;
}

// Walks a random text of at most 300 bytes; it must make few states.
void check_walk(const Grammar& grammar, NodeId root, std::size_t max_nodes) {
  CHECK(grammar.size() <= max_nodes);
  const Automaton automaton(grammar, root);
  std::mt19937 random(1);
  auto state = automaton.initial();
  for (int i = 0; i < 300; ++i) {
    CHECK(automaton.positions(state).size() <= max_nodes);
    std::vector<std::uint8_t> bytes;
    automaton.allowed(state).for_each([&](std::uint8_t byte) { bytes.push_back(byte); });
    if (bytes.empty()) break;
    const auto next = automaton.step(state, bytes[random() % bytes.size()]);
    REQUIRE(next);
    state = *next;
  }
  CHECK(automaton.size() <= 1000);
}

// The code of the exception, if there was one.
std::optional<Errc> check_schema(const std::string& text, std::size_t nodes_per_byte = 4) {
  INFO(text.substr(0, 200));
  try {
    const auto schema = parse_json(text);
    Grammar grammar;
    const NodeId root = SchemaCompiler(grammar, schema, {}).value(schema, "#");
    check_walk(grammar, root, 1000 + nodes_per_byte * text.size());
  } catch (const Error& error) {
    CHECK(!std::string_view(error.what()).empty());
    return error.code();
  }
  return std::nullopt;
}

std::optional<Errc> check_grammar(const std::string& text) {
  INFO(text.substr(0, 200));
  try {
    const Grammar built = parse_grammar(text);
    check_walk(built, built.root(), 1000 + 4 * text.size());
  } catch (const Error& error) {
    return error.code();
  }
  return std::nullopt;
}

// Patterns with small automata, and patterns that cannot have small ones.
const std::vector<std::string> small_patterns{"(a*)*b",   "(x+x+)+y",   "((((a?){9})*){9})*$",
                                              "(a|aa)+$", "([a-z]+)*@", "(.*)*(.*)*(.*)*x"};
const std::vector<std::string> large_patterns{"((a{1,1000}){1,1000})",
                                              "(a{1000000000}){1000000000}", "[ab]*a[ab]{30}c",
                                              "((a{0,99}){0,99}b){0,99}"};

}  // namespace

TEST_CASE("Deeply nested schemas compile in bounded space or throw") {
  check_schema(times(100'000, "["));
  check_schema(times(3000, R"({"items":)") + "{}" + times(3000, "}"));
  check_schema(times(3000, R"({"not":)") + "{}" + times(3000, "}"));
  for (const char* key : {"allOf", "anyOf", "oneOf"}) {
    const std::string open = std::string("{\"") + key + "\":[";
    check_schema(times(1000, open) + "{\"type\":\"null\"}" + times(1000, "]}"));
    check_schema(times(12, open + R"({"type":"null"},)") + "true" + times(12, "]}"));
  }
  check_schema(R"({"allOf":[)" +
                   numbered(24,
                            [](const std::string& i) {
                              return R"({"anyOf":[{"required":["a)" + i + R"("]},{"required":["b)" +
                                     i + R"("]}]})";
                            }) +
                   "]}",
               100);
}

TEST_CASE("Huge bounds in schemas and grammars compile to counters") {
  for (const char* bounds :
       {R"({"type":"string","minLength":1000000000,"maxLength":2000000000})",
        R"({"type":"array","minItems":1000000000,"maxItems":2000000000})",
        R"({"type":"object","minProperties":1000000000,"maxProperties":2000000000})",
        R"({"type":"integer","minimum":1e300})", R"({"type":"number","multipleOf":1e-300})",
        R"({"type":"array","contains":{"type":"null"},"minContains":1000000000})",
        R"({"type":"string","pattern":"^a*$","maxLength":1000000000})"}) {
    check_schema(bounds);
  }
  CHECK_FALSE(
      check_grammar("root ::= \"a\"{1000000000} [bc]{1,1000000000} (\"d\" | root){1000000000}"));
  CHECK_FALSE(check_grammar("root ::= (([ab]{1000000000} \"c\"){1000000000} \"d\"){1000000000}"));
  CHECK_FALSE(check_grammar("root ::= ((\"a\"?){1000000000} \"d\"?){0,1000000000}"));
}

TEST_CASE("Large schemas and grammars compile to sizes in proportion to their texts") {
  CHECK_FALSE(check_schema(R"({"enum":[)" +
                           numbered(100'000, [](const std::string& i) { return '"' + i + '"'; }) +
                           "]}"));
  check_schema(R"({"enum":[)" + numbered(20'000, [](const std::string& i) { return i; }) + "]}");
  check_schema(
      R"({"type":"object","properties":{)" +
      numbered(3000, [](const std::string& i) { return "\"p" + i + R"(":{"type":"integer"})"; }) +
      "}}");
  check_schema(R"({"$ref":"#/$defs/0","$defs":{)" +
               numbered(3000,
                        [](const std::string& i) {
                          return '"' + i + R"(":{"$ref":"#/$defs/)" +
                                 std::to_string(std::stoul(i) + 1) + "\"}";
                        }) +
               R"(,"3000":{"type":"null"}}})");
  check_schema(R"({"patternProperties":{)" +
                   numbered(8,
                            [](const std::string& i) {
                              return "\"^(a|b)*" + i + R"((a|b){9}":{"type":"integer"})";
                            }) +
                   "}}",
               1000);
}

TEST_CASE("Mutual recursion that consumes no byte throws") {
  CHECK(check_schema(R"({"$ref":"#"})"));
  CHECK(check_schema(R"({"$ref":"#/$defs/a","$defs":{
      "a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"anyOf":[{"$ref":"#/$defs/a"}]}}})"));
  check_schema(R"({"anyOf":[{"type":"null"},{"allOf":[{"$ref":"#"},{"$ref":"#"}]}]})");
  CHECK(check_grammar("root ::= a\na ::= b\nb ::= a") == Errc::unsatisfiable_schema);
}

TEST_CASE("Hostile patterns compile to small automata or throw limit_exceeded") {
  for (const std::string& pattern : small_patterns) {
    INFO(pattern);
    CHECK(compile_pattern(pattern).rows().size() <= 100);
    CHECK_FALSE(check_grammar("root ::= /" + pattern + "/"));
  }
  for (const std::string& pattern : large_patterns) {
    INFO(pattern);
    try {
      const TextDfa dfa = compile_pattern(pattern);
      CHECK(dfa.rows().size() <= TextDfa::max_states);
    } catch (const Error& error) {
      CHECK(error.code() == Errc::limit_exceeded);
    }
    check_schema(nlohmann::json{{"type", "string"}, {"pattern", pattern}}.dump(), 1000);
  }
}

TEST_CASE("Hostile grammars compile to sizes in proportion to their texts") {
  check_grammar("root ::= " + times(100'000, "("));
  check_grammar("root ::= " + times(100'000, "\"a\"? "));
  check_grammar("root ::= " + times(1500, "\"a\"? ") + "\"b\"");
  check_grammar("root ::= " + times(500, "([ab]* \"a\" [ab]{12})? ") + "root \"c\"");
  check_grammar("root ::= a0\n" +
                numbered(
                    10'000,
                    [](const std::string& i) {
                      return 'a' + i + " ::= a" + std::to_string(std::stoul(i) + 1) + " | \"x\"";
                    },
                    "\n") +
                "\na10000 ::= root \"y\"");
  check_grammar("root ::= " + numbered(
                                  5000, [](const std::string& i) { return '"' + i + '"'; }, "|"));
  CHECK(parse_grammar("root ::= " + times(50, "root ") + "| \"x\" |").size() < 1000);
  const std::string mixed = "a ::= b a | c\nb ::= c b | a?\nc ::= a c b | \"x\" | root";
  CHECK(parse_grammar("root ::= a b c\n" + mixed).size() < 1000);
}
