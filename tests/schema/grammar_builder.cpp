#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/schema/grammar_builder.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <support/catch.hpp>
#include <support/slow_matcher.hpp>

using namespace tooldecode;
using namespace tooldecode::grammar;
using namespace tooldecode::schema;
using namespace tooldecode::text;
using Json = tooldecode::JsonValue;

namespace {

struct Values {
  explicit Values(const char* schema, ValueSyntax syntax = ValueSyntax::json)
      : root(tooldecode::text::parse_json(schema)),
        reader(root),
        text(grammar, syntax, 0),
        values(grammar, reader, text, false),
        node(values.value(reader.form(root, "#"))) {}
  bool accepts(std::string_view bytes) const { return slow::matches(grammar, node, bytes); }

  Json root;
  Grammar grammar;
  Reader reader;
  Spellings text;
  GrammarBuilder values;
  NodeId node;
};

}  // namespace

TEST_CASE("GrammarBuilder builds one node for equal schemas in different places") {
  const Values values(R"({"type": "array", "prefixItems": [
      {"type": "object", "properties": {"a": {"type": "integer", "minimum": 3}}},
      {"properties": {"a": {"minimum": 3, "title": "the same", "type": "integer"}}, "type": "object"}
      ]})");
  const auto& grammar = values.grammar;
  int sets            = 0;
  for (std::uint32_t i = 0; i < grammar.size(); ++i) {
    sets += grammar[NodeId(i)].as<Grammar::Node::Members>() != nullptr ? 1 : 0;
  }
  CHECK(sets == 2);  // one of both, and one of any value
}

TEST_CASE("GrammarBuilder accepts unique items of an enumeration") {
  const Values values(R"({"type": "array", "items": {"enum": [1, "a", null]}, "uniqueItems": true,
                          "minItems": 2})");
  CHECK(values.accepts(R"([1, "a"])"));
  CHECK(values.accepts(R"([null, "a", 1.0])"));
  CHECK_FALSE(values.accepts(R"([1, 1.0])"));
  CHECK_FALSE(values.accepts(R"(["a"])"));
}

TEST_CASE("GrammarBuilder of unique strings accepts no string twice, in any spelling") {
  const char* schema = R"({"type": "array", "uniqueItems": true, "minItems": 1, "maxItems": 3,
                           "items": {"anyOf": [{"type": "string", "maxLength": 2},
                                               {"enum": ["long", "é"]}]}})";
  const Values values(schema);
  CHECK(values.accepts(R"(["a", "b"])"));
  CHECK(values.accepts(R"(["long", "", "é"])"));
  CHECK_FALSE(values.accepts(R"(["a", "a"])"));
  CHECK_FALSE(values.accepts(R"(["a", "b", "\u0061"])"));
  CHECK_FALSE(values.accepts(R"(["é", "\u00e9"])"));
  CHECK_FALSE(values.accepts(R"(["long", "long"])"));
  CHECK_FALSE(values.accepts("[]"));
  CHECK_FALSE(values.accepts(R"(["a", "b", "c", "d"])"));
  CHECK_FALSE(values.accepts(R"(["longer"])"));
  const Values python(schema, ValueSyntax::python);
  CHECK(python.accepts(R"(['a', "b"])"));
  CHECK_FALSE(python.accepts(R"(['a', "a"])"));
}

TEST_CASE("GrammarBuilder of unique strings refuses them if the texts may run out") {
  const auto refuses = [](const char* schema) {
    try {
      const Values values(schema);
      return false;
    } catch (const Error& error) {
      return error.code() == Errc::unsupported_keyword && error.where() == "#/uniqueItems";
    }
  };
  const std::string letters =
      R"({"type": "array", "uniqueItems": true, "items": {"type": "string", "pattern": "^[ab]$"})";
  CHECK(refuses((letters + "}").c_str()));
  CHECK(refuses((letters + R"(, "maxItems": 3})").c_str()));
  CHECK_FALSE(refuses((letters + R"(, "maxItems": 2})").c_str()));
  CHECK(
      refuses(R"({"type": "array", "uniqueItems": true, "items": {"type": ["string", "null"]}})"));
  CHECK(refuses(R"({"type": "array", "uniqueItems": true, "items": {"type": "object"}})"));
  CHECK_FALSE(refuses(R"({"type": "array", "uniqueItems": true, "maxItems": 1})"));
}

TEST_CASE("GrammarBuilder of unique strings makes as many nodes for few items as for many") {
  const auto nodes = [](const char* count) {
    const std::string schema =
        R"({"type": "array", "uniqueItems": true, "items": {"type": "string"}, "maxItems": )";
    return Values((schema + count + "}").c_str()).grammar.size();
  };
  CHECK(nodes("2") == nodes("2000000"));
}

TEST_CASE("GrammarBuilder of unique items follows the forms of the first items") {
  const Values values(R"({"type": "array", "uniqueItems": true, "minItems": 1,
      "prefixItems": [{"type": "boolean"}, {"enum": [true, 1, "a"]}], "items": {"enum": [1, 2]}})");
  CHECK(values.accepts("[true, 1, 2]"));
  CHECK(values.accepts("[false, true, 2, 1]"));
  CHECK(values.accepts("[true]"));
  CHECK_FALSE(values.accepts("[true, true]"));
  CHECK_FALSE(values.accepts("[true, 1, 1.0]"));
  CHECK_FALSE(values.accepts("[true, 1, 2, 1]"));
  CHECK_FALSE(values.accepts("[]"));
}

TEST_CASE("GrammarBuilder accepts constant objects in any order of keys") {
  const Values values(R"({"const": {"a": [1], "b": {}}})");
  CHECK(values.accepts(R"({"b": {}, "a": [1]})"));
  CHECK(values.accepts(R"({"a": [1.0], "b": {}})"));
  CHECK_FALSE(values.accepts(R"({"a": [1], "b": {}, "c": 1})"));
}

TEST_CASE("GrammarBuilder rejects an additional key that is another spelling of a property") {
  const char* schema = R"({"type": "object", "properties": {"éé": {"type": "null"}}})";
  for (const ValueSyntax syntax : {ValueSyntax::json, ValueSyntax::python}) {
    const Values values(schema, syntax);
    const bool json = syntax == ValueSyntax::json;
    CHECK(values.accepts(json ? R"({"\u00e9\u00e9": null})" : R"({'\xe9\xe9': None})"));
    CHECK_FALSE(values.accepts(json ? R"({"é\u00e9": 1})" : R"({'é\xe9': 1})"));
    CHECK_FALSE(values.accepts(json ? R"({"éé": 1})" : R"({'éé': 1})"));
    CHECK(values.accepts(json ? R"({"é\u00e8": 1})" : R"({'é\xe8': 1})"));
  }
}

TEST_CASE("GrammarBuilder follows counts, dependences and patterns of keys together") {
  const Values values(R"({"type": "object", "minProperties": 1, "maxProperties": 3,
      "dependentRequired": {"a": ["b"]}, "patternProperties": {"^x": {"type": "integer"}},
      "additionalProperties": {"type": "string"}})");
  CHECK_FALSE(values.accepts("{}"));
  CHECK(values.accepts(R"({"x1": 1})"));
  CHECK_FALSE(values.accepts(R"({"x1": "1"})"));
  CHECK(values.accepts(R"({"y": "1"})"));
  CHECK_FALSE(values.accepts(R"({"a": "1"})"));
  CHECK(values.accepts(R"({"b": "1", "a": "1"})"));
  CHECK_FALSE(values.accepts(R"({"b": "", "a": "", "c": "", "d": ""})"));
}

namespace {

// Reference: whether a schema of `required`, counts and combinations admits these keys.
bool admits_keys(const Json& schema, const std::set<std::string>& keys) {
  const auto of = [&](const Json& one) { return admits_keys(one, keys); };
  for (const auto& [keyword, content] : schema.items()) {
    const auto count =
        keyword.ends_with("Of") ? std::count_if(content.begin(), content.end(), of) : 0;
    const bool holds =
        keyword == "required"
            ? std::all_of(content.begin(), content.end(),
                          [&](const Json& key) { return keys.count(key.get<std::string>()) != 0; })
        : keyword == "minProperties" ? keys.size() >= content.get<std::size_t>()
        : keyword == "maxProperties" ? keys.size() <= content.get<std::size_t>()
        : keyword == "allOf"         ? static_cast<std::size_t>(count) == content.size()
        : keyword == "anyOf"         ? count > 0
        : keyword == "oneOf"         ? count == 1
        : keyword == "not"           ? !of(content)
        : keyword == "if"            ? !of(content) || of(schema.value("then", Json::object()))
                                     : true;
    if (!holds) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("SchemaCompiler of random conditions on keys accepts the conforming sets in any order") {
  const unsigned seed = 20'250'711;
  std::mt19937 random(seed);
  const auto draw        = [&](std::size_t below) { return random() % below; };
  std::size_t conditions = 0, refused = 0;
  for (int round = 0; round < 250; ++round) {
    const std::size_t keys = 2 + draw(5);
    const auto key  = [&](std::size_t i) { return std::string(1, static_cast<char>('a' + i)); };
    const auto part = [&] {
      Json list = Json::array();
      for (std::size_t i = 0; i < keys; ++i) {
        if (draw(3) == 0) list.push_back(key(i));
      }
      return Json{{"required", list}};
    };
    const auto either = [&](const auto& self, int depth) -> Json {
      const std::size_t kind = depth == 0 ? 9 : draw(6);
      if (kind > 4) return part();
      if (kind == 3) return Json{{"not", self(self, depth - 1)}};
      if (kind == 4) return Json{{"if", part()}, {"then", self(self, depth - 1)}};
      static constexpr const char* names[] = {"oneOf", "anyOf", "allOf"};
      Json list                            = Json::array();
      for (std::size_t i = 0; i < 2 + draw(2); ++i) list.push_back(self(self, depth - 1));
      return Json{{names[kind], list}};
    };
    Json schema{{"type", "object"}, {"properties", Json::object()}, {"allOf", Json::array()}};
    for (std::size_t i = 0; i < keys; ++i) schema["properties"][key(i)] = {{"const", 1}};
    for (std::size_t i = 0; i < 1 + draw(4); ++i) schema["allOf"].push_back(either(either, 2));
    const bool open                = draw(2) == 0;
    schema["additionalProperties"] = open;
    if (draw(4) == 0) schema["minProperties"] = draw(keys + 1);
    if (draw(4) == 0) schema["maxProperties"] = draw(keys + 1);
    INFO("seed " << seed << ", round " << round << ": " << schema.text());
    std::vector<std::set<std::string>> sets;
    for (std::uint32_t bits = 0; bits < 1U << keys; ++bits) {
      sets.emplace_back();
      for (std::size_t i = 0; i < keys; ++i) {
        if ((bits >> i & 1) != 0) sets.back().insert(key(i));
      }
    }
    const auto is_good = [&](const std::set<std::string>& some) {
      return admits_keys(schema, some);
    };
    // Additional keys only count.
    const auto may_be_good = [&](std::set<std::string> some) {
      for (int further = 0; further < 8; ++further) {
        if (is_good(some)) return true;
        if (!open) return false;
        some.insert("further" + std::to_string(further));
      }
      return false;
    };
    for (const bool documented : {false, true}) {
      Grammar grammar;
      std::optional<Automaton> automaton;
      try {
        const SchemaOptions options{.documented_order = documented, .whitespace = 0};
        const NodeId root = SchemaCompiler(grammar, schema, options).value(schema, "#");
        automaton.emplace(grammar, root);
      } catch (const Error& error) {
        REQUIRE((error.code() == Errc::unsatisfiable_schema ||
                 error.code() == Errc::unsupported_keyword));
        if (error.code() == Errc::unsatisfiable_schema) {
          CHECK(std::none_of(sets.begin(), sets.end(), may_be_good));
        }
        ++refused;
        continue;
      }
      for (std::uint32_t i = 0; i < grammar.size(); ++i) {
        const auto* set = grammar[NodeId(i)].as<Grammar::Node::Members>();
        if (set != nullptr) conditions += set->together.size();
      }
      for (const std::set<std::string>& some : sets) {
        std::vector<std::string> order(some.begin(), some.end());
        if (!documented) std::shuffle(order.begin(), order.end(), random);
        std::string text = "{";
        for (const std::string& one : order) text += (text == "{" ? "\"" : ", \"") + one + "\": 1";
        const auto state = automaton->advance(automaton->initial(), text);
        const auto end   = state ? automaton->advance(*state, "}") : std::nullopt;
        INFO(text);
        CHECK((end && automaton->is_accepting(*end)) == is_good(some));
        if (documented) continue;
        // Each accepted prefix can be completed.
        const bool can_be_ended = std::any_of(sets.begin(), sets.end(), [&](const auto& more) {
          return std::includes(more.begin(), more.end(), some.begin(), some.end()) &&
                 may_be_good(more);
        });
        CHECK(state.has_value() == can_be_ended);
      }
    }
  }
  CHECK(conditions > 50);
  CHECK(refused < 250);
}
