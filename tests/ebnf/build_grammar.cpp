#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/ebnf/build_grammar.hpp>
#include <tooldecode/ebnf/grammar_text.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/grammar/left_recursion.hpp>

#include <support/accepts.hpp>
#include <support/catch.hpp>
#include <support/slow_rules.hpp>

using namespace tooldecode;
using namespace tooldecode::ebnf;
using namespace tooldecode::grammar;
using namespace tooldecode::text;

namespace {

using Id   = Rules::Id;
using Kind = Rules::Kind;

// Nodes over the letters x and y; rules occur often, so that most grammars are left-recursive.
Id random_node(Rules& g, const std::vector<Id>& rules, std::mt19937& random, int depth) {
  const auto inner = [&] { return random_node(g, rules, random, depth - 1); };
  const auto kind  = random() % (depth == 0 ? 7 : 13);
  if (kind < 3) return rules[random() % rules.size()];
  if (kind == 3) return g.characters({{'x', 'x' + random() % 2}});
  if (kind == 4) return g.text("");
  if (kind < 7) return g.text(random() % 2 ? "x" : "y");
  if (kind < 9) return g.sequence({inner(), inner()});
  if (kind < 11) return g.choice({inner(), inner()});
  static const std::vector<Occurrences> counts{{},     {1},    {2},    {0, 3},  {2, 3},
                                               {0, 0}, {0, 1}, {0, 1}, {7, 12}, {12, 12}};
  return g.repeat(inner(), counts[random() % counts.size()]);
}

// Whether a node can reach itself before the first character.
bool recurs_at_left(const Rules& g) {
  const auto nullable = g.nullable();
  std::vector<std::vector<char>> reaches(g.size(), std::vector<char>(g.size(), 0));
  for (Id id = 0; id < g.size(); ++id) {
    for (std::size_t i = 0; i < g[id].parts.size(); ++i) {
      const bool first = g[id].kind != Kind::pair || i == 0 || nullable[g[id].parts[0]];
      if (first) reaches[id][g[id].parts[i]] = 1;
    }
  }
  for (Id via = 0; via < g.size(); ++via) {
    for (Id a = 0; a < g.size(); ++a) {
      for (Id b = 0; b < g.size() && reaches[a][via]; ++b) {
        if (reaches[via][b]) reaches[a][b] = 1;
      }
    }
  }
  for (Id id = 0; id < g.size(); ++id) {
    if (reaches[id][id]) return true;
  }
  return false;
}

using test::accepts;

std::vector<std::string> all_texts(std::size_t length) {
  std::vector<std::string> texts{""};
  for (std::size_t i = 0; texts[i].size() < length; ++i) {
    for (const char c : {'x', 'y'}) texts.push_back(texts[i] + c);
  }
  return texts;
}

}  // namespace

TEST_CASE("build_grammar of random rules accepts the same texts without left recursion") {
  const auto texts     = all_texts(5);
  std::size_t accepted = 0, refused = 0, satisfiable = 0, recurring = 0;
  for (unsigned seed = 1; seed <= 250; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    Rules g;
    std::vector<Id> rules(1 + random() % 4);
    for (Id& rule : rules) rule = g.reserve();
    for (const Id rule : rules) g.define(rule, random_node(g, rules, random, 4));
    Grammar built = build_grammar(g, rules[0]);
    REQUIRE_FALSE(is_left_recursive(built));
    if (!built.satisfiable()[built.root().index()]) {
      for (const std::string& text : texts) CHECK_FALSE(slow::matches(g, rules[0], text));
      continue;
    }
    ++satisfiable;
    recurring += recurs_at_left(g);
    const Automaton automaton(built);
    for (const std::string& text : texts) {
      const bool expected = slow::matches(g, rules[0], text);
      ++(expected ? accepted : refused);
      if (accepts(automaton, text) != expected) FAIL("'" << text << "' wanted " << expected);
    }
  }
  CHECK(satisfiable > 150);
  CHECK(recurring > 60);
  CHECK(accepted > 1000);
  CHECK(refused > 2000);
}

TEST_CASE("build_grammar of 4000 left-recursive rules needs a linear number of nodes") {
  Rules g;
  std::vector<Id> rules(4000);
  for (Id& rule : rules) rule = g.reserve();
  const Id x = g.text("x");
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const Id next = rules[(i + 1) % rules.size()];
    g.define(rules[i], i + 1 == rules.size() ? g.choice({next, x}) : g.sequence({next, x}));
  }
  Grammar built = build_grammar(g, rules[0]);
  CHECK(built.size() < 10 * rules.size());
  const Automaton automaton(built);
  CHECK(accepts(automaton, std::string(rules.size(), 'x')));
  CHECK_FALSE(accepts(automaton, std::string(rules.size() - 1, 'x')));
}

TEST_CASE("build_grammar throws for too many rules that use each other") {
  Rules g;
  std::vector<Id> rules(600);
  for (Id& rule : rules) rule = g.reserve();
  std::vector<Id> all;
  for (const Id rule : rules) all.push_back(g.sequence({rule, rule}));
  all.push_back(g.text("x"));
  const Id any = g.choice(all);
  for (std::size_t i = 0; i < rules.size(); ++i) {
    g.define(rules[i], g.sequence({any, g.text(std::to_string(i))}));
  }
  CHECK_THROWS_AS(build_grammar(g, rules[0]), Error);
}

TEST_CASE("build_grammar of highly ambiguous rules keeps the automaton small") {
  // Found by fuzzing: `c` begins and ends with itself, after parts that may be empty.
  for (const char* text : {R"(root ::= a c
                              c ::= d "u" | "v"
                              d ::= e* c "w" | a
                              e ::= "" | c{2,3}
                              a ::= "" | b "x"{0,2} | root
                              b ::= "" | "y" b)",
                           R"(root ::= a c
                              c ::= d "u" | "v"
                              d ::= e* c "w" | a
                              e ::= . [a-c]{2} | c{2,3}
                              a ::= "" | a)"}) {
    const ebnf::GrammarReader reader(text);
    const Id root       = reader.find("root");
    const Grammar built = build_grammar(reader.rules(), root);
    for (unsigned seed = 0; seed < 4; ++seed) {
      INFO("seed " << seed << ", " << text);
      const Automaton automaton(built);
      std::mt19937 random(seed);
      auto state = automaton.initial();
      std::string made;
      for (int i = 0; i < 200; ++i) {
        const ByteSet allowed = automaton.allowed(state);
        std::vector<std::uint8_t> bytes;
        for (const char c : std::string("uvwxyab")) {
          if (allowed.contains(static_cast<std::uint8_t>(c))) {
            bytes.push_back(static_cast<std::uint8_t>(c));
          }
        }
        const std::uint8_t byte = bytes[random() % bytes.size()];
        made += static_cast<char>(byte);
        state = *automaton.step(state, byte);
        if (i < 24) {
          REQUIRE(automaton.is_accepting(state) == slow::matches(reader.rules(), root, made));
        }
      }
      CHECK(automaton.bytes() < 8'000'000);  // without sharing it doubles with each character
    }
  }
}

TEST_CASE("build_grammar of repeated empty character sets accepts no text") {
  for (const char* text : {R"(root ::= "x" []{10,})", R"(root ::= . []{12} "y")"}) {
    const ebnf::GrammarReader reader(text);
    const Grammar built = build_grammar(reader.rules(), reader.find("root"));
    CHECK_THROWS_AS(Automaton(built), Error);
  }
  const ebnf::GrammarReader reader(R"(root ::= "x" []{0,10} "y")");
  const Grammar built = build_grammar(reader.rules(), reader.find("root"));
  CHECK(accepts(Automaton(built), "xy"));
}
