#include <string>
#include <vector>

#include <tooldecode/formats/harmony_call.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

#include <support/catch.hpp>
#include <support/format_checks.hpp>

using namespace tooldecode;
using namespace tooldecode::formats;
using Json = tooldecode::JsonValue;

namespace {

const HarmonyCall harmony;
const std::string thought   = "<|channel|>analysis<|message|>Which tool?<|end|><|start|>assistant";
const std::string arguments = R"({"city": "Paris"})";
const ToolCall weather{"get_weather", {{"city", "Paris"}}};

const ToolSet& documents() {
  static const ToolSet set = ToolSet::parse(R"([
    {"name": "get_weather", "parameters": {"type": "object",
      "properties": {"city": {"type": "string"}}, "required": ["city"]}},
    {"name": "get_weather.now", "parameters": {}}, {"name": "m.now", "parameters": {}}])");
  return set;
}

int refused(const std::string& text, const ChoiceOptions& options = test::loose()) {
  return test::refused(harmony, documents(), text, options);
}

std::string with_control_tokens(std::string text) {
  for (const std::string delimiter : {"<|start|>", "<|channel|>", "<|constrain|>", "<|message|>",
                                      "<|end|>", "<|call|>", "<|return|>"}) {
    for (std::size_t at = text.find(delimiter); at != std::string::npos;
         at             = text.find(delimiter, at + 2)) {
      text.replace(at, delimiter.size(), control_open + delimiter + control_close);
    }
  }
  return text;
}

}  // namespace

TEST_CASE("HarmonyCall writes and reads calls of gpt-oss in the commentary channel") {
  const std::vector<ToolCall> two{weather, {"m.now"}};
  const std::string text =
      "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>"
      "{\"city\": \"Paris\"}<|call|><|start|>assistant"
      "<|channel|>commentary to=functions.m.now <|constrain|>json<|message|>{}<|call|>";
  CHECK(harmony.write(two) == text);
  CHECK(harmony.parse(text, {}) == two);
  CHECK(harmony.parse(thought + text + "\n", {}) == two);
  CHECK(harmony.parse("One moment.", {}).empty());
  CHECK(harmony.parse("", {}).empty());
  CHECK(harmony.write({}).empty());
  CHECK(refused(thought + text) == -1);
  CHECK(refused(with_control_tokens(thought + text)) == -1);
  CHECK(refused(text, {.choice = ToolChoice::required}) == -1);
  CHECK(refused(text, test::loose({.parallel = false})) ==
        static_cast<int>(text.find("<|start|>")));
  ChoiceOptions options = test::loose({.choice = ToolChoice::required});
  CHECK(refused(thought + text, options) != -1);
  options.reasoning = HarmonyCall::analysis();
  CHECK(refused(thought + text, options) == -1);
}

TEST_CASE("HarmonyCall reads every header that addresses a function as that of a call") {
  std::vector<std::string> headers;
  for (const std::string channel : {"analysis", "commentary", "final"}) {
    for (const std::string type :
         {"", " ", " <|constrain|>json", "<|constrain|>json", " json", " <|constrain|>json "}) {
      const std::string end = type + "<|message|>";
      headers.push_back("<|channel|>" + channel + " to=functions.get_weather" + end);
      headers.push_back(" to=functions.get_weather<|channel|>" + channel + end);
      headers.push_back(" to=functions.get_weather <|channel|>" + channel + end);
    }
  }
  const std::vector<std::string> before{
      "",
      "<|start|>assistant",
      thought,
      "One moment.<|end|><|start|>assistant",
      "<|channel|>commentary<|message|>One moment.<|end|><|start|>assistant",
      thought + "<|channel|>final<|message|><|end|><|start|>assistant"};
  for (const std::string& header : headers) {
    for (const std::string& first : before) {
      INFO(first + header);
      for (const std::string end : {"", "<|call|>"}) {
        const std::string text = first + header + arguments + end;
        CHECK(harmony.parse(text, documents()) == std::vector{weather});
        CHECK(refused(text) == -1);
        CHECK(refused(with_control_tokens(text)) == -1);
      }
      // Other arguments and other tools are refused. After the role, text may continue up to a
      // delimiter.
      const std::string text = first + header;
      const auto begin       = static_cast<int>(text.size());
      const std::size_t name = text.find("get_weather");
      const bool is_text     = first.empty() && !header.starts_with("<|");
      const auto refused_at  = [&](std::string broken, std::size_t at) {
        const std::size_t delimiter =
            broken.find("<|channel|>") + std::string("<|channel|>").size();
        CHECK(refused(broken) == static_cast<int>(is_text ? delimiter - 1 : at));
      };
      CHECK(refused(text + "{}") == begin + 1);
      CHECK(refused(text + "print(1)") == begin);
      refused_at(std::string(text).replace(name, 11, "get_times"), name + 4);
      refused_at(std::string(text).replace(name - 10, 10, ""), name - 10);
    }
    const ChoiceOptions required = test::loose({.choice = ToolChoice::required});
    CHECK(refused(header + arguments, required) == -1);
    const std::string none = " to=";
    CHECK(refused(header, test::loose({.choice = ToolChoice::none})) >
          static_cast<int>(header.find(none)));
  }
}

TEST_CASE("HarmonyCall takes messages without a recipient as text") {
  const ChoiceOptions none = test::loose({.choice = ToolChoice::none});
  for (const std::string text :
       {"", "Hello.", " to=functions.f", "a <| b |>", "<|channel|>final<|message|>Hello.",
        "<|channel|>final <|constrain|>json<|message|>{}", "Hello.<|end|>",
        "\n<|start|>assistant<|channel|>analysis<|message|>Hm", "<|channel|>analysis<|message|>Hm",
        "<|channel|>commentary<|message|>So<|end|>"}) {
    INFO(text);
    CHECK(harmony.parse(text, documents()).empty());
    CHECK(refused(text, none) == -1);
    CHECK(refused(with_control_tokens(text)) == -1);
    if (!text.starts_with("<|")) continue;
    CHECK(harmony.parse(thought + text, documents()).empty());
    CHECK(refused(thought + text, none) == -1);
    CHECK(refused(with_control_tokens(thought + text)) == -1);
  }
  for (const std::string text :
       {"<|channel|>other", "<|start|>user", "Hello.<|channel|>", "Hello.<|end|>Hello",
        "Hello.<|start|>", "<|message|>", " to=functions.m.now<|message|>", "<|constrain|>",
        "<|channel|>final to=all", "<|channel|>final<|message|>a<|call|>", "a<|return|>"}) {
    INFO(text);
    CHECK(refused(text) >= 0);
    CHECK(refused(text, none) >= 0);
    CHECK(refused(with_control_tokens(text)) >= 0);
  }
  // Messages to the model's built-in tools are no calls and are not allowed.
  for (const std::string header :
       {" to=container.exec<|channel|>commentary<|message|>",
        "<|channel|>commentary to=python <|constrain|>code<|message|>"}) {
    CHECK(harmony.parse(thought + header + "print(\"<|x\")", documents()).empty());
    CHECK(refused(thought + header) >= 0);
  }
}

TEST_CASE("HarmonyCall lets the last call end with the text") {
  const auto text = harmony.write(std::vector<ToolCall>{{"m.now"}});
  const auto cut  = text.substr(0, text.size() - std::string_view("<|call|>").size());
  CHECK(harmony.parse(cut, documents()) == std::vector<ToolCall>{{"m.now"}});
  CHECK(refused(cut) == -1);
  const std::string next = "<|start|>assistant" + text;
  CHECK(refused(text + next) == -1);
  CHECK(refused(cut + next) == static_cast<int>(cut.size() + 2));
  CHECK(test::error_of(harmony, documents(), cut + next) != "none");
}

TEST_CASE("HarmonyCall::analysis allows no other message inside a reasoning block") {
  const ChoiceOptions options = test::loose({.reasoning = HarmonyCall::analysis()});
  const std::string begin     = "<|channel|>analysis<|message|>a <|";
  CHECK(refused(begin + "|end|> b<|end|><|start|>assistant<|channel|>final<|message|>", options) ==
        -1);
  for (const std::string delimiter : {"message|>", "channel|>", "call|>", "constrain|>"}) {
    CHECK(refused(begin + delimiter, options) == static_cast<int>((begin + delimiter).size()) - 1);
  }
}

TEST_CASE("HarmonyCall::parse of a broken message throws with its byte") {
  const auto at = [](const std::string& text) {
    return test::error_of(harmony, documents(), text);
  };
  const std::string header = "<|channel|>commentary to=functions.m.now<|message|>";
  CHECK(at(header) == "malformed_call byte 51");
  CHECK(at(header + "[]") == "malformed_call byte 51");
  CHECK(at(header + "{} and") == "malformed_call byte 54");
  CHECK(at(header + "{}<|call|> and") == "malformed_call byte 62");
  CHECK(at("<|channel|>commentary to=functions.<|message|>{}") == "malformed_call byte 46");
  CHECK(at("<|channel|>commentary to=functions.m.now") == "malformed_call byte 40");
  CHECK(at("<|channel|>commentary to=functions.m.now to=functions.f<|message|>{}") ==
        "malformed_call byte 41");
  CHECK(at("<|start|>user<|message|>") == "malformed_call byte 9");
  CHECK(at("Hello.<|channel|>final<|message|>") == "malformed_call byte 0");
}

TEST_CASE("HarmonyCall refuses a tool whose name a header cannot hold") {
  for (const std::string name : {"a b", " a", "a<|b"}) {
    const ToolSet set = ToolSet::from_json(
        Json::array({{{"name", "f"}}, {{"type", "function"}, {"function", {{"name", name}}}}}));
    try {
      static_cast<void>(test::refused(harmony, set, ""));
      FAIL(name);
    } catch (const Error& error) {
      CHECK(error.code() == Errc::unsupported_name);
      CHECK(error.where() == "#/1/function/name");
    }
  }
  const ToolSet set = ToolSet::from_json(Json::array({{{"name", "a<"}}, {{"name", "a"}}}));
  const std::vector<ToolCall> calls{{"a<"}, {"a"}};
  CHECK(harmony.parse(harmony.write(calls), set) == calls);
  CHECK(test::refused(harmony, set, harmony.write(calls)) == -1);
}
