#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <support/byte_vocabulary.hpp>
#include <support/catch.hpp>
#include <support/finite_language.hpp>

using namespace tooldecode;

namespace {

using Json = tooldecode::JsonValue;

// A closed object of members that have few values each, and all of its texts in any order.
struct Sample {
  Json schema;
  slow::Language language;
};

Sample sample(unsigned seed) {
  std::mt19937 random(seed);
  const std::vector<std::pair<Json, std::vector<std::string>>> kinds{
      {{{"type", "boolean"}}, {"true", "false"}},
      {{{"enum", {"x", 12, nullptr}}, {"type", {"integer", "string", "null"}}},
       {"\"x\"", "12", "null"}},
      {{{"type", "array"}, {"items", {{"enum", {true}}}}, {"maxItems", 2}},
       {"[]", "[true]", "[true, true]"}},
      {{{"enum", {5, 105, 7}}, {"type", "integer"}}, {"5", "105", "7"}}};
  struct Member {
    std::string key;
    std::vector<std::string> values;
    bool required;
  };
  std::vector<Member> members;
  Json properties = Json::object(), required = Json::array();
  for (const char* key : {"a", "ab", "c"}) {
    const auto& [schema, values] = kinds[random() % kinds.size()];
    properties[key]              = schema;
    members.push_back({key, values, random() % 2 == 0});
    if (members.back().required) required.push_back(key);
  }
  // By draft 4, an integer is written in one way.
  Sample result{{{"$schema", "http://json-schema.org/draft-04/schema#"},
                 {"type", "object"},
                 {"properties", properties},
                 {"required", required},
                 {"additionalProperties", false}},
                {}};
  const auto write = [&](auto&& self, std::vector<std::size_t> used,
                         const std::string& text) -> void {
    bool complete = true;
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (std::find(used.begin(), used.end(), i) != used.end()) continue;
      if (members[i].required) complete = false;
      auto more = used;
      more.push_back(i);
      for (const std::string& value : members[i].values) {
        self(self, more, text + (used.empty() ? "" : ", ") + '"' + members[i].key + "\": " + value);
      }
    }
    if (complete) result.language.insert(text + '}');
  };
  write(write, {}, "{");
  return result;
}

void check_refused(const char* schema, Errc code, const std::string& where) {
  INFO(schema);
  try {
    const auto constraint = Constraint(slow::pieces_of({"a"}, 1), Grammar::json_schema(schema));
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.code() == code);
    CHECK(error.where() == where);
  }
}

}  // namespace

TEST_CASE("Constraint over a JSON Schema has the masks of all its values") {
  std::size_t states = 0, texts = 0;
  for (unsigned seed = 1; seed <= 8; ++seed) {
    const Sample one = sample(seed);
    INFO("schema " << one.schema);
    const Constraint constraint(slow::pieces_of(one.language, seed),
                                Grammar::json_schema(one.schema, {.whitespace = 0}));
    // Keys have further spellings, by escapes, which the list lacks.
    states += slow::check_masks(constraint, one.language, seed, 20, '\\');
    texts += one.language.size();
  }
  CHECK(states > 500);
  CHECK(texts > 200);
}

TEST_CASE("Constraint over a JSON Schema accepts one value and nothing around it") {
  const VocabularyIndex cache(slow::pieces_of({"{}"}, 1));
  const auto constraint = Constraint(
      cache,
      Grammar::json_schema(
          R"({"properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["b"]})"));
  for (const char* text : {R"({"a":"x","b":1})", R"({ "b" : 1, "a" : "é\n" })", "3", "[]",
                           R"({"b":-7,"other":{"c":[null]}})", "{\n  \"b\": 1\n}"}) {
    INFO(text);
    CHECK(slow::accepts(constraint, text));
  }
  for (const char* text : {"", " {\"b\":1}", "{\"b\":1} ", "{}", R"({"b":1,"b":2})", R"({"b":"1"})",
                           R"({"b":1)", R"({"b":1}{"b":1})", "nul"}) {
    INFO(text);
    CHECK_FALSE(slow::accepts(constraint, text));
  }
}

TEST_CASE(
    "Grammar::json_schema with documented_order and no whitespace fixes key order and spacing") {
  const VocabularyIndex cache(slow::pieces_of({"{}"}, 1));
  const Json schema = {{"type", "object"},
                       {"properties", {{"a", {{"const", 1}}}, {"b", {{"const", 2}}}}},
                       {"additionalProperties", false}};
  const Constraint plain(cache, Grammar::json_schema(schema));
  const Constraint fixed(cache,
                         Grammar::json_schema(schema, {.documented_order = true, .whitespace = 0}));
  CHECK(slow::accepts(plain, R"({"b":2,"a":1})"));
  CHECK_FALSE(slow::accepts(fixed, R"({"b": 2, "a": 1})"));
  CHECK(slow::accepts(fixed, R"({"a": 1, "b": 2})"));
  CHECK_FALSE(slow::accepts(fixed, R"({"a":1, "b": 2})"));
}

TEST_CASE("Constraint over keys of a pattern never asks for more keys than there are") {
  struct Case {
    const char* schema;
    std::vector<std::string> keys;
    std::size_t min;
    const char* required;
  };
  const Case cases[] = {
      {R"({"patternProperties": {"^[ab]$": {"const": true}, "^[bc]$": {"enum": [true, 1]}},
           "properties": {"c": {"const": true}}, "minProperties": 3)",
       {"a", "b", "c"},
       3,
       ""},
      {R"({"patternProperties": {"^[ab]$": {"const": true}}, "minProperties": 3,
           "properties": {"a": true, "c": {"const": true}})",
       {"a", "b", "c"},
       3,
       ""},
      {R"({"propertyNames": {"pattern": "^(a|b|cd)$"}, "additionalProperties": {"const": true},
           "minProperties": 3, "required": ["b"])",
       {"a", "b", "cd"},
       3,
       "b"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.schema);
    slow::Language language;
    const auto write = [&](auto&& self, std::vector<std::string> used) -> void {
      const auto has = [&](const std::string& key) {
        return std::ranges::find(used, key) != used.end();
      };
      if (used.size() >= one.min && (*one.required == 0 || has(one.required))) {
        std::string text;
        for (const std::string& key : used)
          text += (text.empty() ? "{\"" : ", \"") + key + "\": true";
        language.insert(text + '}');
      }
      for (const std::string& key : one.keys) {
        if (has(key)) continue;
        used.push_back(key);
        self(self, used);
        used.pop_back();
      }
    };
    write(write, {});
    const std::string closed = std::string(one.schema).find("\"additional") == std::string::npos
                                   ? R"(, "additionalProperties": false})"
                                   : "}";
    const Json schema        = text::parse_json(
        std::string(one.schema) + closed.substr(0, closed.size() - 1) + R"(, "type": "object"})");
    const Vocabulary vocabulary = slow::pieces_of(language, 5);
    const Constraint constraint(vocabulary, Grammar::json_schema(schema, {.whitespace = 0}));
    // Keys have further spellings, by escapes, which the list lacks.
    slow::check_masks(constraint, language, 7, 20, '\\');
  }
  for (const char* schema :
       {R"({"patternProperties": {"^[ab]$": true}, "additionalProperties": false,
            "minProperties": 3, "type": "object"})",
        R"({"propertyNames": {"pattern": "^[0-9]$"}, "minProperties": 11, "type": "object"})",
        R"({"patternProperties": {"^[ab]$": true}, "additionalProperties": false,
            "minProperties": 4294967295, "type": "object"})"}) {
    check_refused(schema, Errc::unsatisfiable_schema, "#");
  }
  check_refused(R"({"propertyNames": {"pattern": "^[0-9]{4}$"}, "minProperties": 11000,
                    "type": "object"})",
                Errc::unsupported_keyword, "#/minProperties");
}

TEST_CASE("Grammar::json_schema refuses what it cannot enforce and gives its JSON pointer") {
  check_refused(R"({"properties":{"a":{"items":{},"uniqueItems":true}}})",
                Errc::unsupported_keyword, "#/properties/a/uniqueItems");
  check_refused(R"({"items":{"type":"thing"}})", Errc::malformed_schema, "#/items/type");
  check_refused(R"({"type":"string","pattern":"("})", Errc::malformed_pattern, "#/pattern");
  check_refused("false", Errc::unsatisfiable_schema, "#");
  check_refused("[]", Errc::malformed_schema, "#");
  check_refused("{\"a\" 1}", Errc::malformed_json, "byte 5");
}

TEST_CASE("Grammar::json_schema compares numbers exactly, whatever their size") {
  const VocabularyIndex cache(slow::pieces_of({"{}"}, 1));
  struct Row {
    const char* schema;
    std::vector<const char*> accepted, refused;
  };
  const Row rows[] = {
      {R"({"const": 18446744073709551617})",
       {"18446744073709551617", "18446744073709551617.0", "1.8446744073709551617e19"},
       {"18446744073709552000", "18446744073709551616", "18446744073709551618"}},
      {R"({"type": "integer", "minimum": 18446744073709551617})",
       {"18446744073709551617", "18446744073709551618", "2e19"},
       {"18446744073709551616", "18446744073709551615", "1e19"}},
      {R"({"maximum": 9223372036854775809.5, "minimum": 9223372036854775809})",
       {"9223372036854775809", "9223372036854775809.5", "9223372036854775809.25"},
       {"9223372036854775808", "9223372036854775810", "9.223372036854776e18"}},
      {R"({"enum": [5e-324, -0.1000000000000000055, 123456789012345678901234567890]})",
       {"5e-324", "5.0E-324", "-0.1000000000000000055", "123456789012345678901234567890"},
       {"0", "-0.1", "1e-323", "123456789012345680000000000000"}},
      {R"({"properties": {"a": {"const": 1e-7}}})",
       {R"({"a": 1e-7})", R"({"a": 0.0000001})", R"({"a": 1E-07})"},
       {R"({"a": 1e-8})", R"({"a": 0})"}},
      {R"({"const": 1.7976931348623157e+308})", {"1.7976931348623157e+308"}, {"1.8e308"}},
      {R"({"type": "array", "items": {"enum": [18446744073709551617, 2]}, "uniqueItems": true})",
       {"[18446744073709551617, 2]", "[]"},
       {"[18446744073709551617, 18446744073709551617]", "[18446744073709552000]"}},
  };
  for (const Row& row : rows) {
    const auto constraint =
        Constraint(cache, Grammar::json_schema(row.schema, {.every_spelling = true}));
    INFO(row.schema);
    for (const char* text : row.accepted) {
      INFO(text);
      CHECK(slow::accepts(constraint, text));
    }
    for (const char* text : row.refused) {
      INFO(text);
      CHECK_FALSE(slow::accepts(constraint, text));
    }
  }
  // A JsonValue holds only a double; the grammar has the shortest number that reads as it.
  const Constraint value(
      cache,
      Grammar::json_schema(tooldecode::text::parse_json(R"({"const": 18446744073709551617})"),
                           {.every_spelling = true}));
  CHECK(slow::accepts(value, "18446744073709552000"));
  CHECK(slow::accepts(value, "1.8446744073709552e+19"));
  check_refused(R"({"const": [1e-5000]})", Errc::limit_exceeded, "#/const");
  check_refused(R"({"maximum": 1e-5000})", Errc::limit_exceeded, "#/maximum");
  check_refused(R"({"maximum": 1e5000})", Errc::malformed_json, "byte 12");
}

TEST_CASE("Grammar::json_schema refuses 3.0 as an integer under draft 4 and accepts it later") {
  const VocabularyIndex cache(slow::pieces_of({"{}"}, 1));
  const auto with = [&](const std::string& draft, const std::string& schema) {
    return Constraint(cache, Grammar::json_schema(R"({"$schema": "http://json-schema.org/)" +
                                                      draft + R"(/schema#", )" + schema + '}',
                                                  {.every_spelling = true}));
  };
  for (const char* text : {"3", "-0", "12345678901234567890"}) {
    CHECK(slow::accepts(with("draft-04", R"("type": "integer")"), text));
    CHECK(slow::accepts(with("draft-06", R"("type": "integer")"), text));
  }
  for (const char* text : {"3.0", "3e0", "1e3", "1.5e1", "-0.0"}) {
    INFO(text);
    CHECK_FALSE(slow::accepts(with("draft-04", R"("type": "integer")"), text));
    CHECK_FALSE(slow::accepts(with("draft-04", R"("type": "integer", "minimum": -9)"), text));
    CHECK(slow::accepts(with("draft-04", R"("type": "number")"), text));
    CHECK(slow::accepts(with("draft-04", R"("type": "number", "not": {"type": "integer"})"), text));
    CHECK(slow::accepts(with("draft-06", R"("type": "integer")"), text));
  }
  CHECK(slow::accepts(with("draft-04", R"("enum": [3])"), "3.0"));
  CHECK_FALSE(slow::accepts(with("draft-04", R"("enum": [3], "type": "integer")"), "3.0"));
}

TEST_CASE(
    "Grammar::json_schema writes integers in digits, and with every_spelling in all spellings") {
  const VocabularyIndex cache(test::byte_vocabulary());
  for (const char* schema :
       {R"({"type": "integer"})", R"({"type": "integer", "minimum": 2})",
        R"({"type": "integer", "multipleOf": 5})", R"({"const": 35})", R"({"enum": ["a", 35]})"}) {
    INFO(schema);
    const auto written = Constraint(cache, Grammar::json_schema(schema));
    const auto judged  = Constraint(cache, Grammar::json_schema(schema, {.every_spelling = true}));
    CHECK(slow::accepts(written, "35"));
    CHECK(slow::accepts(judged, "35"));
    for (const char* text : {"35.0", "35.000", "3.5e1", "3.5E+0001", "35e0", "35e-000000"}) {
      INFO(text);
      CHECK_FALSE(slow::accepts(written, text));
      CHECK(slow::accepts(judged, text));
    }
    for (const char* text : {"3.5", "35.5", "3.55e1", "1.5", "35e"}) {
      CHECK_FALSE(slow::accepts(written, text));
      CHECK_FALSE(slow::accepts(judged, text));
    }
  }
  // Numbers keep their spellings, and an integer that has no room for its digits has an exponent.
  const auto number = Constraint(cache, Grammar::json_schema(R"({"type": "number"})"));
  for (const char* text : {"35", "35.0", "3.5e1"}) CHECK(slow::accepts(number, text));
  const auto large =
      Constraint(cache, Grammar::json_schema(R"({"type": "integer", "minimum": 1e250})"));
  CHECK(slow::accepts(large, "1e251"));
}

TEST_CASE("Grammar::json_schema with every_spelling accepts leading zeros in an exponent") {
  const VocabularyIndex cache(test::byte_vocabulary());
  const std::string zeros(50, '0');
  for (const char* schema :
       {R"({"type": "number"})", R"({"minimum": 0, "maximum": 1})", R"({"const": 0.0000105})"}) {
    INFO(schema);
    const auto judged = Constraint(cache, Grammar::json_schema(schema, {.every_spelling = true}));
    for (const char* text : {"1.05e-5", "1.05E-00005"}) CHECK(slow::accepts(judged, text));
    CHECK(slow::accepts(judged, "1.05e-" + zeros + '5'));
    for (const char* text : {"1.05e-", "1.05e-0005000"}) {
      CHECK_FALSE(slow::accepts(judged, text));
    }
    CHECK_FALSE(slow::accepts(Constraint(cache, Grammar::json_schema(schema)), "1.05e-00005"));
  }
}

TEST_CASE("Constraint over a numeric JSON Schema can end soon after any run of digits") {
  const VocabularyIndex cache(test::byte_vocabulary());
  for (const char* schema :
       {R"({"type": "number", "not": {"type": "integer"}})",
        R"({"minimum": 1, "type": "integer", "multipleOf": 3})",
        R"({"type": "integer", "multipleOf": 1000})", R"({"multipleOf": 7})",
        R"({"exclusiveMaximum": -1e200, "type": "number"})", R"({"minimum": 1e250})",
        R"({"type": "integer"})", R"({"multipleOf": 0.01, "maximum": 5})"}) {
    const auto constraint = Constraint(cache, Grammar::json_schema(schema));
    for (std::uint32_t seed = 0; seed < 12; ++seed) {
      std::mt19937 random(seed);
      INFO(schema << ", seed " << seed);
      auto state = constraint.initial();
      std::string text;
      for (int i = 0; i < 500; ++i) {
        TokenMask mask(constraint.vocabulary_size());
        constraint.fill_mask(state, mask.words());
        REQUIRE(mask.count() > 0);
        // Digits as long as there are some, the last one or any.
        std::string digits;
        for (const char digit : std::string("0123456789")) {
          if (constraint.advance_bytes(state, {&digit, 1})) digits += digit;
        }
        if (digits.empty() && i > 0) break;
        const char sign = '-';
        if (digits.empty()) digits = sign;
        text += seed == 0 ? digits.back() : digits[random() % digits.size()];
        state = *constraint.advance_bytes(state, {&text.back(), 1});
      }
      // No more digits, or far too many places: some ending is near.
      const auto ends = [&](auto&& self, auto from, int more) -> bool {
        if (constraint.is_accepting(from)) return true;
        for (const char c : std::string("e.50123469-+78")) {
          const auto next = constraint.advance_bytes(from, {&c, 1});
          if (more > 0 && next && self(self, *next, more - 1)) return true;
        }
        return false;
      };
      CHECK(ends(ends, state, 5));
    }
  }
}

TEST_CASE("Grammar::json_schema with close_objects closes each of many variants without a tag") {
  for (const int count : {2, 4, 8, 20}) {
    for (const bool requires_both : {false, true}) {
      CAPTURE(count, requires_both);
      std::string variants;
      for (int i = 0; i < count; ++i) {
        const std::string n = std::to_string(i);
        variants += std::string(i == 0 ? "" : ", ") + R"({"type": "object", "properties": {"p)" +
                    n + R"(": {"type": "integer"}, "q)" + n +
                    R"(": {"type": "string"}}, "required": ["p)" + n + '"' +
                    (requires_both ? ", \"q" + n + '"' : "") + "]}";
      }
      const Json schema = text::parse_json("{\"oneOf\": [" + variants + "]}");
      const Constraint closed(test::byte_vocabulary(),
                              Grammar::json_schema(schema, {.rules = {.close_objects = true}}));
      const auto accepts = [&](std::string_view text) {
        const auto state = closed.advance_bytes(closed.initial(), text);
        return state && closed.is_accepting(*state);
      };
      CHECK(accepts(R"({"p1": 5, "q1": "a"})"));
      CHECK(accepts(R"({"p0": 5})") != requires_both);
      CHECK_FALSE(accepts(R"({"p1": 5, "q1": "a", "p0": "b"})"));
      CHECK_FALSE(accepts(R"({"p1": 5, "q1": "a", "q0": "b"})"));
      CHECK_FALSE(accepts(R"({"p1": 5, "q1": "a", "p0": 1, "q0": "b"})"));
      CHECK_FALSE(accepts(R"({"q1": "a"})"));
    }
  }
}

TEST_CASE("Grammar::json_schema with close_objects closes each of many variants with a tag") {
  const auto variant = [](const std::string& tag, int i, const std::string& own) {
    const std::string n = std::to_string(i);
    return R"({"type": "object", "properties": {")" + tag + R"(": {"const": "k)" + n + R"("}, ")" +
           own + n + R"(": {"type": "integer"}}, "required": [")" + tag + "\"]}";
  };
  const auto variants = [&](const std::string& tag, int count, const std::string& own) {
    std::string all;
    for (int i = 0; i < count; ++i) all += (i == 0 ? "" : ", ") + variant(tag, i, own);
    return all;
  };
  const auto check = [](const std::string& schema, std::string_view accepted,
                        std::string_view rejected) {
    CAPTURE(schema.substr(0, 80));
    const Constraint closed(test::byte_vocabulary(),
                            Grammar::json_schema(tooldecode::text::parse_json(schema),
                                                 {.rules = {.close_objects = true}}));
    CHECK(closed.advance_bytes(closed.initial(), accepted));
    CHECK_FALSE(closed.advance_bytes(closed.initial(), rejected));
  };
  for (const int count : {2, 32, 33, 200}) {
    for (const char* any : {"anyOf", "oneOf"}) {
      CAPTURE(count, any);
      check("{\"" + std::string(any) + "\": [" + variants("k", count, "p") + "]}",
            R"({"k": "k1", "p1": 5})", R"({"k": "k1", "p0")");
    }
  }
  check(R"({"allOf": [{"oneOf": [)" + variants("k", 7, "p") + R"(]}, {"oneOf": [)" +
            variants("m", 7, "q") + "]}]}",
        R"({"k": "k1", "m": "k2", "p1": 5, "q2": 5})", R"({"k": "k1", "m": "k2", "q1")");
}

TEST_CASE(
    "Grammar::json_schema with close_objects accepts only the keys that the schema describes") {
  struct Row {
    std::string schema;
    std::vector<std::string> accepted, rejected;
  };
  const std::string names     = R"("$defs": {"A": {"properties": {"a": {"type": "integer"}}}})";
  const std::vector<Row> rows = {
      {R"({"properties": {"a": {}}, "required": ["b"]})",
       {R"({"b": 1})", R"({"a": 1, "b": 2})"},
       {R"({"a": 1})", R"({"b": 1, "c": 1})"}},
      {R"({"type": "object"})", {R"({"a": 1})"}, {}},
      {R"({"type": "object", "minProperties": 1})", {R"({"a": 1})"}, {"{}"}},
      {R"({"properties": {"a": {}}, "minProperties": 2})", {R"({"a": 1, "b": 1})"}, {"{}"}},
      {R"({"properties": {"a": {}}, "patternProperties": {"^x": {}}})",
       {R"({"a": 1, "xy": 1})"},
       {R"({"y": 1})"}},
      // Keys described in parts, also inside members.
      {R"({"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]})",
       {R"({"a": 1, "b": 1})"},
       {R"({"c": 1})"}},
      {R"({"allOf": [{"properties": {"o": {"properties": {"a": {}}}}},
           {"properties": {"o": {"properties": {"b": {}}}}}]})",
       {R"({"o": {"a": 1, "b": 1}})"},
       {R"({"o": {"c": 1}})", R"({"p": 1})"}},
      {R"({"properties": {"c": {}}, "$ref": "#/$defs/A", )" + names + "}",
       {R"({"a": 1, "c": 1})"},
       {R"({"b": 1})", R"({"a": "x"})"}},
      {R"({"properties": {"x": {"properties": {"a": {}}}, "y": {"allOf": [
           {"$ref": "#/properties/x"}, {"properties": {"b": {}}}]}}})",
       {R"({"y": {"a": 1, "b": 1}})", R"({"x": {"a": 1}})"},
       {R"({"x": {"b": 1}})", R"({"y": {"c": 1}})"}},
      // The alternatives that hold determine the keys.
      {R"({"oneOf": [{"properties": {"k": {"const": 1}, "a": {}}, "required": ["k"]},
           {"properties": {"k": {"const": 2}, "b": {}}, "required": ["k"]}]})",
       {R"({"k": 1, "a": 1})", R"({"k": 2, "b": 1})"},
       {R"({"k": 1, "b": 1})", R"({"k": 2, "a": 1})"}},
      {R"({"anyOf": [{"properties": {"a": {}}, "required": ["a"]},
           {"properties": {"b": {}}, "required": ["b"]}]})",
       {R"({"a": 1})", R"({"b": 1})", R"({"a": 1, "b": 1})"},
       {"{}", R"({"a": 1, "c": 1})"}},
      {R"({"anyOf": [{"type": "object"}, {"properties": {"a": {}}}]})", {R"({"b": 1})"}, {}},
      // Keywords that test or refine close nothing; the keys they name count as described.
      {R"({"properties": {"o": {}}, "not": {"properties": {"o": {"properties": {"a": {"const": 1}},
           "required": ["a"]}}, "required": ["o"]}})",
       {R"({"o": {"a": 2, "b": 1}})", R"({"o": {"b": 1}})"},
       {R"({"o": {"a": 1, "b": 1}})", R"({"o": {"a": 1}})"}},
      {R"({"if": {"properties": {"a": {"const": 1}}, "required": ["a"]}, "then": {"required": ["b"]}})",
       {R"({"a": 1, "b": 1, "c": 1})", R"({"c": 1})"},
       {R"({"a": 1, "c": 1})"}},
      {R"({"properties": {"l": {"items": {"properties": {"a": {}, "b": {}}},
           "contains": {"properties": {"a": {"const": 1}}, "required": ["a"]}}}})",
       {R"({"l": [{"a": 1, "b": 1}]})", R"({"l": [{"b": 1}, {"a": 1}]})"},
       {R"({"l": [{"a": 2}]})", R"({"l": [{"a": 1, "c": 1}]})"}},
      {R"({"properties": {"l": {"items": {"properties": {"b": {}}}, "contains": {"required": ["b", "c"]}}}})",
       {R"({"l": [{"b": 1, "c": 1}, {"c": 1, "b": 1}]})",
        R"({"l": [{"b": 1}, {"b": 1, "c": 1}, {}]})"},
       {R"({"l": [{"c": 1}, {"b": 1, "c": 1}]})", R"({"l": [{"b": 1, "c": 1}, {"c": 1}]})",
        R"({"l": [{"b": 1}]})", R"({"l": [{"b": 1, "c": 1}, {"b": 1, "c": 1, "d": 1}]})"}},
      {R"({"properties": {"l": {"contains": {"properties": {"a": {"const": 1}}, "required": ["a"]}}}})",
       {R"({"l": [{"a": 1, "c": 1}]})"},
       {R"({"l": [{"a": 2}]})"}},
      {R"({"properties": {"a": {}, "o": {}}, "dependentSchemas": {"a": {"properties": {"o":
           {"properties": {"x": {"const": 1}}}}}}})",
       {R"({"a": 1, "o": {"x": 1, "y": 1}})", R"({"o": {"x": 2}})"},
       {R"({"a": 1, "o": {"x": 2}})", R"({"b": 1})"}},
      // A keyword for other keys leaves the object open.
      {R"({"properties": {"a": {}}, "additionalProperties": true})", {R"({"b": 1})"}, {}},
      {R"({"allOf": [{"properties": {"a": {}}}, {"additionalProperties": {"type": "integer"}}]})",
       {R"({"b": 1})"},
       {R"({"b": "x"})"}},
      {R"({"properties": {"a": {}}, "propertyNames": {"maxLength": 1}})",
       {R"({"b": 1})"},
       {R"({"bb": 1})"}},
  };
  const Vocabulary vocabulary = test::byte_vocabulary();
  for (const Row& row : rows) {
    INFO(row.schema);
    const Constraint closed(vocabulary,
                            Grammar::json_schema(tooldecode::text::parse_json(row.schema),
                                                 {.rules = {.close_objects = true}}));
    const auto accepts = [&](const std::string& text) {
      std::optional<Constraint::State> state = closed.initial();
      for (std::size_t i = 0; i < text.size() && state; ++i) {
        state = closed.advance(*state, TokenId{static_cast<unsigned char>(text[i])});
      }
      return state && closed.advance(*state, TokenId{256});
    };
    for (const std::string& text : row.accepted) {
      INFO(text);
      CHECK(accepts(text));
    }
    for (const std::string& text : row.rejected) {
      INFO(text);
      CHECK_FALSE(accepts(text));
    }
  }
}

TEST_CASE(
    "Constraint over patternProperties masks keys by lexeme, not with a position for each text") {
  std::vector<Vocabulary::Entry> more;
  const std::string letters = "abcdefgh\xc3\xa0\"";
  for (const char a : letters) {
    for (const char b : letters) {
      for (const char c : letters) {
        more.push_back({{a, b, c}, TokenType::normal});
      }
    }
  }
  const Vocabulary vocabulary = test::byte_vocabulary(more);
  const VocabularyIndex cache(vocabulary);
  const auto constraint =
      Constraint(cache, Grammar::json_schema(R"({"type": "object", "minProperties": 3,
                 "patternProperties": {"a": true, "^[à-ÿ]": {"const": 1}}})",
                                             {.whitespace = 0}));
  std::optional<Constraint::State> state = constraint.initial();
  TokenMask mask(vocabulary.size());
  for (const std::string text : {R"({")", R"(ab": 1, ")", R"(ab)", R"(c": 2, "a)", R"(bc)"}) {
    INFO(text);
    state = constraint.advance_bytes(*state, text);
    REQUIRE(state);
    const std::size_t before = constraint.bytes();
    constraint.fill_mask(*state, mask.words());
    const std::size_t masked = constraint.bytes();
    for (TokenId token = 0; token < static_cast<TokenId>(vocabulary.size()); ++token) {
      if (mask.contains(token) == constraint.advance(*state, token).has_value()) continue;
      FAIL("token " << token);
    }
    // After the first quote, advance makes a position for each text; the mask does not.
    if (text == R"({")") CHECK(4 * (masked - before) < constraint.bytes() - masked);
  }
}

TEST_CASE("Constraint of unique strings has masks of exactly the tokens that it accepts") {
  const Vocabulary vocabulary = test::byte_vocabulary({{"a\", \"", TokenType::normal},
                                                       {"aa", TokenType::normal},
                                                       {"b\"", TokenType::normal},
                                                       {"ab", TokenType::normal},
                                                       {"\"]", TokenType::normal},
                                                       {"\", \"a", TokenType::normal},
                                                       {"a\"", TokenType::normal}});
  const VocabularyIndex cache(vocabulary);
  for (const std::string item :
       {R"({"type": "string"})", R"({"type": "string", "pattern": "^a*b?$"})",
        R"({"anyOf": [{"type": "string", "maxLength": 2}, {"enum": ["aab", "b"]}]})"}) {
    const auto constraint = Constraint(
        cache, Grammar::json_schema(R"({"type": "array", "uniqueItems": true, "maxItems": 4,
                                        "items": )" +
                                        item + "}",
                                    {.whitespace = 0}));
    std::optional<Constraint::State> state = constraint.initial();
    TokenMask mask(vocabulary.size());
    for (const char c : std::string(R"(["a", "aa", "\u0061a)")) {
      state = constraint.advance_bytes(*state, {&c, 1});
      if (!state) break;
      constraint.fill_mask(*state, mask.words());
      for (TokenId token = 0; token < static_cast<TokenId>(vocabulary.size()); ++token) {
        if (mask.contains(token) == constraint.advance(*state, token).has_value()) continue;
        FAIL(item << " token " << token);
      }
    }
    // "aa" was written before, and the last schema has no longer text here.
    CHECK_FALSE((state && constraint.advance_bytes(*state, "\"")));
    CHECK(constraint.advance_bytes(constraint.initial(), R"(["a", "aa", "b"])"));
  }
}
