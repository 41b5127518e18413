#include <string>

#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/tag_tokens.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/text/json_value.hpp>

#include <support/accepts.hpp>
#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::formats;
using Json = tooldecode::JsonValue;

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

TEST_CASE("TagTokens finds tokens by number and by text") {
  const TagTokens tokens(&vocabulary());
  CHECK(tokens.bytes(0, "#") == "a");
  CHECK(tokens.bytes("a", "#") == "a");
  CHECK(tokens.bytes(1, "#") == control("<call>"));
  CHECK(tokens.bytes("<call>", "#") == control("<call>"));
  CHECK(tokens.bytes("<note>", "#") == "<note>");
  CHECK(tokens.control_name("<call>", "#") == "<call>");
  CHECK(tokens.control_name(2, "#") == "<end>");
}

TEST_CASE("TagTokens refuses a token that is unknown or of the wrong type") {
  const TagTokens tokens(&vocabulary());
  for (const Json& token : {Json(5), Json(-1), Json("b")}) {
    CHECK(error_of([&] { return tokens.bytes(token, "#/t"); }) == "unknown_token #/t");
  }
  CHECK(error_of([&] { return tokens.bytes(1.5, "#/t"); }) == "malformed_document #/t");
  CHECK(error_of([&] { return tokens.bytes(2, "#/t"); }) == "unsupported_keyword #/t");
  CHECK(error_of([&] { return tokens.bytes(4, "#/t"); }) == "unsupported_keyword #/t");
  CHECK(error_of([&] { return tokens.control_name("a", "#/t"); }) == "unsupported_keyword #/t");
  CHECK(error_of([&] { return TagTokens(nullptr).bytes(0, "#/t"); }) == "unsupported_keyword #/t");
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

TEST_CASE(
    "turning_tokens accepts text in which given control tokens start a turn, once or repeatedly") {
  Grammar grammar;
  const NodeId turn  = grammar.literal(control("<call>") + "x;");
  const NodeId once  = turning_tokens(grammar, {"<call>"}, {"<no>"}, turn, TurnCount::once);
  const NodeId again = turning_tokens(grammar, {"<call>"}, {"<no>"}, turn, TurnCount::again);
  const auto accepts = [&](NodeId root, const std::string& text) {
    const grammar::Automaton machine(grammar, root);
    const auto state = machine.advance(machine.initial(), text);
    return state && machine.is_accepting(*state);
  };
  const std::string call = control("<call>");
  for (const NodeId root : {once, again}) {
    CHECK(accepts(root, ""));
    CHECK(accepts(root, "a" + control("<yes>") + "<call>"));
    CHECK(accepts(root, "a" + call + "x;"));
    CHECK_FALSE(accepts(root, "a" + call));
    CHECK_FALSE(accepts(root, "a" + call + "y;"));
    CHECK_FALSE(accepts(root, control("<no>")));
  }
  CHECK_FALSE(accepts(once, call + "x;b"));
  CHECK(accepts(again, call + "x;b" + call + "x;"));
}
