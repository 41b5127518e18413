#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <tooldecode/formats/call_format.hpp>
#include <tooldecode/formats/call_marks.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <support/catch.hpp>
#include <support/data.hpp>
#include <support/format_checks.hpp>
#include <support/slow_validator.hpp>

using namespace tooldecode;
using namespace tooldecode::grammar;
using namespace tooldecode::formats;
using Json = tooldecode::JsonValue;

namespace {

const PythonCall python;
const JsonCall hermes = JsonCall::hermes();

template <CallFormat F>
Automaton automaton(const F& format, const ToolSet& tools, const ChoiceOptions& options) {
  CallGrammar built = build_call_grammar(format, tools, test::loose(options));
  return Automaton(built.grammar);
}

// The offset of the first byte that is not allowed; the size where the text is no whole answer;
// else empty.
std::optional<std::size_t> rejected_at(const Automaton& machine, std::string_view text) {
  auto state = machine.initial();
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto next = machine.step(state, static_cast<std::uint8_t>(text[i]));
    if (!next) return i;
    state = *next;
  }
  if (!machine.is_accepting(state)) return text.size();
  return std::nullopt;
}

ToolSet two_tools() {
  return ToolSet::parse(
      R"([{"name": "f", "parameters": {"type": "object", "properties": {
             "a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a"]}},
          {"name": "f.g"}])");
}

struct Row {
  std::string id;
  ToolSet tools;
  std::vector<ToolCall> calls;
};

// Rows with a conforming canonical call; the order of keys is kept.
std::vector<Row> rows_of(const std::filesystem::path& path, const char* tools) {
  std::vector<Row> rows;
  std::istringstream lines(test::read_text(path));
  for (std::string line; std::getline(lines, line);) {
    const Json row = tooldecode::text::parse_json(line);
    if (!row.contains("call_valid") || row["call_valid"] != true || row["call_json"].is_null()) {
      continue;
    }
    Row result{row["id"].string(), ToolSet::from_json(row[tools]), {}};
    const Json& json = row["call_json"];
    for (const Json& call : json.is_array() ? json : Json::array({json})) {
      result.calls.push_back({call["name"].string(), call["arguments"]});
    }
    rows.push_back(std::move(result));
  }
  return rows;
}

// Wrong calls by name, made by mutating a call. A validator that does not use grammars decides what
// is wrong.
std::map<std::string, ToolCall> wrong_calls(const ToolCall& call, const Tool& tool) {
  std::map<std::string, ToolCall> wrong;
  wrong["unknown tool"] = {call.name + "_x", call.arguments};
  if (tool.parameters["additionalProperties"] == false) {
    wrong["unknown key"]                           = call;
    wrong["unknown key"].arguments["no_such_key_"] = 1;
  }
  for (const Json& name : tool.parameters.value("required", Json::array())) {
    if (!call.arguments.contains(name.get<std::string>())) continue;
    wrong["missing key"] = call;
    wrong["missing key"].arguments.erase(name.get<std::string>());
  }
  for (const auto& [key, value] : call.arguments.items()) {
    for (const Json& other :
         {Json("zzz"), Json(12345), Json(true), Json::array({Json::object()})}) {
      ToolCall changed       = call;
      changed.arguments[key] = other;
      if (!slow::conforms(changed.arguments, tool.parameters, tool.parameters)) {
        wrong["wrong type of " + key] = changed;
      }
    }
  }
  return wrong;
}

// Checks that every canonical call is accepted and every wrong call is not; returns how many of
// each.
template <CallFormat F>
void check_rows(const F& format, const std::vector<Row>& rows, int& accepted, int& wrong) {
  for (const Row& row : rows) {
    INFO(row.id);
    const Automaton machine = automaton(format, row.tools, {.choice = ToolChoice::required});
    const std::string text  = format.write(row.calls);
    INFO(text);
    const auto at = rejected_at(machine, text);
    INFO("rejected at " << at.value_or(0));
    CHECK_FALSE(at);
    accepted += at ? 0 : 1;
    const std::string cut = text.substr(0, text.size() - 1);
    CHECK(rejected_at(machine, cut) == cut.size());
    const auto index = row.tools.find(row.calls[0].name);
    REQUIRE(index);
    for (const auto& [name, call] : wrong_calls(row.calls[0], row.tools[*index])) {
      std::vector<ToolCall> calls = row.calls;
      calls[0]                    = call;
      INFO(name);
      const std::string bad = format.write(calls);
      const auto where      = rejected_at(machine, bad);
      CHECK(where);
      // Both texts may continue while they are equal.
      const auto same = std::mismatch(text.begin(), text.end(), bad.begin(), bad.end()).first;
      CHECK(where.value_or(bad.size()) >= static_cast<std::size_t>(same - text.begin()));
      ++wrong;
    }
  }
}

}  // namespace

TEST_CASE("build_call_grammar over Python calls accepts answers as the tool choice says") {
  const ToolSet tools = two_tools();
  struct Case {
    std::string text;
    bool automatic, none, required, named_f, single;
  };
  const std::vector<Case> cases = {
      {"", true, true, false, false, true},
      {"Hello.", true, true, false, false, true},
      {"Hello [f(a=1)]", true, true, false, false, true},
      {"   Hello", true, true, false, false, true},
      {"[f(a=1)]", true, false, true, true, true},
      {"\n[f(a=1)]", true, false, true, true, true},
      {"   [f(a=1)]", false, false, false, false, false},
      {"[f(b='x', a=1)]", true, false, true, true, true},
      {"[f(a=-1,b=\"it's\")]", true, false, true, true, true},
      {"[f.g()]", true, false, true, false, true},
      {"[f(a=1), f.g()]", true, false, true, false, false},
      {"[f(a=1), f(a=2)]", true, false, true, false, false},
      {"[f(a=1)", false, false, false, false, false},
      {"[f(a=1)] and", false, false, false, false, false},
      {"[]", false, false, false, false, false},
      {"[f()]", false, false, false, false, false},
      {"[f(b='x')]", false, false, false, false, false},
      {"[f(a=1, a=2)]", false, false, false, false, false},
      {"[f(a='1')]", false, false, false, false, false},
      {"[f(a=1, c=2)]", false, false, false, false, false},
      {"[f.g(a=1)]", false, false, false, false, false},
      {"[h()]", false, false, false, false, false},
      {"[f.g.h()]", false, false, false, false, false},
  };
  const Automaton automatic = automaton(python, tools, {});
  const Automaton none      = automaton(python, tools, {.choice = ToolChoice::none});
  const Automaton required  = automaton(python, tools, {.choice = ToolChoice::required});
  const Automaton named     = automaton(python, tools, {.choice = ToolChoice::named, .name = "f"});
  const Automaton single    = automaton(python, tools, {.parallel = false});
  for (const Case& c : cases) {
    INFO(c.text);
    CHECK(!rejected_at(automatic, c.text) == c.automatic);
    CHECK(!rejected_at(none, c.text) == c.none);
    CHECK(!rejected_at(required, c.text) == c.required);
    CHECK(!rejected_at(named, c.text) == c.named_f);
    CHECK(!rejected_at(single, c.text) == c.single);
  }
  const Automaton ordered =
      automaton(python, tools, {.choice = ToolChoice::required, .documented_order = true});
  CHECK_FALSE(rejected_at(ordered, "[f(a=1, b='x')]"));
  CHECK(rejected_at(ordered, "[f(b='x', a=1)]") == 3u);
}

TEST_CASE("build_call_grammar over Hermes calls accepts answers as the tool choice says") {
  const ToolSet tools = two_tools();
  const std::string f = hermes.write(std::vector<ToolCall>{{"f", Json{{"a", 1}}}});
  const std::string g = hermes.write(std::vector<ToolCall>{{"f.g"}});
  struct Case {
    std::string text;
    bool automatic, none, required, named_f, single;
  };
  const std::vector<Case> cases = {
      {"", true, true, false, false, true},
      {"Hello <tool_cal>", true, true, false, false, true},
      {"a < b <<tool", true, true, false, false, true},
      {f, true, false, true, true, true},
      {"Let me see.\n" + f, true, false, false, false, true},
      {"<tool_" + f, true, false, false, false, true},
      {f + "\n" + g, true, false, true, false, false},
      {f + "\nDone.", false, false, false, false, false},
      {"<tool_call>", false, false, false, false, false},
      {"<tool_call>\n{\"name\": \"h\", \"arguments\": {}}\n</tool_call>", false, false, false,
       false, false},
      {"<tool_call>\n{\"arguments\": {}, \"name\": \"f.g\"}\n</tool_call>", false, false, false,
       false, false},
      {"<tool_call>\n{\"name\": \"f.g\", \"parameters\": {}}\n</tool_call>", false, false, false,
       false, false},
      {"<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>", false, false, false,
       false, false},
  };
  const Automaton automatic = automaton(hermes, tools, {});
  const Automaton none      = automaton(hermes, tools, {.choice = ToolChoice::none});
  const Automaton required  = automaton(hermes, tools, {.choice = ToolChoice::required});
  const Automaton named     = automaton(hermes, tools, {.choice = ToolChoice::named, .name = "f"});
  const Automaton single    = automaton(hermes, tools, {.parallel = false});
  for (const Case& c : cases) {
    INFO(c.text);
    CHECK(!rejected_at(automatic, c.text) == c.automatic);
    CHECK(!rejected_at(none, c.text) == c.none);
    CHECK(!rejected_at(required, c.text) == c.required);
    CHECK(!rejected_at(named, c.text) == c.named_f);
    CHECK(!rejected_at(single, c.text) == c.single);
  }
}

TEST_CASE("build_call_grammar with tool choice none accepts no text that holds the trigger") {
  for (const std::string trigger : {"<t>", "aab", "aaa", "abab", "<<a"}) {
    const JsonCall format{trigger, "!", " "};
    const Automaton none = automaton(format, two_tools(), {.choice = ToolChoice::none});
    for (unsigned number = 0; number < 4096; ++number) {  // all texts of six letters out of four
      std::string text;
      for (unsigned i = 0; i < 6; ++i)
        text += trigger.substr(0, 3).append("x")[number >> (2 * i) & 3];
      INFO(trigger << " in " << text);
      const auto found    = text.find(trigger);
      const auto expected = found == std::string::npos ? found : found + trigger.size() - 1;
      if (rejected_at(none, text).value_or(std::string::npos) != expected)
        FAIL("expected " << found);
    }
  }
}

TEST_CASE("build_call_grammar tags states inside a call with the call, the tool and the argument") {
  const ToolSet tools     = two_tools();
  const Automaton machine = automaton(python, tools, {.choice = ToolChoice::required});
  const auto tags_after   = [&](std::string_view text) {
    auto state = machine.initial();
    for (const char c : text) state = *machine.step(state, static_cast<std::uint8_t>(c));
    auto tags = machine.tags(state);
    std::sort(tags.begin(), tags.end());
    return tags;
  };
  constexpr auto mode = CallGrammar::tool_mode;
  CHECK(tags_after("[f") == std::vector<std::uint32_t>{mode});
  CHECK(tags_after("[f(") == std::vector<std::uint32_t>{0, mode});
  CHECK(tags_after("[f(a=1, b='x") ==
        std::vector<std::uint32_t>{0, argument_tag + 1, mark::argument, mode});
  CHECK(tags_after("[f.g(") == std::vector<std::uint32_t>{1, mode});
}

TEST_CASE("build_call_grammar with reasoning accepts a block in which a trigger has no effect") {
  const ToolSet tools     = two_tools();
  const std::string g     = hermes.write(std::vector<ToolCall>{{"f.g"}});
  const std::string block = "<think>\nf? <tool_call> [f(]\n</think>\n\n";
  for (const ToolChoice choice :
       {ToolChoice::automatic, ToolChoice::none, ToolChoice::required, ToolChoice::named}) {
    const bool calls = choice != ToolChoice::none;
    const bool text  = choice == ToolChoice::automatic || choice == ToolChoice::none;
    ChoiceOptions options{.choice = choice, .name = "f.g", .reasoning = ReasoningDelimiters{}};
    CAPTURE(static_cast<int>(choice));
    const Automaton marked = automaton(hermes, tools, options);
    CHECK(!rejected_at(marked, block + g) == calls);
    CHECK(!rejected_at(marked, g) == calls);
    CHECK(!rejected_at(marked, block + "Hello.") == text);
    CHECK(!rejected_at(marked, "Hello. <think>") == text);
    CHECK(rejected_at(marked, "<think>Hello."));
    CHECK(rejected_at(marked, "<think>" + g));
    const Automaton listed = automaton(python, tools, options);
    CHECK(!rejected_at(listed, block + "[f.g()]") == calls);
    CHECK(!rejected_at(listed, "[f.g()]") == calls);
    CHECK(!rejected_at(listed, block + "Hello [f(].") == text);
    options.reasoning->begin.clear();  // the prompt has opened the block
    const Automaton opened = automaton(hermes, tools, options);
    CHECK(!rejected_at(opened, "<tool_call></think>" + g) == calls);
    CHECK(!rejected_at(opened, "</think>Hello.") == text);
    CHECK(rejected_at(opened, g));
    CHECK(rejected_at(opened, "Hello."));
  }
  CHECK_THROWS_WITH(automaton(hermes, tools, {.reasoning = ReasoningDelimiters{.end = ""}}),
                    "reasoning: what ends a block must not be empty");
}

TEST_CASE("build_call_grammar of an impossible tool choice or schema throws the matching error") {
  const auto code = [](const ToolSet& tools, const ChoiceOptions& options) {
    try {
      static_cast<void>(build_call_grammar(python, tools, options));
    } catch (const Error& e) {
      return std::string(name(e.code()));
    }
    return std::string("none");
  };
  CHECK(code(two_tools(), {.choice = ToolChoice::named, .name = "h"}) == "unknown_tool");
  CHECK(code({}, {.choice = ToolChoice::required}) == "invalid_option");
  CHECK(code({}, {}) == "none");
  CHECK(code(ToolSet::parse(R"([{"name": "f", "parameters": {"properties": {"a": {"enum": []}},
                                 "required": ["a"]}}])"),
             {}) == "unsatisfiable_schema");
  const Automaton machine = automaton(hermes, {}, {});
  CHECK_FALSE(rejected_at(machine, "no tools"));
  CHECK(rejected_at(machine, "<tool_call>") == 10u);
}

TEST_CASE(
    "build_call_grammar over published calls accepts conforming ones and refuses mutated ones",
    "[published]") {
  int accepted = 0, rows = 0, wrong = 0;
  for (const char* file :
       {"bfcl/exec.jsonl", "bfcl/live_multiple.jsonl.gz", "bfcl/live_parallel.jsonl",
        "bfcl/live_parallel_multiple.jsonl", "bfcl/live_simple.jsonl", "bfcl/multiple.jsonl",
        "bfcl/parallel.jsonl", "bfcl/parallel_multiple.jsonl", "bfcl/simple_python.jsonl",
        "apibank/level1.jsonl", "apibank/level2.jsonl"}) {
    TOOLDECODE_REQUIRE_SHARED(path, file);
    INFO(file);
    const auto read =
        rows_of(path, std::string_view(file).starts_with("apibank") ? "apis" : "functions");
    check_rows(python, read, accepted, wrong);
    check_rows(hermes, read, accepted, wrong);
    rows += static_cast<int>(2 * read.size());
  }
  INFO(accepted << " of " << rows << " canonical calls accepted, " << wrong
                << " wrong calls tried");
  CHECK(accepted == rows);
  CHECK(rows > 2800);
  CHECK(wrong > 9000);
}
