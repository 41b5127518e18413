#include <string>
#include <string_view>

#include <tooldecode/core/error.hpp>
#include <tooldecode/ebnf/lark_graph.hpp>
#include <tooldecode/ebnf/lark_lexer.hpp>
#include <tooldecode/ebnf/lark_reader.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::ebnf;

namespace {

std::string told(std::string_view text) {
  const LarkFile file = LarkReader(text).read();
  const LarkParts parts;
  const LarkGraph graph(file, parts);
  try {
    const LarkLexer lexer(graph);
    std::string all;
    for (std::size_t place = 0; place < lexer.places().size(); ++place) {
      all += std::to_string(lexer.variants(place).size());
    }
    return all;
  } catch (const Error& error) {
    return std::string(name(error.code())) + ' ' + error.where();
  }
}

}  // namespace

TEST_CASE("LarkLexer leaves places alone if their terminals do not overlap") {
  CHECK(told("start: NAME (\",\" NAME)*\nNAME: /[a-z]+/\n%ignore \" \"") == "000");
  CHECK(told("start: \"if\" \" \" NAME | NAME \"=\"\nNAME: /[a-z]+/") == "00000");
}

TEST_CASE("LarkLexer restricts places whose terminals may continue") {
  CHECK(told("start: NAME \"and\" NAME\nNAME: /[a-z]+/") == "100");
  CHECK(told("start: \"if\" NAME | NAME \"=\"\nNAME: /[a-z]+/") == "1000");
  CHECK(told("start: (head \"1\")* TEXT\nhead[lazy]: TEXT \"<c>\"\nTEXT: /(.|\\n)*/") == "001");
}

TEST_CASE("LarkLexer throws at terminals that only the open rules distinguish") {
  CHECK(told("start: \"(\" x \"b\" | \"[\" x /a+/\nx: \"a\" | \"aa\"") == "010000");
  CHECK(told("start: x \"-\" | \"<\" x NAME\nx: \"if\"\nNAME: /[a-z]+/ | \"ifx\"")
            .find("unsupported") == std::string::npos);
  CHECK(told("start: x \"1\" | \"(\" (x | \"ab\")\nx: \"a\" \"b\"") ==
        "unsupported_keyword byte 33");
  CHECK(told("start: WS \"a\" WS \"b\"\nWS: \" \"\n%ignore / +/") == "unsupported_keyword byte 7");
}
