#include <algorithm>
#include <cstddef>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/formats/delimited_call.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/positional_call.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/formats/xml_call.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/research/tool_dec_machine.hpp>

#include <support/catch.hpp>
#include <support/tool_dec_tokens.hpp>

namespace td  = tooldecode;
using Machine = td::ToolDecMachine;
using namespace td::test::tool_dec;

namespace {

using Names = std::vector<Tokens>;

/// The phase after some tokens; nothing where one of them is not allowed.
std::optional<Machine::Phase> phase(const Machine& machine, const Tokens& tokens) {
  auto state = std::optional(machine.initial());
  for (const td::TokenId token : tokens) {
    state = machine.advance(*state, token);
    if (!state) return std::nullopt;
  }
  return state->phase;
}

}  // namespace

TEST_CASE("ToolDecMachine enters a call only by a trigger at a token's end, then returns to text") {
  using enum Machine::Phase;
  const td::ToolCallFSM python{masks(), tools(), td::PythonCall{}};
  const Machine machine{python};
  CHECK(phase(machine, ids("see this")) == text);
  CHECK(phase(machine, {id("[")}) == calls);
  CHECK(phase(machine, {id(" [")}) == calls);
  CHECK(phase(machine, {id("\n"), id("["), id("get")}) == calls);
  CHECK(phase(machine, {id("[g")}) == text);
  CHECK(phase(machine, {id("[g"), id("o"), id("!")}) == text);
  CHECK(phase(machine, {id("x"), id("[")}) == text);
  CHECK(phase(machine, {id("x["), id("[")}) == text);
  CHECK(phase(machine, {id(" "), id(" "), id("[")}) == calls);
  CHECK(phase(machine, {id(" "), id(" "), id(" "), id("[")}) == text);
  CHECK_FALSE(phase(machine, {id("["), id("x")}));
  CHECK_FALSE(phase(machine, {id("["), end}));
  Tokens whole{id("["), id("get"), id("_"), id("t"), id("i"), id("m"), id("e"), id("()")};
  CHECK(phase(machine, whole) == calls);
  whole.push_back(id("]"));
  CHECK(phase(machine, whole) == text);
  whole.insert(whole.end(), {id("y"), id("e"), id("s"), mark});
  CHECK(phase(machine, whole) == text);

  const td::ToolCallFSM json{masks(), tools(), td::JsonCall::hermes()};
  const Machine hermes{json};
  CHECK(phase(hermes, {id("o"), id("k"), id("<tool_call>")}) == calls);
  CHECK(phase(hermes, {id("<tool"), id("_call>")}) == calls);
  CHECK(phase(hermes, {id("<tool"), id("_call>\n")}) == text);
  CHECK(phase(hermes, {id("<tool"), id("_call>\n"), id("<tool"), id("_call>")}) == calls);
  Tokens two = ids("<tool_call>\n{\"name\": \"get_time\", \"arguments\": {}}\n</tool_call>");
  CHECK(phase(hermes, two) == text);
  two.push_back(id("\n"));
  two.push_back(id("<tool_call>"));
  CHECK(phase(hermes, two) == calls);
}

TEST_CASE("ToolDecMachine with a transition token enters a call anywhere by that token") {
  using enum Machine::Phase;
  const td::ToolCallFSM python{masks(), tools(), td::PythonCall{}};
  const Machine marked{python, mark};
  CHECK(phase(marked, {id("[")}) == text);
  CHECK(phase(marked, {id("x"), mark}) == trigger);
  CHECK_FALSE(phase(marked, {mark, id("get")}));
  CHECK_FALSE(phase(marked, {mark, end}));
  CHECK_FALSE(phase(marked, {mark, id("[g")}));
  CHECK(phase(marked, {mark, id("[")}) == calls);
  CHECK(marked.jump_forward(*marked.advance(marked.initial(), mark)) == "[");

  // After a token that is the trigger, no second trigger follows.
  const Machine bracket{python, id("[")};
  CHECK(phase(bracket, {id("x"), id("[")}) == calls);
  CHECK(phase(bracket, {id("x"), id(" [")}) == text);
  CHECK(phase(Machine{python, id(" [")}, {id("x"), id(" [")}) == calls);

  const td::ToolCallFSM json{masks(), tools(), td::JsonCall::hermes()};
  const Machine hermes{json, mark};
  CHECK(phase(hermes, {mark, id("<tool")}) == trigger);
  CHECK(phase(hermes, {mark, id("<tool"), id("_call>")}) == calls);
  CHECK_FALSE(phase(hermes, {mark, id("<tool"), id("_call>\n")}));

  // The name of a control token may be the trigger itself.
  const td::ToolCallFSM named{masks(), tools(), td::JsonCall{"<T>", "</T>", ""}};
  CHECK(phase(Machine{named, mark}, {mark, id("{\"name\": \""), id("get")}) == calls);

  for (const td::TokenId bad : {-1, static_cast<int>(vocabulary().size())}) {
    try {
      static_cast<void>(Machine(python, bad));
      FAIL("a transition that does not exist");
    } catch (const td::Error& error) {
      CHECK(error.code() == td::Errc::unknown_token);
      CHECK(error.where() == "transition");
    }
  }
}

TEST_CASE("ToolDecMachine::fill_mask allows exactly the tokens that advance takes") {
  const td::ToolCallFSM python{masks(), tools(), td::PythonCall{}};
  const td::ToolCallFSM json{masks(), tools(), td::JsonCall::hermes()};
  const td::ToolCallFSM required{
      masks(), tools(), td::PythonCall{}, {.choice = td::ToolChoice::required}};
  for (const auto& machine : {Machine{python}, Machine{json}, Machine{json, mark},
                              Machine{python, mark}, Machine{required}}) {
    for (unsigned seed = 0; seed < 10; ++seed) {
      INFO("seed " << seed);
      std::mt19937 random{seed};
      auto state = machine.initial();
      for (int step = 0; step < 60; ++step) {
        td::TokenMask mask(machine.vocabulary_size());
        machine.fill_mask(state, mask.words());
        Tokens allowed, accepted;
        for (std::size_t t = 0; t < 32 * mask.words().size(); ++t) {
          const auto token = static_cast<td::TokenId>(t);
          if (mask.contains(token)) allowed.push_back(token);
          if (machine.advance(state, token)) accepted.push_back(token);
        }
        REQUIRE(allowed == accepted);
        REQUIRE_FALSE(allowed.empty());
        REQUIRE(machine.is_accepting(state) == mask.contains(end));
        const std::string forced = machine.jump_forward(state);
        REQUIRE(std::all_of(allowed.begin(), allowed.end(), [&](td::TokenId token) {
          return forced.empty() || vocabulary().bytes(token).starts_with(forced) ||
                 forced.starts_with(vocabulary().bytes(token));
        }));
        if (machine.is_finished(state)) {
          CHECK(allowed == Tokens{end});
          break;
        }
        td::TokenId next = allowed[random() % allowed.size()];
        for (const td::TokenId likely : {mark, id("["), id("<tool_call>"), end}) {
          if (random() % 8 == 0 && mask.contains(likely)) next = likely;
        }
        state = *machine.advance(state, next);
      }
    }
  }
}

namespace {

/// The answers of at most so many tokens that make calls and end with them, by `advance`; requires
/// that masks are the same, and empty only where the ToolCallFSM's are.
std::set<Tokens> answers(const Machine& machine, const td::ToolCallFSM& calls, Tokens begin,
                         std::size_t most) {
  auto state = std::optional(machine.initial());
  for (const td::TokenId token : begin) state = machine.advance(*state, token);
  std::vector<std::pair<Tokens, Machine::State>> work{{std::move(begin), *state}};
  std::set<Tokens> all;
  td::TokenMask mask(machine.vocabulary_size()), under(machine.vocabulary_size());
  while (!work.empty()) {
    const auto [tokens, at] = std::move(work.back());
    work.pop_back();
    machine.fill_mask(at, mask.words());
    calls.fill_mask(at.calls, under.words());
    const std::string forced = machine.jump_forward(at);
    bool agree               = (mask.count() == 0) == (under.count() == 0);
    for (std::size_t t = 0; t < machine.vocabulary_size(); ++t) {
      const auto token = static_cast<td::TokenId>(t);
      const auto next  = machine.advance(at, token);
      agree            = agree && mask.contains(token) == next.has_value();
      if (!next) continue;
      const std::string_view bytes = calls.vocabulary().bytes(token);
      agree         = agree && (bytes.starts_with(forced) || forced.starts_with(bytes));
      Tokens longer = tokens;
      longer.push_back(token);
      if (next->phase == Machine::Phase::text) {
        all.insert(longer);
      } else if (longer.size() < most) {
        work.emplace_back(std::move(longer), *next);
      }
    }
    REQUIRE(agree);
  }
  return all;
}

/// Whether the names in `[f(), g()]` are written in these tokens and no others.
bool has_names_in(const td::Vocabulary& of, const Tokens& answer,
                  const std::vector<std::pair<std::string, Tokens>>& names) {
  const std::string text = of.decode(answer);
  for (std::size_t open = text.find('('); open != std::string::npos;
       open             = text.find('(', open + 1)) {
    const std::size_t begin = text.find_last_of("[, ", open) + 1;
    Tokens inside;
    std::size_t at = 0;
    for (const td::TokenId token : answer) {
      const std::size_t after = at + of.bytes(token).size();
      if (after > begin && at < open) inside.push_back(token);
      at = after;
    }
    const auto name = std::find_if(names.begin(), names.end(), [&](const auto& one) {
      return one.first == text.substr(begin, open - begin);
    });
    if (name == names.end() || inside != name->second) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("ToolDecMachine lets an answer end after bytes that are not UTF-8") {
  const td::ToolCallFSM json{masks(), tools(), td::JsonCall::hermes()};
  const Machine hermes{json};
  for (const td::TokenId byte : {0xC3, 0xFE, 0xFF}) {
    INFO("byte " << byte);
    const auto state = hermes.advance(hermes.initial(), byte);
    REQUIRE(state);
    CHECK(state->phase == Machine::Phase::text);
    td::TokenMask mask(hermes.vocabulary_size());
    hermes.fill_mask(*state, mask.words());
    CHECK(mask.contains(end));
    CHECK(hermes.is_accepting(*state));
    CHECK(hermes.advance(*state, end));
  }
}

TEST_CASE(
    "ToolDecMachine with names makes the ToolCallFSM's calls whose names are in these tokens") {
  const td::ToolCallFSM calls{pieces(), prefixes(), td::PythonCall{}, {.whitespace = 1}};
  const Tokens begin{piece("[")}, a{piece("a")};
  const std::set<Tokens> free = answers(Machine{calls}, calls, begin, 7);
  std::size_t fewer           = 0;
  for (const Tokens& b : spellings(pieces(), "ab")) {
    for (const Tokens& c : spellings(pieces(), "abc")) {
      INFO(b.size() << " and " << c.size() << " tokens");
      const td::ToolNames names{calls, Names{a, b, c}};
      std::set<Tokens> expected;
      for (const Tokens& answer : free) {
        if (has_names_in(pieces(), answer, {{"a", a}, {"ab", b}, {"abc", c}})) {
          expected.insert(answer);
        }
      }
      CHECK(answers(Machine{calls, {}, &names}, calls, begin, 7) == expected);
      CHECK_FALSE(expected.empty());
      fewer += expected.size() < free.size();
    }
  }
  CHECK(fewer == 6);
}

TEST_CASE("ToolDecMachine with names and required calls begins a name after the bracket") {
  const td::ToolCallFSM calls{
      pieces(), prefixes(), td::PythonCall{}, {.choice = td::ToolChoice::required}};
  const td::ToolNames names{calls, Names{{piece("a")}, {piece("ab")}, {piece("ab"), piece("c")}}};
  const Machine machine{calls, {}, &names};
  CHECK(phase(machine, {}) == Machine::Phase::calls);
  CHECK(phase(machine, {piece("[")}) == Machine::Phase::name);
  CHECK_FALSE(phase(machine, {piece("[a")}));
  CHECK_FALSE(phase(machine, {piece("["), piece("a"), piece("b")}));
  CHECK(phase(machine, {piece("["), piece("ab"), piece("c"), piece("()]"), 0}) ==
        Machine::Phase::calls);
}

TEST_CASE(
    "ToolDecMachine with names writes whole answers with names in their tokens, in every format") {
  const std::vector<std::pair<std::string, Tokens>> canonical{
      {"get", {id("g"), id("e"), id("t")}},
      {"get_time", {id("get"), id("_"), id("t"), id("i"), id("m"), id("e")}}};
  const std::vector<Tokens> sequences{canonical[0].second, canonical[1].second};
  const auto check = [&](const auto& format, std::string_view opening) {
    const td::ToolCallFSM calls{masks(), tools(), format, {.whitespace = 1}};
    const td::ToolNames names{calls, sequences};
    const auto trigger = ids(opening);
    const Machine machine{calls, {}, &names};
    std::size_t made = 0, others = 0;
    for (unsigned seed = 0; seed < 40; ++seed) {
      INFO(opening << ", seed " << seed);
      std::mt19937 random{seed};
      for (const bool named : {true, false}) {
        const Machine walked = named ? machine : Machine{calls};
        auto state           = walked.initial();
        Tokens written;
        for (const td::TokenId token : trigger) {
          state = *walked.advance(state, token);
          written.push_back(token);
        }
        REQUIRE(state.phase != Machine::Phase::text);
        for (int step = 0; step < 400 && state.phase != Machine::Phase::text; ++step) {
          td::TokenMask mask(walked.vocabulary_size());
          walked.fill_mask(state, mask.words());
          Tokens allowed;
          bool agree = true;
          for (std::size_t t = 0; t < walked.vocabulary_size(); ++t) {
            const auto token = static_cast<td::TokenId>(t);
            agree = agree && mask.contains(token) == walked.advance(state, token).has_value();
            if (mask.contains(token)) allowed.push_back(token);
          }
          REQUIRE(agree);
          REQUIRE_FALSE(allowed.empty());
          written.push_back(allowed[random() % allowed.size()]);
          state = *walked.advance(state, written.back());
        }
        if (state.phase != Machine::Phase::text) continue;
        auto at = written.begin();
        for (const td::ToolCall& call : calls.parse(vocabulary().decode(written))) {
          const Tokens& name = canonical[call.name == "get" ? 0 : 1].second;
          at                 = std::search(at, written.end(), name.begin(), name.end());
          if (named) REQUIRE(at != written.end());
          if (at == written.end()) {
            ++others;
            break;
          }
          at += static_cast<std::ptrdiff_t>(name.size());
          made += named;
        }
      }
    }
    CHECK(made > 10);
    CHECK(others > 5);
  };
  check(td::PythonCall{}, "[");
  check(td::JsonCall::hermes(), "<tool_call>");
  check(td::PositionalCall::tool_dec(), "<T>");
  check(td::DelimitedCall::deepseek_v3_1(), "<｜tool▁calls▁begin｜>");
  check(td::XmlCall::qwen3_coder(), "<tool_call>");
}
