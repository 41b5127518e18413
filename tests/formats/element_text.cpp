#include <string>
#include <string_view>

#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/element_style.hpp>
#include <tooldecode/formats/element_text.hpp>
#include <tooldecode/formats/xml_call.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <support/catch.hpp>
#include <support/code_of.hpp>

using namespace tooldecode;
using namespace tooldecode::formats;
using Json = tooldecode::JsonValue;

namespace {

std::string written(const ElementStyle& style, const Json& value) {
  std::string text;
  ElementText(style).append(text, value);
  return text;
}

Json read(const ElementStyle& style, std::string_view text) {
  text::ValueReader reader(text, text::ValueReader::Language::json, Errc::malformed_call);
  return ElementText(style).read(reader);
}

using test::error_of;

const ElementStyle& deepseek() {
  return *find_element_style("deepseek_xml");
}
const ElementStyle& cohere() {
  return *find_element_style("cohere_xml");
}
const ElementStyle& gemma() {
  static const ElementStyle style = *XmlCall::gemma_4().style;
  return style;
}

}  // namespace

TEST_CASE("ElementText writes a value after its kind, and reads it by that kind") {
  CHECK(written(deepseek(), "5") == " string=\"true\">5");
  CHECK(written(deepseek(), 5) == " string=\"false\">5");
  const std::string end = "</｜DSML｜parameter>";
  CHECK(read(deepseek(), " string=\"true\">5" + end) == "5");
  CHECK(read(deepseek(), " string=\"true\"> a\n" + end) == " a\n");
  CHECK(read(deepseek(), " string=\"false\"> [1, {}] " + end) == Json({1, Json::object()}));
  CHECK(error_of([&] { return read(deepseek(), ">5" + end); }) == "malformed_call byte 0");
  CHECK(error_of([&] { return read(deepseek(), " string=\"true\">5"); }) ==
        "malformed_call byte 15");
  CHECK(error_of([&] { return read(deepseek(), " string=\"true\">\xFF" + end); }) ==
        "malformed_call byte 15");
  CHECK(error_of([&] { return written(deepseek(), "a" + end); }) == "malformed_call " + end);
}

TEST_CASE("ElementText in a style that nests writes lists and objects as elements") {
  const Json value = {{"a<&\"", Json::array({1, "x", Json::object()})}};
  const std::string text =
      " type=\"dict\"><cofl:value name=\"a&lt;&amp;&quot;\" type=\"list\">"
      "<cofl:value type=\"json\">1</cofl:value><cofl:value type=\"raw\">x</cofl:value>"
      "<cofl:value type=\"dict\"></cofl:value></cofl:value>";
  CHECK(written(cohere(), value) == text);
  CHECK(read(cohere(), text + "</cofl:value>") == value);
}

TEST_CASE("ElementText in Gemma's style writes values between marks and punctuation") {
  const Json value       = {{"a", Json::array({1, "x,y", nullptr, Json::object()})}, {"b_2", true}};
  const std::string text = "{a:[1,<|\"|>x,y<|\"|>,null,{}],b_2:true}";
  CHECK(written(gemma(), value) == text);
  CHECK(read(gemma(), text) == value);
  CHECK(read(gemma(), "{ a: [1, <|\"|>x,y<|\"|> , null, { }] , b_2: true }") == value);
  CHECK(error_of([] { return read(gemma(), "{a:1 b:2}"); }) == "malformed_call byte 5");
  CHECK(error_of([] { return read(gemma(), "[1,"); }) != "none");
  CHECK(error_of([] { return written(gemma(), Json{{"a:b", 1}}); }) == "malformed_call a:b");
  CHECK(error_of([] { return written(gemma(), "<|\"|>"); }) == "malformed_call <|\"|>");
  CHECK(error_of([] { return read(gemma(), std::string(300, '[')); }) == "limit_exceeded #");
}

TEST_CASE("ElementText refuses to write a key that the grammar allows no object") {
  CHECK(written(cohere(), Json{{" ", true}}).find("name=\" \"") != std::string::npos);
  CHECK(error_of([] { return written(cohere(), Json{{"", true}}); }) == "malformed_call ");
  CHECK(error_of([] {
          return written(cohere(), Json{{std::string("a\0", 2), true}});
        }) == "malformed_call " + std::string("a\0", 2));
  CHECK(error_of([] { return written(gemma(), Json{{"a,b", true}}); }) == "malformed_call a,b");
}
