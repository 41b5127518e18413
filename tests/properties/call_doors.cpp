// Every format under `auto`: what its marks begin is a call of an existing tool with conforming
// arguments, in any random text and with any names of tools.
#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/formats/delimited_call.hpp>
#include <tooldecode/formats/harmony_call.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/positional_call.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/formats/xml_call.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/text/exact_number.hpp>

#include <properties/random_walk.hpp>
#include <support/catch.hpp>
#include <support/slow_validator.hpp>

using namespace tooldecode;
using namespace tooldecode::formats;
using namespace tooldecode::tools;
using Json = tooldecode::JsonValue;

namespace {

using Random = std::mt19937;

std::size_t below(Random& random, std::size_t n) {
  return random() % n;
}

struct Format {
  std::string name;
  std::string begins;  // a pattern: where readers see the beginning of a call
  bool at_start;       // only where an answer begins with it
  bool in_order, one;  // arguments keep their order; one call an answer
  ReasoningDelimiters reasoning;
  std::function<ToolCallFSM(const VocabularyIndex&, const ToolSet&, const ChoiceOptions&)>
      constrain;
};

struct Kind {
  bool at_start = false, in_order = false, one = false;
  ReasoningDelimiters reasoning{};
};

template <class F>
Format format(std::string name, std::string begins, F f, Kind kind = {}) {
  return {std::move(name),
          std::move(begins),
          kind.at_start,
          kind.in_order,
          kind.one,
          kind.reasoning,
          [f](const VocabularyIndex& cache, const ToolSet& tools, const ChoiceOptions& options) {
            return ToolCallFSM(cache, tools, f, options);
          }};
}

const std::vector<Format>& all_formats() {
  static const std::vector<Format> all{
      format("python", "\\[", PythonCall{}, {.at_start = true}),
      format("hermes", "<tool_call>", JsonCall::hermes()),
      format("llama", "<\\|python_tag\\|>", JsonCall::llama()),
      format("mistral", "\\[TOOL_CALLS\\]", JsonCall::mistral()),
      format("bare", "\\{", JsonCall::bare(), {.at_start = true}),
      format("bare list", "\\[", JsonCall::bare_list(), {.at_start = true}),
      format("mistral args", "\\[TOOL_CALLS\\]", DelimitedCall::mistral(),
             {.reasoning = {"[THINK]", "[/THINK]"}}),
      format("deepseek v3", "<｜tool▁call▁begin｜>", DelimitedCall::deepseek_v3()),
      format("deepseek v3.1", "<｜tool▁call▁begin｜>", DelimitedCall::deepseek_v3_1()),
      format("kimi", "<\\|tool_call_begin\\|>", DelimitedCall::kimi_k2()),
      format("harmony",
             "to=[^<]*(<\\|channel\\|>[a-z]* ?(<\\|constrain\\|>)?[a-z]* ?)?"
             "(<\\|constrain\\|>[a-z]* ?)?<\\|message\\|>",
             HarmonyCall{}, {.reasoning = HarmonyCall::analysis()}),
      format("react", "Action\\s*\\d*\\s*:(?=[\\s\\S]*Action\\s*\\d*\\s*Input\\s*\\d*\\s*:)",
             DelimitedCall::react(), {.one = true}),
      format("qwen3-coder", "<function=", XmlCall::qwen3_coder()),
      format("glm", "<tool_call>", XmlCall::glm()),
      format("glm-4.7", "<tool_call>", XmlCall::glm_4_7()),
      format("minicpm5", "<function name=\"", XmlCall::minicpm5()),
      format("minimax-m2", "<minimax:tool_call>", XmlCall::minimax_m2()),
      format("dots", "<dots_function_call>", XmlCall::dots()),
      format("step-3", "<｜tool_calls_begin｜>", XmlCall::step_3()),
      format("iquest-q1", "<iquest_tool_call>", XmlCall::iquest_q1()),
      format("k2-horizon", "<ifm\\|tool_calls>", XmlCall::k2_horizon()),
      format("hunyuan-3", "<tool_calls>", XmlCall::hunyuan_3()),
      format("hunyuan-4", "<tool_calls:a1>", XmlCall::hunyuan_4(":a1")),
      format("minimax-m3", "\\]<\\]minimax\\[>\\[<tool_call>", XmlCall::minimax_m3()),
      format("functiongemma", "<start_function_call>", XmlCall::function_gemma()),
      format("deepseek-v4.1", "<｜DSML｜ calls>", XmlCall::deepseek_v4_1()),
      format("gigachat-3.5", "<｜GCML｜tool_calls>", XmlCall::gigachat_3_5()),
      format("longcat", "<longcat_tool_call>", JsonCall::longcat()),
      format("plamo-3", "<\\|plamo:begin_tool_requests:plamo\\|>", DelimitedCall::plamo_3()),
      format("deepseek-v3.2", "<｜DSML｜function_calls>", XmlCall::deepseek_v3_2()),
      format("deepseek-v4", "<｜DSML｜tool_calls>", XmlCall::deepseek_v4()),
      format("kimi-k3", "<\\|open\\|>tools<\\|sep\\|>", XmlCall::kimi_k3(),
             {.reasoning = {"<|open|>think<|sep|>", "<|close|>think<|sep|>"}}),
      format("gemma-4", "<\\|tool_call>", XmlCall::gemma_4()),
      format("cohere-4", "<cofl:tool_calls>", XmlCall::cohere()),
      format("lfm2", "<\\|tool_call_start\\|>", PythonCall::lfm2()),
      format("llama-4", "<\\|python_start\\|>", PythonCall::llama_4()),
      format("olmo-3", "<function_calls>", PythonCall::olmo_3()),
      format("fence", "```json", JsonCall::fence()),
      format("nemotron", "<TOOLCALL>", JsonCall::nemotron()),
      format("firefunction", "functools\\[", JsonCall::firefunction()),
      format("internlm", "<\\|action_start\\|><\\|plugin\\|>", JsonCall::internlm()),
      format("apertus", "<\\|tools_prefix\\|>", JsonCall::apertus()),
      format("command-r7b", "<\\|START_ACTION\\|>", JsonCall::command_r7b()),
      format("command-r-plus", "Action:\n```json", JsonCall::command_r_plus()),
      format("functionary-3.1", "<function=", DelimitedCall::functionary_3_1()),
      format("functionary-3.2", ">>>", DelimitedCall::functionary_3_2()),
      format("toolken", "<[fg]>\\(", PositionalCall::toolken(), {.in_order = true, .one = true}),
      format("tooldec", "<T>", PositionalCall::tool_dec(), {.in_order = true, .one = true}),
  };
  return all;
}

const std::vector<std::string>& marks() {
  static const std::vector<std::string> all{
      "<tool_call>",
      "</tool_call>",
      "<|python_tag|>",
      "[TOOL_CALLS]",
      "[ARGS]",
      "[CALL_ID]",
      "<T>",
      "[THINK]",
      "[/THINK]",
      "<｜tool▁calls▁begin｜>",
      "<｜tool▁call▁begin｜>",
      "<｜tool▁sep｜>",
      "<｜tool▁call▁end｜>",
      "<｜tool▁calls▁end｜>",
      "<|tool_calls_section_begin|>",
      "<|tool_call_begin|>",
      "<|tool_call_argument_begin|>",
      "<|tool_call_end|>",
      "<|tool_calls_section_end|>",
      "<|start|>",
      "<|channel|>",
      "<|constrain|>",
      "<|message|>",
      "<|call|>",
      "<|end|>",
      "<|return|>",
      "<arg_key>",
      "</arg_key>",
      "<arg_value>",
      "</arg_value>",
      "<|open|>",
      "<|sep|>",
      "<|close|>",
      "<|tool_call>",
      "<tool_call|>",
      "<|\"|>",
      "<|tool_call_start|>",
      "<|python_start|>",
      "<function_calls>",
      "<｜DSML｜function_calls>",
      "<｜DSML｜tool_calls>",
      "<｜DSML｜ calls>",
      "<｜GCML｜tool_calls>",
      "<dots_function_call>",
      "<｜tool_calls_begin｜>",
      "<iquest_tool_call>",
      "<tool_calls>",
      "<tool_calls:a1>",
      "]<]minimax[>[<tool_call>",
      "<start_function_call>",
      "<ifm|tool_calls>",
      "<longcat_tool_call>",
      "<|plamo:begin_tool_requests:plamo|>",
      "<|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json<|plamo:msg|>",
      "<minimax:tool_call>",
      "<cofl:tool_calls>",
      "<TOOLCALL>",
      "<|action_start|>",
      "<|plugin|>",
      "<|tools_prefix|>",
      "<|START_ACTION|>",
      "<|START_RESPONSE|>",
      "<|END_RESPONSE|>",
      "<think>",
      "</think>"};
  return all;
}
const std::vector<std::string>& pieces() {
  static const std::vector<std::string> all{
      "f",
      "g",
      "h",
      "none",
      "functions.",
      " to=functions.",
      " to=",
      "assistant",
      "analysis",
      "commentary",
      "final",
      " json",
      "json",
      "{\"a\": 1}",
      "{}",
      "{\"name\": \"",
      "\"name\"",
      "\"arguments\"",
      "\"parameters\"",
      "\", \"arguments\": ",
      "\", \"parameters\": ",
      "{\"",
      "}}",
      "]",
      "[",
      "(",
      ")",
      "a=1",
      "a=",
      "f(",
      "1",
      "12",
      "Action",
      "Action:",
      "Action: ",
      "Action Input:",
      "\nAction Input: ",
      " 1",
      ":",
      ":0",
      "<function=",
      "</function>",
      "<parameter=",
      "</parameter>",
      "<parameter=a>",
      "\n",
      "\n1\n",
      " ",
      "\f",
      "\v",
      "\xc2\xa0",
      "function",
      "```json\n",
      "\n```",
      "```",
      "<f>(",
      "<f",
      ">(",
      ")=",
      "<",
      ">",
      "|>",
      "<|",
      "aB3456789",
      ", ",
      "; ",
      "\"id\": \"",
      "<｜tool▁calls｜>",
      "<|tool_call_section_begin|>",
      "\"",
      "a",
      "to=python",
      "tools",
      "response",
      "call:",
      "all\n",
      "f\n",
      ">>>",
      "functools[",
      "```json",
      "Action:\n```json",
      "<function name=\"",
      "\"tool_name\"",
      "<tool_call",
      "<|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>",
      "<|plamo:end_tool_arguments:plamo|>",
      "<|plamo:end_tool_request:plamo|>",
      "<|plamo:end_tool_requests:plamo|>",
      "<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name=\"",
      "</steptml:invoke><｜tool_call_end｜>"};
  return all;
}

// Bytes, pieces, and every mark both as text and as a control token.
const VocabularyIndex& cache() {
  static const VocabularyIndex shared{[] {
    std::vector<Vocabulary::Entry> entries;
    for (int b = 0; b < 256; ++b) entries.push_back({std::string(1, static_cast<char>(b))});
    for (const std::string& piece : pieces()) entries.push_back({piece});
    for (const std::string& mark : marks()) entries.push_back({mark});
    for (const std::string& mark : marks()) entries.push_back({mark, TokenType::control});
    entries.push_back({"<end>", TokenType::control});
    return Vocabulary(entries, {.end_tokens = {static_cast<TokenId>(entries.size() - 1)}});
  }()};
  return shared;
}

struct RandomWalk {
  std::string text;  // control tokens by their names
  bool is_whole = false;
};

// A walk that prefers tokens that begin something, and ends at a random place where it may.
RandomWalk random_walk(const ToolCallFSM& calls, Random& random, const std::string& first = "") {
  RandomWalk walk;
  TokenMask mask(calls.vocabulary_size());
  auto state           = *calls.advance_bytes(calls.initial(), first);
  walk.text            = first;
  const TokenId end    = calls.vocabulary().end_tokens()[0];
  const std::size_t go = 4 + below(random, 24);
  for (std::size_t length = 0; length < 160; ++length) {
    calls.fill_mask(state, mask.words());
    auto tokens = test::tokens_of(mask);
    REQUIRE_FALSE(tokens.empty());
    if (mask.contains(end) && (length >= go || tokens.size() == 1)) {
      walk.is_whole = true;
      break;
    }
    std::erase(tokens, end);
    // Where many tokens are allowed, mostly those of several bytes.
    const auto special  = std::lower_bound(tokens.begin(), tokens.end(), TokenId{256});
    const auto bytes    = static_cast<std::size_t>(special - tokens.begin());
    const bool by_byte  = special == tokens.end() || (bytes > 0 && below(random, 12) == 0);
    const TokenId token = by_byte ? tokens[below(random, bytes)]
                                  : tokens[bytes + below(random, tokens.size() - bytes)];
    const auto next     = calls.advance(state, token);
    REQUIRE(next);
    state = *next;
    walk.text += calls.vocabulary().name(token);
  }
  return walk;
}

// Every call of a text is of an existing tool and conforms; gives them.
std::vector<ToolCall> checked_calls(const ToolCallFSM& fsm, const std::string& text) {
  std::vector<ToolCall> calls;
  try {
    calls = fsm.parse(text);
  } catch (const Error& error) {
    FAIL("admitted, and not read: " << error.what());
  }
  for (const ToolCall& call : calls) {
    const auto tool = fsm.tools().find(call.name);
    if (!tool) FAIL("a call of no tool: " << call.name);
    const Json& schema = fsm.tools()[*tool].parameters;
    const Json rounded = text::ExactNumber::rounded(call.arguments);  // as the judge knows numbers
    if (!slow::conforms(rounded, schema, schema)) FAIL("arguments " << call.arguments);
  }
  return calls;
}

std::size_t count_matches(const std::string& text, const std::string& pattern, bool at_start) {
  const std::regex regex((at_start ? "^(\\s|\xc2\xa0)*" : "") + pattern);
  return static_cast<std::size_t>(
      std::distance(std::sregex_iterator(text.begin(), text.end(), regex), std::sregex_iterator()));
}

std::string random_name(Random& random, bool of_tool) {
  static const std::vector<std::string> parts{"a",        "b",       "f",
                                              " ",        "  ",      "=",
                                              ":",        "(",       ")",
                                              ",",        "[",       "]",
                                              "{",        "}",       "<",
                                              ">",        "|",       "/",
                                              "'",        "\"",      "\\",
                                              ".",        "-",       "0",
                                              "é",        "｜",      "<|",
                                              "|>",       "to=",     "functions.",
                                              "Action: ", "name",    "Action Input:",
                                              ">(",       ")=",      "<T>",
                                              "</",       "```json", "_",
                                              "\xc2\xa0", "None",    "\t",
                                              "\n",       "\r",      "\f",
                                              "\x01",     "\x7f"};
  std::string name;
  for (std::size_t n = 1 + below(random, 3); n > 0; --n) {
    const bool is_mark = below(random, 8) == 0;
    name += is_mark ? marks()[below(random, marks().size())]
                    : parts[below(random, of_tool ? parts.size() - 6 : parts.size())];
  }
  return name;
}

ToolSet hostile_tools(Random& random) {
  Json documents = Json::array();
  std::vector<std::string> known;
  for (std::size_t t = 1 + below(random, 3); t > 0; --t) {
    const std::string name = random_name(random, true);
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    known.push_back(name);
    Json properties = Json::object();
    for (std::size_t p = below(random, 4); p > 0; --p) {
      const bool is_plain                                               = below(random, 3) == 0;
      properties[is_plain                 ? "a"
                 : below(random, 30) == 0 ? ""
                                          : random_name(random, false)] = {{"type", "integer"}};
    }
    documents.push_back(
        {{"name", name},
         {"parameters",
          {{"type", "object"}, {"properties", properties}, {"additionalProperties", false}}}});
  }
  return ToolSet::from_json(documents);
}

}  // namespace

TEST_CASE("ToolCallFSM over random tokens of any format accepts only checked calls and text") {
  const ToolSet tools = ToolSet::parse(R"([
    {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer",
      "minimum": 1, "maximum": 12}}, "required": ["a"], "additionalProperties": false}},
    {"name": "g", "parameters": {"type": "object", "properties": {}, "additionalProperties": false}}])");
  for (const Format& format : all_formats()) {
    std::size_t whole = 0, called = 0;
    for (const bool thinks : {false, true}) {
      ChoiceOptions options{.whitespace = 40};
      if (thinks) options.reasoning = format.reasoning;
      const ToolCallFSM fsm = format.constrain(cache(), tools, options);
      for (unsigned seed = 0; seed < 250; ++seed) {
        Random random(seed);
        const bool opens      = format.at_start && !thinks && seed % 2 == 0;
        const RandomWalk walk = random_walk(fsm, random, opens ? format.begins.substr(1) : "");
        if (!walk.is_whole) continue;
        CAPTURE(format.name, thinks, seed, walk.text);
        ++whole;
        const auto calls = checked_calls(fsm, walk.text);
        called += calls.empty() ? 0 : 1;
        const std::vector<std::string> ends =
            format.name == "kimi"            ? DelimitedCall::kimi_k2().ends_reasoning()
            : format.name == "deepseek-v4"   ? XmlCall::deepseek_v4().ends_reasoning()
            : format.name == "deepseek-v4.1" ? XmlCall::deepseek_v4_1().ends_reasoning()
                                             : std::vector<std::string>();
        const bool may_be_bare =
            format.name == "llama" || format.name == "llama-4" || format.name == "functionary-3.2";
        const std::string answer =
            thinks ? formats::without_reasoning(walk.text, format.reasoning, ends) : walk.text;
        const auto begun = count_matches(answer, format.begins, format.at_start);
        // One mark may open several calls, and none does not open one.
        if (begun > calls.size() || (begun == 0 && !calls.empty() && !may_be_bare)) {
          FAIL(begun << " calls begin, " << calls.size() << " are read");
        }
      }
    }
    INFO(format.name << ": " << called << " of " << whole << " texts make calls");
    CHECK(whole > 250);
    // Few random texts begin in the way that the calls of the first require, or get past the many
    // marks of the second's.
    const bool is_rare = format.name == "functionary-3.2" || format.name == "plamo-3";
    CHECK(called > (is_rare ? 0U : 15U));
  }
}

TEST_CASE("ToolCallFSM over hostile names reads them back unchanged, or refuses the tools") {
  std::map<std::string, std::size_t> made, refused;
  for (unsigned seed = 0; seed < 150; ++seed) {
    Random random(seed);
    const ToolSet tools = hostile_tools(random);
    for (const Format& format : all_formats()) {
      CAPTURE(format.name, seed);
      std::optional<ToolCallFSM> fsm;
      try {
        fsm = format.constrain(cache(), tools, {.whitespace = seed % 2 == 0 ? 40U : 0U});
      } catch (const Error& error) {
        CAPTURE(error.what());
        REQUIRE(error.code() == Errc::unsupported_name);
        REQUIRE(error.where().starts_with("#/"));
        ++refused[format.name];
        continue;
      }
      ++made[format.name];
      std::vector<ToolCall> calls;
      for (const Tool& tool : tools) {
        ToolCall call{.name = tool.name};
        for (const std::string& key : argument_names(tool)) {
          if (!format.in_order && below(random, 3) == 0) continue;
          call.arguments[key] = below(random, 20);
        }
        calls.push_back(std::move(call));
      }
      if (format.one) calls.resize(1);
      const std::string text = fsm->write(calls);
      CAPTURE(text);
      if (const auto refusal = fsm->find_refusal(text)) FAIL("refused at byte " << refusal->at);
      REQUIRE(fsm->parse(text) == calls);
      for (int walks = 0; walks < 3; ++walks) {
        const RandomWalk walk = random_walk(*fsm, random);
        CAPTURE(walk.text);
        if (walk.is_whole) static_cast<void>(checked_calls(*fsm, walk.text));
      }
    }
  }
  for (const Format& format : all_formats()) {
    INFO(format.name << ": " << made[format.name] << " made, " << refused[format.name]);
    CHECK(made[format.name] > 12);
    const std::set<std::string> quoted{"bare",     "bare list", "hermes",      "llama",
                                       "mistral",  "fence",     "nemotron",    "firefunction",
                                       "internlm", "apertus",   "command-r7b", "command-r-plus",
                                       "longcat"};  // names are JSON's strings
    CHECK((refused[format.name] > 0 || quoted.count(format.name) != 0));
  }
}
