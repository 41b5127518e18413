// Tools that are not strict, in every format: any object is accepted and read back, regardless of
// the document; the tool's name and the call's form must still be right. And custom tools, whose
// calls carry one text.
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/constraint/call_stream.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/named_format.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <support/catch.hpp>
#include <support/data.hpp>
#include <support/random_tools.hpp>
#include <support/slow_validator.hpp>

using namespace tooldecode;
using namespace tooldecode::formats;
using namespace tooldecode::tools;
using Json = tooldecode::JsonValue;

namespace {

using Random = std::mt19937;

std::uint32_t below(Random& random, std::size_t n) {
  return static_cast<std::uint32_t>(random() % n);
}

const VocabularyIndex& cache() {
  static const VocabularyIndex shared{test::call_vocabulary()};
  return shared;
}

// A tool with many keywords on its arguments, and a strict one beside it.
ToolSet tools_of(bool strict) {
  Json documents =
      tooldecode::text::parse_json(R"([{"name": "loose", "parameters": {"type": "object",
    "properties": {
      "size": {"type": "integer", "minimum": 3, "maximum": 4},
      "place": {"type": "string", "enum": ["a", "b"]},
      "word": {"$ref": "#/$defs/word"},
      "when": {"type": ["string", "null"], "maxLength": 3},
      "inner": {"type": "object", "properties": {"x": {"type": "boolean"}}, "required": ["x"]},
      "list": {"type": "array", "items": {"type": "integer"}, "maxItems": 1}},
    "$defs": {"word": {"type": "string", "pattern": "^[a-z]{3}$"}},
    "required": ["size", "word"], "additionalProperties": false}},
    {"name": "tight", "parameters": {"type": "object",
      "properties": {"n": {"type": "integer"}}, "required": ["n"]}}])");
  documents[0]["strict"] = strict;
  return ToolSet::from_json(documents);
}

std::string random_text(Random& random) {
  static const std::vector<std::string> pieces{"a",  "7",    " ", "\"", "'",  "\\", "<", "é",
                                               "😀", "null", "{", "]",  "\n", "=",  ",", "true"};
  std::string text;
  for (auto n = below(random, 5); n > 0; --n) text += pieces[below(random, pieces.size())];
  return text;
}

Json random_value(Random& random, unsigned depth = 0) {
  switch (below(random, depth < 2 ? 7 : 5)) {
    case 0:
      return nullptr;
    case 1:
      return below(random, 2) == 1;
    case 2:
      return below(random, 200);
    case 3:
      return std::vector<double>{-2.5, 0.125, 1e20}[below(random, 3)];
    case 4:
      return random_text(random);
    case 5: {
      Json list = Json::array();
      for (auto n = below(random, 3); n > 0; --n) list.push_back(random_value(random, depth + 1));
      return list;
    }
    default: {
      Json object = Json::object();
      for (auto n = below(random, 3); n > 0; --n) {
        object[random_text(random)] = random_value(random, depth + 1);
      }
      return object;
    }
  }
}

bool is_positional(const NamedFormat& format) {
  return format.name == "toolken" || format.name == "tooldec";
}

// Whether the format writes documented strings without quotes.
bool has_bare_strings(const NamedFormat& format, const ToolSet& tools) {
  const ToolCall call{"loose", {{"size", 1}, {"place", "zzz"}}};
  const std::string text = format.write(std::vector{call}, tools);
  return text.find("\"zzz\"") == std::string::npos && text.find("'zzz'") == std::string::npos;
}

Json random_arguments(const NamedFormat& format, const ToolSet& tools, Random& random) {
  Json arguments  = Json::object();
  const bool bare = has_bare_strings(format, tools);
  for (const std::string& key : argument_names(tools[0])) {
    if (below(random, 2) == 0) {
      if (is_positional(format)) break;
      continue;
    }
    Json value = random_value(random);
    if (bare && (key == "place" || key == "word")) value = random_text(random);
    if (bare && key == "when" && !value.is_null()) value = random_text(random) + '.';
    arguments[key] = std::move(value);
  }
  if (!is_positional(format) && below(random, 2) == 0) arguments["more_"] = random_value(random);
  return arguments;
}

std::vector<ToolCall> streamed(const ToolCallFSM& calls, const std::string& text) {
  CallStream stream(calls);
  std::vector<ToolCall> result;
  std::string arguments;
  auto events = stream.push(text);
  for (auto& event : stream.finish()) events.push_back(std::move(event));
  for (const StreamEvent& event : events) {
    if (event.kind == StreamEvent::Kind::call_begin) result.push_back({.name = event.text});
    if (event.kind == StreamEvent::Kind::arguments) arguments += event.text;
    if (event.kind == StreamEvent::Kind::call_end) {
      result.back().arguments = text::parse_json(std::exchange(arguments, {}));
    }
  }
  return result;
}

bool accepts(const ToolCallFSM& calls, const std::string& text) {
  const auto state = calls.advance_bytes(calls.initial(), text);
  return state && calls.is_accepting(*state);
}

}  // namespace

TEST_CASE("NamedFormat of a tool that is not strict accepts any object and reads it back") {
  const ToolSet tools = tools_of(false), strict = tools_of(true);
  std::map<bool, int> conforming;
  for (const NamedFormat& format : named_formats()) {
    if (format.name == "minimax-m3") continue;  // enforces the document, see XmlCall's tests
    Random random(17);
    const ToolCallFSM calls(cache(), tools, format.format, {.choice = ToolChoice::required});
    const ToolCallFSM strict_calls(cache(), strict, format.format,
                                   {.choice = ToolChoice::required});
    int written = 0, refused = 0;
    for (int round = 0; written < 60; ++round) {
      REQUIRE(round < 600);
      const ToolCall call{"loose", random_arguments(format, tools, random)};
      CAPTURE(format.name, round, call.arguments.text());
      std::string text;
      try {
        text = format.write(std::vector{call}, tools);
      } catch (
          const Error& error) {  // a key of an inner object that the format has no way to write
        REQUIRE(error.code() == Errc::malformed_call);
        continue;
      }
      ++written;
      CAPTURE(text);
      REQUIRE(accepts(calls, text));
      CHECK(format.parse(text, tools) == std::vector{call});
      CHECK(streamed(calls, text) == std::vector{call});
      const Json& schema  = strict[0].parameters;
      const bool conforms = slow::conforms(call.arguments, schema, schema);
      const bool is_tight = accepts(strict_calls, format.write(std::vector{call}, strict));
      conforming[conforms] += 1;
      refused += is_tight ? 0 : 1;
      if (conforms) CHECK(is_tight);
      if (is_tight && !conforms) FAIL("the schema is enforced where the tool is strict");
      // The other tool is still strict, and unknown names are refused.
      for (const ToolCall& wrong : {ToolCall{"tight", {{"n", "x"}}}, ToolCall{"loos", {}}}) {
        try {
          CHECK_FALSE(accepts(calls, format.write(std::vector{wrong}, tools)));
        } catch (const Error& error) {
          CHECK(error.code() == Errc::malformed_call);
        }
      }
      if (text.size() > 2) CHECK_FALSE(accepts(calls, text.substr(0, text.size() / 2)));
    }
    CHECK(refused > 40);
  }
  CHECK(conforming[false] > 0);
}

TEST_CASE("NamedFormat of a tool that is not strict does not compile its parameters") {
  const ToolSet tools = ToolSet::parse(R"([{"type": "function", "function": {"name": "f",
    "strict": false, "parameters": {"type": "object", "properties": {
      "a": {"type": "string", "pattern": "(?<=a)b"}, "b": {"type": "no_such_type"}}}}}])");
  for (const NamedFormat& format : named_formats()) {
    CAPTURE(format.name);
    const ToolCallFSM calls(cache(), tools, format.format, {.choice = ToolChoice::required});
    const ToolCall call{"f", {{"a", "x"}, {"b", 3}}};
    const std::string text = format.write(std::vector{call}, tools);
    CHECK(accepts(calls, text));
    CHECK(format.parse(text, tools) == std::vector{call});
  }
}

TEST_CASE("NamedFormat of a custom tool accepts text that matches its pattern") {
  const ToolSet tools = ToolSet::parse(R"([
    {"type": "custom", "custom": {"name": "date", "description": "A day.", "format": {
      "type": "grammar", "grammar": {"syntax": "regex",
                                     "definition": "\\d{4}-\\d\\d|to\"day<\\n>"}}}},
    {"type": "custom", "name": "say", "format": {"type": "text"}}])");
  for (const NamedFormat& format : named_formats()) {
    CAPTURE(format.name);
    const ToolCallFSM calls(cache(), tools, format.format, {.choice = ToolChoice::required});
    const auto holds = [&](const char* name, const std::string& input) {
      const ToolCall call{name, {{"input", input}}};
      const std::string text = format.write(std::vector{call}, tools);
      CHECK(format.parse(text, tools) == std::vector{call});
      if (accepts(calls, text)) CHECK(streamed(calls, text) == std::vector{call});
      return accepts(calls, text);
    };
    CHECK(holds("date", "2024-05"));
    CHECK(holds("date", "to\"day<\n>"));
    for (const char* wrong :
         {"", "2024-5", "2024-055", "a2024-05", "today", "2024-05to\"day<\n>"}) {
      CHECK_FALSE(holds("date", wrong));
    }
    for (const char* any : {"", "null", "5", "a\nb \"c\" 'd' \\ é"}) CHECK(holds("say", any));
    for (const Json& other :
         {Json::object(), Json{{"input", 5}}, Json{{"input", "2024-05"}, {"x", 1}}}) {
      try {
        const std::string text = format.write(std::vector{ToolCall{"date", other}}, tools);
        CHECK_FALSE(accepts(calls, text));
      } catch (const Error& error) {
        CHECK(error.code() == Errc::malformed_call);
      }
    }
  }
}
