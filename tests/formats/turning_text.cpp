#include <optional>
#include <string>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/turning_text.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

#include <support/accepts.hpp>
#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::formats;

namespace {

struct Rules {
  std::vector<std::string> triggers, without;
};

// k + 1 letters d must follow the k-th trigger.
bool is_text(const Rules& rules, const std::string& text, bool again) {
  std::string read;
  for (std::size_t at = 0; at < text.size();) {
    read += text[at++];
    for (const std::string& one : rules.without) {
      if (read.ends_with(one)) return false;
    }
    std::optional<std::size_t> turn;
    for (std::size_t k = 0; k < rules.triggers.size(); ++k) {
      if (read.ends_with(rules.triggers[k]) &&
          (!turn || rules.triggers[k].size() > rules.triggers[*turn].size())) {
        turn = k;
      }
    }
    if (!turn) continue;
    for (std::size_t k = 0; k <= *turn; ++k) {
      if (at >= text.size() || text[at++] != 'd') return false;
    }
    if (!again) return at == text.size();
    read.clear();
  }
  return true;
}

using test::accepts;

}  // namespace

TEST_CASE("turning_text turns where the first trigger is complete") {
  std::vector<std::string> texts{""};
  for (std::size_t i = 0; i < 5461; ++i) {  // up to seven letters
    for (const char c : std::string("abcd")) texts.push_back(texts[i] + c);
  }
  std::size_t accepted = 0;
  for (const Rules& rules : std::vector<Rules>{{{"a"}, {}},
                                               {{"aab"}, {}},
                                               {{"aba"}, {"bb"}},
                                               {{"ab", "cab"}, {}},
                                               {{"ab", "ba"}, {"ca"}},
                                               {{"ab", "bc", "ca"}, {}},
                                               {{"ab"}, {"cab"}},
                                               {{"ab", "c"}, {"b"}},
                                               {{}, {"a"}}}) {
    for (const bool again : {false, true}) {
      Grammar grammar;
      std::vector<TextTurn> turns;
      for (std::size_t k = 0; k < rules.triggers.size(); ++k) {
        turns.push_back({rules.triggers[k], grammar.literal(std::string(k + 1, 'd'))});
      }
      const NodeId root =
          turning_text(grammar, turns, rules.without, again ? TurnCount::again : TurnCount::once);
      const grammar::Automaton machine(grammar, root);
      for (const std::string& text : texts) {
        if (accepts(machine, text) != is_text(rules, text, again)) FAIL(text << again);
        accepted += accepts(machine, text);
      }
    }
  }
  CHECK(accepted > 10'000);
}

TEST_CASE("turning_text refuses a trigger inside another one") {
  for (const char* outer : {"abc", "cabc"}) {
    Grammar grammar;
    const std::vector<TextTurn> turns{{"ab", grammar.empty()}, {outer, grammar.empty()}};
    CHECK_THROWS_AS(turning_text(grammar, turns, {}, TurnCount::again), Error);
  }
}

TEST_CASE("turns_into reaches a delimiter through its trigger in every spelling") {
  const auto control = [](const std::string& name) { return control_open + name + control_close; };
  Grammar grammar;
  const auto turns = turns_into(grammar, "<c", "<call>\n<f>", grammar.literal("!"));
  const grammar::Automaton machine(grammar, turning_text(grammar, turns, {}, TurnCount::again));
  for (const std::string& call : {std::string("<call>"), control("<call>")}) {
    for (const std::string& inner : {std::string("<f>"), control("<f>")}) {
      CHECK(accepts(machine, "a <" + call + "\n" + inner + "! b"));
    }
    CHECK_FALSE(accepts(machine, call));
    CHECK_FALSE(accepts(machine, call + "\n<f>"));
  }
  CHECK_FALSE(accepts(machine, "<c"));
  CHECK_FALSE(accepts(machine, "<c>"));
  CHECK_FALSE(accepts(machine, control("<f>")));
  CHECK(accepts(machine, "<f>"));
  std::string many;
  for (int i = 0; i < 7; ++i) many += "<a>";
  CHECK_THROWS_AS(turns_into(grammar, many, many, grammar.empty()), Error);
}

TEST_CASE(
    "turning_tokens accepts text in which given control tokens start a turn, once or repeatedly") {
  const auto control = [](const std::string& name) { return control_open + name + control_close; };
  Grammar grammar;
  const NodeId turn  = grammar.literal(control("<call>") + "x;");
  const NodeId once  = turning_tokens(grammar, {"<call>"}, {"<no>"}, turn, TurnCount::once);
  const NodeId again = turning_tokens(grammar, {"<call>"}, {"<no>"}, turn, TurnCount::again);
  const auto accepts = [&](NodeId root, const std::string& text) {
    const grammar::Automaton machine(grammar, root);
    const auto state = machine.advance(machine.initial(), text);
    return state && machine.is_accepting(*state);
  };
  const std::string call = control("<call>");
  for (const NodeId root : {once, again}) {
    CHECK(accepts(root, ""));
    CHECK(accepts(root, "a" + control("<yes>") + "<call>"));
    CHECK(accepts(root, "a" + call + "x;"));
    CHECK_FALSE(accepts(root, "a" + call));
    CHECK_FALSE(accepts(root, "a" + call + "y;"));
    CHECK_FALSE(accepts(root, control("<no>")));
  }
  CHECK_FALSE(accepts(once, call + "x;b"));
  CHECK(accepts(again, call + "x;b" + call + "x;"));
}
