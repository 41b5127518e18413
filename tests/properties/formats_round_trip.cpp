// Every format and tool choice: written conforming calls are accepted and read back, and broken
// text is refused or still conforms.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <tooldecode/constraint/call_stream.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/delimited_call.hpp>
#include <tooldecode/formats/delimiter.hpp>
#include <tooldecode/formats/harmony_call.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/positional_call.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/formats/xml_call.hpp>
#include <tooldecode/text/value_reader.hpp>

#include <support/catch.hpp>
#include <support/random_tools.hpp>
#include <support/slow_validator.hpp>

using namespace tooldecode;
using namespace tooldecode::formats;
using namespace tooldecode::tools;
using Json = tooldecode::JsonValue;

namespace {

using Random = std::mt19937;

std::uint32_t below(Random& random, std::uint32_t n) {
  return static_cast<std::uint32_t>(random() % n);
}

// Random tools, and one with a parameter of every kind.
//
// \param are_listed  all keys have names
ToolSet tools_of(Random& random, bool are_listed) {
  Json documents = Json::array();
  for (const Tool& tool : test::random_tools(random))
    documents.push_back(parse_json_value(tool.document));
  documents.push_back(
      tooldecode::text::parse_json(R"({"name": "all.kinds", "parameters": {"type": "object",
    "properties": {
      "text": {"type": "string"},
      "nullable": {"anyOf": [{"type": "string", "maxLength": 40}, {"type": "null"}]},
      "either": {"type": ["string", "integer"]},
      "anything": {},
      "number": {"type": "number"},
      "pattern": {"type": "string", "pattern": "^[a-c<]{2,4}$"},
      "long": {"type": "string", "minLength": 3, "maxLength": 30},
      "free": {"type": "object", "additionalProperties": {"type": "integer"}},
      "referred": {"$ref": "#/$defs/word"}},
    "$defs": {"word": {"enum": ["a b", "é", "x>"]}},
    "additionalProperties": {"type": "string"},
    "required": ["text", "long"]}})"));
  if (are_listed) {
    Json& parameters                   = documents.list().back()["parameters"];
    parameters["additionalProperties"] = false;
    parameters["properties"]["free"] =
        Json{{"type", "object"}, {"properties", {{"a", {{"type", "integer"}}}}}};
  }
  return ToolSet::from_json(documents);
}

std::string random_text(Random& random, std::uint32_t min, std::uint32_t max) {
  static const std::vector<std::string> pieces{"a",
                                               "b",
                                               "7",
                                               " ",
                                               "\n",
                                               "\"",
                                               "'",
                                               "\\",
                                               "<",
                                               ">",
                                               "</",
                                               "é",
                                               "😀",
                                               "{",
                                               "]",
                                               "</parameter",
                                               "null",
                                               "<|call|>",
                                               "[TOOL_CALLS]",
                                               "</tool_call",
                                               "\t",
                                               "=",
                                               "<arg_key>",
                                               "```"};
  const std::uint32_t length = min + below(random, max - min + 1);
  std::string text;
  for (std::uint32_t left = length; left > 0;) {
    const std::string& piece = pieces[below(random, static_cast<std::uint32_t>(pieces.size()))];
    const auto size          = static_cast<std::uint32_t>(slow::code_points(piece).size());
    // Elements cannot hold these as text; for JSON see tests/constraint/named_format.cpp.
    const bool closes =
        piece == ">" && (text.ends_with("</parameter") || text.ends_with("</tool_call"));
    if (size > left || closes) continue;
    text += piece;
    left -= size;
  }
  return text;
}

Json random_value(const Json& schema, const Json& root, Random& random) {
  if (schema.contains("$ref")) {
    return random_value(*root.find_at(schema["$ref"].get<std::string>().substr(1)), root, random);
  }
  if (schema.contains("enum")) {
    return schema["enum"][below(random, static_cast<std::uint32_t>(schema["enum"].size()))];
  }
  if (schema.contains("anyOf")) {
    const auto count = static_cast<std::uint32_t>(schema["anyOf"].size());
    return random_value(schema["anyOf"][below(random, count)], root, random);
  }
  std::string type = "string";
  if (!schema.contains("type")) {
    type = std::vector<std::string>{"string", "null", "number", "boolean"}[below(random, 4)];
  } else if (schema["type"].is_array()) {
    const auto count = static_cast<std::uint32_t>(schema["type"].size());
    type             = schema["type"][below(random, count)].get<std::string>();
  } else {
    type = schema["type"].get<std::string>();
  }
  if (type == "null") return nullptr;
  if (type == "boolean") return below(random, 2) == 1;
  if (type == "integer") return below(random, 121);
  if (type == "number") return std::vector<double>{-2.5, 0, 1e20, 7, 0.125}[below(random, 5)];
  if (type == "string" && schema.contains("pattern")) {
    return std::vector<std::string>{"ab", "<<a", "c<", "aaaa"}[below(random, 4)];
  }
  if (type == "string") {
    const auto text = random_text(random, schema.value("minLength", 0U),
                                  std::min(schema.value("maxLength", 12U), 30U));
    return schema.contains("maxLength") && text == "null" ? "" : text;
  }
  if (type == "array") {
    Json array = Json::array();
    for (auto n = below(random, schema.value("maxItems", 3U) + 1); n > 0; --n) {
      array.push_back(random_value(schema["items"], root, random));
    }
    return array;
  }
  Json object           = Json::object();
  const Json properties = schema.value("properties", Json::object());
  for (const auto& [key, member] : properties.items()) {
    if (below(random, 2) == 0) object[key] = random_value(member, root, random);
  }
  if (schema.contains("additionalProperties") && schema["additionalProperties"].is_object()) {
    object[random_text(random, 0, 4)] = random_value(schema["additionalProperties"], root, random);
  }
  return object;
}

ToolCall random_call(const Tool& tool, bool in_order, Random& random) {
  const auto required = required_names(tool);
  std::vector<std::string> keys;
  for (const std::string& key : argument_names(tool)) {
    const bool needed = std::find(required.begin(), required.end(), key) != required.end();
    if (needed || below(random, 2) == 0) keys.push_back(key);
  }
  if (in_order) {
    // The last ones may be left out, and no other.
    keys                 = argument_names(tool);
    std::size_t can_stay = keys.size();
    while (can_stay > 0 &&
           std::find(required.begin(), required.end(), keys[can_stay - 1]) == required.end()) {
      --can_stay;
    }
    const auto optional = static_cast<std::uint32_t>(keys.size() - can_stay);
    keys.resize(can_stay + below(random, optional + 1));
  } else {
    std::shuffle(keys.begin(), keys.end(), random);
  }
  ToolCall call{.name = tool.name};
  for (const std::string& key : keys) {
    call.arguments[key] = random_value(tool.parameters["properties"][key], tool.parameters, random);
  }
  if (!in_order && tool.name == "all.kinds" && below(random, 2) == 0) {
    call.arguments["more_"] = random_text(random, 0, 5);
  }
  return call;
}

struct Format {
  std::string name, trigger;
  int marks = 0;  // a call has at least so many
  bool only_at_start, parallel, in_order;
  std::string before_calls;  // text
  std::function<ToolCallFSM(const VocabularyIndex&, const ToolSet&, const ChoiceOptions&)>
      constrain;
};

template <class F>
Format format(std::string name, F f, int marks, bool parallel = true, bool in_order = false,
              std::string before_calls = "Let me see.\n") {
  return {std::move(name),
          std::string(f.trigger()),
          marks,
          f.only_at_start(),
          parallel,
          in_order,
          before_calls,
          [f](const VocabularyIndex& cache, const ToolSet& tools, const ChoiceOptions& options) {
            return ToolCallFSM(cache, tools, f, options);
          }};
}

const std::vector<Format>& all_formats() {
  static const std::vector<Format> all{
      format("python", PythonCall{}, 0),
      format("hermes", JsonCall::hermes(), 2),
      format("llama", JsonCall::llama(), 0),
      format("mistral", JsonCall::mistral(), 0),
      format("bare", JsonCall::bare(), 0),
      format("bare list", JsonCall::bare_list(), 0),
      format("mistral args", DelimitedCall::mistral(), 2),
      format("deepseek v3", DelimitedCall::deepseek_v3(), 3),
      format("deepseek v3.1", DelimitedCall::deepseek_v3_1(), 3),
      format("kimi", DelimitedCall::kimi_k2(), 3),
      format("harmony", HarmonyCall{}, 4, true, false,
             "<|channel|>commentary<|message|>Let me see.\n<|end|><|start|>assistant"),
      format("react", DelimitedCall::react(), 0, false),
      format("qwen3-coder", XmlCall::qwen3_coder(), 2),
      format("glm", XmlCall::glm(), 2),
      format("glm-4.7", XmlCall::glm_4_7(), 2),
      format("mimo", XmlCall::mimo(), 2),
      format("seed-oss", XmlCall::seed_oss(), 2),
      format("minimax-m2", XmlCall::minimax_m2(), 0),
      format("minicpm5", XmlCall::minicpm5(), 0),
      format("dots", XmlCall::dots(), 0),
      format("step-3", XmlCall::step_3(), 0),
      format("iquest-q1", XmlCall::iquest_q1(), 0),
      format("k2-horizon", XmlCall::k2_horizon(), 0),
      format("hunyuan-3", XmlCall::hunyuan_3(), 0),
      format("hunyuan-4", XmlCall::hunyuan_4(":a1"), 0),
      format("minimax-m3", XmlCall::minimax_m3(), 0),
      format("functiongemma", XmlCall::function_gemma(), 0),
      format("deepseek-v4.1", XmlCall::deepseek_v4_1(), 0),
      format("gigachat-3.5", XmlCall::gigachat_3_5(), 0),
      format("longcat", JsonCall::longcat(), 0),
      format("plamo-3", DelimitedCall::plamo_3(), 0),
      format("deepseek-v3.2", XmlCall::deepseek_v3_2(), 0),
      format("deepseek-v4", XmlCall::deepseek_v4(), 0),
      format("kimi-k3", XmlCall::kimi_k3(), 4),
      format("gemma-4", XmlCall::gemma_4(), 2),
      format("cohere-4", XmlCall::cohere(), 0),
      format("lfm2", PythonCall::lfm2(), 0),
      format("llama-4", PythonCall::llama_4(), 0),
      format("olmo-3", PythonCall::olmo_3(), 0),
      format("fence", JsonCall::fence(), 0),
      format("exaone", JsonCall::exaone(), 2),
      format("granite", JsonCall::granite(), 0),
      format("nemotron", JsonCall::nemotron(), 0),
      format("apriel", JsonCall::apriel(), 0),
      format("phi-4-mini", JsonCall::phi_4_mini(), 0),
      format("firefunction", JsonCall::firefunction(), 0),
      format("gigachat-3", JsonCall::gigachat_3(), 0),
      format("gigachat-3.1", JsonCall::gigachat_3_1(), 0),
      format("internlm", JsonCall::internlm(), 0),
      format("apertus", JsonCall::apertus(), 0),
      format("command-r7b", JsonCall::command_r7b(), 0),
      format("command-r-plus", JsonCall::command_r_plus(), 0),
      format("functionary-3.1", DelimitedCall::functionary_3_1(), 0),
      format("functionary-3.2", DelimitedCall::functionary_3_2(), 0, true, false,
             "all\nLet me see.>>>"),
      format("toolken", PositionalCall::toolken(), 0, false, true),
      format("tooldec", PositionalCall::tool_dec(), 1, false, true),
  };
  return all;
}

const VocabularyIndex& cache() {
  static const VocabularyIndex shared{test::call_vocabulary()};
  return shared;
}

// The same with all marks as control tokens.
const VocabularyIndex& marked_cache() {
  static const VocabularyIndex shared{[] {
    std::vector<Vocabulary::Entry> entries;
    for (int b = 0; b < 256; ++b) entries.push_back({std::string(1, static_cast<char>(b))});
    for (const char* name : {"<tool_call>",
                             "</tool_call>",
                             "<|python_tag|>",
                             "[TOOL_CALLS]",
                             "[ARGS]",
                             "<T>",
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
                             "<seed:tool_call>",
                             "</seed:tool_call>",
                             "<think>",
                             "</think>",
                             "<end>"}) {
      entries.push_back({name, TokenType::control});
    }
    return Vocabulary(entries, {.end_tokens = {static_cast<TokenId>(entries.size() - 1)}});
  }()};
  return shared;
}

// The number of control tokens of a text in which every possible mark is one; requires acceptance.
std::size_t walk_marks(const ToolCallFSM& calls, const std::string& text) {
  auto state        = calls.initial();
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = formats::delimiter_length(std::string_view(text).substr(at));
    const auto mark          = calls.vocabulary().find_special(text.substr(at, length));
    if (length > 0 && mark) {
      if (const auto next = calls.advance(state, *mark)) {
        state = *next;
        at += length;
        ++count;
        continue;
      }
    }
    const auto next = calls.advance(state, static_cast<std::uint8_t>(text[at]));
    if (!next) FAIL("refused at byte " << at);
    state = *next;
    ++at;
  }
  if (!calls.is_accepting(state)) FAIL("no whole answer");
  return count;
}

// The calls of a text that comes in pieces.
std::vector<ToolCall> streamed(const ToolCallFSM& calls, const std::string& text) {
  CallStream stream(calls);
  std::vector<ToolCall> result;
  std::string arguments;
  const auto take = [&](const std::vector<StreamEvent>& events) {
    for (const StreamEvent& event : events) {
      if (event.kind == StreamEvent::Kind::call_begin) result.push_back({.name = event.text});
      if (event.kind == StreamEvent::Kind::arguments) arguments += event.text;
      if (event.kind == StreamEvent::Kind::call_end) {
        text::ValueReader reader(arguments, text::ValueReader::Language::json,
                                 Errc::malformed_call);
        reader.allow_repeated_keys();
        result.back().arguments = reader.value();
        arguments.clear();
      }
    }
  };
  Random random(static_cast<Random::result_type>(text.size()));
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = 1 + below(random, 9);
    take(stream.push(std::string_view(text).substr(at, size)));
    at += size;
  }
  take(stream.finish());
  return result;
}

// Whether a text is accepted; if it is, then it can be read, in pieces too, and all calls conform.
bool is_accepted(const ToolCallFSM& calls, const std::string& text) {
  const auto state = calls.advance_bytes(calls.initial(), text);
  if (!state || !calls.is_accepting(*state)) return false;
  if (streamed(calls, text) != calls.parse(text)) FAIL("in pieces the calls are others");
  for (const ToolCall& call : calls.parse(text)) {
    const auto tool = calls.tools().find(call.name);
    REQUIRE(tool);
    const Json& schema = calls.tools()[*tool].parameters;
    INFO(call.arguments.text());
    if (!slow::conforms(call.arguments, schema, schema)) FAIL("accepted, and does not conform");
  }
  return true;
}

// Any text has calls, or a place where it breaks the format.
void check_parse(const ToolCallFSM& calls, const std::string& text) {
  try {
    static_cast<void>(calls.parse(text));
  } catch (const Error& error) {
    if (error.code() != Errc::malformed_call || !error.where().starts_with("byte "))
      FAIL(error.what());
  }
}

struct Mutation {
  std::string name, text;
  bool must_break = false;  // whatever the format
};

std::vector<Mutation> mutations(const ToolCallFSM& fsm, const std::vector<ToolCall>& calls,
                                const std::string& text, Random& random) {
  std::vector<Mutation> result{
      {"cut short", text.substr(0, below(random, static_cast<std::uint32_t>(text.size()))), false},
      {"cut by a byte", text.substr(0, text.size() - 1), false}};
  const auto write = [&](std::string name, const std::vector<ToolCall>& broken, bool must_break) {
    try {
      result.push_back({std::move(name), fsm.write(broken), must_break});
    } catch (const Error&) {
      // a format that cannot write it cannot have it in a text
    }
  };
  const std::size_t which    = below(random, static_cast<std::uint32_t>(calls.size()));
  const Tool& tool           = fsm.tools()[*fsm.tools().find(calls[which].name)];
  std::vector<ToolCall> copy = calls;
  copy[which].name += "x";
  write("an unknown tool", copy, true);
  copy                = calls;
  const auto required = required_names(tool);
  if (!required.empty()) {
    copy[which].arguments.erase(
        required[below(random, static_cast<std::uint32_t>(required.size()))]);
    write("a missing argument", copy, true);
  }
  std::vector<std::string> words{calls[which].name};
  for (const auto& [key, value] : calls[which].arguments.items()) {
    words.push_back(key);
    for (const Json& other :
         {Json("zzz"), Json(12345), Json(true), Json::array({Json::object()})}) {
      copy                       = calls;
      copy[which].arguments[key] = other;
      if (slow::conforms(copy[which].arguments, tool.parameters, tool.parameters)) continue;
      write("a wrong type", copy, false);
    }
  }
  for (const std::string& word : words) {
    std::string changed  = text;
    const std::size_t at = text.find(word, text.find(calls[which].name));
    if (at == std::string::npos) continue;
    changed[at + below(random, static_cast<std::uint32_t>(word.size()))] =
        "ax_7<\""[below(random, 6)];
    result.push_back({"a byte of a name or key", changed, false});
  }
  for (int i = 0; i < 12; ++i) {
    std::string changed  = text;
    const std::size_t at = below(random, static_cast<std::uint32_t>(text.size()));
    const char byte      = "<>{}[]\",: \n/a0\xC3"[below(random, 15)];
    if (i % 3 == 0) changed[at] = byte;
    if (i % 3 == 1) changed.insert(at, 1, byte);
    if (i % 3 == 2) changed.erase(at, 1 + below(random, 3));
    if (changed != text) result.push_back({"a changed byte", changed, false});
  }
  return result;
}

}  // namespace

TEST_CASE("NamedFormat writes conforming calls that are accepted and read back") {
  std::map<std::string, int> refused, tried;
  for (unsigned seed = 0; seed < 6; ++seed) {
    for (const Format& format : all_formats()) {
      Random random(seed);
      const bool are_listed = format.name == "minimax-m3";
      const ToolSet tools   = tools_of(random, are_listed);
      const auto tool_at    = [&](std::size_t i) -> const Tool& { return tools[i % tools.size()]; };
      CAPTURE(seed, format.name);
      for (const ToolChoice choice :
           {ToolChoice::required, ToolChoice::automatic, ToolChoice::named}) {
        const bool is_named = choice == ToolChoice::named;
        const bool thinks   = (seed + static_cast<unsigned>(choice)) % 2 == 0;
        ChoiceOptions options{.choice = choice, .name = is_named ? tool_at(seed).name : ""};
        if (seed % 4 != 1) options.whitespace = 40;
        if (thinks) options.reasoning = ReasoningDelimiters{};
        const ToolCallFSM fsm = format.constrain(cache(), tools, options);
        std::vector<ToolCall> calls;
        for (auto n = format.parallel && !is_named ? 1 + below(random, 3) : 1; n > 0; --n) {
          calls.push_back(
              random_call(is_named ? tool_at(seed) : tool_at(random()), format.in_order, random));
        }
        // Undocumented keys have no quotes in this format.
        if (format.name == "gemma-4" || format.name == "functiongemma") {
          for (ToolCall& call : calls) {
            if (call.arguments.contains("free") && !call.arguments["free"].empty()) {
              call.arguments["free"] = {{"key_7", *call.arguments["free"].begin()}};
            }
          }
        }
        // In this one a text that reads as another value is no string where both may stand.
        for (ToolCall& call : calls) {
          if (!are_listed) break;
          Json arguments = Json::object();
          for (const auto& [key, value] : call.arguments.items()) {
            if (key == "more_") continue;
            const bool is_told = !value.is_string() || (key != "anything" && key != "either");
            arguments[key]     = is_told ? value : Json("x" + value.string());
          }
          call.arguments = std::move(arguments);
        }
        const std::string written = fsm.write(calls);
        std::string text          = written;
        const bool speaks         = choice == ToolChoice::automatic && !format.only_at_start;
        if (speaks) text = format.before_calls + text;
        // Some marks end a reasoning block.
        const bool is_told = format.name != "kimi" && format.name != "harmony" &&
                             format.name != "deepseek-v4" && format.name != "deepseek-v4.1";
        if (thinks) text = "<think>" + (is_told ? format.trigger : "") + "?</think>\n" + text;
        CAPTURE(text);
        const auto refusal = fsm.find_refusal(text);
        if (refusal) FAIL("refused at byte " << refusal->at);
        REQUIRE(fsm.parse(text) == calls);
        REQUIRE(streamed(fsm, text) == calls);
        if (seed < 3) {
          const auto marked = format.constrain(marked_cache(), tools, options);
          const auto marks  = static_cast<std::size_t>(format.marks) * calls.size();
          REQUIRE(walk_marks(marked, text) >= marks + (thinks ? 2 : 0));
        }
        if (thinks) REQUIRE(is_accepted(fsm, written));  // the block may be left out
        for (const Mutation& mutation : mutations(fsm, calls, written, random)) {
          CAPTURE(mutation.name, mutation.text);
          const bool accepted = is_accepted(fsm, mutation.text);
          check_parse(fsm, mutation.text);
          ++tried[mutation.name];
          refused[mutation.name] += accepted ? 0 : 1;
          if (!mutation.must_break || !accepted) continue;
          const bool is_text = choice == ToolChoice::automatic && fsm.parse(mutation.text).empty();
          if (!is_text) FAIL("accepted");
        }
      }
      const ToolCallFSM silent = format.constrain(cache(), tools, {.choice = ToolChoice::none});
      const std::string call   = silent.write(std::vector{random_call(tool_at(0), true, random)});
      CHECK(silent.find_refusal(call));
      CHECK_FALSE(silent.find_refusal("No call."));
    }
  }
  for (const auto& [name, count] : tried) {
    INFO(name << ": " << refused[name] << " of " << count << " refused");
    CHECK(refused[name] * 10 > count * (name == "a changed byte" ? 4 : 7));
  }
}

TEST_CASE("NamedFormat enforces keywords about arguments or refuses them by name") {
  // Keywords beside `a` and `b`, two arguments that do not conform, two that do.
  struct Case {
    std::string keyword, content;
    std::vector<Json> wrong, right;
  };
  const auto object = [](const char* text) { return tooldecode::text::parse_json(text); };
  const std::vector<Case> cases{
      {"anyOf",
       R"([{"required": ["a"]}, {"required": ["b"]}])",
       {object("{}")},
       {object(R"({"a": 1})"), object(R"({"a": 1, "b": "x"})")}},
      {"oneOf",
       R"([{"required": ["a"]}, {"required": ["b"]}])",
       {object("{}"), object(R"({"a": 1, "b": "x"})")},
       {object(R"({"a": 1})")}},
      {"allOf",
       R"([{"required": ["a"]}, {"properties": {"a": {"maximum": 3}}}])",
       {object("{}"), object(R"({"a": 4})")},
       {object(R"({"a": 3})")}},
      {"not", R"({"required": ["b"]})", {object(R"({"a": 1, "b": "x"})")}, {object(R"({"a": 1})")}},
      {"if",
       R"({"properties": {"a": {"const": 1}}, "required": ["a"]}, "then": {"required": ["b"]})",
       {object(R"({"a": 1})")},
       {object(R"({"a": 2})"), object(R"({"a": 1, "b": "x"})")}},
      {"$ref",
       R"("#/$defs/d", "$defs": {"d": {"required": ["a"]}})",
       {object("{}")},
       {object(R"({"a": 1})")}},
      {"enum", R"([{"a": 1}])", {object(R"({"a": 2})"), object("{}")}, {object(R"({"a": 1})")}},
      {"const", R"({"a": 1})", {object(R"({"a": 2})"), object("{}")}, {object(R"({"a": 1})")}},
      {"minProperties", "1", {object("{}")}, {object(R"({"a": 1})")}},
      {"maxProperties", "1", {object(R"({"a": 1, "b": "x"})")}, {object(R"({"a": 1})")}},
      {"dependentRequired",
       R"({"a": ["b"]})",
       {object(R"({"a": 1})")},
       {object("{}"), object(R"({"a": 1, "b": "x"})")}},
      {"dependentSchemas",
       R"({"a": {"required": ["b"]}})",
       {object(R"({"a": 1})")},
       {object(R"({"a": 1, "b": "x"})")}},
      {"propertyNames", R"({"const": "a"})", {object(R"({"a": 1, "b": "x"})")}, {object("{}")}},
      {"patternProperties",
       R"({"^a": {"maximum": 3}})",
       {object(R"({"a": 4})")},
       {object(R"({"a": 3})")}},
      {"properties",
       R"({"a": {"type": "string", "not": {"const": "x"}}})",
       {object(R"({"a": "x"})")},
       {object(R"({"a": "y"})")}},
      {"properties",
       R"({"a": {"type": "string", "allOf": [{"minLength": 2}]}})",
       {object(R"({"a": "x"})")},
       {object(R"({"a": "xy"})")}},
      {"properties",
       R"({"a": {"allOf": [{"type": "string"}, {"pattern": "^x"}]}})",
       {object(R"({"a": "y"})")},
       {object(R"({"a": "x"})")}},
      {"properties",
       R"({"a": {"type": "string", "if": {"minLength": 2}, "then": {"maxLength": 3}}})",
       {object(R"({"a": "xyxy"})")},
       {object(R"({"a": "xyz"})"), object(R"({"a": ""})")}},
  };
  std::map<std::string, int> enforced;
  for (const Case& one : cases) {
    const std::string named  = '"' + one.keyword + "\": ";
    const std::string listed = one.keyword == "properties"
                                   ? ""
                                   : R"("properties": {"a": {"type": "integer"}, "b": {"type": )"
                                     R"("string"}}, )";
    const ToolSet tools = ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object", )" +
                                         listed + named + one.content + "}}]");
    for (const Format& format : all_formats()) {
      CAPTURE(format.name, one.keyword, one.content);
      const ChoiceOptions options{.choice = ToolChoice::required};
      std::optional<ToolCallFSM> fsm;
      try {
        fsm = format.constrain(cache(), tools, options);
      } catch (const Error& error) {
        CAPTURE(error.what());
        REQUIRE(error.code() == Errc::unsupported_keyword);
        REQUIRE(error.where().find(one.keyword) != std::string::npos);
        continue;
      }
      ++enforced[format.name];
      const auto accepts = [&](const Json& arguments) {
        return !fsm->find_refusal(fsm->write(std::vector{ToolCall{"f", arguments}}));
      };
      for (const Json& arguments : one.wrong) {
        const bool can_write = !format.in_order || arguments.empty() || arguments.contains("a");
        if (can_write && accepts(arguments)) FAIL("accepts " << arguments.text());
      }
      for (const Json& arguments : one.right) {
        const bool can_write = !format.in_order || arguments.empty() || arguments.contains("a");
        if (can_write && !accepts(arguments)) FAIL("refuses " << arguments.text());
      }
    }
  }
  for (const Format& format : all_formats()) {
    CAPTURE(format.name);
    // It lists all keys, so it refuses patternProperties.
    const int refused = format.name == "minimax-m3" ? 1 : 0;
    CHECK(enforced[format.name] + refused == static_cast<int>(cases.size()));
  }
}
