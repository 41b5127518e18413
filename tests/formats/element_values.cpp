#include <string>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/element_style.hpp>
#include <tooldecode/formats/element_values.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/regex.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::formats;
using Json = tooldecode::JsonValue;

TEST_CASE("KeyedElements accept members of a set in every spelling of their delimiters") {
  Grammar grammar;
  KeyedSet set{.members = {}, .others = {}, .separator = grammar.empty()};
  formats::KeyedElements elements(set, "<k>", "=");
  elements.add("a", grammar.literal("1;"), true);
  elements.add("b", grammar.literal("2;"), false);
  elements.add_others(grammar.literal("3;"));
  CHECK(
      set.members[0].spellings ==
      std::vector<std::string>{"<k>a=", std::string{control_open} + "<k>" + control_close + "a="});
  CHECK(set.others.size() == 2);
  const grammar::Automaton machine(grammar, grammar.keyed_set(set));
  const auto accepts = [&](const std::string& text) {
    const auto state = machine.advance(machine.initial(), text);
    return state && machine.is_accepting(*state);
  };
  const std::string control = std::string{control_open} + "<k>" + control_close;
  CHECK(accepts("<k>a=1;"));
  CHECK(accepts(control + "a=1;<k>b=2;"));
  CHECK(accepts("<k>b=2;" + control + "a=1;<k>ab=3;<k>c=3;" + control + "c=3;"));
  CHECK_FALSE(accepts("<k>b=2;"));
  CHECK_FALSE(accepts("<k>a=3;"));
  CHECK_FALSE(accepts("<k>a=1;<k>a=1;"));
  CHECK_FALSE(accepts("<k>a=1;<k>1=3;"));
}

TEST_CASE("KeyedElements::add_others accepts keys that are identifiers and match an automaton") {
  Grammar grammar;
  KeyedSet set{.members = {}, .others = {}, .separator = grammar.empty()};
  formats::KeyedElements elements(set, "<k>", "=>");
  elements.add_others(grammar.literal("1;"), tooldecode::text::compile_pattern("^a|c$"));
  elements.add_others(grammar.literal("2;"), tooldecode::text::compile_pattern("^ b$"));
  CHECK(set.others.size() == 2);  // no identifier has a space
  const grammar::Automaton machine(grammar, grammar.keyed_set(set));
  const auto accepts = [&](const std::string& text) {
    const auto state = machine.advance(machine.initial(), text);
    return state && machine.is_accepting(*state);
  };
  CHECK(accepts("<k>a=>1;<k>bc=>1;<k>a_2=>1;"));
  for (const char* text : {"<k>b=>1;", "<k>=>1;", "<k>a=1;", "<k>a =>1;", "<k> b=>2;", "a=>1;"}) {
    CAPTURE(text);
    CHECK_FALSE(accepts(text));
  }
}

namespace {

class Elements {
 public:
  Elements(const char* style, const char* schema, SchemaOptions options = {})
      : schema_(tooldecode::text::parse_json(schema)) {
    Grammar grammar;
    const ElementStyle* const found = find_element_style(style);
    REQUIRE(found != nullptr);
    const NodeId root = ElementValues(grammar, schema_, *found, options).objects();
    machine_.add(grammar, root);
  }
  [[nodiscard]] bool accepts(std::string_view text) const {
    const auto state = machine_.advance(0, text);
    return state && machine_.is_accepting(*state);
  }

 private:
  Json schema_;
  grammar::Automaton machine_;
};

std::string error_of(const char* style, const char* schema) {
  try {
    const Elements made(style, schema);
  } catch (const Error& error) {
    return std::string(name(error.code()));
  }
  return "none";
}

constexpr const char* person =
    R"({"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name"], "additionalProperties": false})";
constexpr const char* kinds =
    R"({"type": "object", "properties": {
          "mixed": {"type": ["string", "integer"]}, "list": {"type": "array", "items": {"type": "string"}},
          "inner": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]},
          "word": {"enum": ["yes", "no"]}, "open": {}}, "additionalProperties": false})";

}  // namespace

TEST_CASE("ElementValues in each style accept that style's delimiters alone") {
  const std::vector<std::pair<const char*, std::vector<std::string>>> written{
      {"qwen_xml", {"<parameter=name>Bob</parameter>", "<parameter=age>3</parameter>"}},
      {"minimax_xml",
       {"<parameter name=\"name\">Bob</parameter>", "<parameter name=\"age\">3</parameter>"}},
      {"glm_xml",
       {"<arg_key>name</arg_key>\n<arg_value>Bob</arg_value>",
        "<arg_key>age</arg_key><arg_value>3</arg_value>"}},
      {"deepseek_xml",
       {"<｜DSML｜parameter name=\"name\" string=\"true\">Bob</｜DSML｜parameter>",
        "<｜DSML｜parameter name=\"age\" string=\"false\">3</｜DSML｜parameter>"}},
      {"deepseek_v4_1_xml",
       {"<｜DSML｜ parameter name=\"name\" string=\"true\">Bob</｜DSML｜ parameter>",
        "<｜DSML｜ parameter name=\"age\" string=\"false\">3</｜DSML｜ parameter>"}},
      {"kimi_k3_xml",
       {"<|open|>argument key=\"name\" type=\"string\"<|sep|>Bob<|close|>argument<|sep|>",
        "<|open|>argument key=\"age\" type=\"number\"<|sep|>3<|close|>argument<|sep|>"}},
      {"cohere_xml",
       {"<cofl:value name=\"name\" type=\"raw\">Bob</cofl:value>",
        "<cofl:value name=\"age\" type=\"json\">3</cofl:value>"}},
      {"minimax_m3_xml",
       {"]<]minimax[>[<name>Bob]<]minimax[>[</name>", "]<]minimax[>[<age>3]<]minimax[>[</age>"}},
  };
  CHECK(written.size() == element_styles().size());
  for (const auto& [style, parts] : written) {
    INFO(style);
    const Elements any(style, person);
    CHECK(any.accepts(parts[0]));
    CHECK(any.accepts(parts[0] + parts[1]));
    CHECK(any.accepts("\n" + parts[1] + "\n" + parts[0] + " "));
    CHECK_FALSE(any.accepts(""));
    CHECK_FALSE(any.accepts(parts[1]));
    CHECK_FALSE(any.accepts(parts[0] + parts[0]));
    const Elements ordered(style, person, {.documented_order = true});
    CHECK(ordered.accepts(parts[0] + parts[1]));
    CHECK_FALSE(ordered.accepts(parts[1] + parts[0]));
    for (const auto& [other, others] : written) {
      if (other != style && std::string(other).substr(0, 4) != std::string(style).substr(0, 4)) {
        CHECK_FALSE(any.accepts(others[0]));
      }
    }
  }
}

TEST_CASE("ElementValues accept strings plain and other values as JSON") {
  const Elements elements("qwen_xml", kinds);
  const auto accepts = [&](const std::string& key, const std::string& value) {
    return elements.accepts("<parameter=" + key + ">" + value + "</parameter>");
  };
  for (const char* value : {"a b", "3", "\n3\n", "{\"x\": 1", ""}) CHECK(accepts("mixed", value));
  CHECK(accepts("list", "[\"a\\u003c/parameter>\", \"b\"]"));
  CHECK_FALSE(accepts("list", "[\"a</parameter>\", \"b\"]"));
  CHECK_FALSE(accepts("list", "a"));
  CHECK(accepts("inner", "\n{\"x\": 1.5}\n"));
  CHECK_FALSE(accepts("inner", "{}"));
  for (const char* value : {"yes", "\nno\n"}) CHECK(accepts("word", value));
  for (const char* value : {"\"yes\"", "ye", ""}) CHECK_FALSE(accepts("word", value));
  for (const char* value : {"a", "null", "{\"x\": \"<\\/parameter>\"}"})
    CHECK(accepts("open", value));
  CHECK_FALSE(accepts("open", "{\"x\": \"</parameter>\"}"));
  CHECK_FALSE(accepts("open", "a</parameter>"));
  CHECK_FALSE(accepts("other", "1"));
}

TEST_CASE("ElementValues accept a value only of the kind that its element names") {
  const Elements kimi("kimi_k3_xml", kinds);
  const auto accepts = [&](const char* key, const char* kind, const char* value) {
    return kimi.accepts(std::string("<|open|>argument key=\"") + key + "\" type=\"" + kind +
                        "\"<|sep|>" + value + "<|close|>argument<|sep|>");
  };
  CHECK(accepts("mixed", "string", "a"));
  CHECK(accepts("mixed", "number", "3"));
  CHECK(accepts("mixed", "integer", "3"));
  CHECK_FALSE(accepts("mixed", "number", "a"));
  CHECK(accepts("list", "array", "[\"a\"]"));
  CHECK_FALSE(accepts("list", "object", "[\"a\"]"));
  CHECK(accepts("open", "number", "1.5"));
  CHECK_FALSE(accepts("open", "integer", "1.5"));
  CHECK(accepts("open", "boolean", "true"));
  CHECK(accepts("open", "null", "null"));
  CHECK_FALSE(accepts("open", "", "null"));
  const Elements deepseek("deepseek_xml", kinds);
  CHECK(
      deepseek.accepts("<｜DSML｜parameter name=\"word\" string=\"true\">yes</｜DSML｜parameter>"));
  CHECK_FALSE(deepseek.accepts(
      "<｜DSML｜parameter name=\"word\" string=\"true\"> yes</｜DSML｜parameter>"));
  CHECK_FALSE(deepseek.accepts(
      "<｜DSML｜parameter name=\"word\" string=\"false\">yes</｜DSML｜parameter>"));
}

TEST_CASE("ElementValues in a style that nests accept lists and objects as elements") {
  const Elements cohere("cohere_xml", kinds);
  CHECK(
      cohere.accepts("<cofl:value name=\"list\" type=\"list\"><cofl:value type=\"raw\">a"
                     "</cofl:value><cofl:value type=\"raw\"></cofl:value>\n</cofl:value>"));
  CHECK(cohere.accepts("<cofl:value name=\"list\" type=\"list\"></cofl:value>"));
  CHECK_FALSE(cohere.accepts("<cofl:value name=\"list\" type=\"json\">[]</cofl:value>"));
  CHECK(
      cohere.accepts("<cofl:value name=\"inner\" type=\"dict\"><cofl:value name=\"x\" "
                     "type=\"json\">1</cofl:value></cofl:value>"));
  CHECK_FALSE(cohere.accepts("<cofl:value name=\"inner\" type=\"dict\"></cofl:value>"));
  CHECK(cohere.accepts(
      "<cofl:value name=\"open\" type=\"dict\"><cofl:value name=\"a&amp;b c\" type=\"list\">"
      "<cofl:value type=\"json\">null</cofl:value></cofl:value></cofl:value>"));
  CHECK_FALSE(
      cohere.accepts("<cofl:value name=\"open\" type=\"dict\"><cofl:value name=\"a&b\" "
                     "type=\"json\">1</cofl:value></cofl:value>"));
  const Elements m3("minimax_m3_xml",
                    R"({"type": "object", "properties": {
      "points": {"type": "array", "minItems": 1, "maxItems": 2, "prefixItems": [{"type": "string"}],
                 "items": {"$ref": "#"}}}})");
  const auto element = [](const std::string& key, const std::string& value) {
    return "]<]minimax[>[<" + key + ">" + value + "]<]minimax[>[</" + key + ">";
  };
  CHECK(m3.accepts(""));
  CHECK(m3.accepts(element("points", element("item", "a"))));
  CHECK(m3.accepts(element(
      "points", element("item", "]") + element("item", element("points", element("item", "b"))))));
  CHECK(m3.accepts(element("points", "\n" + element("item", "a") + "\n")));
  CHECK_FALSE(m3.accepts(element("points", "")));
  CHECK_FALSE(m3.accepts(element("points", "\n")));
  CHECK_FALSE(m3.accepts(
      element("points", element("item", "a") + element("item", "") + element("item", ""))));
  CHECK_FALSE(m3.accepts(element("points", element("item", "]<]minimax[>["))));
}

TEST_CASE("ElementValues accept identifiers as keys that the schema does not list") {
  const Elements open("glm_xml", R"({"type": "object", "properties": {"a": {"type": "integer"}},
                                     "additionalProperties": {"type": "boolean"}})");
  const auto element = [](const char* key, const char* value) {
    return std::string("<arg_key>") + key + "</arg_key><arg_value>" + value + "</arg_value>";
  };
  CHECK(open.accepts(element("a", "1") + element("b", "true")));
  CHECK_FALSE(open.accepts(element("a", "true")));
  CHECK_FALSE(open.accepts(element("b c", "true")));
  const Elements counted("glm_xml", R"({"type": "object", "properties": {"a": {}, "b": {}, "c": {}},
                                        "additionalProperties": false, "minProperties": 2, "maxProperties": 2})");
  CHECK_FALSE(counted.accepts(element("a", "1")));
  CHECK(counted.accepts(element("c", "1") + element("a", "1")));
  CHECK_FALSE(counted.accepts(element("c", "1") + element("a", "1") + element("b", "1")));
}

TEST_CASE("ElementValues accept further keys that are identifiers and match the pattern") {
  const auto element = [](const char* key, const char* value) {
    return std::string("<parameter=") + key + ">" + value + "</parameter>";
  };
  const Elements listed("qwen_xml", R"({"properties": {"a0": {"type": "null"}},
      "patternProperties": {"^a": {"type": ["integer", "null"]}, "^b": {"type": "boolean"}},
      "additionalProperties": false})");
  CHECK(listed.accepts(element("a1", "3") + element("b", "true") + element("a0", "null")));
  for (const char* other : {"c", "a ", "", "A"}) CHECK_FALSE(listed.accepts(element(other, "3")));
  CHECK_FALSE(listed.accepts(element("a0", "3")));
  CHECK_FALSE(listed.accepts(element("b", "3")));
  const Elements named("qwen_xml", R"({"propertyNames": {"pattern": "^a"}})");
  CHECK(named.accepts(element("a", "3")));
  CHECK_FALSE(named.accepts(element("b", "3")));
  CHECK(error_of("qwen_xml",
                 R"({"patternProperties": {"^ a$": {}}, "additionalProperties": false})") ==
        "none");
}

TEST_CASE("ElementValues enforce dependences and combinations, in nested objects too") {
  const std::string conditions = R"("properties": {"a": {}, "b": {}, "c": {}},
      "additionalProperties": false, "dependentRequired": {"a": ["b"]})";
  const auto element           = [](const std::string& key) {
    return "<cofl:value name=\"" + key + "\" type=\"json\">1</cofl:value>";
  };
  const auto check = [&](const Elements& elements, const std::string& before,
                         const std::string& after) {
    const auto accepts = [&](const std::vector<const char*>& names) {
      std::string text = before;
      for (const char* key : names) text += element(key);
      return elements.accepts(text + after);
    };
    CHECK(accepts({}));
    CHECK(accepts({"c", "b"}));
    CHECK(accepts({"a", "c", "b"}));
    CHECK(accepts({"b", "a"}));
    CHECK_FALSE(accepts({"a"}));
    CHECK_FALSE(accepts({"a", "c"}));
  };
  check(Elements("cohere_xml", ('{' + conditions + '}').c_str()), "", "");
  check(Elements("cohere_xml",
                 (R"({"properties": {"o": {"type": "object", )" + conditions + "}}}").c_str()),
        "<cofl:value name=\"o\" type=\"dict\">", "</cofl:value>");
  const Elements one("cohere_xml",
                     R"({"properties": {"a": {}, "b": {}}, "additionalProperties": false,
      "oneOf": [{"required": ["a"]}, {"required": ["b"]}]})");
  CHECK(one.accepts(element("a")));
  CHECK(one.accepts(element("b")));
  CHECK_FALSE(one.accepts(element("a") + element("b")));
  CHECK_FALSE(one.accepts(""));
}

TEST_CASE("ElementValues never write a key without a value, and refuse a required one") {
  for (const char* value : {"false", R"({"enum": []})", R"({"not": {}})",
                            R"({"type": "string", "pattern": "^abc$", "maxLength": 2})"}) {
    CAPTURE(value);
    const std::string properties = R"({"type": "object", "properties": {"a": )" +
                                   std::string(value) +
                                   R"(, "b": {"type": "integer"}}, "additionalProperties": false)";
    const Elements optional("qwen_xml", (properties + '}').c_str());
    CHECK(optional.accepts("<parameter=b>1</parameter>"));
    for (const char* text : {"", "1", "abc", "ab"}) {
      CHECK_FALSE(optional.accepts("<parameter=a>" + std::string(text) + "</parameter>"));
    }
    CHECK(error_of("qwen_xml", (properties + R"(, "required": ["a"]})").c_str()) ==
          "unsatisfiable_schema");
  }
}

TEST_CASE("ElementValues refuse a schema that elements cannot express") {
  CHECK(error_of("qwen_xml", R"({"type": "string"})") == "unsupported_keyword");
  CHECK(error_of("qwen_xml", R"({"properties": {"a>b": {}}})") == "unsupported_name");
  CHECK(error_of("cohere_xml", R"({"properties": {"a>b": {}}})") == "none");
  CHECK(error_of("cohere_xml", R"({"properties": {"a": {"uniqueItems": true}}})") ==
        "unsupported_keyword");
  CHECK(error_of("minimax_m3_xml", R"({"properties": {"a": {}}})") == "unsupported_keyword");
  CHECK(error_of("minimax_m3_xml", R"({"additionalProperties": {"type": "string"}})") ==
        "unsupported_keyword");
  CHECK(error_of("qwen_xml", R"({"properties": {"a": false}, "required": ["a"]})") != "none");
}
