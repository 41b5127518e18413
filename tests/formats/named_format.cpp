#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/read_file.hpp>
#include <tooldecode/formats/call_format.hpp>
#include <tooldecode/formats/delimiter.hpp>
#include <tooldecode/formats/format_file.hpp>
#include <tooldecode/formats/format_set.hpp>
#include <tooldecode/formats/free_text.hpp>
#include <tooldecode/formats/named_format.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>

#include <support/byte_vocabulary.hpp>
#include <support/catch.hpp>
#include <support/data.hpp>
#include <support/two_tools.hpp>

using namespace tooldecode;

namespace {

const ToolSet& golden_tools() {
  static const ToolSet set = ToolSet::parse(R"([
    {"name": "get", "parameters": {"type": "object", "properties": {
      "city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"]}},
    {"name": "put", "parameters": {"type": "object", "properties": {
      "text": {"type": "string"},
      "tags": {"type": "array", "items": {"type": "string"}},
      "place": {"type": "object", "properties": {
        "x": {"type": "number"}, "on": {"type": "boolean"},
        "note": {"type": ["string", "null"]}}},
      "any": {"type": ["string", "integer"]}}}},
    {"name": "now", "parameters": {"type": "object", "properties": {}}}])");
  return set;
}

// Calls one by one, several, and one whose values are nested.
const std::vector<std::vector<ToolCall>>& golden_calls() {
  static const std::vector<std::vector<ToolCall>> all{
      {{"get", {{"city", "Bern"}, {"days", 3}}}},
      {{"now", JsonValue::object()}},
      {{"get", {{"city", "Zürich \U0001F600"}}},
       {"now", JsonValue::object()},
       {"get", {{"city", ""}}}},
      {{"put",
        {{"text", "a \"b\" \\ 'c'\n<d> & é"},
         {"tags", JsonValue::array({"x", "y, z"})},
         {"place", {{"x", 1.5}, {"on", true}, {"note", nullptr}}},
         {"any", 7}}}}};
  return all;
}

// FNV-1a.
void mix(std::uint64_t& hash, std::uint64_t value) {
  for (int shift = 0; shift < 64; shift += 8) {
    hash = (hash ^ ((value >> shift) & 0xFF)) * 0x100000001B3U;
  }
}

// What the constraint allows before each byte of the texts, and where they may end.
void mix_masks(std::uint64_t& hash, const ToolCallFSM& machine, std::string_view text) {
  std::vector<std::uint32_t> words((machine.vocabulary_size() + 31) / 32);  // [ceil(V / 32)]
  auto state = std::optional(machine.initial());
  for (std::size_t at = 0; at <= text.size() && state; ++at) {
    machine.fill_mask(*state, words);
    for (const std::uint32_t word : words) mix(hash, word);
    mix(hash, machine.is_accepting(*state) ? 1 : 0);
    if (at < text.size()) state = machine.advance_bytes(*state, text.substr(at, 1));
  }
  mix(hash, state ? 1 : 0);
}

// A format's texts and a hash of its masks, as a line of JSON.
std::string golden_row(const VocabularyIndex& index, const NamedFormat& format) {
  JsonValue row      = JsonValue::object();
  JsonValue texts    = JsonValue::array();
  std::uint64_t hash = 0xCBF29CE484222325U;
  for (const auto& calls : golden_calls()) {
    try {
      texts.list().emplace_back(format.write(calls, golden_tools()));
    } catch (const Error& error) {
      texts.list().emplace_back(JsonValue::object({{"error", error.what()}}));
      continue;
    }
    CHECK(format.parse(texts.back().string(), golden_tools()) == calls);
  }
  for (const auto& reasoning :
       {std::optional<formats::ReasoningDelimiters>(), std::optional(format.reasoning)}) {
    for (const ToolChoice choice : {ToolChoice::automatic, ToolChoice::required}) {
      const ToolCallFSM machine(index, golden_tools(), format.format,
                                {.choice = choice, .whitespace = 2, .reasoning = reasoning});
      for (const JsonValue& text : texts) {
        if (text.is_string()) mix_masks(hash, machine, text.string());
      }
    }
  }
  row["format"]    = format.name;
  row["reasoning"] = JsonValue::array({format.reasoning.begin, format.reasoning.end});
  row["texts"]     = texts;
  row["masks"]     = std::to_string(hash);
  return row.text();
}

// The delimiters of a text.
void add_marks(std::string_view text, std::set<std::string>& marks) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::size_t length = formats::delimiter_length(text.substr(at));
    if (length > 0) marks.emplace(text.substr(at, length));
  }
}

// The tokens of a text whose delimiters are control tokens where the constraint takes them.
std::vector<TokenId> with_marks(const ToolCallFSM& calls, std::string_view text) {
  std::vector<TokenId> tokens;
  auto state = calls.initial();
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = formats::delimiter_length(text.substr(at));
    const auto mark          = calls.vocabulary().find_special(text.substr(at, length));
    const bool is_mark       = length > 0 && mark && calls.advance(state, *mark);
    tokens.push_back(is_mark ? *mark : static_cast<std::uint8_t>(text[at]));
    const auto next = calls.advance(state, tokens.back());
    if (!next) FAIL("refused at byte " << at << " of " << text);
    state = *next;
    at += is_mark ? length : 1;
  }
  if (!calls.is_accepting(state)) FAIL("no whole answer: " << text);
  return tokens;
}

}  // namespace

// With TOOLDECODE_WRITE_GOLDEN=PATH the rows of this build are written to PATH first.
TEST_CASE("NamedFormat writes and allows the same texts as in the stored file") {
  const VocabularyIndex index(test::byte_vocabulary({{"<|channel|>", TokenType::control},
                                                     {"<tool_call>", TokenType::control},
                                                     {"</tool_call>", TokenType::control}}));
  std::string rows;
  for (const NamedFormat& format : named_formats()) rows += golden_row(index, format) + '\n';
  const auto stored = test::own_data("formats/written.jsonl");
  if (const char* path = std::getenv("TOOLDECODE_WRITE_GOLDEN")) std::ofstream(path) << rows;
  std::istringstream actual(rows), expected(core::read_file(stored));
  for (std::string line, other; std::getline(actual, line);) {
    REQUIRE(std::getline(expected, other));
    CHECK(line == other);
  }
}

TEST_CASE("NamedFormat that is printed and read back writes and allows the same texts") {
  const VocabularyIndex index(test::byte_vocabulary());
  for (const NamedFormat& format : named_formats()) {
    CAPTURE(format.name);
    const NamedFormat read = formats::read_format(formats::format_text(format));
    CHECK(golden_row(index, read) == golden_row(index, format));
  }
}

TEST_CASE("NamedFormat writes calls that its parser reads and its constraint accepts") {
  const VocabularyIndex index(test::byte_vocabulary(
      {{"<|channel|>", TokenType::control}, {"<|message|>", TokenType::control}}));
  std::set<std::string> names;
  for (const NamedFormat& format : named_formats()) {
    CAPTURE(format.name);
    CHECK(names.insert(format.name).second);
    CHECK(&format_named(format.name) == &format);
    const std::vector calls{ToolCall{"get", {{"city", "Bern"}, {"days", 3}}}};
    const std::string text = format.write(calls, test::two_tools());
    CHECK(format.parse(text, test::two_tools()) == calls);
    const ToolCallFSM machine(index, test::two_tools(), format.format,
                              {.choice = ToolChoice::required});
    CHECK(machine.write(calls) == text);
    CHECK(machine.parse(text) == calls);
  }
  CHECK(names.count("hermes") == 1);
}

TEST_CASE("NamedFormat whose delimiters are control tokens reads its calls from tokens") {
  std::size_t read = 0, marked = 0;
  for (const NamedFormat& format : named_formats()) {
    CAPTURE(format.name);
    const formats::ReasoningDelimiters opened{.begin = "", .end = format.reasoning.end};
    for (const auto& reasoning : {std::optional<formats::ReasoningDelimiters>(),
                                  std::optional(format.reasoning), std::optional(opened)}) {
      for (const auto& calls : golden_calls()) {
        std::string text;
        try {
          text = format.write(calls, golden_tools());
        } catch (const Error&) {
          continue;  // the format cannot write these calls
        }
        std::set<std::string> marks;
        add_marks(text, marks);
        if (reasoning) {
          for (const std::string& mark : {reasoning->begin, reasoning->end}) add_marks(mark, marks);
          text = reasoning->begin + "Hm." + reasoning->end + text;
        }
        std::vector<Vocabulary::Entry> entries;
        for (const std::string& mark : marks) entries.push_back({mark, TokenType::control});
        const ToolCallFSM machine(test::byte_vocabulary(entries), golden_tools(), format.format,
                                  {.choice = ToolChoice::required, .reasoning = reasoning});
        if (reasoning && !machine.advance_bytes(machine.initial(), text)) continue;
        const std::vector<TokenId> tokens = with_marks(machine, text);
        marked += tokens.size() < text.size() ? 1 : 0;
        CHECK(machine.vocabulary().answer_text(tokens) == text);
        CHECK(machine.parse(tokens) == calls);
        ++read;
      }
    }
  }
  CHECK(read > 500);
  CHECK(marked > 300);
}

TEST_CASE("NamedFormat escapes the text that ends a call where a value holds it") {
  // What each format's reader takes as the end of a call.
  const std::map<std::string, std::string> ends{{"hermes", "</tool_call>"},
                                                {"exaone", "</tool_call>"},
                                                {"nemotron", "</TOOLCALL>"},
                                                {"apriel", "</tool_calls>"},
                                                {"qwen3-coder", "</parameter>"},
                                                {"mimo", "</tool_call>"},
                                                {"glm", "</arg_value>"},
                                                {"glm-4.7", "</tool_call>"},
                                                {"seed-oss", "</seed:tool_call>"},
                                                {"minimax-m2", "</minimax:tool_call>"},
                                                {"minicpm5", "</param>"},
                                                {"deepseek-v4", "</｜DSML｜parameter>"},
                                                {"dots", "</dots_function_call>"},
                                                {"step-3", "</steptml:parameter>"},
                                                {"iquest-q1", "</arg_value>"},
                                                {"k2-horizon", "</ifm|tool_call>"},
                                                {"hunyuan-3", "</arg_value>"},
                                                {"hunyuan-4", "</tool_calls>"},
                                                {"minimax-m3", "]<]minimax[>[</invoke>"},
                                                {"functiongemma", "<escape>"},
                                                {"longcat", "</longcat_tool_call>"},
                                                {"deepseek-v4.1", "</｜DSML｜ parameter>"},
                                                {"gigachat-3.5", "</｜GCML｜tool_calls>"},
                                                {"plamo-3", "<|plamo:end_tool_arguments:plamo|>"},
                                                {"cohere-4", "</cofl:tool_call>"},
                                                {"functionary-3.1", "</function>"},
                                                {"kimi-k2", "<|tool_call_end|>"},
                                                {"json-fence", "```"}};
  const ToolSet tools = ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object",
    "properties": {"o": {"type": "object", "properties": {"k": {"type": "string"}}}}}}])");
  const VocabularyIndex index(test::byte_vocabulary());
  std::size_t tried = 0;
  for (const auto& entry : ends) {
    const std::string& name = entry.first;
    const std::string& end  = entry.second;
    CAPTURE(name, end);
    const auto known = std::find_if(named_formats().begin(), named_formats().end(),
                                    [&](const NamedFormat& format) { return format.name == name; });
    REQUIRE(known != named_formats().end());
    const NamedFormat& format = *known;
    const std::string held    = "a" + end + "b";
    const std::vector calls{ToolCall{"f", {{"o", {{"k", held}}}}}};
    // These write objects as elements, whose strings have no escapes.
    if (name == "cohere-4" || name == "minimax-m3" || name == "functiongemma") {
      CHECK_THROWS_AS(format.write(calls, tools), Error);
      continue;
    }
    ++tried;
    const std::string text = format.write(calls, tools);
    CHECK(text.find(held) == std::string::npos);
    CHECK(format.parse(text, tools) == calls);
    const ToolCallFSM machine(index, tools, format.format, {.choice = ToolChoice::required});
    CHECK(machine.advance_bytes(machine.initial(), text).has_value());
    // The same text with the end as it stands.
    const std::size_t at = text.find("\\u00");
    REQUIRE(at != std::string::npos);
    std::string plain = text;
    plain.replace(at, 6, end.substr(0, 1));
    REQUIRE(plain.find(held) != std::string::npos);
    CHECK_FALSE(machine.advance_bytes(machine.initial(), plain).has_value());
  }
  CHECK(tried >= 12);
}

TEST_CASE("NamedFormat::constrain refuses a property whose name holds the end of a call") {
  const VocabularyIndex index(test::byte_vocabulary());
  const ToolSet tools = ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object",
    "properties": {"o": {"type": "object", "properties": {"a</tool_call>": {}}}}}}])");
  try {
    (void)ToolCallFSM(index, tools, format_named("hermes").format,
                      {.choice = ToolChoice::required});
    FAIL("must throw");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::unsupported_name);
    CHECK(error.where() == "#/0/parameters/properties/o/properties/a<~1tool_call>");
  }
  CHECK_NOTHROW(
      ToolCallFSM(index, tools, format_named("json").format, {.choice = ToolChoice::required}));
}

TEST_CASE("format_set of a format with a suffix has the tokens and reasoning of the checkpoint") {
  const NamedFormat format = format_set("hunyuan-4:6124c78e");
  CHECK(format.name == "hunyuan-4:6124c78e");
  CHECK(format.reasoning.begin == "<think:6124c78e>");
  CHECK(format.reasoning.end == "</think:6124c78e>");
  const std::vector calls{ToolCall{"get", {{"city", "Bern"}}}};
  const std::string text = format.write(calls, test::two_tools());
  CHECK(text.starts_with("<tool_calls:6124c78e><tool_call:6124c78e>get<arg_key:6124c78e>city"));
  CHECK(format.parse(text, test::two_tools()) == calls);
  CHECK(format_set("auto:hunyuan-3:a").name == "hunyuan-3:a,json-fence,json");
  for (const char* name : {"hunyuan-4:", "hunyuan-4:a b", "hunyuan-4:>", "hermes:a", ":a"}) {
    CHECK_FALSE(format_with_suffix(name));
    CHECK_THROWS_AS(format_set(name), Error);
  }
}

TEST_CASE("format_named of an unknown name throws an error that lists the known names") {
  CHECK(format_names().find("python, hermes, ") == 0);
  CHECK(format_names().find(" or tooldec") != std::string::npos);
  try {
    (void)format_named("yaml");
    FAIL("must throw");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::unknown_format);
    CHECK(error.where() == "yaml");
    REQUIRE_THAT(error.what(), test::contains(format_names()));
  }
}
