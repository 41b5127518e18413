#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/constraint/call_stream.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/tools/delimited_call.hpp>
#include <tooldecode/tools/harmony_call.hpp>
#include <tooldecode/tools/json_call.hpp>
#include <tooldecode/tools/positional_call.hpp>
#include <tooldecode/tools/python_call.hpp>
#include <tooldecode/tools/value_reader.hpp>
#include <tooldecode/tools/xml_call.hpp>

#include <support/byte_vocabulary.hpp>
#include <support/catch.hpp>
#include <support/two_tools.hpp>

using namespace tooldecode;
using Kind = StreamEvent::Kind;

namespace {

/// What events say in all.
struct Joined {
  std::string text, reasoning;
  std::vector<ToolCall> calls;
  std::vector<std::string> arguments;
  std::size_t ended = 0;  // calls
  bool whole        = false;
};

void join(const std::vector<StreamEvent>& events, Joined& all) {
  for (const StreamEvent& event : events) {
    CHECK_FALSE(all.whole);
    switch (event.kind) {
      case Kind::text:
        all.text += event.text;
        break;
      case Kind::reasoning:
        all.reasoning += event.text;
        break;
      case Kind::call_begin:
        CHECK(event.call == all.calls.size());
        CHECK(all.ended == all.calls.size());
        all.calls.push_back({event.text});
        all.arguments.emplace_back();
        break;
      case Kind::arguments:
        REQUIRE(event.call + 1 == all.calls.size());
        CHECK(all.ended == event.call);
        CHECK_FALSE(event.text.empty());
        all.arguments.back() += event.text;
        break;
      case Kind::call_end:
        REQUIRE(event.call + 1 == all.calls.size());
        all.calls.back().arguments = tools::parse_json(all.arguments.back());
        ++all.ended;
        break;
      case Kind::answer_end:
        CHECK(event.call == all.ended);
        all.whole = true;
        break;
    }
  }
}

// A text in pieces that end at some places.
Joined stream(const ToolCallFSM& calls, std::string_view text,
              const std::vector<std::size_t>& ends = {}) {
  CallStream stream(calls);
  Joined all;
  std::size_t at = 0;
  for (const std::size_t end : ends) {
    join(stream.push(text.substr(at, end - at)), all);
    at = end;
  }
  join(stream.push(text.substr(at)), all);
  join(stream.finish(), all);
  return all;
}

std::vector<std::size_t> single_bytes(std::string_view text) {
  std::vector<std::size_t> ends;
  for (std::size_t i = 1; i < text.size(); ++i) ends.push_back(i);
  return ends;
}

const ToolSet& documents() {
  return test::two_tools();
}

const std::vector<ToolCall>& two_calls() {
  static const std::vector<ToolCall> calls{{"get", {{"city", "Åre \"x\" <y>"}, {"days", 2}}},
                                           {"get_time"}};
  return calls;
}

template <class Use>
void for_each_format(const Use& use) {
  use("python", PythonCall{});
  use("hermes", JsonCall::hermes());
  use("llama", JsonCall::llama());
  use("mistral", JsonCall::mistral());
  use("json", JsonCall::bare());
  use("json-list", JsonCall::bare_list());
  use("mistral-args", DelimitedCall::mistral());
  use("deepseek-v3", DelimitedCall::deepseek_v3());
  use("deepseek-v3.1", DelimitedCall::deepseek_v3_1());
  use("kimi-k2", DelimitedCall::kimi_k2());
  use("harmony", HarmonyCall{});
  use("react", DelimitedCall::react());
  use("qwen3-coder", XmlCall::qwen3_coder());
  use("glm", XmlCall::glm());
  use("toolken", PositionalCall::toolken());
  use("tooldec", PositionalCall::tool_dec());
}

}  // namespace

TEST_CASE("Calls of every format come as its parser reads them, however the text is cut") {
  for_each_format([](const char* name, const auto& format) {
    CAPTURE(name);
    for (const std::uint32_t whitespace : {0u, 3u}) {
      CAPTURE(whitespace);
      const ToolCallFSM calls{test::byte_vocabulary(), documents(), format,
                              ChoiceOptions{.whitespace = whitespace}};
      for (std::size_t first = 0; first < 2; ++first) {
        for (std::size_t last = first + 1; last <= 2; ++last) {
          std::vector<ToolCall> some(two_calls().begin() + static_cast<std::ptrdiff_t>(first),
                                     two_calls().begin() + static_cast<std::ptrdiff_t>(last));
          std::string text;
          try {
            text = calls.write(some);
          } catch (const Error&) {
            continue;  // one call an answer
          }
          CAPTURE(text);
          REQUIRE_FALSE(calls.find_refusal(text));
          const auto parsed = calls.parse(text);
          REQUIRE(parsed == some);
          const Joined whole = stream(calls, text);
          CHECK(whole.calls == parsed);
          CHECK(whole.ended == parsed.size());
          CHECK(whole.text.empty());
          CHECK(whole.whole);
          for (std::size_t i = 1; i < text.size(); ++i) {
            const Joined cut = stream(calls, text, {i});
            if (cut.arguments != whole.arguments || cut.calls != parsed) FAIL("cut at " << i);
          }
          CHECK(stream(calls, text, single_bytes(text)).arguments == whole.arguments);
        }
      }
    }
  });
}
