#include <tooldecode/grammar/left_recursion.hpp>

#include <support/catch.hpp>

using namespace tooldecode;

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

TEST_CASE("A keyed set whose additional members may be empty is found") {
  const auto recursive = [](auto additional, auto separator) {
    Grammar g;
    const NodeId body  = additional(g);
    const NodeId comma = separator(g);
    (void)g.keyed_set({.members = {}, .separator = comma, .additional = body});
    return is_left_recursive(g);
  };
  const auto maybe = [](Grammar& g) { return g.optional(g.literal("a")); };
  const auto comma = [](Grammar& g) { return g.literal(","); };
  CHECK(recursive(maybe, maybe));
  CHECK_FALSE(recursive(maybe, comma));
  CHECK_FALSE(recursive(comma, maybe));
  Grammar g;
  CHECK_FALSE(is_left_recursive(g));
  const NodeId twice = g.reserve();
  // Two items, perhaps empty, with a comma between them: never empty, so this is no way back.
  g.define(twice,
           g.sequence({g.repeat(g.optional(g.literal("a")), {2, 2}, g.literal(",")), twice}));
  CHECK_FALSE(is_left_recursive(g));
}
