#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/ebnf/grammar_text.hpp>
#include <tooldecode/ebnf/lark_grammar.hpp>
#include <tooldecode/formats/call_format.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/structural_tag.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/dfa_units.hpp>
#include <tooldecode/text/string_lexeme.hpp>
#include <tooldecode/text/text_dfa.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::core;
using Node = Grammar::Node;

namespace {

Errc code_of(const std::function<Grammar()>& make) {
  try {
    (void)make();
  } catch (const Error& error) {
    return error.code();
  }
  FAIL("no error");
  return {};
}

bool accepts(const Grammar& grammar, const std::string& text) {
  const grammar::Automaton automaton(grammar);
  const auto state = automaton.advance(automaton.initial(), text);
  return state && automaton.is_accepting(*state);
}

ToolSet one_tool() {
  return ToolSet::parse(R"([{"name": "f", "parameters": {"type": "object",
    "properties": {"a": {"type": "integer"}}, "required": ["a"]}}])");
}

// Each maker with some limits.
std::vector<std::function<Grammar(const BuildLimits&)>> makers() {
  return {[](const BuildLimits& limits) { return Grammar::regex("[ab]{1,9}", limits); },
          [](const BuildLimits& limits) {
            return Grammar::json_schema(R"({"type": "object"})", {.limits = limits});
          },
          [](const BuildLimits& limits) {
            return Grammar::ebnf("root ::= [a-f]{1,9}", {.limits = limits});
          },
          [](const BuildLimits& limits) {
            return Grammar::lark("start: /[a-f]{1,9}/", {.limits = limits});
          },
          [](const BuildLimits& limits) {
            return Grammar::structural_tag(
                R"({"format": {"type": "regex", "pattern": "[a-f]{1,9}"}})", {.limits = limits});
          },
          [](const BuildLimits& limits) {
            return Grammar::tool_calls(one_tool(), JsonCall::hermes(),
                                       {.choice = ToolChoice::required, .limits = limits});
          }};
}

}  // namespace

TEST_CASE("Grammar's makers charge the limits of their options and can be cancelled") {
  const std::atomic<bool> cancelled = true, running = false;
  for (const auto& make : makers()) {
    CHECK_NOTHROW(make({}).root());
    CHECK_NOTHROW(make({.cancelled = &running}).root());
    CHECK(code_of([&] { return make({.steps = 1}); }) == Errc::limit_exceeded);
    CHECK(code_of([&] { return make({.cancelled = &cancelled}); }) == Errc::cancelled);
  }
}

TEST_CASE("EbnfOptions::root names the rule that whole texts match") {
  const auto text = "root ::= \"a\" other\nother ::= \"b\"";
  CHECK(accepts(Grammar::ebnf(text), "ab"));
  CHECK(accepts(Grammar::ebnf(text, {.root = "other"}), "b"));
  CHECK(code_of([&] { return Grammar::ebnf(text, {.root = "none"}); }) == Errc::malformed_grammar);
}

TEST_CASE("Grammar's makers know the tokens of the vocabulary that their options name") {
  const Vocabulary vocabulary({{"<call>", TokenType::control}, {"a", TokenType::normal}});
  CHECK_NOTHROW(Grammar::ebnf("root ::= <[0]>", {.vocabulary = &vocabulary}));
  CHECK(code_of([] { return Grammar::ebnf("root ::= <[0]>"); }) != Errc{});
  CHECK_NOTHROW(Grammar::lark("start: <call>", {.vocabulary = &vocabulary}));
  CHECK(code_of([] { return Grammar::lark("start: <call>"); }) != Errc{});
  const auto tag = R"({"format": {"type": "token", "token": "<call>"}})";
  CHECK_NOTHROW(Grammar::structural_tag(tag, {.vocabulary = &vocabulary}));
  CHECK(code_of([&] { return Grammar::structural_tag(tag); }) != Errc{});
}

TEST_CASE("Grammar::tool_calls accepts conforming calls and no others") {
  const Grammar calls =
      Grammar::tool_calls(one_tool(), JsonCall::hermes(), {.choice = ToolChoice::required});
  const auto call = [](const std::string& name, const std::string& arguments) {
    return "<tool_call>\n{\"name\": \"" + name + "\", \"arguments\": " + arguments +
           "}\n</tool_call>";
  };
  CHECK(accepts(calls, call("f", R"({"a": 1})")));
  CHECK_FALSE(accepts(calls, call("g", R"({"a": 1})")));
  CHECK_FALSE(accepts(calls, call("f", R"({"a": "1"})")));
  CHECK_FALSE(accepts(calls, "text"));
}

namespace {

bool is_nothing(const Node& node) {
  const auto* choice = node.as<Node::Choice>();
  return choice != nullptr && choice->children.empty();
}

}  // namespace

TEST_CASE("Grammar::satisfiable is true for a node exactly if some text matches it") {
  Grammar g;
  const auto live    = [&](NodeId node) { return g.satisfiable()[node.index()] != 0; };
  const NodeId never = g.nothing(), a = g.literal("a"), none = g.empty();
  CHECK_FALSE(live(never));
  CHECK(live(g.choice({never, a})));
  CHECK_FALSE(live(g.sequence({a, never})));
  CHECK(live(g.repeat(never, {0, 3}, none)));
  CHECK_FALSE(live(g.repeat(never, {1, 3}, none)));
  CHECK_FALSE(live(g.repeat(a, {2, 3}, never)));
  CHECK_FALSE(live(g.repeat(a, {1, 0}, none)));
  CHECK(live(g.repeat(a, {0, 0}, none)));
  const NodeId endless = g.reserve();
  g.define(endless, g.sequence({a, endless}));
  CHECK_FALSE(live(endless));
  const NodeId nested = g.reserve();
  g.define(nested, g.choice({a, g.sequence({a, nested})}));
  CHECK(live(nested));
  const auto set = [&](bool required) {
    return g.keyed_set({.members = {{{"k"}, never, required}}, .others = {}, .separator = a});
  };
  CHECK(live(set(false)));
  CHECK_FALSE(live(set(true)));
}

TEST_CASE("Grammar: is empty after clear and makes what is shared anew") {
  Grammar g;
  g.set_root(g.sequence({g.literal("a"), g.empty()}));
  g.clear();
  CHECK(g.size() == 0);
  CHECK_THROWS_AS(g.root(), Error);
  CHECK(g.empty() == NodeId(0));
  CHECK(g[NodeId(0)].as<Node::Sequence>() != nullptr);
}

TEST_CASE("Grammar::is_satisfiable assumes that nodes before the first match") {
  Grammar g;
  const NodeId never = g.nothing(), first = g.literal("a"), both = g.sequence({never, first});
  CHECK(g.is_satisfiable(never, first));
  CHECK(g.is_satisfiable(both, first));
  CHECK_FALSE(g.is_satisfiable(both, NodeId()));
  CHECK_FALSE(g.is_satisfiable(g.nothing(), first));
  CHECK(g.satisfiable(first).size() == g.size() - first.index());
}

TEST_CASE("Grammar::is_satisfiable of a node alone is what satisfiable says of all") {
  std::size_t live = 0, dead = 0;
  for (unsigned seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::size_t n) { return static_cast<std::uint32_t>(random() % n); };
    Grammar g;
    constexpr std::size_t references = 3;
    for (std::size_t i = 0; i < references; ++i) (void)g.reserve();
    while (g.size() < 14) {
      const auto one = [&] { return NodeId(below(g.size())); };
      switch (below(6)) {
        case 0:
          (void)g.literal("a");
          break;
        case 1:
          (void)g.nothing();
          break;
        case 2:
          (void)g.repeat(one(), {below(3), 2}, one());
          break;
        case 3:
          (void)g.keyed_set(
              {.members = {{{"k"}, one(), below(2) == 0}}, .others = {}, .separator = one()});
          break;
        case 4:
          (void)g.sequence({one(), one()});
          break;
        default:
          (void)g.choice({one(), one()});
      }
    }
    for (std::uint32_t i = 0; i < references; ++i) {
      if (below(4) != 0) g.define(NodeId(i), NodeId(below(g.size())));
    }
    const std::vector<char> all = g.satisfiable();
    for (std::uint32_t i = 0; i < g.size(); ++i) {
      CAPTURE(seed, i);
      if (g.is_satisfiable(NodeId(i)) != (all[i] != 0)) FAIL("expected " << +all[i]);
      ++(all[i] ? live : dead);
    }
  }
  CHECK(live > 1000);
  CHECK(dead > 1000);
}

TEST_CASE("Grammar::once makes a node once for each name") {
  Grammar g;
  const NodeId a = g.once("a", [&] { return g.literal("a"); });
  CHECK(g.once("a", [&] { return g.literal("other"); }) == a);
  CHECK(g.once("b", [&] { return g.literal("b"); }) != a);
  CHECK(g.size() == 2);
  CHECK(g.empty() == g.empty());
}

TEST_CASE("Grammar::trie keeps the first of equal literals and the empty literal separately") {
  Grammar g;
  const NodeId a = g.literal("a"), b = g.literal("b"), c = g.literal("c");
  const NodeId root  = g.trie({{"get", a}, {"get_time", b}, {"", c}, {"get", b}});
  const auto* choice = g[root].as<Node::Choice>();
  REQUIRE(choice != nullptr);
  CHECK(choice->children[1] == c);
  const auto& trie = *g[choice->children[0]].as<Node::Trie>();
  const auto find  = [&](std::string_view text) -> std::optional<NodeId> {
    ByteTrie::NodeIndex at = 0;
    for (const char byte : text) {
      at = trie.literals->find_child(at, static_cast<std::uint8_t>(byte));
      if (at == 0) return std::nullopt;
    }
    const auto literals = trie.literals->values(at);
    return literals.empty() ? std::nullopt : std::optional(trie.children[literals.front()]);
  };
  CHECK(find("get") == std::optional(a));
  CHECK(find("get_time") == std::optional(b));
  CHECK_FALSE(find("get_"));
  CHECK_FALSE(find("set"));
  REQUIRE(trie.children.size() == 3);
  CHECK(is_nothing(g[trie.children[2]]));
}

TEST_CASE(
    "Grammar::keyed_set cannot match if a required member repeats a key or the separator cannot") {
  Grammar g;
  const NodeId a = g.literal("a"), never = g.nothing();
  const auto live = [&](NodeId id) { return g.satisfiable()[id.index()] != 0; };
  const auto set  = [&](bool second_required, NodeId separator) {
    return g.keyed_set({.members   = {{{"k"}, a, false}, {{"k"}, a, second_required}},
                         .others    = {},
                         .separator = separator});
  };
  CHECK(live(set(false, a)));
  CHECK_FALSE(live(set(true, a)));
  CHECK_FALSE(live(set(false, never)));
}

TEST_CASE("Grammar::append copies the nodes of another grammar with their references") {
  Grammar other, g;
  const NodeId a = other.literal("a"), loop = other.reserve();
  other.define(loop, other.choice({a, other.sequence({a, loop})}));
  const NodeId set = other.keyed_set(
      {.members = {{{"k"}, loop, true}}, .others = {}, .separator = other.literal(",")});
  const NodeId list = other.repeat(set, {1, 2}, a);
  const NodeId own = g.literal("b"), moved = g.append(other, list);
  REQUIRE(g.size() == other.size() + 1);
  const auto text = [&](NodeId id) { return g[id].as<Node::Literal>()->text; };
  CHECK(text(own) == "b");
  const auto& repeat = *g[moved].as<Node::Repeat>();
  CHECK(text(repeat.separator) == "a");
  const auto* members = g[repeat.item].as<Node::Members>();
  REQUIRE(members != nullptr);
  CHECK(text(members->separator) == ",");
  const auto* recursive = g[members->children[0]].as<Node::Reference>();
  REQUIRE(recursive != nullptr);
  const auto& choice = *g[recursive->body.value()].as<Node::Choice>();
  CHECK(text(choice.children[0]) == "a");
  CHECK(g[choice.children[1]].as<Node::Sequence>()->children[1] == members->children[0]);
  for (const char live : g.satisfiable()) CHECK(live != 0);
}

TEST_CASE("Grammar::satisfiable knows sets for which some of the members do") {
  const auto has_text = [](std::size_t members, std::vector<KeyedSet::Dependence> dependent,
                           text::Occurrences count) {
    Grammar grammar;
    KeyedSet set{.separator = grammar.literal(","), .count = count, .dependent = dependent};
    for (std::size_t i = 0; i < members; ++i) {
      set.members.push_back({{std::string(1, static_cast<char>('a' + i))}, grammar.empty(), false});
    }
    const NodeId node = grammar.keyed_set(set);
    return grammar.satisfiable()[node.index()] != 0;
  };
  CHECK(has_text(2, {{0, 0}}, {1, 1}));  // `b` alone
  CHECK(has_text(3, {{0, 1}, {1, 2}}, {1, 1}));
  CHECK(has_text(3, {{0, 1}, {1, 2}}, {2, 2}));
  CHECK(has_text(4, {{0, 1}, {1, 0}}, {1, 2}));
  CHECK_FALSE(has_text(2, {{0, 1}, {1, 0}}, {1, 1}));
  CHECK_FALSE(has_text(2, {{0, 1}}, {3, 3}));
}

TEST_CASE("Grammar::lexeme of an automaton and a length reads what their product reads") {
  std::size_t counted = 0, products = 0, split = 0, steps = 0;
  for (unsigned seed = 1; seed <= 600; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    // Two of the letters begin with the same byte.
    std::vector<text::TextDfa::Row> rows(1 + below(6));
    for (text::TextDfa::Row& row : rows) {
      row.accepting = below(4) == 0;
      for (int c = 0; c < 4; ++c) {
        row.next.push_back(below(2) == 0 ? text::TextDfa::dead
                                         : below(static_cast<std::uint32_t>(rows.size())));
      }
    }
    const text::TextDfa texts({{{'a', 'a'}}, {{0xE8, 0xE8}}, {{0xE9, 0xE9}}, {{0x65E5, 0x65E5}}},
                              std::move(rows));
    text::Occurrences length{below(6), text::Occurrences::unbounded};
    if (below(4) != 0) length.max = length.min + below(6);
    INFO("seed " << seed << ", " << length.min << " to " << length.max);
    const auto spell = [&](const text::TextDfa& some) {
      return std::make_shared<const text::Dfa>(
          seed % 2 ? text::string_lexeme(some, text::ValueSyntax::json, '"')
                   : text::utf8_lexeme(some));
    };
    Grammar grammar;
    const NodeId lexeme      = grammar.lexeme(texts, length, spell);
    const text::Dfa expected = *spell(texts.bounded(length));
    REQUIRE(is_nothing(grammar[lexeme]) == expected.empty());
    if (expected.empty()) continue;
    const auto& node = *grammar[lexeme].as<Node::Lexeme>();
    counted += node.ends != nullptr;
    products += node.units != length;
    if (node.ends != nullptr) split += (*node.ends)[0].size() > 1;
    const grammar::Automaton automaton(grammar, lexeme);
    for (int walk = 0; walk < 4; ++walk) {
      auto state          = automaton.initial();
      text::Dfa::State at = 0;
      for (int step = 0; step < 30; ++step, ++steps) {
        REQUIRE(automaton.is_accepting(state) == expected.accepting(at));
        std::vector<std::uint8_t> allowed;
        for (unsigned b = 0; b < 256; ++b) {
          const auto byte = static_cast<std::uint8_t>(b);
          const bool goes = expected.next(at, byte) != text::Dfa::dead;
          if (automaton.step(state, byte).has_value() != goes) FAIL("step " << step << ": " << b);
          if (goes) allowed.push_back(byte);
        }
        if (allowed.empty()) break;
        const std::uint8_t byte = allowed[below(static_cast<std::uint32_t>(allowed.size()))];
        state                   = *automaton.step(state, byte);
        at                      = expected.next(at, byte);
      }
    }
  }
  INFO(counted << " counted, " << split << " with gaps, " << products << " products, " << steps);
  CHECK(counted > 100);
  CHECK(split > 5);
  CHECK(products > 3);
  CHECK(steps > 5000);
}
