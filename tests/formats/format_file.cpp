#include <string>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/read_file.hpp>
#include <tooldecode/formats/format_file.hpp>
#include <tooldecode/formats/named_format.hpp>
#include <tooldecode/tools/tool_call.hpp>

#include <support/catch.hpp>
#include <support/data.hpp>
#include <support/two_tools.hpp>

using namespace tooldecode;

namespace {

// The code, the place and the sentence of the error.
std::string error_of(const std::string& text) {
  try {
    (void)formats::read_format(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

// A description with these fields.
std::string with(const std::string& style, const std::string& fields) {
  return R"({"type": "call_format", "name": "mine", "style": ")" + style + '"' +
         (fields.empty() ? "" : ", ") + fields + '}';
}

}  // namespace

TEST_CASE("read_format of a description writes and reads calls with its delimiters") {
  const NamedFormat format = formats::read_format(
      with("json", R"("begin": "<call>", "end": "</call>", "name_key": "tool", "arguments": "input",
                 "reasoning": {"begin": "[T]", "end": "[/T]"})"));
  const std::vector calls{ToolCall{"get", {{"city", "Bern"}}}};
  CHECK(format.name == "mine");
  CHECK(format.reasoning.begin == "[T]");
  const std::string text = format.write(calls, test::two_tools());
  CHECK(text == R"(<call>{"tool": "get", "input": {"city": "Bern"}}</call>)");
  CHECK(format.parse("yes: " + text, test::two_tools()) == calls);
}

TEST_CASE("read_format reads the file of the documentation") {
  const NamedFormat format =
      formats::read_format(core::read_file(test::own_data("formats/my_model.json")));
  const std::vector calls{ToolCall{"get_weather", {{"city", "Oslo"}, {"days", 2}}}};
  const std::string text = format.write(calls);
  CHECK(text == R"(<call>{"tool": "get_weather", "input": {"city": "Oslo", "days": 2}}</call>)");
  CHECK(format.parse(text, {}) == calls);
}

TEST_CASE("format_text of each named format reads back as the same description") {
  for (const NamedFormat& format : named_formats()) {
    CAPTURE(format.name);
    const std::string text = formats::format_text(format);
    const NamedFormat read = formats::find_format(text);
    CHECK(read.name == format.name);
    CHECK(read.reasoning == format.reasoning);
    CHECK(formats::format_text(read) == text);
  }
}

TEST_CASE("read_format of a bad description throws an error that names the place and the remedy") {
  const auto check = [](const std::string& text, const std::string& place,
                        const std::string& what) {
    CAPTURE(text, place);
    CHECK_THAT(error_of(text), test::contains(place));
    CHECK_THAT(error_of(text), test::contains(what));
  };
  check(with("json", R"("begn": "<call>")"), "/begn", "did you mean begin?");
  check(with("json", R"("quite_other": 1)"), "/quite_other", "remove it");
  check(with("json", R"("begin": 1)"), "/begin", "must be a string");
  check(with("json", R"("list": "yes")"), "/list", "must be true or false");
  check(with("json", R"("fences": [{"begin": "x", "and": ""}])"), "/fences/0/and", "end?");
  check(with("json", R"("arguments": "")"), "/arguments", "must not be empty");
  check(with("delimited", R"("middle": "|")"), "/begin", "it opens calls");
  check(with("delimited", R"("begin": "<", "end": ">")"), "/middle", "it ends the name");
  check(with("elements", R"("begin": "<c>")"), "/end", "must not be empty");
  check(with("python", R"("close": "")"), "/close", "it or end ends the calls");
  check(with("positional", R"("begin": "<")"), "/middle", "must not be empty");
  check(with("json", R"("reasoning": {"end": ""})"), "/reasoning/end", "it ends the block");
  check(with("yaml", ""), "/style", "json, delimited, elements");
  check(R"({"type": "call_format"})", "", "\"name\" is missing");
  check("{", "", "");
  check(with("json", R"("name_key": "f", "arguments": "f")"), "", "reads back");
}

TEST_CASE("find_format of a name gives the named format") {
  CHECK(formats::find_format("hermes").name == "hermes");
  CHECK_THROWS_AS(formats::find_format("yaml"), Error);
}
