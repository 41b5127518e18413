#include <tooldecode/schema/constants.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <support/catch.hpp>
#include <support/form_judge.hpp>

using namespace tooldecode;
using namespace tooldecode::schema;
using Json = tooldecode::JsonValue;

TEST_CASE("Constants accepts exactly the values equal to a constant") {
  FormAlgebra forms;
  Constants constants(forms);
  const FormId form =
      forms.add(constants(tooldecode::text::parse_json(
                              R"([1, "a", null, true, [1, []], {"a": 1, "b": {"c": false}}, 2.5])")
                              .get<std::vector<Json>>()));
  test::FormJudge judge(forms);
  for (const char* text : {"1", "1.0", "\"a\"", "null", "true", "[1.0, []]",
                           R"({"b": {"c": false}, "a": 1})", "2.50"}) {
    INFO(text);
    CHECK(judge(form, tooldecode::text::parse_json(text)));
  }
  for (const char* text : {"2", "1.5", "\"b\"", "false", "[1]", "[1, [], 1]", "{}", R"({"a": 1})",
                           R"({"a": 1, "b": {"c": false}, "c": 1})", R"({"a": true, "b": {}})"}) {
    INFO(text);
    CHECK_FALSE(judge(form, tooldecode::text::parse_json(text)));
  }
}

TEST_CASE("Constants throws for a constant that nests too deeply") {
  Json deep = Json::array();
  for (int i = 0; i < 1000; ++i) deep = Json::array({deep});
  FormAlgebra forms;
  Constants constants(forms);
  CHECK_THROWS_AS(constants({deep}), Error);
}
