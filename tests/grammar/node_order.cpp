#include <algorithm>
#include <cstddef>
#include <random>
#include <set>
#include <vector>

#include <tooldecode/grammar/left_recursion.hpp>
#include <tooldecode/grammar/node_order.hpp>

#include <support/catch.hpp>
#include <support/random_grammar.hpp>

using namespace tooldecode;
using grammar::NodeOrder;
using grammar::NodeStore;
using grammar::StoredId;

namespace {

std::vector<StoredId> parts_of(const NodeStore::Node& node) {
  using Node = NodeStore::Node;
  return node.visit([](const Node::Sequence& all) { return all.children; },
                    [](const Node::Choice& choice) { return choice.children; },
                    [](const Node::Trie& trie) { return trie.children; },
                    [](const Node::Repeat& repeat) {
                      return std::vector{repeat.item, repeat.separator};
                    },
                    [](const Node::Reference& reference) { return std::vector{*reference.body}; },
                    [](const Node::Tag& tag) { return std::vector{tag.child}; },
                    [](const Node::Members& set) {
                      std::vector<StoredId> parts = set.children;
                      for (const NodeStore::OtherKeys& others : set.others)
                        parts.push_back(others.value);
                      parts.push_back(set.separator);
                      return parts;
                    },
                    [](const auto&) { return std::vector<StoredId>(); });
}

// Whether a node contains itself.
bool is_recursive(const NodeStore& nodes, StoredId root) {
  std::vector<StoredId> work = parts_of(nodes[root]);
  std::set<StoredId> seen;
  while (!work.empty()) {
    const StoredId id = work.back();
    work.pop_back();
    if (id == root) return true;
    if (!seen.insert(id).second) continue;
    std::ranges::copy(parts_of(nodes[id]), std::back_inserter(work));
  }
  return false;
}

}  // namespace

TEST_CASE("NodeOrder lists each node once and after its parts unless the parts are recursive") {
  std::size_t recursive = 0, plain = 0;
  for (unsigned seed = 1; seed <= 1500; ++seed) {
    INFO("seed " << seed);
    test::RandomGrammar maker{std::mt19937(seed)};
    const NodeId root = maker.node(3);
    if (!maker.grammar.satisfiable()[root.index()]) continue;
    NodeStore nodes;
    const StoredId stored = nodes.add(maker.grammar, root);
    const NodeOrder order(nodes, stored);
    REQUIRE(!order.nodes().empty());
    CHECK(order.nodes().back() == stored);
    std::set<StoredId> before;
    bool any = false;
    for (const StoredId id : order.nodes()) {
      for (const StoredId part : parts_of(nodes[id])) {
        if (!before.contains(part)) CHECK(is_recursive(nodes, part));
      }
      CHECK(before.insert(id).second);
      any |= is_recursive(nodes, id);
    }
    for (const StoredId id : before) {
      for (const StoredId part : parts_of(nodes[id])) CHECK(before.contains(part));
    }
    CHECK(order.is_recursive() == any);
    for (const StoredId id : order.entries()) CHECK(is_recursive(nodes, id));
    ++(any ? recursive : plain);
  }
  CHECK(recursive > 10);
  CHECK(plain > 100);
}

TEST_CASE("NodeOrder omits nodes that the caller marks as done") {
  test::RandomGrammar maker{std::mt19937(1)};
  Grammar& all      = maker.grammar;
  const NodeId part = all.choice({all.literal("a"), all.literal("b")});
  NodeStore nodes;
  const StoredId done  = nodes.add(all, part);
  const StoredId whole = nodes.add(all, all.sequence({all.literal("c"), all.tagged(1, part)}));
  const NodeOrder order(nodes, whole, [&](StoredId id) { return id == done; });
  CHECK(!order.is_recursive());
  CHECK(std::ranges::count(order.nodes(), done) == 0);
  CHECK(order.nodes().back() == whole);
  CHECK(order.nodes().size() < NodeOrder(nodes, whole).nodes().size());
}
