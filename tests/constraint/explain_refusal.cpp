#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/constraint/explain.hpp>
#include <tooldecode/constraint/explain_refusal.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/formats/xml_call.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/schema/keywords.hpp>
#include <tooldecode/text/json_pointer.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <support/byte_vocabulary.hpp>
#include <support/cases.hpp>
#include <support/catch.hpp>
#include <support/slow_validator.hpp>

using namespace tooldecode;
using Json = JsonValue;

namespace {

const VocabularyIndex& bytes() {
  static const VocabularyIndex index(test::byte_vocabulary());
  return index;
}

RefusedText refused(const char* schema, std::string_view text) {
  const Constraint constraint(bytes(), Grammar::json_schema(schema));
  const auto found = explain_refusal(constraint, text, schema);
  REQUIRE(found);
  return *found;
}

std::vector<std::string> pointers(const RefusedText& refused) {
  std::vector<std::string> all;
  for (const RefusedText::Rule& rule : refused.rules) all.push_back(rule.pointer);
  return all;
}

using Pointers = std::vector<std::string>;

class RandomSchema {
 public:
  explicit RandomSchema(std::mt19937& random) : random_(random) {}

  Json root() {
    Json schema     = any(0);
    schema["$defs"] = Json{{"d", any(1)}};
    return schema;
  }

 private:
  bool chance(std::size_t one_in) { return random_() % one_in == 0; }
  template <class... Values>
  Json one_of(const Values&... values) {
    const Json all[] = {Json(values)...};
    return all[random_() % sizeof...(Values)];
  }

  Json any(std::size_t depth) {
    switch (random_() % (depth < 3 ? 9 : 4)) {
      case 0: {
        Json schema{{"type", one_of("integer", "number")}};
        if (chance(2)) schema["maximum"] = one_of(5, 30, 31);
        if (chance(2)) schema["minimum"] = one_of(-3, 1, 4);
        if (chance(4)) schema["multipleOf"] = 2;
        return schema;
      }
      case 1: {
        Json schema{{"type", "string"}};
        if (chance(2)) schema["maxLength"] = one_of(1, 2, 3);
        if (chance(3)) schema["pattern"] = one_of("^a", "b$", "^[ab]*$");
        return schema;
      }
      case 2:
        return Json{{"enum", one_of(Json::array({"a", "ab", 1}), Json::array({true, nullptr}))}};
      case 3:
        return chance(2) ? Json{{"type", one_of("boolean", "null")}}
                         : Json{{"const", one_of("b", 12, false)}};
      case 4: {
        Json schema{{"type", "array"}, {"items", any(depth + 1)}};
        if (chance(2)) schema["maxItems"] = one_of(1, 2);
        if (chance(2)) schema["minItems"] = one_of(1, 2);
        if (chance(3)) schema["prefixItems"] = Json::array({any(depth + 1)});
        return schema;
      }
      case 5: {
        const bool outer = std::exchange(in_choice_, true);
        Json branches    = Json::array({any(depth + 1), any(depth + 1)});
        in_choice_       = outer;
        return Json{{one_of("anyOf", "oneOf", "allOf").string(), branches}};
      }
      case 6:
        if (in_choice_) return Json{{"minLength", 2}};
        return Json{{"$ref", "#/$defs/d"}};
      default: {
        Json schema{{"type", "object"},
                    {"properties", Json{{"a", any(depth + 1)}, {"b~/", any(depth + 1)}}}};
        if (chance(2)) schema["required"] = Json::array({"a"});
        if (chance(2)) schema["additionalProperties"] = one_of(false, true);
        if (chance(4)) schema["maxProperties"] = 1;
        return schema;
      }
    }
  }

  std::mt19937& random_;
  bool in_choice_ = false;  // without references, so that its own keywords decide about a branch
};

// Appends up to `most` random bytes that a constraint allows.
void walk(const Constraint& constraint, std::string& text, std::size_t most, std::mt19937& random) {
  auto state = constraint.advance_bytes(constraint.initial(), text);
  for (std::size_t left = random() % most; left > 0 && state; --left) {
    std::string next;
    constraint.automaton()
        .allowed(constraint.automaton_state(*state))
        .for_each([&](std::uint8_t byte) {
          // The characters of JSON's syntax more often than others.
          const char c = static_cast<char>(byte);
          const bool is_plain =
              std::string_view("{}[],:\"ab/~123").find(c) != std::string_view::npos;
          next.append(is_plain ? 20 : byte > ' ' && byte < 127 ? 1 : 0, c);
        });
    if (next.empty()) return;
    text += next[random() % next.size()];
    state = constraint.advance_bytes(*state, text.substr(text.size() - 1));
  }
}

// A text of the constraint up to a random place, then one of any JSON, and sometimes something else.
std::string random_text(const Constraint& constraint, std::mt19937& random) {
  static const Constraint any(bytes(), Grammar::json_schema(true));
  static constexpr std::string_view parts[] = {"\"x\"", "5", "}", ",", "null", ".", "\xC3\xA9"};
  std::string text;
  walk(constraint, text, 40, random);
  walk(any, text, 20, random);
  if (random() % 4 == 0) text += parts[random() % std::size(parts)];
  return text;
}

std::size_t first_refused_byte(const Json& schema, std::string_view text) {
  const auto place = Constraint(bytes(), Grammar::json_schema(schema)).find_refusal(text);
  return place ? place->at : text.size() + 1;
}

// The schema with those assertions alone that are kept. The applicators stay, and a branch of anyOf or
// oneOf is false if nothing in it is named.
class Restriction {
 public:
  Restriction(std::set<std::string> named, std::set<std::string> kept)
      : named_(std::move(named)), kept_(std::move(kept)) {}

  Json restrict(const Json& schema, const std::string& at) const {
    if (kept_.contains(at)) return schema;
    if (!schema.is_object()) return true;
    Json result = Json::object();
    for (const auto& [name, content] : schema.items()) {
      const std::string pointer = text::extend_pointer(at, name);
      if (name == "$ref" || kept_.contains(pointer)) {
        result[name] = content;
      } else if (name == "properties" || name == "$defs") {
        result[name] = Json::object();
        for (const auto& [key, child] : content.items()) {
          result[name][key] = restrict(child, text::extend_pointer(pointer, key));
        }
      } else if (name == "anyOf" || name == "oneOf" || name == "allOf" || name == "prefixItems") {
        Json all = Json::array();
        for (std::size_t i = 0; i < content.size(); ++i) {
          const std::string child = text::extend_pointer(pointer, std::to_string(i));
          const bool is_choice    = name == "anyOf" || name == "oneOf";
          const bool is_dead      = is_choice && !is_named(child);
          all.push_back(is_dead ? Json(false) : restrict(content[i], child));
        }
        const bool is_any =
            std::all_of(all.begin(), all.end(), [](const Json& one) { return one == false; });
        if (!is_any) result[name == "oneOf" ? "anyOf" : name] = all;
      } else if (name == "items" || name == "additionalProperties") {
        result[name] = restrict(content, pointer);
      }
    }
    return result;
  }

 private:
  bool is_named(const std::string& at) const {
    return std::any_of(named_.begin(), named_.end(), [&](const std::string& pointer) {
      return pointer.starts_with(at + '/') || pointer == at;
    });
  }
  std::set<std::string> named_, kept_;
};

}  // namespace

TEST_CASE("explain_refusal names the keyword that forbids a byte, and where it is written") {
  const char* const trip =
      R"({"type": "object", "properties": {"city": {"type": "string", "maxLength": 4},
      "days": {"type": "integer", "minimum": 1, "maximum": 30}, "unit": {"enum": ["c", "f"]},
      "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}, "maxItems": 2}},
      "required": ["city"], "additionalProperties": false,
      "$defs": {"tag": {"type": "string", "pattern": "^a"}}})";
  const std::pair<std::string_view, std::pair<std::string, std::size_t>> cases[] = {
      {R"({"city": "Oslo", "days": 40})", {"#/properties/days/maximum", 26}},
      {R"({"days": 0)", {"#/properties/days/minimum", 9}},
      {R"({"city": "Oslooo"})", {"#/properties/city/maxLength", 14}},
      {R"({"city": true})", {"#/properties/city/type", 9}},
      {R"({"days": 4})", {"#/required", 10}},
      {R"({"day": 4})", {"#/additionalProperties", 5}},
      {R"({"unit": "x"})", {"#/properties/unit/enum", 10}},
      {R"({"tags": ["a", "b"]})", {"#/$defs/tag/pattern", 16}},
      {R"({"tags": ["a", "a", "a"]})", {"#/properties/tags/maxItems", 18}},
      {R"(["Oslo"])", {"#/type", 0}},
      // Whatever the schema says: the subschema of the value.
      {R"({"city": "Os)", {"#/properties/city", 12}},
      {R"({"tags": ["a" "b"]})", {"#/properties/tags", 14}},
  };
  for (const auto& [text, expected] : cases) {
    INFO(text);
    const RefusedText found = refused(trip, text);
    CHECK(pointers(found) == Pointers{expected.first});
    CHECK(found.at == expected.second);
  }
  const RefusedText found = refused(trip, R"({"city": "Oslo", "days": 40})");
  CHECK(found.text() ==
        "line 1, column 27, in /days: \"0\" cannot follow\n"
        "{\"city\": \"Oslo\", \"days\": 40}\n"
        "                          ^\n"
        "expected: one of: a closing brace '}'; a comma ','; white space\n"
        "#/properties/days/maximum: 30");
  CHECK(found.json()["rules"] ==
        text::parse_json(R"([{"pointer": "#/properties/days/maximum", "value": "30"}])"));
  CHECK(found.json()["at"] == 26);
  CHECK(refused(trip, R"({"city": "Os)").too_short);
  CHECK(refused(trip, R"({"days": 4})").value_at.empty());
  const Constraint constraint(bytes(), Grammar::json_schema(trip));
  CHECK_FALSE(explain_refusal(constraint, R"({"city": "Oslo"})", trip));
  CHECK_FALSE(explain_refusal(constraint, R"({"city": "Oslo"})"));
  CHECK(explain_refusal(constraint, "[")->rules.empty());
}

TEST_CASE("explain_refusal names the branches that a text conforms to up to the place") {
  const char* const kinds = R"({"oneOf": [
      {"properties": {"k": {"const": "a"}, "v": {"type": "integer"}}, "required": ["k"]},
      {"properties": {"k": {"const": "b"}, "v": {"type": "string"}}, "required": ["k"]}]})";
  CHECK(pointers(refused(kinds, R"({"k": "a", "v": "x"})")) ==
        Pointers{"#/oneOf/0/properties/v/type"});
  CHECK(pointers(refused(kinds, R"({"k": "b", "v": 5})")) ==
        Pointers{"#/oneOf/1/properties/v/type"});
  CHECK(pointers(refused(kinds, R"({"k": "c"})")) ==
        Pointers{"#/oneOf/0/properties/k/const", "#/oneOf/1/properties/k/const"});
  const char* const references =
      R"({"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}], "$defs": {
      "a": {"type": "array", "maxItems": 1}, "b": {"type": "string", "maxLength": 2}}})";
  CHECK(pointers(refused(references, "[1, 2]")) == Pointers{"#/$defs/a/maxItems"});
  CHECK(pointers(refused(references, "\"abc\"")) == Pointers{"#/$defs/b/maxLength"});
  CHECK(pointers(refused(references, "true")) == Pointers{"#/$defs/a/type", "#/$defs/b/type"});
  const char* const items = R"({"items": {"anyOf": [{"const": "a"}, {"const": "b"}]}})";
  CHECK(pointers(refused(items, R"(["a", "b", "c"])")) ==
        Pointers{"#/items/anyOf/0/const", "#/items/anyOf/1/const"});
}

TEST_CASE("explain_refusal leads into the tools' documents in every format") {
  const ToolSet tools  = ToolSet::parse(R"([
      {"name": "now", "inputSchema": {"type": "object", "properties": {"zone": {"type": "string"}}}},
      {"name": "go", "inputSchema": {"type": "object", "required": ["to"], "properties": {"to": {"enum": ["A", "B"]},
        "days": {"type": "integer", "maximum": 30}, "at": {"type": "object", "properties": {"lat": {"minimum": 5}}}}}}])");
  const auto explained = [&](const auto& format, std::string_view text,
                             const ChoiceOptions& options = {.choice = ToolChoice::required}) {
    const ToolCallFSM calls(bytes(), tools, format, options);
    const auto found = explain_refusal(calls, text);
    const auto place = calls.find_refusal(text);
    REQUIRE((found && place));
    CHECK(found->at == place->at);
    CHECK(found->expected ==
          explain(calls, *calls.advance_bytes(calls.initial(), text.substr(0, place->at))));
    return *found;
  };
  const Pointers maximum{"#/1/inputSchema/properties/days/maximum"};
  CHECK(pointers(explained(PythonCall{}, "[go(to='A', days=31)]")) == maximum);
  CHECK(pointers(explained(JsonCall::hermes(), R"(<tool_call>
{"name": "go", "arguments": {"to": "A", "days": 31}}
</tool_call>)")) == maximum);
  CHECK(pointers(explained(PythonCall{}, "[now(zone='x'), go(days=31)]")) == maximum);
  CHECK(pointers(explained(PythonCall{}, "[go(days=3)]")) == Pointers{"#/1/inputSchema/required"});
  CHECK(pointers(explained(PythonCall{}, "[go(at={'lat': 4})]")) ==
        Pointers{"#/1/inputSchema/properties/at/properties/lat/minimum"});
  CHECK(pointers(explained(PythonCall{}, "[go(to='C')]")) ==
        Pointers{"#/1/inputSchema/properties/to/enum"});
  // No keyword decides: the argument's schema, and nothing where no tool is called.
  CHECK(pointers(explained(PythonCall{}, "[go(days=3x)]")) ==
        Pointers{"#/1/inputSchema/properties/days"});
  CHECK(pointers(explained(PythonCall{}, "[now(zone=x)]")) ==
        Pointers{"#/0/inputSchema/properties/zone"});
  CHECK(explained(PythonCall{}, "[went()]").rules.empty());
  const Json list = text::parse_json(R"({"type": "array", "items": {"type": "integer"}})");
  CHECK(pointers(explained(JsonCall::hermes(), R"([1, "x"])", {.text_schema = list})) ==
        Pointers{"text_schema/items/type"});
}

TEST_CASE("explain_refusal of random schemas names a smallest set that forbids the byte") {
  std::size_t judged = 0, named = 0;
  for (std::uint32_t seed = 0; seed < test::cases(2000); ++seed) {
    std::mt19937 random(seed);
    const Json schema = RandomSchema(random).root();
    std::optional<Constraint> constraint;
    try {
      constraint.emplace(bytes(), Grammar::json_schema(schema));
    } catch (const Error&) {
      continue;  // no value conforms
    }
    for (std::size_t k = 0; k < 6; ++k) {
      const std::string text = random_text(*constraint, random);
      INFO("seed " << seed << ", schema " << schema.text() << ", text " << text);
      auto state     = constraint->initial();
      std::size_t at = 0;
      for (; at < text.size(); ++at) {
        const auto next = constraint->advance_bytes(state, text.substr(at, 1));
        if (!next) break;
        state = *next;
      }
      const bool conforms = at == text.size() && constraint->is_accepting(state);
      const auto found    = explain_refusal(*constraint, text, schema);
      REQUIRE(found.has_value() == !conforms);
      if (conforms) continue;
      ++judged;
      REQUIRE(found->at == at);
      REQUIRE(found->too_short == (at == text.size()));
      REQUIRE(found->expected == explain(*constraint, state));
      REQUIRE_FALSE(found->rules.empty());

      // What the rules say alone, with and without each of them.
      std::set<std::string> kept;
      for (const std::string& pointer : pointers(*found)) {
        INFO(pointer);
        REQUIRE(schema.find_at(pointer.substr(1)) != nullptr);
        kept.insert(pointer.substr(1));
      }
      if (first_refused_byte(true, text) == at) continue;  // not JSON
      ++named;
      const auto first_refused = [&](const std::set<std::string>& some) {
        return first_refused_byte(Restriction(kept, some).restrict(schema, ""), text);
      };
      REQUIRE(first_refused(kept) == at);
      for (const std::string& pointer : kept) {
        std::set<std::string> others = kept;
        others.erase(pointer);
        INFO("without " << pointer);
        REQUIRE(first_refused(others) > at);
      }
      // Spellings are limited, and the validator reads doubles.
      const bool is_spelt = std::regex_search(text, std::regex("[0-9][eE]|[0-9.]{12}|\\\\"));
      if (const auto value = is_spelt ? std::nullopt : text::find_json(text)) {
        REQUIRE_FALSE(slow::conforms(*value, schema, schema));
      }
    }
  }
  INFO(judged << " refused, " << named << " by a keyword");
  CHECK(judged > test::cases(2000));
  CHECK(named > test::cases(1000));
}

TEST_CASE("explain_refusal within too small limits names the subschema of the value") {
  const Json schema =
      text::parse_json(R"({"properties": {"a": {"type": "integer", "maximum": 3}}})");
  const Constraint constraint(bytes(), Grammar::json_schema(schema));
  const auto found =
      explain_refusal(constraint, R"({"a": "x"})", schema, {.limits = {.steps = 10}});
  REQUIRE(found);
  CHECK(pointers(*found) == Pointers{"#/properties/a"});
}

TEST_CASE("RefusedText::excerpt shows the character at the caret, whatever the line's length") {
  static const std::pair<std::string_view, std::size_t> characters[] = {
      {"a", 1}, {"\xC3\xA9", 1}, {"\xE6\x97\xA5", 2}, {"\t", 1}, {"\xF0\x9F\x98\x80", 2}};
  const Constraint constraint(bytes(), Grammar::regex("[^X]*"));
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    std::string text;
    const auto add = [&](std::size_t count) {
      for (; count > 0; --count) text += random() % 40 == 0 ? "\n" : characters[random() % 5].first;
    };
    add(random() % 300);
    const std::size_t at = text.size();
    text += 'X';
    add(random() % 300);
    INFO("seed " << seed << ": " << text);
    const auto found = explain_refusal(constraint, text);
    REQUIRE(found);
    REQUIRE(found->at == at);
    REQUIRE("line " + std::to_string(found->line) + ", column " + std::to_string(found->column) ==
            Error(Errc::malformed_json, "byte " + std::to_string(at), "").at_line(text).where());
    std::size_t columns = 0, shown = 0;
    while (columns < found->caret) {
      const auto* const one =
          std::find_if(std::begin(characters), std::end(characters), [&](const auto& character) {
            return std::string_view(found->excerpt).substr(shown).starts_with(character.first);
          });
      shown += one == std::end(characters) ? 1 : one->first.size();
      columns += one == std::end(characters) ? 1 : one->second;
    }
    REQUIRE(columns == found->caret);
    REQUIRE(found->excerpt[shown] == 'X');
    REQUIRE(found->excerpt.find('\n') == std::string::npos);
    REQUIRE(found->caret < 80);
    REQUIRE(found->excerpt.size() < 400);
  }
  const Constraint inner(bytes(), Grammar::regex("\xC3\xA9"));
  const auto found = explain_refusal(inner, "\xC3\xA8");  // differs in its second byte
  CHECK(found->at == 1);
  CHECK(found->caret == 0);
  CHECK(found->column == 1);
  CHECK(found->reason == "\"\xC3\xA8\" cannot follow");
  CHECK(explain_refusal(inner, "\xFF")->reason == "the byte 0xFF cannot follow");
  CHECK(explain_refusal(inner, "")->reason == "the text cannot end here");
}
