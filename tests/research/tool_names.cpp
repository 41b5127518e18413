#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/formats/delimited_call.hpp>
#include <tooldecode/formats/harmony_call.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/positional_call.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/formats/xml_call.hpp>
#include <tooldecode/research/tool_names.hpp>
#include <tooldecode/text/json_value.hpp>

#include <support/byte_vocabulary.hpp>
#include <support/catch.hpp>

namespace td = tooldecode;

namespace {

using Tokens = std::vector<td::TokenId>;
using Names  = std::vector<Tokens>;

constexpr td::TokenId end = 256, get = 257, underscore_time = 258, et = 259, straddling = 260;

const td::VocabularyIndex& index() {
  static const td::VocabularyIndex all{
      td::test::byte_vocabulary({{"get", td::TokenType::normal},
                                 {"_time", td::TokenType::normal},
                                 {"et", td::TokenType::normal},
                                 {" ge", td::TokenType::normal},
                                 {"<mark>", td::TokenType::control}})};
  return all;
}

td::ToolSet tools(const std::vector<std::string>& names) {
  auto documents = tooldecode::JsonValue::array();
  for (const std::string& name : names) {
    documents.push_back({{"name", name}, {"parameters", {{"type", "object"}}}});
  }
  return td::ToolSet::parse(documents.text());
}

Tokens bytes(std::string_view text) {
  Tokens tokens;
  for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
  return tokens;
}

template <class F>
td::ToolCallFSM machine(const F& format, const std::vector<std::string>& names,
                        td::ChoiceOptions options = {}) {
  options.whitespace = 40;
  return {index(), tools(names), format, std::move(options)};
}

}  // namespace

TEST_CASE("ToolNames::begins holds in every format exactly where a tool's name begins") {
  const std::vector<std::string> names{"name", "get"};  // the first is a key of JSON, too
  const auto check = [&](const auto& format, std::string_view before, std::string_view after) {
    const auto calls = machine(format, names);
    const td::ToolNames walk{calls, Names{bytes("name"), Tokens{get}}};
    auto state = calls.initial();
    CHECK_FALSE(walk.begins(calls, state));
    for (std::size_t i = 0; i < before.size(); ++i) {
      INFO(before.substr(0, i));
      CHECK_FALSE(walk.begins(calls, state));
      state = calls.advance_bytes(state, before.substr(i, 1)).value();
    }
    CHECK(walk.begins(calls, state));
    state = calls.advance_bytes(state, "get").value();
    CHECK_FALSE(walk.begins(calls, state));
    CHECK_FALSE(walk.begins(calls, calls.advance_bytes(state, after).value()));
  };
  check(td::PythonCall{}, "[", "(");
  check(td::JsonCall::hermes(), "<tool_call>\n{\"name\": \"", "\"");
  check(td::JsonCall::llama(), "<|python_tag|>{\"name\": \"", "\"");
  check(td::PositionalCall::tool_dec(), "so <T>", "(");
  check(td::DelimitedCall::deepseek_v3_1(), "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>",
        "<｜tool▁sep｜>{");
  check(td::DelimitedCall::kimi_k2(), "<|tool_calls_section_begin|><|tool_call_begin|>functions.",
        ":3");
  check(td::DelimitedCall::mistral(), "[TOOL_CALLS]", "[CALL_ID]abc");
  check(td::HarmonyCall{}, "<|channel|>commentary to=functions.", " <|constrain|>json");
  // The next call's name, after white space or none.
  const auto calls = machine(td::PythonCall{}, names);
  const td::ToolNames walk{calls, Names{bytes("name"), Tokens{get}}};
  for (const char* text : {"[get(),", "[get(), ", "[ ", "[name() ,\n"}) {
    INFO(text);
    CHECK(walk.begins(calls, calls.advance_bytes(calls.initial(), text).value()));
  }
}

TEST_CASE("ToolNames walks a name in its own tokens and may leave it at its end") {
  const auto calls = machine(td::PythonCall{}, {"get", "get_time"});
  const td::ToolNames walk{calls, Names{Tokens{get}, Tokens{get, underscore_time}}};
  CHECK(walk.vocabulary_size() == index().vocabulary().size());
  const auto first = walk.child(0, get);
  REQUIRE(first.has_value());
  CHECK_FALSE(walk.child(0, 'g').has_value());
  CHECK_FALSE(walk.child(*first, end).has_value());
  const auto second = walk.child(*first, underscore_time);
  REQUIRE(second.has_value());
  CHECK_FALSE(walk.child(*second, underscore_time).has_value());

  CHECK(walk.may_leave(0, ' '));
  CHECK_FALSE(walk.may_leave(0, 'g'));
  CHECK(walk.may_leave(*first, '('));
  CHECK_FALSE(walk.may_leave(*first, '_'));
  CHECK(walk.may_leave(*second, '('));
  CHECK(walk.may_leave(*second, '_'));  // no longer name: ToolCallFSM refuses it

  const td::ToolNames other{calls, Names{Tokens{'g', et}, Tokens{get, underscore_time}}};
  const auto inside = other.child(0, 'g');
  REQUIRE(inside.has_value());
  CHECK_FALSE(other.may_leave(*inside, '('));
}

TEST_CASE("ToolNames::suspects are tokens that run into a name from before it") {
  const auto calls = machine(td::PythonCall{}, {"get"});
  const td::ToolNames walk{calls, Names{Tokens{get}}};
  CHECK(walk.suspects().count() == 1);
  CHECK(walk.suspects().contains(straddling));
  const auto bracket = calls.advance_bytes(calls.initial(), "[").value();
  CHECK(walk.runs_into(calls, bracket, straddling));
  CHECK_FALSE(walk.runs_into(calls, bracket, ' '));
  const auto text = calls.advance_bytes(calls.initial(), "to").value();
  CHECK_FALSE(walk.runs_into(calls, text, straddling));

  // Where a vocabulary has nothing shorter, it may.
  std::vector<td::Vocabulary::Entry> entries;
  for (const char* piece : {"[", "get", "(", ")", "]", ",", " ge", "t"}) {
    entries.push_back({piece, td::TokenType::normal});
  }
  const td::ToolCallFSM spaceless{td::Vocabulary(entries), tools({"get"}), td::PythonCall{}};
  CHECK(td::ToolNames(spaceless, Names{Tokens{1}}).suspects().count() == 0);
}

TEST_CASE("ToolNames requires a name to be spelt as calls write it") {
  const auto calls = machine(td::JsonCall::hermes(), {"a\"b"});
  CHECK_NOTHROW(td::ToolNames(calls, Names{bytes("a\\\"b")}));
  CHECK_THROWS_WITH(td::ToolNames(calls, Names{bytes("a\"b")}),
                    "name of tool \"a\"b\", spelt \"a\"b\": must be spelt \"a\\\"b\", as calls "
                    "have it");
}

TEST_CASE("ToolNames under a named tool choice walks that tool's name alone") {
  // Tokens of the other one would lead to where nothing follows.
  const auto calls = machine(td::PythonCall{}, {"get_x", "getting"},
                             {.choice = td::ToolChoice::named, .name = "getting"});
  const td::ToolNames walk{calls, Names{Tokens{get, '_', 'x'}, bytes("getting")}};
  CHECK_FALSE(walk.child(0, get).has_value());
  CHECK(walk.child(0, 'g').has_value());
}

TEST_CASE("ToolNames throws an error that says which name is wrong and what it must be") {
  const auto calls   = machine(td::PythonCall{}, {"get", "get_time"});
  const auto refusal = [&](const td::ToolCallFSM& of, const std::vector<Tokens>& names) {
    try {
      static_cast<void>(td::ToolNames(of, names));
    } catch (const td::Error& error) {
      return std::string(td::name(error.code())) + ", " + error.what();
    }
    return std::string("nothing");
  };
  CHECK(refusal(calls, {{get}}) ==
        "invalid_option, names 1: must be 2 token sequences, one for each tool");
  CHECK(refusal(calls, {{get}, {get, 999}}) ==
        "unknown_token, name of tool \"get_time\", token 999: must be in the vocabulary, below " +
            std::to_string(index().vocabulary().size()));
  CHECK(
      refusal(calls, {{-1}, {get}})
          .starts_with(
              "unknown_token, name of tool \"get\", token -1: must be in the vocabulary, below "));
  for (const td::TokenId silent : {end, td::TokenId{261}}) {
    CHECK(refusal(calls, {{get, silent}, {get, underscore_time}}) ==
          "unknown_token, name of tool \"get\", token " + std::to_string(silent) +
              ": must write text");
  }
  CHECK(refusal(calls, {{get}, {get}}) ==
        "invalid_option, name of tool \"get_time\", spelt \"get\": must be spelt \"get_time\", as "
        "calls have it");
  CHECK(refusal(calls, {{}, {get, underscore_time}}) ==
        "invalid_option, name of tool \"get\", spelt \"\": must be spelt \"get\", as calls have "
        "it");

  const auto none = machine(td::PythonCall{}, {"get"}, {.choice = td::ToolChoice::none});
  CHECK(refusal(none, {{get}}) ==
        "invalid_option, names: must be none where no answer begins with a call");

  const auto close = machine(td::DelimitedCall::mistral(), {"a", "a[b"});
  CHECK(refusal(close, {bytes("a"), bytes("a[b")}) ==
        "invalid_option, names: none must go on behind \"a\" with \"[\", as calls of that do");

  std::vector<td::Vocabulary::Entry> entries;
  for (const char* piece : {"[", "get", "get()", "t()]"}) {
    entries.push_back({piece, td::TokenType::normal});
  }
  const td::ToolCallFSM wordy{td::Vocabulary(entries), tools({"get"}), td::PythonCall{}};
  CHECK(refusal(wordy, {{1}}) ==
        "unknown_token, names: the vocabulary must have a token for what follows a name, or for a "
        "beginning of it, \"()]\"");
}
