#include <tooldecode/grammar/left_recursion.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::grammar;

TEST_CASE("Coming back without a byte is found, coming back after one is not") {
  const auto recursive = [](auto body) {
    Grammar g;
    const NodeId node = g.reserve();
    g.define(node, body(g, node));
    return is_left_recursive(g);
  };
  CHECK(recursive([](Grammar&, NodeId n) { return n; }));
  CHECK(recursive([](Grammar& g, NodeId n) { return g.choice({g.literal("a"), n}); }));
  CHECK(recursive([](Grammar& g, NodeId n) { return g.sequence({g.empty(), n, g.literal("a")}); }));
  CHECK(recursive([](Grammar& g, NodeId n) {
    return g.repeat(g.sequence({n, g.literal("a")}), {}, g.empty());
  }));
  CHECK_FALSE(recursive([](Grammar& g, NodeId n) { return g.sequence({g.literal("a"), n}); }));
  CHECK_FALSE(recursive([](Grammar& g, NodeId n) {
    return g.choice({g.literal("a"), g.sequence({g.literal("["), n, g.literal("]")})});
  }));
}

TEST_CASE("Repeating the empty text without end is found") {
  Grammar g;
  CHECK_FALSE(is_left_recursive(g));
  (void)g.repeat(g.optional(g.literal("a")), {}, g.literal(","));
  CHECK_FALSE(is_left_recursive(g));
  (void)g.repeat(g.optional(g.literal("a")), {}, g.empty());
  CHECK(is_left_recursive(g));
}

TEST_CASE("Items that may be empty are no way back where a separator is not") {
  Grammar g;
  const NodeId twice = g.reserve();
  g.define(twice,
           g.sequence({g.repeat(g.optional(g.literal("a")), {2, 2}, g.literal(",")), twice}));
  CHECK_FALSE(is_left_recursive(g));
}
