// llama.cpp's chats of the model families that have a format here: the calls, the reasoning and the
// content that its tests expect are read, and the constraint accepts the text under `auto`.
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/formats/delimited_call.hpp>
#include <tooldecode/formats/delimiter.hpp>
#include <tooldecode/formats/harmony_call.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/xml_call.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <support/byte_vocabulary.hpp>
#include <support/catch.hpp>
#include <support/data.hpp>

using namespace tooldecode;
using namespace tooldecode::formats;
using namespace tooldecode::tools;
using Json = tooldecode::JsonValue;

namespace {

struct Family {
  std::string part;  // of the template's name
  ReasoningDelimiters reasoning;
  std::vector<std::string> opens;  // what a first call begins with
  std::function<ToolCallFSM(const VocabularyIndex&, const ToolSet&, const ChoiceOptions&)>
      constrain;
};

template <class F>
Family family(std::string part, const F& format, std::vector<std::string> opens = {},
              ReasoningDelimiters reasoning = {}) {
  opens.emplace_back(format.trigger());
  return {
      std::move(part), std::move(reasoning), std::move(opens),
      [format](const VocabularyIndex& cache, const ToolSet& tools, const ChoiceOptions& options) {
        return ToolCallFSM(cache, tools, format, options);
      }};
}

const std::vector<Family>& families() {
  static const std::vector<Family> all{
      family("Qwen3-Coder", XmlCall::qwen3_coder(), {"<function="}),
      family("Qwen3.5", XmlCall::qwen3_coder(), {"<function="}),
      family("Nemotron-3", XmlCall::qwen3_coder(), {"<function="}),
      family("StepFun3.5", XmlCall::qwen3_coder(), {"<function="}),
      family("Qwen2.5", JsonCall::hermes()),
      family("QwQ", JsonCall::hermes()),
      family("Hermes", JsonCall::hermes()),
      family("MiMo-VL", JsonCall::hermes()),
      family("GLM-4", XmlCall::glm()),
      family("DeepSeek-R1", DelimitedCall::deepseek_v3()),
      family("deepseek-r1", DelimitedCall::deepseek_v3()),
      family("DeepSeek-V3.1", DelimitedCall::deepseek_v3_1()),
      family("Kimi-K2", DelimitedCall::kimi_k2(), {"<|tool_call_begin|>"}),
      family("gpt-oss", HarmonyCall{}, {}, HarmonyCall::analysis()),
      family("Llama-3", JsonCall::llama()),
      family("Mistral-Nemo", JsonCall::mistral()),
      family("Ministral", DelimitedCall::mistral(), {}, {"[THINK]", "[/THINK]"}),
      family("Devstral", DelimitedCall::mistral(), {}, {"[THINK]", "[/THINK]"}),
  };
  return all;
}

std::string bytes_of(const std::string& hexadecimal) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hexadecimal.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(hexadecimal.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

ToolSet tools_of(const Json& row) {
  Json documents = Json::array();
  for (const Json& tool : row.at("tools")) {
    documents.push_back(
        {{"name", tool.at("name")},
         {"parameters", tooldecode::text::parse_json(tool.at("parameters").get<std::string>())}});
  }
  return ToolSet::from_json(documents);
}

// Why a chat is correctly read in another way here. Decided by the chat, not by the verdict.
std::optional<std::string> convention_of(const Json& row, const std::string& text) {
  const bool is_answer_of_schema = !row.at("json_schema").get<std::string>().empty();
  if (text.find("to=container.exec") != std::string::npos ||
      text.find("to=python ") != std::string::npos) {
    return "a tool of the model's own, which the request does not offer: not to be called";
  }
  if (is_answer_of_schema && text.find("```") != std::string::npos) {
    return "a block of Markdown around an answer of a schema: it is content";
  }
  return std::nullopt;
}

// The first difference from what is expected, if any.
std::optional<std::string> difference(const Family& family, const Json& row,
                                      const std::string& text, const VocabularyIndex& cache) {
  const ToolSet tools = tools_of(row);
  const auto& marks   = family.reasoning;
  const auto start    = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  const bool closes   = text.find(marks.end) != std::string::npos;
  const bool begins   = std::string_view(text).substr(start).starts_with(marks.begin);
  ChoiceOptions options{.whitespace = 40};
  if (begins || closes) options.reasoning = marks;
  if (!begins && closes) options.reasoning->begin.clear();  // the prompt has opened it
  const ToolCallFSM fsm = family.constrain(cache, tools, options);

  std::vector<ToolCall> expected;
  for (const Json& call : row.at("calls")) {
    expected.push_back({call.at("name").get<std::string>(),
                        tooldecode::text::parse_json(call.at("arguments").get<std::string>())});
  }
  std::vector<ToolCall> calls;
  try {
    calls = fsm.parse(text);
  } catch (const Error& error) {
    return std::string("wrong: ") + error.what();
  }
  if (calls != expected) return "wrong: other calls";

  // A continued prompt holds the beginnings of the reasoning and of the content.
  const auto is_told = [&](const char* key, std::string_view read) {
    const auto told      = row.at(key).get<std::string>();
    const auto trimmed   = formats::trimmed(told);
    const bool continues = row.value("continue", 0) != 0;
    const auto mine      = formats::trimmed(read);
    return continues ? trimmed.ends_with(mine) : trimmed == mine;
  };
  if (family.part != "gpt-oss") {  // whose messages are content, or are not, by their channels
    std::size_t first = text.size();
    std::string after = text;
    std::string_view thought;
    if (options.reasoning) {
      const auto ends = family.part == "Kimi-K2" ? DelimitedCall::kimi_k2().ends_reasoning()
                                                 : std::vector<std::string>();
      after           = formats::without_reasoning(text, *options.reasoning, ends);
      const auto last = std::min(after.find_first_not_of(" \t\r\n"), after.size());
      const auto from = start + options.reasoning->begin.size();
      thought = std::string_view(text).substr(from, std::min(text.find(marks.end), last) - from);
    }
    for (const std::string& open : family.opens) first = std::min(first, after.find(open));
    if (!is_told("content", std::string_view(after).substr(0, first)))
      return "wrong: other content";
    if (!is_told("reasoning", thought)) return "wrong: other reasoning";
  }
  const auto refusal = fsm.find_refusal(text);
  if (!refusal || (refusal->too_short && row.at("partial") == true)) return std::nullopt;
  return "refused: at byte " + std::to_string(refusal->at);
}

}  // namespace

TEST_CASE("NamedFormat reads and accepts llama.cpp's chats of its model family") {
  TOOLDECODE_REQUIRE_SHARED(path, "peersuites/cases.jsonl.gz");
  const VocabularyIndex cache{test::byte_vocabulary()};
  std::map<std::string, int> counts, conventions;
  std::istringstream lines(test::read_text(path));
  for (std::string line; std::getline(lines, line);) {
    if (line.find("\"kind\": \"chat\"") == std::string::npos) continue;
    const Json row  = tooldecode::text::parse_json(line);
    const auto& all = families();
    const auto name = row.at("template").get<std::string>();
    const auto one  = std::find_if(all.begin(), all.end(), [&](const Family& family) {
      return name.find(family.part) != std::string::npos;
    });
    if (one == all.end()) {
      ++counts["of other families"];
      continue;
    }
    const std::string text = bytes_of(row.at("input").string());
    CAPTURE(name, text);
    const auto found      = difference(*one, row, text, cache);
    const auto convention = convention_of(row, text);
    if (!found) {
      ++counts["right"];
    } else if (convention) {
      ++counts["convention"];
      ++conventions[*convention];
    } else {
      ++counts[found->substr(0, found->find(':'))];
      UNSCOPED_INFO(*found);
      CHECK_FALSE(found);
    }
  }
  for (const auto& [verdict, count] : counts) std::cout << verdict << ": " << count << '\n';
  for (const auto& [reason, count] : conventions)
    std::cout << "  " << count << " " << reason << '\n';
  CHECK(counts["right"] > 70);
}
