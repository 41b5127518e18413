#include <algorithm>
#include <cstddef>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/constraint/fast_forward_tokens.hpp>
#include <tooldecode/constraint/tool_library.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <support/catch.hpp>
#include <support/random_tools.hpp>

using namespace tooldecode;
using Json = tooldecode::JsonValue;

namespace {

const Vocabulary& all_tokens() {
  static const Vocabulary made = test::call_vocabulary();
  return made;
}

// Walks two machines side by side, which must answer alike after every text.
void compare(const ToolCallFSM& machine, const ToolCallFSM& plain, std::mt19937& random) {
  TokenMask mask(all_tokens().size()), expected(all_tokens().size());
  auto state = machine.initial(), plain_state = plain.initial();
  std::string text;
  for (int step = 0; step < 30; ++step) {
    INFO("text " << text);
    machine.fill_mask(state, mask.words());
    plain.fill_mask(plain_state, expected.words());
    REQUIRE(mask == expected);
    REQUIRE(machine.is_accepting(state) == plain.is_accepting(plain_state));
    REQUIRE(machine.mode(state) == plain.mode(plain_state));
    REQUIRE(machine.find_tool(state) == plain.find_tool(plain_state));
    REQUIRE(machine.find_argument(state) == plain.find_argument(plain_state));
    REQUIRE(machine.jump_forward(state) == plain.jump_forward(plain_state));
    if (machine.is_finished(state)) return;
    std::vector<TokenId> allowed, syntax;
    for (std::size_t i = 0; i < all_tokens().size(); ++i) {
      const auto token = static_cast<TokenId>(i);
      if (!expected.contains(token)) continue;
      allowed.push_back(token);
      if (i >= 256) syntax.push_back(token);
    }
    // Mostly the pieces of calls, so that walks end.
    const auto& from    = syntax.empty() || random() % 4 == 0 ? allowed : syntax;
    const TokenId token = from[random() % from.size()];
    state               = machine.advance(state, token).value();
    plain_state         = plain.advance(plain_state, token).value();
    text += all_tokens().bytes(token);
  }
}

ToolSet three_tools(std::mt19937& random) {
  for (;;) {
    if (ToolSet tools = test::random_tools(random); tools.size() == 3) return tools;
  }
}

template <class F>
void compare_requests(unsigned seed, const F& format, std::size_t budget) {
  std::mt19937 random(seed);
  const ToolLibrary<F> library{VocabularyIndex(all_tokens(), budget), format};
  const VocabularyIndex cache(all_tokens());
  ToolSet tools = three_tools(random);
  std::vector<std::pair<ToolCallFSM, ToolCallFSM>> earlier;
  for (int request = 0; request < 4; ++request) {
    if (request == 2) {  // another tool in the place of one
      const ToolSet others = three_tools(random);
      tools                = tools.with(random() % 3, [&] {
        Json document    = parse_json_value(others[0].document);
        document["name"] = "f7";
        return document;
      }());
    }
    std::vector<std::size_t> indices{0, 1, 2};
    std::shuffle(indices.begin(), indices.end(), random);
    indices.resize(1 + random() % 3);
    const ToolSet offered  = tools.subset(indices);
    const auto choice      = random() % 3 == 0   ? ToolChoice::automatic
                             : random() % 2 == 0 ? ToolChoice::named
                                                 : ToolChoice::required;
    const std::string name = choice == ToolChoice::named ? offered[offered.size() - 1].name : "";
    INFO("request " << request << " of " << offered.size() << " tools, choice "
                    << static_cast<int>(choice));
    earlier.emplace_back(
        library.machine(offered, choice, name),
        ToolCallFSM(cache, offered, format, ChoiceOptions{.choice = choice, .name = name}));
    for (const auto& [machine, plain] : earlier) compare(machine, plain, random);
  }
}

// Writes the tool's name behind the arguments, so that equal parameters are not enough.
struct NameBehindCall {
  static constexpr auto language = text::ValueReader::Language::json;

  [[nodiscard]] std::string trigger() const { return "["; }
  [[nodiscard]] bool only_at_start() const { return true; }
  [[nodiscard]] std::vector<CallOpening> openings(Grammar& grammar, const ToolSet& tools,
                                                  std::span<const std::size_t> chosen,
                                                  const ChoiceOptions& /*options*/) const {
    std::vector<std::pair<std::string, NodeId>> names;
    for (const std::size_t i : chosen) {
      const auto part = [&](Grammar& one) { return one.literal("()" + tools[i].name + "]"); };
      names.emplace_back(tools[i].name, grammar.part(static_cast<std::uint32_t>(i), part));
    }
    return {{trigger(), grammar.trie(names), true}};
  }
  [[nodiscard]] std::string write(std::span<const ToolCall> /*calls*/) const { return ""; }
  [[nodiscard]] std::vector<ToolCall> parse(std::string_view /*text*/,
                                            const ToolSet& /*tools*/) const {
    return {};
  }
};

// Two tools whose only argument has these schemas.
ToolSet two_tools(const std::string& a, const std::string& b) {
  const auto tool = [](const std::string& name, const std::string& schema) {
    return R"({"name": ")" + name + R"(", "parameters": {"type": "object", "properties": {"a": )" +
           schema + R"(}, "required": ["a"]}})";
  };
  return ToolSet::parse('[' + tool("f", a) + ',' + tool("g", b) + ']');
}

}  // namespace

TEST_CASE("ToolLibrary::machine accepts the same texts as a ToolCallFSM of the same tools") {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    INFO("seed " << seed);
    compare_requests(seed, PythonCall{}, VocabularyIndex::default_budget);
    compare_requests(seed, JsonCall::hermes(), VocabularyIndex::default_budget);
    compare_requests(seed, PythonCall{}, 20'000);  // starts anew many times
  }
}

TEST_CASE("ToolLibrary::machine of each choice equals a ToolCallFSM, where parts depend on it") {
  JsonCall format = JsonCall::hermes();
  format.fences   = {{"```json\n", "\n```"}};
  const ChoiceOptions options{.whitespace = 0};
  const VocabularyIndex index(all_tokens());
  const ToolSet tools = two_tools(R"({"type": "integer"})", R"({"type": "boolean"})");
  for (const auto& choices : {std::vector{ToolChoice::automatic, ToolChoice::required},
                              std::vector{ToolChoice::required, ToolChoice::automatic}}) {
    const ToolLibrary library(index, format, options);
    for (const ToolChoice choice : choices) {
      ChoiceOptions plain = options;
      plain.choice        = choice;
      const ToolCallFSM machine(library.machine(tools, choice)), other(index, tools, format, plain);
      for (const char* text :
           {"<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>",
            "<tool_call>\n{\"name\": \"f\", \"arguments\":  {\"a\": 1}}\n</tool_call>",
            "<tool_call>\n{\"name\": \"g\", \"arguments\": {\"a\":true}}\n</tool_call>"}) {
        INFO("choice " << static_cast<int>(choice) << ", " << text);
        CHECK(machine.find_refusal(text).has_value() == other.find_refusal(text).has_value());
      }
    }
    CHECK(library.size() == 2);
  }
}

TEST_CASE("ToolLibrary shares the parts of tools whose parameters are the same") {
  const VocabularyIndex index(all_tokens());
  std::mt19937 random(3);
  const auto machine_of = [&](const ToolSet& tools) {
    const ToolLibrary library(index, JsonCall::hermes(), {.whitespace = 0});
    return library.machine(tools, ToolChoice::required);
  };
  const auto calls = [](const char* name, const std::string& value) {
    return R"(<tool_call>
{"name": ")" +
           std::string(name) + R"(", "arguments": {"a": )" + value + "}}\n</tool_call>";
  };
  struct Case {
    const char* a;
    const char* b;
    const char* only_a;  // values
    const char* only_b;
  };
  for (const Case& one : {Case{R"({"enum": ["x"]})", R"({"enum": ["y"]})", "\"x\"", "\"y\""},
                          Case{R"({"const": true})", R"({"const": false})", "true", "false"}}) {
    INFO(one.a << ", " << one.b);
    const ToolCallFSM machine = machine_of(two_tools(one.a, one.b));
    CHECK_FALSE(machine.find_refusal(calls("f", one.only_a)));
    CHECK_FALSE(machine.find_refusal(calls("g", one.only_b)));
    CHECK(machine.find_refusal(calls("f", one.only_b)));
    CHECK(machine.find_refusal(calls("g", one.only_a)));
  }
  const ToolSet same        = two_tools(R"({"type": "string"})", R"({"type": "string"})");
  const ToolCallFSM machine = machine_of(same);
  compare(machine,
          ToolCallFSM(index, same, JsonCall::hermes(),
                      {.choice = ToolChoice::required, .whitespace = 0}),
          random);
  for (const auto& [name, number] : {std::pair{"f", 0}, std::pair{"g", 1}}) {
    const std::string call = calls(name, "\"");
    const auto state = machine.advance_bytes(machine.initial(), call.substr(0, call.find('}')));
    REQUIRE(state);
    CHECK(machine.find_tool(*state) == std::optional<std::size_t>(number));
  }
}

TEST_CASE("ToolLibrary compares each tool with few others, if all differ in one number or text") {
  constexpr int count = 1500;
  for (const bool is_number : {true, false}) {
    Json documents = Json::array();
    for (int i = 0; i < count; ++i) {
      const std::string text = "a long text that they begin with " + std::to_string(count + i);
      const Json schema      = is_number ? Json{{"maximum", i}} : Json{{"const", text}};
      documents.push_back({{"name", "f" + std::to_string(i)},
                           {"parameters", {{"type", "object"}, {"properties", {{"a", schema}}}}}});
    }
    const ToolLibrary library(VocabularyIndex(all_tokens()), JsonCall::hermes(),
                              {.limits = {.steps = 10 * count * count / 4}});
    CHECK_NOTHROW(library.machine(ToolSet::from_json(std::move(documents))));
  }
}

TEST_CASE("ToolLibrary makes a part per tool for a format that does not declare shares_parts") {
  const ToolLibrary library(VocabularyIndex(all_tokens()), NameBehindCall{});
  const ToolCallFSM machine = library.machine(
      two_tools(R"({"type": "string"})", R"({"type": "string"})"), ToolChoice::required);
  CHECK_FALSE(machine.find_refusal("[f()f]"));
  CHECK_FALSE(machine.find_refusal("[g()g]"));
  CHECK(machine.find_refusal("[g()f]"));
}

TEST_CASE("ToolLibrary names the place of each tool that it refuses, also of equal ones") {
  const ToolLibrary library(VocabularyIndex(all_tokens()), JsonCall::hermes());
  const std::string bad = R"({"type": "string", "pattern": "("})";
  for (const bool is_second : {false, true}) {
    const ToolSet tools = is_second ? two_tools(R"({"type": "string"})", bad) : two_tools(bad, bad);
    const std::string place = is_second ? "#/1/" : "#/0/";
    CHECK_THROWS_WITH(library.machine(tools), test::contains(place));
  }
}

TEST_CASE("ToolLibrary compiles a tool once, whichever sets offer it") {
  const ToolLibrary library{VocabularyIndex(all_tokens()), PythonCall{}};
  std::mt19937 random(1);
  const ToolSet tools = three_tools(random);
  CHECK(library.size() == 0);
  const std::size_t last[] = {2}, turned[] = {2, 0};
  (void)library.machine(tools.subset(last));
  CHECK(library.size() == 1);
  const ToolCallFSM machine = library.machine(tools.subset(turned));
  CHECK(library.size() == 2);
  (void)library.machine(tools);
  (void)library.machine(tools);
  CHECK(library.size() == 3);
  (void)library.machine(tools.with(1, Json{{"name", "g"}}));
  CHECK(library.size() == 4);
  (void)library.machine(ToolSet::parse(tools[0].document));  // equal, but another tool
  CHECK(library.size() == 5);

  const auto state = machine.advance_bytes(machine.initial(), "[f0(");
  REQUIRE(state);
  CHECK(machine.find_tool(*state) == std::optional<std::size_t>(1));
  CHECK(machine.tools()[1].name == "f0");
}

TEST_CASE("ToolLibrary forgets tools that no set holds, once they are many") {
  const ToolLibrary library{VocabularyIndex(all_tokens()), PythonCall{}};
  const ToolSet kept = ToolSet::from_json(Json{{"name", "kept"}});
  (void)library.machine(kept);
  {
    Json documents = Json::array();
    for (int i = 0; i < 1100; ++i) documents.push_back({{"name", "f" + std::to_string(i)}});
    (void)library.machine(ToolSet::from_json(documents));
    CHECK(library.size() == 1101);
  }
  (void)library.machine(kept);
  CHECK(library.size() == 1);
}

TEST_CASE("ToolLibrary over its budget starts anew, and earlier machines keep working") {
  const ToolLibrary library{VocabularyIndex(all_tokens(), 10'000), PythonCall{}};
  std::mt19937 random(1);
  const ToolSet tools = three_tools(random);
  std::size_t max = 0, renewed = 0;
  for (int i = 0; i < 8; ++i) {
    const ToolSet fresh       = ToolSet::parse(tools[0].document);
    const ToolCallFSM machine = library.machine(fresh);
    renewed += library.size() == 1;
    max = std::max(max, library.size());
    compare(machine, ToolCallFSM(all_tokens(), fresh, PythonCall{}), random);
  }
  CHECK(renewed > 1);
  CHECK(max < 8);
}

TEST_CASE(
    "ToolLibrary refuses options of a single call, and tool choices that its tools cannot meet") {
  CHECK_THROWS_WITH(ToolLibrary(VocabularyIndex(all_tokens()), PythonCall{},
                                ChoiceOptions{.leading_keys = {"a"}}),
                    "leading_keys: must be empty, and open_ended false: they are options of a "
                    "single call");
  CHECK_THROWS_AS(
      ToolLibrary(VocabularyIndex(all_tokens()), PythonCall{}, ChoiceOptions{.open_ended = true}),
      Error);
  const ToolLibrary library{VocabularyIndex(all_tokens()), PythonCall{}};
  CHECK_THROWS_WITH(library.machine(ToolSet{}, ToolChoice::required),
                    "tool choice \"required\": must be automatic or none where there are no tools");
  const ToolSet one = ToolSet::from_json(Json{{"name", "f"}});
  CHECK_THROWS_WITH(library.machine(one, ToolChoice::named, "g"), "g: must be the name of a tool");
  CHECK_NOTHROW(library.machine(one, ToolChoice::named, "f"));
}
