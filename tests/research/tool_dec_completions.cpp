#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/research/tool_dec_completions.hpp>
#include <tooldecode/research/tool_dec_machine.hpp>
#include <tooldecode/research/tool_names.hpp>

#include <support/catch.hpp>
#include <support/tool_dec_tokens.hpp>

namespace td  = tooldecode;
using Machine = td::ToolDecMachine;
using namespace td::test::tool_dec;

namespace {

using Names = std::vector<Tokens>;

/// Every reachable state of a machine and its distance from the end, by following all tokens.
class Distances {
 public:
  static constexpr std::size_t never = 1'000'000;

  Distances(const Machine& machine, const Tokens& banned) {
    find(machine.initial());
    std::vector<std::vector<std::size_t>> next;
    for (std::size_t i = 0; i < states.size(); ++i) {
      next.emplace_back();
      for (std::size_t t = 0; t < machine.vocabulary_size(); ++t) {
        const auto token = static_cast<td::TokenId>(t);
        if (std::find(banned.begin(), banned.end(), token) != banned.end()) continue;
        const auto state = machine.advance(states[i], token);
        if (state) next[i].push_back(find(*state));
      }
    }
    distances.assign(states.size(), never);
    for (std::size_t i = 0; i < states.size(); ++i) {
      if (machine.is_finished(states[i])) distances[i] = 0;
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t i = 0; i < states.size(); ++i) {
        for (const std::size_t to : next[i]) {
          if (distances[to] + 1 >= distances[i]) continue;
          distances[i] = distances[to] + 1;
          changed      = true;
        }
      }
    }
  }

  std::size_t find(Machine::State state) {
    const auto at = std::find(states.begin(), states.end(), state);
    if (at != states.end()) return static_cast<std::size_t>(at - states.begin());
    states.push_back(state);
    return states.size() - 1;
  }

  std::vector<Machine::State> states;
  std::vector<std::size_t> distances;
};

struct Seen {
  std::size_t states = 0, narrowed = 0;
};

/// Requires for all states and budgets that exactly the tokens with room are left.
Seen judge(const Machine& machine, const Tokens& banned = {}) {
  Distances all{machine, banned};
  Seen seen{.states = all.states.size()};
  td::TokenMask mask(machine.vocabulary_size()), whole(machine.vocabulary_size());
  for (const bool is_asked_first : {true, false}) {
    td::ToolDecCompletions completions{machine, {.banned = banned}};
    for (std::size_t i = 0; i < all.states.size(); ++i) {
      const Machine::State state = all.states[i];
      INFO("state " << i << " of phase " << static_cast<int>(state.phase));
      if (is_asked_first) {
        const auto least = completions.shortest(state);
        REQUIRE(least.value_or(Distances::never) == all.distances[i]);
      }
      for (std::size_t remaining = 20; remaining > 0; --remaining) {
        if (all.distances[i] > remaining) continue;
        INFO("remaining " << remaining);
        machine.fill_mask(state, whole.words());
        mask = whole;
        completions.narrow(state, remaining, mask.words());
        std::size_t wrong = 0;
        for (std::size_t t = 0; t < machine.vocabulary_size(); ++t) {
          const auto token = static_cast<td::TokenId>(t);
          if (std::find(banned.begin(), banned.end(), token) != banned.end()) continue;
          const auto next = machine.advance(state, token);
          const bool fits = next && all.distances[all.find(*next)] < remaining;
          wrong += fits != mask.contains(token);
        }
        REQUIRE(wrong == 0);
        seen.narrowed += mask != whole;
      }
    }
    CHECK(completions.counts().searches_given_up == 0);
  }
  return seen;
}

}  // namespace

TEST_CASE(
    "ToolDecCompletions::narrow leaves exactly the tokens that have room to end, in both modes") {
  const td::ToolCallFSM calls{
      pieces(), prefixes(), td::PythonCall{}, {.max_calls = 3, .whitespace = 1}};
  CHECK(judge(Machine{calls}).narrowed > 60);
  CHECK(judge(Machine{calls}, {piece("]")}).narrowed > 60);
  CHECK(judge(Machine{calls}, {piece("()"), piece("()]"), piece("a")}).narrowed > 60);
  const td::ToolCallFSM required{
      pieces(), prefixes(), td::PythonCall{}, {.choice = td::ToolChoice::required, .max_calls = 2}};
  CHECK(judge(Machine{required}).narrowed > 30);
  const td::ToolCallFSM none{
      pieces(), prefixes(), td::PythonCall{}, {.choice = td::ToolChoice::none}};
  CHECK(judge(Machine{none}).narrowed > 0);

  const td::ToolCallFSM python{masks(), tools(), td::PythonCall{}, {.max_calls = 2}};
  const td::ToolCallFSM hermes{masks(), tools(), td::JsonCall::hermes(), {.max_calls = 2}};
  for (const td::ToolCallFSM* one : {&python, &hermes}) {
    CHECK(judge(Machine{*one}).narrowed > 60);
    CHECK(judge(Machine{*one, mark}).narrowed > 60);
    CHECK(judge(Machine{*one, mark}, {id("<tool"), id("[g"), id("get")}).narrowed > 60);
  }
  const td::ToolCallFSM named{masks(), tools(), td::JsonCall{"<T>", "</T>", ""}, {.max_calls = 2}};
  CHECK(judge(Machine{named, mark}).narrowed > 60);
}

TEST_CASE("ToolDecCompletions::narrow with names leaves room for each name in its tokens") {
  const td::ToolCallFSM calls{
      pieces(), prefixes(), td::PythonCall{}, {.max_calls = 2, .whitespace = 1}};
  const td::ToolCallFSM required{
      pieces(), prefixes(), td::PythonCall{}, {.choice = td::ToolChoice::required, .max_calls = 2}};
  for (const Tokens& b : spellings(pieces(), "ab")) {
    for (const Tokens& c : spellings(pieces(), "abc")) {
      INFO(b.size() << " and " << c.size() << " tokens");
      const td::ToolNames names{calls, Names{{piece("a")}, b, c}};
      CHECK(judge(Machine{calls, {}, &names}).narrowed > 60);
      CHECK(judge(Machine{calls, {}, &names}, {piece("a"), piece("()]")}).narrowed > 50);
      CHECK(judge(Machine{required, {}, &names}).narrowed > 30);
    }
  }
  // The shortest call is to a tool whose name is the longest in tokens.
  const td::ToolCallFSM hermes{masks(), tools(), td::JsonCall::hermes(), {.max_calls = 2}};
  Tokens letters;
  for (const char* letter : {"g", "e", "t", "_", "t", "i", "m", "e"}) letters.push_back(id(letter));
  const td::ToolNames names{hermes, Names{{id("get")}, letters}};
  CHECK(judge(Machine{hermes, {}, &names}).narrowed > 60);
  CHECK(judge(Machine{hermes, mark, &names}).narrowed > 60);
}

TEST_CASE("ToolDecCompletions with few steps counts the searches it gives up and leaves a token") {
  const td::ToolCallFSM calls{
      pieces(), prefixes(), td::PythonCall{}, {.max_calls = 2, .whitespace = 1}};
  const td::ToolNames names{
      calls, Names{{piece("a")}, {piece("a"), piece("b")}, {piece("a"), piece("b"), piece("c")}}};
  const Machine machine{calls, {}, &names};
  Distances all{machine, {}};
  std::size_t given_up = 0;
  for (const std::uint64_t steps : {0U, 30U, 60U}) {
    for (std::size_t i = 0; i < all.states.size(); ++i) {
      for (std::size_t remaining = all.distances[i]; remaining < 12; ++remaining) {
        td::ToolDecCompletions completions{machine, {.max_steps = steps}};
        auto state = all.states[i];
        // A state with enough room always has a next one with enough room.
        const auto least = completions.shortest(state, remaining);
        if (!least || *least > remaining) continue;
        for (std::size_t left = remaining; !machine.is_finished(state); --left) {
          REQUIRE(left > 0);
          td::TokenMask mask(machine.vocabulary_size());
          machine.fill_mask(state, mask.words());
          completions.narrow(state, left, mask.words());
          Tokens kept;
          mask.for_each([&](td::TokenId token) { kept.push_back(token); });
          REQUIRE_FALSE(kept.empty());
          state = *machine.advance(state, kept[(i + left) % kept.size()]);
        }
        given_up += completions.counts().searches_given_up;
      }
    }
  }
  CHECK(given_up > 0);
}
