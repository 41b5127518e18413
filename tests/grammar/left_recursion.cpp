#include <tooldecode/grammar/left_recursion.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::grammar;

TEST_CASE("is_left_recursive finds recursion before a byte and not after one") {
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

TEST_CASE("is_left_recursive finds an unbounded repeat of the empty text") {
  Grammar g;
  CHECK_FALSE(is_left_recursive(g));
  (void)g.repeat(g.optional(g.literal("a")), {}, g.literal(","));
  CHECK_FALSE(is_left_recursive(g));
  (void)g.repeat(g.optional(g.literal("a")), {}, g.empty());
  CHECK(is_left_recursive(g));
}

TEST_CASE("is_left_recursive allows recursion after a separator between items that may be empty") {
  Grammar g;
  const NodeId twice = g.reserve();
  g.define(twice,
           g.sequence({g.repeat(g.optional(g.literal("a")), {2, 2}, g.literal(",")), twice}));
  CHECK_FALSE(is_left_recursive(g));
}
