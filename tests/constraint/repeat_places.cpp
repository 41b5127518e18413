#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <tooldecode/constraint/repeat_places.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/formats/call_format.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/tools/tool_set.hpp>

#include <support/byte_vocabulary.hpp>
#include <support/catch.hpp>

using namespace tooldecode;
using constraint::RepeatPlaces;

namespace {

// A tool without arguments and one with a flag, then a text.
const ToolCallFSM& machine() {
  static const ToolCallFSM calls(
      test::byte_vocabulary({{", f("}, {"), g("}, {")]"}, {"true"}, {"Tr"}}),
      ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object", "properties": {}}},
                         {"name": "g", "parameters": {"type": "object", "properties": {
                            "a": {"type": "boolean"}, "b": {"type": "string"}},
                            "required": ["a"], "additionalProperties": false}}])"),
      PythonCall{}, {.choice = ToolChoice::required, .documented_order = true});
  return calls;
}

RepeatPlaces make_places(std::size_t max_texts = 500) {
  const auto tool_of = [](std::span<const std::uint32_t> marks) {
    const auto tool =
        std::find_if(marks.begin(), marks.end(), [](std::uint32_t mark) { return mark < 2; });
    return tool == marks.end() ? std::nullopt : std::optional<std::size_t>(*tool);
  };
  return {machine().constraint(), tool_of, max_texts};
}

RepeatPlaces::Number behind(std::string_view text) {
  return machine().constraint().automaton_state(
      *machine().advance_bytes(machine().initial(), text));
}

RepeatPlaces::AreTwoCalls two_calls_behind(std::string text) {
  return [text = std::move(text)](const std::string& one, const std::string& other) {
    const auto a = machine().parse(text + one), b = machine().parse(text + other);
    return a.size() == b.size() && !(a.back() == b.back());
  };
}

}  // namespace

TEST_CASE("RepeatPlaces::is_in_call holds from a call's name to the end of its arguments") {
  RepeatPlaces places = make_places();
  CHECK(!places.is_in_call(behind("")));
  CHECK(!places.is_in_call(behind("[")));
  CHECK(places.is_in_call(behind("[g(")));
  CHECK(places.is_in_call(behind("[g(a=Tr")));
  CHECK(!places.is_in_call(behind("[g(a=True)")));
  CHECK(!places.is_in_call(behind("[g(a=True), ")));
}

TEST_CASE("RepeatPlaces::can_end holds where no further call is required") {
  RepeatPlaces places = make_places();
  CHECK(!places.can_end(behind("[")));
  CHECK(!places.can_end(behind("[g(a=")));
  CHECK(places.can_end(behind("[g(a=True)")));
  CHECK(!places.can_end(behind("[g(a=True), ")));
  CHECK(places.can_end(behind("[g(a=True)]")));
}

TEST_CASE("RepeatPlaces::ends_call holds for bytes that leave a call, also one that they begin") {
  RepeatPlaces places = make_places();
  CHECK(places.ends_call(behind("[g(a=True"), ")"));
  CHECK(places.ends_call(behind("[g(a=True"), "), g("));
  CHECK(!places.ends_call(behind("[g(a=True"), ", b="));
  CHECK(!places.ends_call(behind("[g(a=True)"), ", g(a="));
  CHECK(places.ends_call(behind("[g(a=True)"), ", g(a=True)"));
}

TEST_CASE(
    "RepeatPlaces::pair finds two different calls; completion gives the shortest text first") {
  RepeatPlaces places = make_places();
  for (const char* text : {"[", "[g(", "[g(a=", "[g(a=Tr", "[g(a=True, b='x"}) {
    INFO(text);
    const auto& pair = places.pair(behind(text), two_calls_behind(text));
    REQUIRE(pair);
    CHECK(two_calls_behind(text)(pair->one, pair->other));
  }
  CHECK(!places.pair(behind("[f("), two_calls_behind("[f(")));
  CHECK(!places.pair(behind("[g(a=True, b='x'"), two_calls_behind("[g(a=True, b='x'")));
  CHECK(*places.completion(behind("[g(a="), 0) == "True)]");
  const auto closing = behind("[g(a=True, b='x'");
  CHECK(*places.completion(closing, 0) == ")]");
  std::size_t count = 0;
  while (places.completion(closing, count) != nullptr) ++count;
  CHECK(count < 10);
  const auto open  = behind("[g(a=True, b='x");
  RepeatPlaces few = make_places(7);
  for (count = 0; few.completion(open, count) != nullptr;) ++count;
  CHECK(count == 7);
}

TEST_CASE("RepeatPlaces::tokens marks as tight what ends a call or leaves one continuation") {
  RepeatPlaces places = make_places();
  const auto is_tight = [&](const std::string& text, const std::string& token) {
    const auto& all = places.tokens(
        behind(text), [&](const std::string& bytes) { return two_calls_behind(text + bytes); });
    return std::any_of(all.tight.begin(), all.tight.end(), [&](const RepeatPlaces::Tight& one) {
      return places.trie().text(one.node) == token;
    });
  };
  CHECK(!is_tight("[", "g"));
  CHECK(!is_tight("[f()", ","));
  CHECK(is_tight("[f()", ", f("));
  CHECK(is_tight("[f(", ")"));
  CHECK(!is_tight("[g(", "a"));
  CHECK(!is_tight("[g(a=", "Tr"));
  CHECK(is_tight("[g(a=True", ")]"));
  CHECK(is_tight("[g(a=True", "), g("));
  CHECK(!is_tight("[g(a=True, b='", "x"));
  CHECK(is_tight("[g(a=True, b='", "'"));
}
