#include <cstddef>
#include <vector>

#include <tooldecode/ebnf/rule_loops.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::ebnf;
using Kind = Rules::Kind;

// The tests of build_grammar check what loops accept.

TEST_CASE("make_loops turns recursion at either end into a repetition") {
  Rules g;
  const auto space = g.reserve(), list = g.reserve(), other = g.reserve();
  const auto x = g.text("x");
  g.define(space, g.repeat(g.sequence({x, space}), {0, 1}));
  g.define(list, g.choice({g.sequence({list, g.text(","), x}), x, list}));
  g.define(other, g.sequence({x, g.choice({g.sequence({x, other}), x}), x}));
  const auto body = g[other].parts[0];
  make_loops(g);
  const auto part = [&](Rules::Id id, std::size_t i) { return g[id].parts[i]; };
  CHECK(g[part(space, 0)].kind == Kind::repeat);  // x*
  CHECK(part(part(space, 0), 0) == x);
  REQUIRE(g[part(list, 0)].kind == Kind::pair);  // x (, x)*
  CHECK(part(part(list, 0), 0) == x);
  CHECK(g[part(part(list, 0), 1)].kind == Kind::repeat);
  CHECK(part(other, 0) == body);
}

TEST_CASE("make_loops turns recursion at both ends into one repetition") {
  Rules g;
  const auto sum = g.reserve(), one = g.text("1"), plus = g.text("+");
  g.define(sum, g.choice({g.sequence({sum, plus, sum}), one}));
  make_loops(g);
  const auto body = g[sum].parts[0];  // 1 (+ 1)*
  REQUIRE(g[body].kind == Kind::pair);
  CHECK(g[body].parts[0] == one);
  REQUIRE(g[g[body].parts[1]].kind == Kind::repeat);
  const auto more = g[g[body].parts[1]].parts[0];
  CHECK(g[more].parts == std::vector<Rules::Id>{plus, one});
}

TEST_CASE("make_loops turns a rule that is only itself into an empty choice") {
  Rules g;
  const auto rule = g.reserve(), unused = g.reserve();
  g.define(rule, rule);
  make_loops(g);
  CHECK(g[unused].parts.empty());
  CHECK(g[g[rule].parts[0]].kind == Kind::choice);
  CHECK(g[g[rule].parts[0]].parts.empty());
}
