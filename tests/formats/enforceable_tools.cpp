#include <atomic>
#include <cstddef>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/constraint/tool_library.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/enforceable_tools.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/formats/xml_call.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/tools/tool_set.hpp>

#include <support/byte_vocabulary.hpp>
#include <support/catch.hpp>
#include <support/random_tools.hpp>

using namespace tooldecode;
using tools::Reading;
using Json = JsonValue;

namespace {

const std::string good =
    R"({"name": "good", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}})";

std::string tool(const std::string& name, const std::string& parameters) {
  return R"({"name": ")" + name + R"(", "parameters": )" + parameters + "}";
}
const std::string back_reference =
    R"({"type": "object", "properties": {"s": {"type": "string", "pattern": "(a)\\1", "maxLength": 2}},
        "required": ["s"]})";
const std::string tested =
    R"({"type": "object", "properties": {"s": {}}, "not": {"properties": {"s": {"pattern": "(a)\\1"}}}})";
const std::string costly =
    R"({"type": "object", "properties": {"a": {"pattern": "^(a{1000}){1000}$"}}})";

ToolSet parse(const std::string& documents, ToolEnforcement enforcement) {
  return ToolSet::parse('[' + documents + ']', {}, {}, enforcement);
}

ToolCallFSM build(const std::string& documents, ToolEnforcement enforcement,
                  ChoiceOptions options = {.choice = ToolChoice::required}) {
  options.enforcement = enforcement;
  return {test::byte_vocabulary(), parse(documents, enforcement), PythonCall{}, options};
}

std::optional<Errc> refusal(const std::string& documents, ToolEnforcement enforcement,
                            const ChoiceOptions& options = {.choice = ToolChoice::required}) {
  try {
    static_cast<void>(build(documents, enforcement, options));
  } catch (const Error& error) {
    return error.code();
  }
  return std::nullopt;
}

std::vector<Reading> given_up(const ToolCallFSM& calls) {
  std::vector<Reading> readings;
  for (const tools::Note& note : calls.tools().notes()) {
    if (tools::is_given_up(note.reading)) readings.push_back(note.reading);
  }
  return readings;
}

bool accepts(const ToolCallFSM& calls, std::string_view text) {
  return !calls.find_refusal(text);
}

// Sets `cancelled` when it makes the grammar of calls for the `left`-th time.
struct CancellingCall : PythonCall {
  std::atomic<bool>* cancelled = nullptr;
  int* left                    = nullptr;

  [[nodiscard]] std::vector<CallOpening> openings(Grammar& grammar, const ToolSet& tools,
                                                  std::span<const std::size_t> chosen,
                                                  const ChoiceOptions& options) const {
    if (--*left == 0) *cancelled = true;
    return PythonCall::openings(grammar, tools, chosen, options);
  }
};

constexpr auto strict = ToolEnforcement::strict;
constexpr auto relax  = ToolEnforcement::relax;
constexpr auto drop   = ToolEnforcement::drop;

}  // namespace

TEST_CASE("ToolEnforcement::strict makes one bad tool an error of the set") {
  CHECK(refusal(good + ',' + tool("bad", back_reference), strict) == Errc::unsupported_pattern);
  CHECK(refusal(good, strict) == std::nullopt);
}

TEST_CASE("ToolEnforcement::relax gives up the keyword and nothing else of the tool") {
  const ToolCallFSM calls = build(good + ',' + tool("bad", back_reference), relax);
  REQUIRE(given_up(calls) == std::vector{Reading::widened_schema});
  const tools::Note& note = calls.tools().notes().back();
  CHECK(note.tool == "bad");
  CHECK(note.pointer == "#/1/parameters/properties/s/pattern");
  CHECK(
      note.text.starts_with("\"pattern\" is not enforced: #/1/parameters/properties/s/pattern: "));
  CHECK(accepts(calls, "[bad(s='xy')]"));
  CHECK_FALSE(accepts(calls, "[bad(s='xyz')]"));
  CHECK_FALSE(accepts(calls, "[bad()]"));
  CHECK(accepts(calls, "[good(n=1)]"));
  CHECK_FALSE(accepts(calls, "[good(n='a')]"));
}

TEST_CASE("ToolEnforcement::relax admits any object where no part of the schema can be given up") {
  const ToolCallFSM calls = build(good + ',' + tool("bad", tested), relax);
  REQUIRE(given_up(calls) == std::vector{Reading::any_arguments});
  CHECK(accepts(calls, "[bad(s=1, other=[])]"));
  CHECK_FALSE(accepts(calls, "[good(n='a')]"));
  CHECK(documented_parameters(calls.tools()[1]).contains("not"));
}

TEST_CASE("ToolEnforcement::relax admits any object where parameters cannot be read") {
  const std::string unread = tool("bad", R"({"type": "object", "properties": 5})");
  CHECK(refusal(good + ',' + unread, strict) == Errc::malformed_schema);
  const ToolCallFSM calls = build(unread + ',' + good, relax);
  CHECK(given_up(calls) == std::vector{Reading::any_arguments});
  CHECK(accepts(calls, "[bad(a=1)]"));
  CHECK(accepts(calls, "[good(n=1)]"));
}

TEST_CASE("ToolEnforcement::relax leaves out a tool whose name the format cannot write") {
  const std::string bad   = tool("a b(", R"({"type": "object"})");
  const ToolCallFSM calls = build(bad + ',' + good, relax);
  CHECK(refusal(bad + ',' + good, strict) == Errc::unsupported_name);
  CHECK(given_up(calls) == std::vector{Reading::dropped_tool});
  REQUIRE(calls.tools().size() == 1);
  CHECK(accepts(calls, "[good(n=1)]"));
  CHECK(refusal(bad, relax) == Errc::unsupported_name);  // no tool is left for the required call
  CHECK(refusal(bad, relax, {}) == std::nullopt);
  CHECK(refusal(bad + ',' + good, relax, {.choice = ToolChoice::named, .name = "a b("}) ==
        Errc::unsupported_name);
}

TEST_CASE("ToolEnforcement::relax gives up a keyword that costs more than the limits") {
  const ToolCallFSM calls = build(good + ',' + tool("bad", costly), relax);
  CHECK(given_up(calls) == std::vector{Reading::widened_schema});
  CHECK(accepts(calls, "[bad(a='b')]"));
  // Four are tried; more would take long.
  std::string many = good;
  for (int i = 0; i < 5; ++i) many += ',' + tool("bad" + std::to_string(i), costly);
  CHECK(refusal(many, relax) == Errc::limit_exceeded);
}

TEST_CASE("ToolEnforcement::drop leaves the tool out and notes it") {
  for (const std::string& bad :
       {tool("bad", back_reference), tool("bad", R"({"type": "object", "properties": 5})")}) {
    const ToolCallFSM calls = build(bad + ',' + good, drop);
    CHECK(given_up(calls) == std::vector{Reading::dropped_tool});
    CHECK(calls.tools().notes().back().text.starts_with("the tool is left out: #/0/parameters"));
    CHECK_FALSE(accepts(calls, "[bad(s='b')]"));
    CHECK(accepts(calls, "[good(n=1)]"));
    CHECK(refusal(bad + ',' + good, drop, {.choice = ToolChoice::named, .name = "bad"}));
    CHECK(refusal(bad, drop));
    CHECK_FALSE(refusal(bad + ',' + good, drop, {.choice = ToolChoice::named, .name = "good"}));
  }
}

TEST_CASE("ToolEnforcement never hides mistakes that are not a tool's schema") {
  for (const auto enforcement : {relax, drop}) {
    CHECK(refusal(good + ',' + good, enforcement) == Errc::duplicate_tool);
    CHECK(refusal(R"({"name": ""})", enforcement) == Errc::malformed_document);
    CHECK(refusal(R"({"name": "f", "strict": 1})", enforcement) == Errc::malformed_document);
    CHECK(refusal(good, enforcement, {.choice = ToolChoice::named, .name = "other"}) ==
          Errc::unknown_tool);
    CHECK(refusal(good, enforcement, {.max_calls = 0}) == Errc::invalid_option);
  }
}

TEST_CASE("ToolEnforcement ends at once where the build is cancelled, of all tools or of one") {
  const std::string documents = good + ',' + tool("bad", back_reference);
  for (const ToolEnforcement enforcement : {strict, relax, drop}) {
    // The whole set, its first tool, its second one as it is.
    for (int last = 1; last <= (enforcement == strict ? 1 : 3); ++last) {
      INFO("enforcement " << static_cast<int>(enforcement) << ", cancelled in build " << last);
      std::atomic<bool> cancelled = false;
      int left                    = last;
      const CancellingCall format{{}, &cancelled, &left};
      const ChoiceOptions options{.choice      = ToolChoice::required,
                                  .limits      = {.cancelled = &cancelled},
                                  .enforcement = enforcement};
      const ToolSet tools = parse(documents, enforcement);
      std::optional<Errc> code;
      try {
        static_cast<void>(ToolCallFSM(test::byte_vocabulary(), tools, format, options));
      } catch (const Error& error) {
        code = error.code();
      }
      CHECK(code == Errc::cancelled);
      CHECK(left == 0);  // and no other build was tried
    }
  }
}

TEST_CASE("Grammar::tool_calls gives up what cannot be enforced, as ToolCallFSM does") {
  const ToolSet tools = parse(good + ',' + tool("bad", back_reference), relax);
  const Constraint grammar{test::byte_vocabulary(),
                           Grammar::tool_calls(tools, PythonCall{}, {.enforcement = relax})};
  CHECK(grammar.advance_bytes(grammar.initial(), "[bad(s='xy')"));
  CHECK_THROWS_AS(Grammar::tool_calls(tools, PythonCall{}, {}), Error);
}

TEST_CASE("enforceable_tools prepares tools for ToolLibrary, which takes strict ones only") {
  const ToolSet tools = parse(good + ',' + tool("bad", back_reference), relax);
  CHECK_THROWS_AS(ToolLibrary<PythonCall>(test::byte_vocabulary(), {}, {.enforcement = relax}),
                  Error);
  const ToolSet left = enforceable_tools(PythonCall{}, tools, {.enforcement = relax});
  CHECK(left.share(0) == tools.share(0));  // known by identity
  const ToolLibrary<PythonCall> library{test::byte_vocabulary()};
  CHECK(accepts(library.machine(left, ToolChoice::required), "[bad(s='xy')]"));
}

TEST_CASE("enforceable_tools leaves the other tools the masks that they have without the bad one") {
  std::mt19937 random(7);
  const Vocabulary vocabulary = test::call_vocabulary();
  const Json bad              = text::parse_json(tool("z", tested));
  std::size_t compared        = 0;
  for (int round = 0; round < 40; ++round) {
    const ToolSet tools = test::random_tools(random);
    Json documents      = Json::array();
    for (const Tool& one : tools) documents.push_back(parse_json_value(one.document));
    documents.push_back(bad);
    const auto with = ToolSet::from_json(documents);
    const ToolCallFSM alone{
        vocabulary, tools, PythonCall{}, {.choice = ToolChoice::required, .parallel = false}};
    const ToolCallFSM dropped{
        vocabulary,
        with,
        PythonCall{},
        {.choice = ToolChoice::required, .parallel = false, .enforcement = drop}};
    const ToolCallFSM relaxed{
        vocabulary,
        with,
        PythonCall{},
        {.choice = ToolChoice::required, .parallel = false, .enforcement = relax}};
    TokenMask mask(vocabulary.size()), other(vocabulary.size());
    auto a = alone.initial(), b = dropped.initial(), c = relaxed.initial();
    for (int step = 0; step < 40 && !alone.is_finished(a); ++step) {
      alone.fill_mask(a, mask.words());
      dropped.fill_mask(b, other.words());
      REQUIRE(mask == other);
      relaxed.fill_mask(c, other.words());
      std::vector<TokenId> allowed;
      for (std::size_t i = 0; i < vocabulary.size(); ++i) {
        const auto token = static_cast<TokenId>(i);
        if (mask.contains(token)) {
          REQUIRE(other.contains(token));
          allowed.push_back(token);
        }
      }
      if (alone.find_tool(a)) REQUIRE(mask == other);  // inside a call of one of the others
      const TokenId token = allowed[random() % allowed.size()];
      a = alone.advance(a, token).value(), b = dropped.advance(b, token).value();
      c = relaxed.advance(c, token).value();
      ++compared;
    }
  }
  CHECK(compared > 500);
}
