#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <support/catch.hpp>
#include <support/slow_matcher.hpp>
#include <support/slow_validator.hpp>

namespace {

using tooldecode::Errc;
using tooldecode::Error;
using tooldecode::Grammar;
using tooldecode::NodeId;
using tooldecode::SchemaCompiler;
using tooldecode::SchemaOptions;
using tooldecode::grammar::Automaton;
using tooldecode::text::ValueSyntax;
using Json = tooldecode::JsonValue;

// A compiled schema; a schema that no value satisfies accepts nothing.
class Compiled {
 public:
  explicit Compiled(Json schema, SchemaOptions options = {}, bool arguments = false)
      : schema_(std::move(schema)) {
    SchemaCompiler compiler(grammar_, schema_, options);
    try {
      root_ = arguments ? compiler.keyword_arguments(schema_, "#") : compiler.value(schema_, "#");
      automaton_.emplace(grammar_, root_);
    } catch (const Error& error) {
      if (error.code() != Errc::unsatisfiable_schema) throw;
    }
  }
  [[nodiscard]] bool accepts(std::string_view text) const {
    const auto state = after(text);
    return state && automaton_->is_accepting(*state);
  }
  // Whether some text that conforms begins so.
  [[nodiscard]] bool reads(std::string_view text) const { return after(text).has_value(); }
  [[nodiscard]] bool slowly_accepts(std::string_view text) const {
    return automaton_ && tooldecode::slow::matches(grammar_, root_, text);
  }

 private:
  [[nodiscard]] std::optional<Automaton::State> after(std::string_view text) const {
    if (!automaton_) return std::nullopt;
    return automaton_->advance(automaton_->initial(), text);
  }

  Json schema_;
  Grammar grammar_;
  NodeId root_{};
  std::optional<Automaton> automaton_;
};

Compiled json(std::string_view schema, SchemaOptions options = {}) {
  return Compiled(tooldecode::text::parse_json(schema), options);
}

// "code place" of the error of a schema.
std::string error_of(std::string_view schema, bool arguments = false) {
  try {
    const Compiled compiled(tooldecode::text::parse_json(schema), {}, arguments);
    return compiled.accepts("") ? "" : "none";
  } catch (const Error& error) {
    return std::string(name(error.code())) + ' ' + error.where();
  }
}

}  // namespace

TEST_CASE("SchemaCompiler of a partial format writes a part and refuses what needs the rest",
          "[json_schema]") {
  const Compiled patterns = json(R"({"type": "string", "format": "regex", "maxLength": 5})");
  CHECK(patterns.accepts(R"("^a+$")"));
  CHECK_FALSE(patterns.accepts(R"("(a")"));
  CHECK_FALSE(patterns.accepts(R"("aaaaaa")"));
  const Compiled named = json(R"({"type": "object", "propertyNames": {"format": "regex"},
                                  "additionalProperties": {"type": "null"}})");
  CHECK(named.accepts(R"({"^a": null, "b": null})"));
  CHECK_FALSE(named.accepts(R"({"a{": null})"));
  const Compiled typed =
      json(R"({"oneOf": [{"type": "string", "format": "regex"}, {"type": "null"}]})");
  CHECK(typed.accepts(R"("a|b")"));
  CHECK(typed.accepts("null"));
  CHECK(json(R"({"enum": ["a*", 1], "format": "regex"})").accepts(R"("a*")"));
  for (
      const char* schema :
      {R"({"not": {"format": "regex"}})",
       R"({"type": "string", "not": {"not": {"not": {"format": "regex"}}}})",
       R"~({"enum": ["(?<=a)"], "format": "regex"})~",
       R"~({"not": {"enum": ["(?<=a)"], "format": "regex"}})~",
       R"~({"oneOf": [{"type": "string", "format": "regex"}, {"pattern": "^\\(\\?<="}]})~",
       R"({"type": "string", "if": {"format": "regex"}, "then": {"maxLength": 3}})",
       R"({"type": "object", "not": {"propertyNames": {"format": "regex"}}})",
       R"({"type": "object", "propertyNames": {"not": {"format": "regex"}}})",
       R"({"type": "object", "propertyNames": {"format": "regex"}, "properties": {"[": {}}})",
       R"({"type": "object", "not": {"propertyNames": {"anyOf": [{"format": "regex"}, {"pattern": "^x"}]}}})",
       R"({"type": "array", "contains": {"type": "string", "format": "regex"}, "maxContains": 1})"}) {
    INFO(schema);
    CHECK(error_of(schema).starts_with("unsupported_keyword #"));
  }
}

TEST_CASE("SchemaCompiler errors name the code and the place of the keyword", "[json_schema]") {
  CHECK(error_of(R"({"properties":{"a/b~":{"items":{},"uniqueItems":true}}})") ==
        "unsupported_keyword #/properties/a~1b~0/uniqueItems");
  CHECK(error_of(R"({"items":{"not":{"multipleOf":2}}})") == "unsupported_keyword #/items/not");
  CHECK(error_of(R"({"not":{"additionalProperties":{"type":"null"}}})") ==
        "unsupported_keyword #/not");
  CHECK(error_of(R"({"items":{"multipleOf":123456789}})") == "limit_exceeded #/items/multipleOf");
  CHECK(error_of(R"({"allOf":[{"multipleOf":999999937},{"multipleOf":999999929},
                              {"multipleOf":999999893}]})") == "limit_exceeded #/multipleOf");
  CHECK(error_of(R"({"const":5e-324})") == "none");
  CHECK(error_of(R"({"$ref":"other.json"})") == "unsupported_keyword #/$ref");
  CHECK(error_of(R"({"$ref":"#/$defs/a"})") == "malformed_schema #/$ref");
  CHECK(error_of(R"({"type":"str"})") == "malformed_schema #/type");
  CHECK(error_of(R"({"minLength":-1})") == "malformed_schema #/minLength");
  CHECK(error_of(R"({"$schema":"https://example.org/own"})") == "unsupported_keyword #/$schema");
  CHECK(error_of(R"~({"pattern":"("})~") == "malformed_pattern #/pattern");
  CHECK(error_of(R"~({"pattern":"(?<=a)"})~") == "unsupported_pattern #/pattern");
  CHECK(error_of(R"~({"pattern":"^a{2}{3}$"})~") == "malformed_pattern #/pattern");
  CHECK(error_of(R"~({"pattern":"(?P<n>a)"})~") == "malformed_pattern #/pattern");
  const Compiled surrogates = json(R"~({"type":"string","pattern":"^[\\ud800-\\udfff]$"})~"),
                 others     = json(R"~({"type":"string","pattern":"^[^\\ud800-\\udfff]*$"})~");
  CHECK_FALSE(surrogates.accepts("\"-\""));
  CHECK(others.accepts("\"a-b\""));
  CHECK(error_of(R"~({"pattern":"^(.{300}){300}$"})~") == "limit_exceeded #/pattern");
  CHECK(error_of(R"({"properties":[]})") == "malformed_schema #/properties");
  CHECK(error_of(R"({"required":"a"})") == "malformed_schema #/required");
  CHECK(error_of("3") == "malformed_schema #");
  CHECK(error_of(R"({"type":"string","oneOf":["string",{}]})") == "malformed_schema #/oneOf/0");
  CHECK(error_of(R"({"type":"string","anyOf":[{},[]]})") == "malformed_schema #/anyOf/1");
  CHECK(error_of(R"({"x-order":1,"title":3,"description":"not a keyword: not"})") == "none");
}

TEST_CASE("SchemaCompiler counts lengths beside patterns and formats of any size",
          "[json_schema]") {
  const auto judge = [](const std::string& schema, const std::string& good, std::size_t most) {
    INFO(schema);
    const Compiled compiled = json(schema);
    const auto text         = [](std::string some) { return '"' + some + '"'; };
    CHECK(compiled.accepts(text(good + std::string(most - good.size(), 'a'))));
    CHECK_FALSE(compiled.accepts(text(good + std::string(most + 1 - good.size(), 'a'))));
    CHECK_FALSE(compiled.accepts(text(" ")));
  };
  const auto bounded = [](const std::string& what, std::uint32_t max) {
    return R"({"type":"string",)" + what + R"(,"minLength":1,"maxLength":)" + std::to_string(max) +
           '}';
  };
  for (const std::uint32_t max : {300U, 2083U, 50'000U}) {
    judge(bounded(R"("format":"uri")", max), "https://example.org/", max);
    judge(bounded(R"("format":"email")", max), "ada@example.", max);
    judge(bounded(R"~("pattern":"^(?:\\S+\\s+){0,49}\\S+$")~", max), "one two three", max);
  }
  // A `%` needs two more characters, and a local part an address.
  const Compiled uri     = json(bounded(R"("format":"uri")", 300)),
                 email   = json(bounded(R"("format":"email")", 320));
  const std::string path = "\"http://a/" + std::string(289, 'a');
  CHECK(uri.reads(path + "aa"));
  CHECK_FALSE(uri.reads(path + "%"));
  CHECK(uri.reads(path.substr(0, path.size() - 1) + "%4"));
  CHECK(email.reads('"' + std::string(318, 'a')));
  CHECK_FALSE(email.reads('"' + std::string(319, 'a')));
}

TEST_CASE("SchemaCompiler throws unsatisfiable_schema and drops optional parts without a value",
          "[json_schema]") {
  for (const char* schema :
       {"false", R"({"enum":[]})", R"({"type":"string","minLength":3,"maxLength":2})",
        R"({"type":"integer","minimum":0.2,"maximum":0.8})", R"({"type":"string","enum":[1,null]})",
        R"({"type":"object","required":["a"],"properties":{"a":false}})",
        R"({"type":"object","required":["a"],"additionalProperties":false})",
        R"({"type":"object","required":["n"],"properties":{"n":{"$ref":"#"}}})",
        R"({"type":"array","items":false,"minItems":1})",
        R"({"type":"string","pattern":"^a{3}$","maxLength":2})"}) {
    INFO(schema);
    const Json parsed = tooldecode::text::parse_json(schema);
    Grammar grammar;
    SchemaCompiler compiler(grammar, parsed);
    try {
      (void)compiler.value(parsed, "#");
      FAIL("compiled");
    } catch (const Error& error) {
      CHECK(error.code() == Errc::unsatisfiable_schema);
      CHECK(error.where() == "#");
    }
  }
  const Compiled object = json(R"({"type":"object","properties":{"a":false,"b":{"const":1}}})");
  CHECK(object.accepts(R"({"b":1})"));
  CHECK(object.accepts(R"({"c":1})"));
  CHECK_FALSE(object.accepts(R"({"a":1})"));
  CHECK_FALSE(object.accepts(R"({"\u0061":1})"));
}

TEST_CASE("SchemaCompiler compiles recursion and sharing to few nodes and bounds nesting",
          "[json_schema]") {
  const Compiled tree = json(R"({"$ref":"#/$defs/node","$defs":{"node":{"type":"object",
      "properties":{"v":{"type":"integer"},"next":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]}},
      "required":["v","next"],"additionalProperties":false}}})");
  CHECK(tree.accepts(R"({"v":1,"next":{"next":null,"v":-2}})"));
  CHECK_FALSE(tree.accepts(R"({"v":1,"next":{"next":null}})"));
  CHECK(json(R"({"$ref":"#/$defs/a~1b%25","$defs":{"a/b%":{"const":1}}})").accepts("1"));
  // A reference to itself without a value in between has no meaning.
  CHECK(error_of(R"({"$ref":"#"})") == "malformed_schema #");
  CHECK_THROWS_AS(json(R"({"anyOf":[{"$ref":"#"},{"type":"null"}]})"), Error);
  // 2^40 values of one shape in few nodes.
  Json defs  = Json::object();
  defs["s0"] = {{"type", "null"}};
  for (int i = 1; i <= 40; ++i) {
    const Json ref{{"$ref", "#/$defs/s" + std::to_string(i - 1)}};
    defs["s" + std::to_string(i)] = {{"type", "array"}, {"prefixItems", {ref, ref}}};
  }
  const Json doubling{{"$ref", "#/$defs/s40"}, {"$defs", defs}};
  Grammar grammar;
  SchemaCompiler compiler(grammar, doubling);
  (void)compiler.value(doubling, "#");
  CHECK(grammar.size() < 2000);
  // Deep nesting throws and does not overflow the stack.
  std::string deep;
  for (int i = 0; i < 5000; ++i) deep += R"({"items":)";
  deep += "true" + std::string(5000, '}');
  CHECK(error_of(deep).substr(0, 14) == "limit_exceeded");
}

TEST_CASE("SchemaCompiler accepts each property once, in any order unless documented_order is set",
          "[json_schema]") {
  const char* schema = R"({"type":"object","properties":{"b":{"type":"integer"},
      "a":{"type":"boolean"},"c":{"type":"null"}},"required":["b","a"],"additionalProperties":false})";
  const Compiled any = json(schema);
  CHECK(any.accepts(R"({"a":true,"b":1})"));
  CHECK(any.accepts(R"({ "b" : 1 , "c":null,"a" : false })"));
  CHECK_FALSE(any.accepts(R"({"a":true,"b":1,"a":true})"));
  CHECK_FALSE(any.accepts(R"({"a":true})"));
  CHECK_FALSE(any.accepts(R"({"a":true,"b":1,})"));
  const Compiled ordered = json(schema, {.documented_order = true});
  CHECK(ordered.accepts(R"({"b":1,"a":true,"c":null})"));
  CHECK(ordered.accepts(R"({"b":1,"a":true})"));
  CHECK_FALSE(ordered.accepts(R"({"a":true,"b":1})"));
  const Compiled canonical = json(schema, {.whitespace = 0});
  CHECK(canonical.accepts(R"({"b": 1, "a": true})"));
  CHECK_FALSE(canonical.accepts(R"({"b":1,"a":true})"));
  CHECK_FALSE(canonical.accepts(R"({ "b": 1, "a": true})"));
  CHECK(any.accepts("{" + std::string(40, ' ') + R"("a":true,"b":1})"));
  CHECK_FALSE(any.accepts("{" + std::string(41, ' ') + R"("a":true,"b":1})"));
}

TEST_CASE("SchemaCompiler in Python syntax accepts literals and keyword arguments",
          "[json_schema]") {
  const SchemaOptions python{.syntax = ValueSyntax::python};
  const Compiled any = json("true", python);
  for (const char* text : {"None", "True", "[1, 2.5, 1e-09]", "{'a': [], \"b\": {}}", R"('it\'s')",
                           R"("\x41\u00e9\U0001f600")", "'año'"}) {
    INFO(text);
    CHECK(any.accepts(text));
  }
  for (const char* text : {"null", "true", "'a\"", "'\\q'", "(1, 2)", "'a\nb'", "{1: 2}", "nan"}) {
    INFO(text);
    CHECK_FALSE(any.accepts(text));
  }
  const Compiled call(
      tooldecode::text::parse_json(R"({"type":"object","properties":{"a":{"type":"integer"},
      "ab":{"enum":["x's","é"]},"año":{"type":"boolean"}},"required":["a"],
      "additionalProperties":false})"),
      python, true);
  CHECK(call.accepts("a=1"));
  CHECK(call.accepts("ab='é', a = 1"));
  CHECK(call.accepts("ab='\\xe9',a=1"));
  CHECK(call.accepts("ab=\"x's\",a=1,año=True"));
  CHECK(call.accepts(R"(ab='x\'s',a=1)"));
  CHECK_FALSE(call.accepts("ab='é'"));
  CHECK_FALSE(call.accepts("a=1, a=2"));
  CHECK_FALSE(call.accepts("a=1, b=2"));
  CHECK_FALSE(call.accepts("'a'=1"));
  const Compiled open(
      tooldecode::text::parse_json(R"({"type":"object","properties":{"ab":{"type":"integer"}}})"),
      python, true);
  CHECK(open.accepts(""));
  CHECK(open.accepts("a='x', abc=None, ab=3"));
  CHECK_FALSE(open.accepts("ab='x'"));
  CHECK_FALSE(open.accepts("1a=2"));
}

namespace {

// Random schemas over few names, numbers and texts, so that values often meet their bounds.
class RandomSchema {
 public:
  explicit RandomSchema(std::uint32_t seed) : random_(seed) {}

  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
  Json value(int depth) {
    switch (below(depth > 0 ? 8 : 6)) {
      case 0:
        return Json();
      case 1:
        return below(2) == 0;
      case 2:
        return static_cast<int>(below(7)) - 3;
      case 3:
        return (static_cast<int>(below(13)) - 6) / 2.0 + 0.25;
      case 4:
      case 5:
        return text();
      case 6: {
        Json result = Json::array();
        for (std::uint32_t i = below(4); i > 0; --i) result.push_back(value(depth - 1));
        return result;
      }
      default: {
        Json result = Json::object();
        for (std::uint32_t i = below(4); i > 0; --i) result[name()] = value(depth - 1);
        return result;
      }
    }
  }
  Json schema(int depth) {
    if (below(12) == 0) return below(4) != 0;
    Json result = Json::object();
    if (depth > 0 && below(8) == 0) return {{"anyOf", {schema(depth - 1), schema(depth - 1)}}};
    if (depth > 0 && below(12) == 0) return {{"$ref", "#/$defs/d"}};
    if (depth > 0 && below(12) == 0) {
      Json with_type = schema(0);
      if (with_type.is_object()) with_type["type"] = "string";
      return {{"oneOf", {with_type, {{"type", {"integer", "null"}}}}}};
    }
    static const std::vector<const char*> types{"null",   "boolean", "integer", "number",
                                                "string", "array",   "object"};
    if (below(10) == 0) {
      for (std::uint32_t i = 1 + below(3); i > 0; --i) result["enum"].push_back(value(0));
      if (below(2) == 0) result["type"] = types[below(7)];
      return result;
    }
    if (below(4) != 0) {
      result["type"] = types[below(7)];
      if (below(4) == 0) result["type"] = {result["type"], types[below(7)]};
    }
    const auto maybe = [&](const char* keyword, Json content) {
      if (below(3) == 0) result[keyword] = std::move(content);
    };
    maybe("minimum", static_cast<int>(below(4)) - 2);
    maybe("exclusiveMaximum", below(2) == 0 ? Json(2) : Json(1.25));
    maybe("minLength", below(3));
    maybe("maxLength", 1 + below(3));
    static const std::vector<const char*> patterns{"a", "^a", "^[ab]*$", "b$", "^(ab|a)?$", "a.b"};
    maybe("pattern", patterns[below(6)]);
    maybe("minItems", below(3));
    maybe("maxItems", 1 + below(3));
    const auto rarely = [&](const char* keyword, Json content) {
      if (below(8) == 0) result[keyword] = std::move(content);
    };
    static const std::vector<Json> divisors{2, 0.5, 0.25, 3};
    rarely("multipleOf", divisors[below(4)]);
    rarely("minProperties", below(3));
    rarely("maxProperties", below(4));
    rarely("dependentRequired", {{name(), Json::array({name()})}});
    if (depth > 0) {
      rarely("allOf", Json::array({schema(depth - 1), schema(0)}));
      rarely("oneOf", Json::array({schema(0), schema(depth - 1)}));
      rarely("anyOf", Json::array({schema(0), schema(depth - 1)}));
      rarely("not", schema(depth - 1));
      if (below(8) == 0) {
        result["if"]   = schema(depth - 1);
        result["then"] = schema(0);
        if (below(2) == 0) result["else"] = schema(0);
      }
      rarely("dependentSchemas", {{name(), schema(0)}});
      rarely("propertyNames", schema(0));
      rarely("patternProperties", {{patterns[below(6)], schema(0)}, {"c|^b$", schema(0)}});
      if (below(8) == 0) {
        result["contains"] = schema(0);
        if (below(2) == 0) result["minContains"] = below(3);
        if (below(2) == 0) result["maxContains"] = below(3);
      }
      rarely("uniqueItems", true);
      rarely("const", value(1));
      maybe("items", schema(depth - 1));
      maybe("prefixItems", Json::array({schema(depth - 1), schema(depth - 1)}));
      Json properties = Json::object();
      for (std::uint32_t i = below(3); i > 0; --i) properties[name()] = schema(depth - 1);
      maybe("properties", properties);
      maybe("additionalProperties", schema(depth - 1));
    }
    maybe("required", Json::array({name()}));
    return result;
  }

 private:
  std::string name() { return std::string(1, static_cast<char>('a' + below(3))); }
  std::string text() {
    std::string result;
    for (std::uint32_t i = below(5); i > 0; --i) {
      static const std::vector<const char*> characters{"a", "a", "b", "b", "é", "\"", "\n"};
      result += characters[below(7)];
    }
    return result;
  }

  std::mt19937 random_;
};

}  // namespace

TEST_CASE("SchemaCompiler of random schemas accepts the values that a validator accepts",
          "[json_schema]") {
  int compiled = 0, valid = 0, invalid = 0;
  for (std::uint32_t seed = 0; seed < 1500; ++seed) {
    RandomSchema random(seed);
    Json schema = random.schema(2);
    if (schema.is_object()) {
      Json shared = random.schema(0);
      if (random.below(2) == 0) shared = {{"items", {{"$ref", "#/$defs/d"}}}, {"maxItems", 2}};
      schema["$defs"] = {{"d", shared}};
    }
    std::optional<Compiled> grammar;
    try {
      grammar.emplace(schema);
    } catch (const Error& error) {
      INFO("seed " << seed << ": " << schema << ": " << error.what());
      CHECK(error.code() == Errc::unsupported_keyword);
      continue;
    }
    ++compiled;
    for (int i = 0; i < 40; ++i) {
      const Json value       = random.value(2);
      const std::string text = value.text();
      const bool conforms    = tooldecode::slow::conforms(value, schema, schema);
      ++(conforms ? valid : invalid);
      if (grammar->accepts(text) == conforms) continue;
      FAIL_CHECK("seed " << seed << ": " << schema << " and " << text << ": conforms " << conforms);
    }
  }
  CHECK(compiled > 1300);
  CHECK(valid > 10'000);
  CHECK(invalid > 10'000);
}

TEST_CASE("SchemaCompiler of any JSON value returns a grammar or throws Error", "[json_schema]") {
  static const std::vector<const char*> keywords{"type",
                                                 "enum",
                                                 "const",
                                                 "properties",
                                                 "required",
                                                 "additionalProperties",
                                                 "items",
                                                 "prefixItems",
                                                 "additionalItems",
                                                 "minItems",
                                                 "maxItems",
                                                 "minLength",
                                                 "maxLength",
                                                 "minimum",
                                                 "maximum",
                                                 "exclusiveMinimum",
                                                 "exclusiveMaximum",
                                                 "anyOf",
                                                 "oneOf",
                                                 "$ref",
                                                 "$defs",
                                                 "pattern",
                                                 "title",
                                                 "format",
                                                 "$id"};
  static const std::vector<const char*> texts{"#",      "#/$defs/a", "string", "object", "(", "[a",
                                              "a{2,1}", "\\",        "#/a~2",  "a",      "",  "#%"};
  std::map<std::string, int> outcomes;
  for (std::uint32_t seed = 0; seed < 4000; ++seed) {
    std::mt19937 random(seed);
    const auto make = [&](const auto& self, int depth) -> Json {
      switch (random() % (depth > 0 ? 10 : 6)) {
        case 0:
          return Json();
        case 1:
          return random() % 2 == 0;
        case 2:
          return static_cast<int>(random() % 5) - 1;
        case 3:
          return 1e300 * (static_cast<double>(random() % 5) - 2);
        case 4:
          return 0.5;
        case 5:
          return texts[random() % texts.size()];
        case 6: {
          Json result = Json::array();
          for (auto i = random() % 4; i > 0; --i) result.push_back(self(self, depth - 1));
          return result;
        }
        default: {
          Json result = Json::object();
          for (auto i = random() % 4; i > 0; --i) {
            result[keywords[random() % keywords.size()]] = self(self, depth - 1);
          }
          return result;
        }
      }
    };
    const Json schema = make(make, 4);
    INFO("seed " << seed << ": " << schema);
    try {
      const Compiled compiled(
          schema, {.syntax = seed % 2 ? ValueSyntax::json : ValueSyntax::python}, seed % 3 == 0);
      (void)compiled.accepts("[1, {\"a\": 2}]");
      ++outcomes["compiled"];
    } catch (const Error& error) {
      ++outcomes[std::string(name(error.code()))];
      CHECK(error.where().substr(0, 1) != "c");  // a pointer, never a bare character index
    }
  }
  CHECK(outcomes["compiled"] > 300);
  CHECK(outcomes["malformed_schema"] > 300);
}

TEST_CASE("SchemaCompiler of an array with minItems above maxItems accepts nothing",
          "[json_schema]") {
  CHECK_FALSE(json(R"({"type":"array","minItems":1,"maxItems":0})").accepts("[]"));
}

TEST_CASE("SchemaCompiler counts many items at each of many levels without a deep call stack",
          "[json_schema]") {
  Json schema = Json::object();
  for (int level = 0; level < 60; ++level) {
    Json prefix = Json::array();
    for (int i = 0; i < 949; ++i) prefix.push_back(true);
    prefix.push_back(std::move(schema));
    schema                = Json::object();
    schema["prefixItems"] = std::move(prefix);
    schema["contains"]    = Json{{"type", "null"}};
  }
  const Compiled compiled(std::move(schema));
  CHECK(compiled.accepts("[1, null]"));
  CHECK_FALSE(compiled.accepts("[1, 2]"));
}

TEST_CASE("SchemaCompiler tells alternatives apart that are made of what is being read",
          "[json_schema]") {
  const std::string self = R"({"anyOf": [{"$ref": "#/$defs/e"}, {"type": "null"}]})";
  // Properties are compared in their order: the recursive one comes first or last.
  for (const bool is_first : {true, false}) {
    const auto branch = [&](const std::string& op) {
      const std::string left = R"("left": )" + self, name = R"("op": {"const": ")" + op + "\"}";
      return R"({"type": "object", "required": ["left", "op"], "properties": {)" +
             (is_first ? left + ", " + name : name + ", " + left) + "}}";
    };
    const std::string both = '[' + branch("+") + ", " + branch("-") + ']';
    for (const char* keyword : {"oneOf", "anyOf"}) {
      const Compiled compiled = json(R"({"$ref": "#/$defs/e", "$defs": {"e": {")" +
                                     std::string(keyword) + "\": " + both + "}}}");
      CAPTURE(is_first, keyword);
      CHECK(compiled.accepts(R"({"left": null, "op": "+"})"));
      CHECK(compiled.accepts(R"({"left": {"left": null, "op": "-"}, "op": "+"})"));
      CHECK_FALSE(compiled.accepts(R"({"left": {"left": 1, "op": "-"}, "op": "+"})"));
      CHECK_FALSE(compiled.accepts(R"({"left": null, "op": "*"})"));
    }
  }
}

TEST_CASE("SchemaCompiler subtracts from objects that contain themselves", "[json_schema]") {
  const std::string next =
      R"("type": "object", "required": ["next"],
         "properties": {"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}, {"type": "integer"}]}})";
  const std::string one = R"({"required": ["next"], "properties": {"next": {"const": 1}}})";
  for (const std::string& rule :
       {R"("not": )" + one, R"("if": )" + one + R"(, "then": false, "else": true)"}) {
    const Compiled compiled = json('{' + next + ", " + rule + '}');
    CAPTURE(rule);
    CHECK(compiled.accepts(R"({"next": null})"));
    CHECK(compiled.accepts(R"({"next": 2})"));
    CHECK(compiled.accepts(R"({"next": {"next": {"next": null}}})"));
    CHECK_FALSE(compiled.accepts(R"({"next": 1})"));
    CHECK_FALSE(compiled.accepts(R"({"next": {"next": 1}})"));
  }
}

TEST_CASE("SchemaCompiler refuses names where dependentSchemas needs schemas", "[json_schema]") {
  CHECK(error_of(R"({"dependentSchemas": {"a": ["b"]}})") ==
        "malformed_schema #/dependentSchemas/a");
  CHECK(error_of(R"({"dependentSchemas": {"a": "b"}})") == "malformed_schema #/dependentSchemas/a");
  CHECK_FALSE(json(R"({"$schema": "http://json-schema.org/draft-07/schema#",
                       "dependencies": {"a": ["b"]}})")
                  .accepts(R"({"a": 1})"));
}

TEST_CASE("SchemaCompiler of random recursive alternatives accepts what a validator accepts",
          "[json_schema]") {
  std::mt19937 random(7);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  const Json self{{"$ref", "#/$defs/e"}};
  const auto leaf = [&]() -> Json {
    if (below(2) == 0) return {{"const", below(2) == 0 ? Json(1) : Json("x")}};
    return {{"type", below(2) == 0 ? "null" : "integer"}};
  };
  const auto value_schema = [&]() -> Json {
    if (below(2) == 0) return leaf();
    if (below(4) == 0) return self;
    return {{below(2) == 0 ? "anyOf" : "oneOf", Json::array({self, leaf()})}};
  };
  const auto object = [&] {
    Json one{{"type", "object"}, {"properties", Json::object()}, {"required", Json::array({})}};
    for (const char* name : {"a", "b"}) {
      if (below(4) == 0) continue;
      one["properties"][name] = value_schema();
      if (below(3) != 0) one["required"].push_back(name);
    }
    return one;
  };
  const auto value = [&](const auto& inner, int depth) -> Json {
    const std::uint32_t kind = below(depth == 0 ? 3 : 9);
    if (kind == 0) return Json();
    if (kind == 1) return below(3);
    if (kind == 2) return "x";
    Json made = Json::object();
    for (const char* name : {"a", "b"}) {
      if (below(5) != 0) made[name] = inner(inner, depth - 1);
    }
    return made;
  };
  int compiled = 0, valid = 0;
  for (int round = 0; round < 150; ++round) {
    Json e{{below(3) == 0 ? "anyOf" : "oneOf", Json::array({object(), object()})}};
    if (below(3) == 0) e = object();
    if (below(3) == 0) e["not"] = object();
    if (below(4) == 0) e["if"] = object(), e["then"] = object();
    const Json schema{{"$ref", "#/$defs/e"}, {"$defs", {{"e", e}}}};
    CAPTURE(round, schema.text());
    std::optional<Compiled> grammar;
    try {
      grammar.emplace(schema, SchemaOptions{.limits = {.steps = 1'000'000}});
    } catch (const Error& error) {
      CAPTURE(error.what());
      CHECK((error.code() == Errc::unsupported_keyword || error.code() == Errc::limit_exceeded));
      continue;
    }
    ++compiled;
    for (int i = 0; i < 40; ++i) {
      const Json one      = value(value, 3);
      const bool conforms = tooldecode::slow::conforms(one, schema, schema);
      valid += conforms ? 1 : 0;
      if (grammar->accepts(one.text()) == conforms) continue;
      FAIL_CHECK(one.text() << ": conforms " << conforms);
    }
  }
  CHECK(compiled > 110);
  CHECK(valid > 500);
}

TEST_CASE("SchemaCompiler of very many first items that do not repeat refuses them by name",
          "[json_schema]") {
  const auto schema = [](int items) {
    Json prefix = Json::array();
    for (int i = 0; i < items; ++i) prefix.push_back(Json{{"const", i}});
    return Json{
        {"type", "array"}, {"prefixItems", prefix}, {"items", false}, {"uniqueItems", true}};
  };
  const Compiled some(schema(300));
  CHECK(some.accepts("[0, 1, 2]"));
  CHECK_FALSE(some.accepts("[0, 0]"));
  CHECK(error_of(schema(9'000).text()) == "unsupported_keyword #/uniqueItems");
}
