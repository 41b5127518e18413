#include <tooldecode/core/error.hpp>
#include <tooldecode/ebnf/rules.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::ebnf;

TEST_CASE("Rules::nullable finds parts that may be empty through mutually recursive rules") {
  Rules g;
  const auto a = g.reserve(), b = g.reserve(), c = g.reserve();
  const auto x = g.text("x"), none = g.text("");
  const auto any = g.repeat(x, {}), some = g.repeat(x, {1});
  const auto maybe = g.choice({x, g.sequence({none, any})});
  g.define(a, g.sequence({b, maybe, any}));
  g.define(b, g.choice({g.sequence({a, x}), none}));
  g.define(c, g.sequence({c, c}));
  const auto nullable = g.nullable();
  for (const auto id : {a, b, none, any, maybe, g.repeat(maybe, {3, 3})}) {
    if (id < nullable.size()) CHECK(nullable[id]);
  }
  const auto part = g.part([](tooldecode::Grammar& grammar) { return grammar.literal("p"); });
  for (const auto id : {c, x, some}) CHECK_FALSE(nullable[id]);
  const auto last = g.sequence({});
  CHECK(g.nullable()[last]);
  CHECK_FALSE(g.nullable()[part]);
  CHECK(g.sequence({x}) == x);
  CHECK(g[g.sequence({})].text.empty());
}

TEST_CASE("Rules throws when it exceeds its limit of nodes") {
  Rules g;
  const auto fill = [&] {
    while (true) (void)g.text("x");
  };
  CHECK_THROWS_AS(fill(), Error);
  CHECK(g.size() == Rules::max_nodes);
}
