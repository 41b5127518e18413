#include <algorithm>
#include <string>
#include <string_view>

#include <tooldecode/ebnf/lark_graph.hpp>
#include <tooldecode/ebnf/lark_reader.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

#include <support/catch.hpp>
#include <support/code_of.hpp>

using namespace tooldecode;
using namespace tooldecode::ebnf;

namespace {

const Vocabulary& vocabulary() {
  static const Vocabulary all(
      {{"a", TokenType::normal}, {"<call>", TokenType::control}, {"<end>", TokenType::control}},
      {.end_tokens = {2}});
  return all;
}
LarkParts parts() {
  return {.json_values =
              [](std::string_view) {
                Grammar values;
                values.set_root(values.literal("1"));
                return values;
              },
          .vocabulary = &vocabulary()};
}
std::string error_of(std::string_view text, const LarkParts& given = parts()) {
  return test::error_of([&] {
    const LarkFile file = LarkReader(text).read();
    const LarkGraph graph(file, given);
  });
}

}  // namespace

TEST_CASE("LarkGraph contains each terminal that the start rule reaches once") {
  const LarkFile file =
      LarkReader("start: A \"b\" a* A \"b\"\na: A?\nA: /x*/\nother: no_such").read();
  const LarkParts given = parts();
  const LarkGraph graph(file, given);
  CHECK(graph.lexemes().size() == 2);
  CHECK(graph.lexemes()[0].may_be_empty);
  CHECK(graph.lexemes()[1].literal == "b");
  CHECK(graph[graph.start()].kind == LarkGraph::Kind::rule);
  CHECK_FALSE(graph.ignored());
}

TEST_CASE("LarkGraph reads tokens and JSON values as parts and ignored terminals as one lexeme") {
  const LarkFile file =
      LarkReader("start: <call> <[0-1]> %json {\"type\": \"integer\"}\n%ignore \" \"\n%ignore /#+/")
          .read();
  const LarkParts given = parts();
  const LarkGraph graph(file, given);
  const auto& lexemes = graph.lexemes();
  CHECK(std::count_if(lexemes.begin(), lexemes.end(),
                      [](const LarkLexeme& one) { return one.make != nullptr; }) == 3);
  CHECK(lexemes.back().is_json);
  CHECK(lexemes.back().first == text::ByteSet::of("-0123456789"));
  REQUIRE(graph.ignored());
  CHECK(graph.ignored()->first == text::ByteSet::of(" #"));
}

TEST_CASE("LarkGraph throws at the place of unknown names, tokens and values") {
  CHECK(error_of("a: \"b\"") == "malformed_grammar byte 0");
  CHECK(error_of("start: other") == "malformed_grammar byte 7");
  CHECK(error_of("start: A & B\nA: \"a\"\nB: \"a\"") == "malformed_grammar byte 7");
  CHECK(error_of("start: <no>") == "unknown_token byte 7");
  CHECK(error_of("start: <[7]>") == "unknown_token byte 7");
  CHECK(error_of("start: <end>") == "unsupported_keyword byte 7");
  CHECK(error_of("start: <[2-1]>") == "malformed_grammar byte 7");
  CHECK(error_of("start: <[1-2-3]>") == "malformed_grammar byte 7");
  CHECK(error_of("start: <[*]>") == "unsupported_keyword byte 7");
  CHECK(error_of("start: <[^1]>") == "unsupported_keyword byte 7");
  CHECK(error_of("start: %json {\"a\" 1}") == "malformed_json byte 7");
  CHECK(error_of("start: %json {\"x-guidance\": {}}") == "unsupported_keyword byte 7");
  CHECK(error_of("start: %json {}", {}) == "unsupported_keyword byte 7");
  CHECK(error_of("start: <call>", {}) == "unsupported_keyword byte 7");
  CHECK(error_of("start: %lark {\nstart: \"a\"\n}\n%ignore \" \"") == "unsupported_keyword byte 7");
}
