#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/constraint/call_stream.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/constraint/tool_library.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/delimiter.hpp>
#include <tooldecode/formats/format_file.hpp>
#include <tooldecode/formats/format_set.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/named_format.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/utf8.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>

#include <support/byte_vocabulary.hpp>
#include <support/cases.hpp>
#include <support/catch.hpp>
#include <support/random_tools.hpp>
#include <support/two_tools.hpp>

using namespace tooldecode;
using Kind = StreamEvent::Kind;

namespace {

const VocabularyIndex& set_bytes() {
  static const VocabularyIndex made{test::byte_vocabulary()};
  return made;
}

std::vector<ToolCall> one_set_call() {
  return {{"get", {{"city", "Bern"}, {"days", 3}}}};
}

// An answer that is only text, or text up to a call.
struct SetAnswer {
  std::string text;
  std::vector<ToolCall> calls;
  std::optional<std::size_t> format;
  bool is_whole = false;
};

SetAnswer streamed(const ToolCallFSM& calls, std::span<const std::string> pieces) {
  SetAnswer all;
  CallStream stream(calls);
  std::string arguments;
  const auto take = [&](const std::vector<StreamEvent>& events) {
    for (const StreamEvent& event : events) {
      if (event.kind == Kind::text) all.text += event.text;
      if (event.kind == Kind::arguments) arguments += event.text;
      if (event.kind == Kind::call_begin) {
        all.calls.push_back({event.text});
        all.format = event.format;
        arguments.clear();
      }
      if (event.kind == Kind::call_end) {
        all.calls.back().arguments = text::parse_json(arguments);
      }
      if (event.kind == Kind::answer_end) all.is_whole = event.call == all.calls.size();
    }
  };
  for (const std::string& piece : pieces) take(stream.push(piece));
  take(stream.finish());
  return all;
}

SetAnswer streamed(const ToolCallFSM& calls, const std::string& text) {
  return streamed(calls, std::span(&text, 1));
}

bool accepts_answer(const ToolCallFSM& calls, std::string_view text) {
  const auto state = calls.advance_bytes(calls.initial(), text);
  return state && calls.is_accepting(*state);
}

// Says whether a set accepts an answer, from machines of each format alone and a scan for the
// delimiters that open calls.
class SetReferee {
 public:
  SetReferee(const FormatSet& set, const ToolSet& tools, std::uint32_t whitespace)
      : members_(set.members().begin(), set.members().end()) {
    for (std::size_t m = 0; m < members_.size(); ++m) {
      callers_.emplace_back(set_bytes(), tools, members_[m],
                            ChoiceOptions{.whitespace = whitespace});
      silent_.emplace_back(set_bytes(), tools, members_[m],
                           ChoiceOptions{.choice = ToolChoice::none, .whitespace = whitespace});
      Grammar grammar;
      const auto parts = members_[m].parts(grammar, tools, {},
                                           {.choice = ToolChoice::none, .whitespace = whitespace});
      for (const CallOpening& opening : parts.openings) {
        for (const std::string& longer : opening.longer)
          openings_.push_back({m, longer, opening.only_at_start});
        if (opening.longer.empty())
          openings_.push_back({m, opening.delimiter, opening.only_at_start});
      }
    }
  }

  [[nodiscard]] bool accepts(const std::string& text) const {
    const std::size_t start = formats::leading_space(text);
    struct Occurrence {
      std::size_t begin, end, member;
    };
    std::vector<Occurrence> found;
    for (const Opening& opening : openings_) {
      for (std::size_t at = text.find(opening.text); at != std::string::npos;
           at             = text.find(opening.text, at + 1)) {
        if (!opening.only_at_start || at == start) {
          found.push_back({at, at + opening.text.size(), opening.member});
        }
      }
    }
    if (found.empty()) return are_text(text);
    for (const Occurrence& one : found) {
      const bool is_late = std::ranges::any_of(found, [&](const Occurrence& other) {
        return other.begin != one.begin &&
               (other.end < one.end || (other.end == one.end && other.begin < one.begin));
      });
      if (is_late || !are_text(text.substr(0, one.begin))) continue;
      if (accepts_answer(callers_[one.member], text)) return true;
    }
    return false;
  }

 private:
  struct Opening {
    std::size_t member;
    std::string text;
    bool only_at_start;
  };
  [[nodiscard]] bool are_text(const std::string& text) const {
    return std::ranges::all_of(silent_,
                               [&](const ToolCallFSM& one) { return accepts_answer(one, text); });
  }

  std::vector<formats::AnyFormat> members_;
  std::vector<ToolCallFSM> callers_, silent_;
  std::vector<Opening> openings_;
};

// Texts near calls: pieces of calls, delimiters and words, sometimes with a byte changed.
std::string random_answer(std::mt19937& random, const std::vector<std::string>& calls,
                          const std::vector<std::string>& delimiters) {
  const auto pick = [&](const std::vector<std::string>& from) {
    return from[random() % from.size()];
  };
  static const std::vector<std::string> words{"Let me see. ", "\n", " ", "{", "[", "```", "<", "a"};
  std::string text;
  for (auto parts = random() % 4; parts > 0; --parts) {
    if (random() % 3 == 0) {
      const std::string delimiter = pick(delimiters);
      text += delimiter.substr(0, 1 + random() % delimiter.size());
    } else {
      text += pick(words);
    }
  }
  if (random() % 5 != 0) {
    std::string call = pick(calls);
    if (random() % 4 == 0) call[random() % call.size()] = "{}<>`[]a\n\""[random() % 10];
    if (random() % 6 == 0) call.resize(random() % call.size());
    text += call;
  }
  if (random() % 6 == 0) text += pick(calls);
  return text;
}

void check_same_masks(const ToolCallFSM& left, const ToolCallFSM& right, std::string_view text) {
  TokenMask one(left.vocabulary_size()), other(left.vocabulary_size());
  auto state = left.initial(), same = right.initial();
  for (std::size_t at = 0;; ++at) {
    left.fill_mask(state, one.words());
    right.fill_mask(same, other.words());
    REQUIRE(one == other);
    REQUIRE(left.is_accepting(state) == right.is_accepting(same));
    if (at == text.size()) return;
    const auto next = left.advance_bytes(state, text.substr(at, 1));
    REQUIRE(next.has_value() == right.advance_bytes(same, text.substr(at, 1)).has_value());
    if (!next) return;
    state = *next, same = *right.advance_bytes(same, text.substr(at, 1));
  }
}

}  // namespace

TEST_CASE("FormatSet accepts a fenced call, a bare call and text with other JSON") {
  const NamedFormat set = format_set("hermes,json-fence,json");
  const ToolSet& tools  = test::two_tools();
  const ToolCallFSM calls(set_bytes(), tools, set.format);
  const std::string object = R"({"name": "get", "arguments": {"city": "Bern", "days": 3}})";
  const std::vector<std::string> right{
      "<tool_call>\n" + object + "\n</tool_call>", "```json\n" + object + "\n```", object,
      "Let me see.\n```json\n{\n  \"name\": \"get\",\n  \"arguments\": {\n    \"city\": \"Bern\",\n"
      "    \"days\": 3\n  }\n}\n```"};
  for (std::size_t i = 0; i < right.size(); ++i) {
    CAPTURE(right[i]);
    CHECK(accepts_answer(calls, right[i]));
    CHECK(calls.parse(right[i]) == one_set_call());
    const SetAnswer stream = streamed(calls, right[i]);
    CHECK(stream.calls == one_set_call());
    CHECK(stream.format == std::min<std::size_t>(i, i == 3 ? 1 : 2));
  }
  const std::string other = "As JSON:\n```json\n{\"name\": \"Bern\", \"days\": 3}\n```\nDone.";
  CHECK(accepts_answer(calls, other));
  CHECK(calls.parse(other).empty());
  CHECK(streamed(calls, other).text == other);
  // Where an answer ends, what looked like the beginning of a call is text.
  for (const std::string end :
       {"See\n```json\n{", "See\n```json\n{\n  \"name\": \"ge", "{", "{ }"}) {
    CHECK(streamed(calls, end).text == end);
  }
  // A call with a wrong argument is not text.
  for (const std::string before : {"```json\n", "", "<tool_call>\n"}) {
    CHECK_FALSE(calls.advance_bytes(calls.initial(),
                                    before + R"({"name": "get", "arguments": {"town": "Bern")"));
  }
}

TEST_CASE("FormatSet with random texts accepts what its formats' own machines accept") {
  const std::vector<std::string> sets{"hermes,json-fence,json",
                                      "hermes,qwen3-coder,json-fence,json",
                                      "llama,functionary-3.1,json-fence",
                                      "react,command-r-plus,json-fence,json",
                                      "mistral,mistral-args,json",
                                      "granite,python,json-list,json",
                                      "deepseek-v3,deepseek-v3.1,kimi-k2,toolken"};
  std::mt19937 random(20261);
  std::size_t accepted = 0, refused = 0, with_calls = 0;
  for (const std::string& names : sets) {
    for (const std::uint32_t whitespace : {0U, 2U}) {
      const ToolSet& tools    = test::two_tools();
      const NamedFormat named = format_set(names);
      const FormatSet& set    = *named.format.find<FormatSet>();
      const ToolCallFSM calls(set_bytes(), tools, named.format, {.whitespace = whitespace});
      const SetReferee referee(set, tools, whitespace);
      std::vector<std::string> texts, delimiters{"```json\n{\"name\": \"get\""};
      for (const formats::AnyFormat& member : set.members()) {
        texts.push_back(member.write(one_set_call(), tools));
        Grammar grammar;
        for (const auto& opening : member.parts(grammar, tools, {}, {}).openings)
          delimiters.push_back(opening.delimiter);
      }
      for (std::uint32_t i = 0; i < test::cases(1500); ++i) {
        const std::string text = random_answer(random, texts, delimiters);
        CAPTURE(names, whitespace, i, text);
        const bool is_right = referee.accepts(text);
        if (accepts_answer(calls, text) != is_right) FAIL((is_right ? "refused" : "accepted"));
        ++(is_right ? accepted : refused);
        if (!is_right) continue;
        const auto parsed = calls.parse(text);
        with_calls += !parsed.empty();
        const std::size_t cut = random() % (text.size() + 1);
        const std::string pieces[]{text.substr(0, cut), text.substr(cut)};
        const SetAnswer stream = streamed(calls, pieces);
        if (stream.calls != parsed) FAIL("the stream has other calls");
        if (parsed.empty() && text::is_utf8(text) && stream.text != text)
          FAIL("the stream has the text " << stream.text);
        if (!parsed.empty()) CHECK(set.members()[*stream.format].parse(text, tools) == parsed);
      }
    }
  }
  CAPTURE(accepted, refused, with_calls);
  CHECK(accepted > test::cases(5000));
  CHECK(refused > test::cases(2000));
  CHECK(with_calls > test::cases(2000));
}

TEST_CASE("FormatSet of every format and two fall-backs reads each of them, wherever it is cut") {
  const ToolSet& tools = test::two_tools();
  for (const NamedFormat& format : named_formats()) {
    CAPTURE(format.name);
    const NamedFormat set = format_set(format.name + ",json-fence,json");
    const ToolCallFSM calls(set_bytes(), tools, set.format);
    const auto members = set.format.find<FormatSet>()->members();
    for (const formats::AnyFormat& member : members) {
      const std::string text = member.write(one_set_call(), tools);
      CAPTURE(text);
      REQUIRE(accepts_answer(calls, text));
      REQUIRE(calls.parse(text) == one_set_call());
      for (std::size_t cut = 0; cut <= text.size(); cut += test::is_sanitized ? 5 : 1) {
        const std::string pieces[]{text.substr(0, cut), text.substr(cut)};
        const SetAnswer stream = streamed(calls, pieces);
        if (stream.calls != one_set_call() || !stream.is_whole) FAIL("cut at " << cut);
      }
      // Text holds no call.
      const ToolCallFSM silent(set_bytes(), tools, set.format, {.choice = ToolChoice::none});
      CHECK_FALSE(accepts_answer(silent, text));
      // What breaks a call breaks the answer.
      const std::size_t city = text.find("Bern");
      std::string broken     = text;
      broken.erase(text.find("3", city), 1);
      CHECK_FALSE(accepts_answer(calls, broken));
    }
  }
}

TEST_CASE("FormatSet masks equal brute force over a vocabulary whose tokens cross delimiters") {
  std::mt19937 random(7);
  const VocabularyIndex index{test::call_vocabulary()};
  const Vocabulary& vocabulary = index.vocabulary();
  TokenMask mask(vocabulary.size());
  for (int round = 0; round < 12; ++round) {
    const ToolSet tools   = test::random_tools(random);
    const NamedFormat set = format_set(round % 2 == 0 ? "python,json-fence,hermes"
                                                      : "hermes,qwen3-coder,json-fence,json");
    const ToolCallFSM calls(index, tools, set.format);
    CAPTURE(round, set.name);
    auto state = calls.initial();
    std::string text;
    for (int step = 0; step < 25 && !calls.is_finished(state); ++step) {
      calls.fill_mask(state, mask.words());
      std::vector<TokenId> allowed;
      for (std::size_t i = 0; i < vocabulary.size(); ++i) {
        const auto token = static_cast<TokenId>(i);
        if (i == 0xFE || i == 0xFF) continue;  // bytes that mark control tokens in a grammar
        const bool fits =
            vocabulary.is_end(token)
                ? calls.is_accepting(state)
                : calls.advance_bytes(calls.initial(), text + std::string(vocabulary.bytes(token)))
                      .has_value();
        CAPTURE(text, i);
        if (mask.contains(token) != fits) FAIL("the mask differs");
        if (fits && !vocabulary.is_end(token)) allowed.push_back(token);
      }
      // Towards calls: the first bytes of delimiters more often than others.
      const std::string_view toward = "[<`{\"f(=";
      TokenId token                 = allowed[random() % allowed.size()];
      for (int tries = 0; tries < 8; ++tries) {
        if (toward.find(vocabulary.bytes(token)[0]) != std::string_view::npos) break;
        token = allowed[random() % allowed.size()];
      }
      text += vocabulary.bytes(token);
      state = *calls.advance(state, token);
    }
  }
}

TEST_CASE("FormatSet of Hermes with JSON has the masks of JsonCall::qwen_2_5") {
  const ToolSet& tools   = test::two_tools();
  constexpr auto written = 23U;  // what qwen_2_5 always allows in its calls
  const ToolCallFSM set(set_bytes(), tools, format_set("hermes,json-fence,json").format,
                        {.whitespace = written});
  const ToolCallFSM own(set_bytes(), tools, JsonCall::qwen_2_5(), {.whitespace = written});
  std::mt19937 random(3);
  std::vector<std::string> texts;
  for (const char* name : {"hermes", "json-fence", "json"})
    texts.push_back(format_named(name).write(one_set_call()));
  for (int i = 0; i < 60; ++i) {
    const std::string text = random_answer(random, texts, {"<tool_call>", "```json\n{"});
    CAPTURE(text);
    check_same_masks(set, own, text);
  }
}

TEST_CASE("FormatSet has its first format alone where a call is required") {
  const ToolSet& tools      = test::two_tools();
  const NamedFormat& first  = format_named("hermes");
  const NamedFormat set     = format_set("hermes,json-fence,json");
  const std::string written = first.write(one_set_call());
  for (const ChoiceOptions& options :
       {ChoiceOptions{.choice = ToolChoice::required},
        ChoiceOptions{.choice = ToolChoice::named, .name = "get", .whitespace = 2}}) {
    check_same_masks(ToolCallFSM(set_bytes(), tools, set.format, options),
                     ToolCallFSM(set_bytes(), tools, first.format, options), written);
  }
  const ToolCallFSM calls(set_bytes(), tools, set.format);
  CHECK(calls.write(one_set_call()) == written);
  check_same_masks(calls.single_call(0, {"days"}, true),
                   ToolCallFSM(set_bytes(), tools, first.format).single_call(0, {"days"}, true),
                   written);
  const ToolCallFSM python(set_bytes(), tools, format_set("python,json").format);
  CHECK(python.parse_value("'x'") == "x");
}

TEST_CASE("FormatSet keeps further calls in the format of the first one") {
  const ToolSet& tools = test::two_tools();
  const ToolCallFSM calls(set_bytes(), tools, format_set("hermes,json-fence,json").format);
  const auto written = [](const char* name) { return format_named(name).write(one_set_call()); };
  const std::string hermes = written("hermes"), fence = written("json-fence");
  CHECK(accepts_answer(calls, hermes + "\n" + hermes));
  CHECK(accepts_answer(calls, fence + "\n" + fence));
  CHECK(calls.parse(fence + "\n" + fence).size() == 2);
  CHECK_FALSE(accepts_answer(calls, hermes + "\n" + fence));
  CHECK_FALSE(accepts_answer(calls, fence + "\n" + hermes));
}

TEST_CASE("FormatSet reads a reasoning block before each of its formats") {
  const ToolSet& tools  = test::two_tools();
  const NamedFormat set = format_set("qwen3-coder,qwen-2.5,json-fence");
  const ToolCallFSM calls(set_bytes(), tools, set.format, {.reasoning = set.reasoning});
  for (const formats::AnyFormat& member : set.format.find<FormatSet>()->members()) {
    const std::string text =
        "<think>\nA <tool_call> or ```json\n</think>\n\n" + member.write(one_set_call(), tools);
    CAPTURE(text);
    CHECK(accepts_answer(calls, text));
    CHECK(calls.parse(text) == one_set_call());
    CHECK(streamed(calls, text).calls == one_set_call());
  }
}

TEST_CASE("FormatSet gives fenced and bare JSON the keys of its first format") {
  const ToolSet& tools = test::two_tools();
  const ToolCallFSM calls(set_bytes(), tools, format_set("granite,json-fence").format);
  const ToolCallFSM llama(set_bytes(), tools, format_set("llama,json-fence").format);
  const std::string fenced = "```json\n{\"name\": \"get_time\", \"arguments\": {}}\n```";
  CHECK(accepts_answer(calls, fenced));
  CHECK_FALSE(accepts_answer(llama, fenced));
  CHECK(accepts_answer(llama, "```json\n{\"name\": \"get_time\", \"parameters\": {}}\n```"));
}

TEST_CASE("FormatSet in a ToolLibrary has the masks of a machine that is built alone") {
  std::mt19937 random(11);
  const FormatSet set = *format_set("hermes,qwen3-coder,json-fence,json").format.find<FormatSet>();
  const ToolLibrary library(set_bytes(), set);
  const ToolSet& tools = test::two_tools();
  const ToolSet fewer  = tools.subset(std::vector<std::size_t>{1});
  std::vector<std::string> texts;
  for (const formats::AnyFormat& member : set.members())
    texts.push_back(member.write(one_set_call(), tools));
  for (const ToolSet* some : {&tools, &fewer, &tools}) {
    const ToolCallFSM plain(set_bytes(), *some, set);
    const ToolCallFSM shared = library.machine(*some);
    for (const std::string& text : texts) {
      check_same_masks(shared, plain, text);
      if (!accepts_answer(plain, text)) continue;
      CHECK(streamed(shared, text).calls == streamed(plain, text).calls);
    }
  }
  CHECK(library.size() == 2);
}

TEST_CASE("FormatSet refuses sets that cannot be read") {
  const auto any = [](const char* name) { return format_named(name).format; };
  CHECK_THROWS_AS(FormatSet({}), Error);
  CHECK_THROWS_AS(FormatSet({any("hermes"), any("harmony")}), Error);
  CHECK_THROWS_AS(FormatSet({any("hermes"), format_set("hermes,json").format}), Error);
  CHECK_NOTHROW(FormatSet({any("harmony"), any("json-fence")}));
  JsonCall inner = JsonCall::hermes(), outer = JsonCall::hermes();
  inner.begin = "(call)";
  outer.begin = "the (call) of";
  try {
    (void)ToolCallFSM(set_bytes(), test::two_tools(), FormatSet({outer, inner}));
    FAIL("must throw");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::invalid_option);
    REQUIRE_THAT(error.what(), test::contains("must not hold (call)"));
  }
}

TEST_CASE("format_set reads a list of names and the families") {
  CHECK(format_set("hermes").name == "hermes");
  CHECK(format_set("hermes, json").name == "hermes,json");
  CHECK(format_set("auto:hermes").name == "hermes,json-fence,json");
  CHECK(format_set("auto:qwen").name == "qwen-2.5,qwen3-coder,json-fence,json");
  CHECK(format_set("qwen3-coder,auto:qwen").name == "qwen3-coder,qwen-2.5,json-fence,json");
  CHECK(with_fall_backs("qwen3-coder") == "qwen3-coder,qwen-2.5,json-fence,json");
  CHECK(with_fall_backs("json") == "json,json-fence");
  CHECK(with_fall_backs("apriel") == "apriel,json-fence,json");
  CHECK(format_set("mistral-args,json").reasoning == format_named("mistral-args").reasoning);
  CHECK(formats::find_format("hermes,json").name == "hermes,json");
  for (const char* wrong : {"", "hermes,", "auto:", "auto:yaml", "hermes,yaml"}) {
    CAPTURE(wrong);
    try {
      (void)format_set(wrong);
      FAIL("must throw");
    } catch (const Error& error) {
      CHECK(error.code() == Errc::unknown_format);
    }
  }
  for (const FormatFamily& family : format_families()) {
    CAPTURE(family.name);
    CHECK_NOTHROW(
        ToolCallFSM(set_bytes(), test::two_tools(), format_set("auto:" + family.name).format));
  }
  for (const NamedFormat& format : named_formats()) {
    CAPTURE(format.name);
    CHECK_NOTHROW(
        ToolCallFSM(set_bytes(), test::two_tools(), format_set("auto:" + format.name).format));
  }
}
