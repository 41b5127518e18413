#include <tooldecode/grammar/grammar.hpp>

#include <support/catch.hpp>

using namespace tooldecode;

TEST_CASE("A node is satisfiable where some text matches") {
  Grammar g;
  const auto live    = [&](NodeId node) { return g.satisfiable()[node] != 0; };
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
    return g.keyed_set({.members = {{{"k"}, never, required}}, .separator = a, .additional = {}});
  };
  CHECK(live(set(false)));
  CHECK_FALSE(live(set(true)));
}

TEST_CASE("A trie finds each literal under its index") {
  Grammar::Trie trie;
  CHECK(trie.insert("get", 0));
  CHECK(trie.insert("get_time", 1));
  CHECK(trie.insert("", 2));
  CHECK_FALSE(trie.insert("get", 3));
  const auto find = [&](std::string_view text) -> std::optional<std::uint32_t> {
    std::uint32_t at = 0;
    for (const char c : text) {
      at = trie.child(at, static_cast<std::uint8_t>(c));
      if (at == 0) return std::nullopt;
    }
    return trie.positions[at].literal;
  };
  CHECK(find("get") == std::optional<std::uint32_t>(0));
  CHECK(find("get_time") == std::optional<std::uint32_t>(1));
  CHECK(find("") == std::optional<std::uint32_t>(2));
  CHECK_FALSE(find("get_"));
  CHECK_FALSE(find("set"));
}

TEST_CASE(
    "A required member without a spelling of its own, or without a separator, is impossible") {
  Grammar g;
  const NodeId a = g.literal("a"), never = g.nothing();
  const auto live = [&](NodeId id) { return g.satisfiable()[id] != 0; };
  const auto set  = [&](bool second_required, NodeId separator) {
    return g.keyed_set({.members    = {{{"k"}, a, false}, {{"k"}, a, second_required}},
                         .separator  = separator,
                         .additional = {}});
  };
  CHECK(live(set(false, a)));
  CHECK_FALSE(live(set(true, a)));
  CHECK_FALSE(live(set(false, never)));
}
