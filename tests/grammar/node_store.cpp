#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/grammar/node_order.hpp>
#include <tooldecode/grammar/node_store.hpp>

#include <support/catch.hpp>
#include <support/kept_memory.hpp>

using namespace tooldecode;
using namespace tooldecode::core;
using namespace tooldecode::grammar;
using namespace tooldecode::text;

namespace {

// A new lexeme that accepts these texts.
DfaPointer one_of(const std::set<std::string>& texts) {
  std::vector<Dfa::Row> rows(1);
  for (const std::string& text : texts) {
    Dfa::State at = 0;
    for (const char c : text) {
      const auto byte = static_cast<std::uint8_t>(c);
      if (rows[at].next[byte] == Dfa::dead) {
        const auto fresh = static_cast<Dfa::State>(rows.size());
        rows.emplace_back();
        rows[at].next[byte] = fresh;
      }
      at = rows[at].next[byte];
    }
    rows[at].accepting = true;
  }
  return std::make_shared<const Dfa>(rows);
}

// The meaning of a grammar, which `build` builds in several ways.
struct Spec {
  enum { nothing, literal, lexeme, sequence, choice, repeat, tag } kind = nothing;
  std::string text{};
  std::vector<Spec> parts{};
  Occurrences bounds{};
  std::uint32_t tag_number = 0;
};

Spec random_spec(std::mt19937& random, int depth) {
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  Spec spec;
  const std::uint32_t kind = depth == 0 ? below(6) : below(14);
  if (kind == 0) return spec;
  if (kind < 6) {
    spec.kind = kind < 5 ? Spec::literal : Spec::lexeme;
    for (std::uint32_t n = below(3); n > 0; --n) spec.text += "ab"[below(2)];
    return spec;
  }
  spec.kind                 = kind < 9     ? Spec::sequence
                              : kind < 12  ? Spec::choice
                              : kind == 12 ? Spec::repeat
                                           : Spec::tag;
  const std::uint32_t count = spec.kind == Spec::repeat ? 2 : spec.kind == Spec::tag ? 1 : below(4);
  for (std::uint32_t i = 0; i < count; ++i) spec.parts.push_back(random_spec(random, depth - 1));
  spec.bounds     = {below(3), 2 + below(2)};
  spec.tag_number = below(2);
  return spec;
}

// Equal for two specifications exactly if the store's rules merge them: "0" is nothing,
// "1" the empty text, "'..." a literal.
std::string meaning(const Spec& spec) {
  std::vector<std::string> parts;
  for (const Spec& part : spec.parts) parts.push_back(meaning(part));
  const auto joined = [&](std::string head) {
    for (const std::string& part : parts) head += part + ";";
    return head + ")";
  };
  const bool dead = std::count(parts.begin(), parts.end(), "0") != 0;
  switch (spec.kind) {
    case Spec::literal:
      return spec.text.empty() ? "1" : "'" + spec.text;
    case Spec::lexeme:
      return "lexeme " + spec.text;
    case Spec::sequence: {
      if (dead) return "0";
      std::vector<std::string> merged;
      for (const std::string& part : parts) {
        if (part == "1") continue;
        if (part[0] == '\'' && !merged.empty() && merged.back()[0] == '\'') {
          merged.back() += part.substr(1);
        } else {
          merged.push_back(part);
        }
      }
      parts = merged;
      return parts.empty() ? "1" : parts.size() == 1 ? parts[0] : joined("sequence(");
    }
    case Spec::choice: {
      std::vector<std::string> alternatives;
      for (const std::string& part : parts) {
        const bool known = std::count(alternatives.begin(), alternatives.end(), part) != 0;
        if (part != "0" && !known) alternatives.push_back(part);
      }
      parts = alternatives;
      return parts.empty() ? "0" : parts.size() == 1 ? parts[0] : joined("choice(");
    }
    case Spec::repeat:
      if (parts[0] == "0") return spec.bounds.min == 0 ? "1" : "0";
      if (parts[1] == "0" && spec.bounds.min > 1) return "0";
      return joined("repeat " + std::to_string(spec.bounds.min) + " " +
                    std::to_string(spec.bounds.max) + "(");
    case Spec::tag:
      return dead ? "0" : joined("tag " + std::to_string(spec.tag_number) + "(");
    default:
      return "0";
  }
}

// Builds its nodes in random order, with unused nodes, references and split literals.
NodeId build(const Spec& spec, Grammar& grammar, std::mt19937& random) {
  if (random() % 4 == 0) (void)grammar.literal("unused");
  if (random() % 4 == 0) {
    const NodeId later = grammar.reserve();
    grammar.define(later, build(spec, grammar, random));
    return later;
  }
  std::vector<NodeId> parts(spec.parts.size());
  std::vector<std::size_t> order(parts.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), random);
  for (const std::size_t i : order) parts[i] = build(spec.parts[i], grammar, random);
  switch (spec.kind) {
    case Spec::literal: {
      if (random() % 2 == 0) return grammar.literal(spec.text);
      for (const char c : spec.text) parts.push_back(grammar.literal({&c, 1}));
      return grammar.sequence(parts);
    }
    case Spec::lexeme:
      return grammar.lexeme(one_of({spec.text, "x"}));
    case Spec::sequence:
      return grammar.sequence(parts);
    case Spec::choice:
      return grammar.choice(parts);
    case Spec::repeat:
      return grammar.repeat(parts[0], spec.bounds, parts[1]);
    case Spec::tag:
      return grammar.tagged(spec.tag_number, parts[0]);
    default:
      return grammar.nothing();
  }
}

}  // namespace

TEST_CASE("NodeStore gives random grammars the same id exactly if they have the same meaning") {
  NodeStore store;
  std::map<std::string, StoredId> numbers{{"0", NodeStore::nothing}, {"1", NodeStore::empty}};
  std::map<StoredId, std::string> meanings{{NodeStore::nothing, "0"}, {NodeStore::empty, "1"}};
  std::size_t met_again = 0;
  for (unsigned seed = 1; seed <= 3000; ++seed) {
    std::mt19937 random(seed);
    const Spec spec        = random_spec(random, 3);
    const std::string what = meaning(spec);
    INFO("seed " << seed << ": " << what);
    for (int round = 0; round < 2; ++round) {
      Grammar grammar;
      const StoredId id = store.add(grammar, build(spec, grammar, random));
      met_again += numbers.count(what);
      REQUIRE(numbers.emplace(what, id).first->second == id);
      REQUIRE(meanings.emplace(id, what).first->second == what);
    }
  }
  CHECK(meanings.size() > 500);
  CHECK(met_again > 3000);
}

TEST_CASE("NodeStore stores a grammar of 2^40 leaves in few nodes") {
  NodeStore store;
  Grammar grammar;
  NodeId node = grammar.choice({grammar.literal("a"), grammar.literal("b")});
  for (int i = 0; i < 40; ++i) {
    node = i % 2 == 0 ? grammar.sequence({node, grammar.literal(","), node})
                      : grammar.choice({node, grammar.sequence({node, node})});
  }
  const StoredId id      = store.add(grammar, node);
  const std::size_t size = store.size();
  CHECK(size < 80);
  CHECK(store.add(grammar, node) == id);
  CHECK(store.size() == size);
  for (int i = 0; i < 40; ++i) node = grammar.sequence({node, node});  // also of literals alone
  NodeId text = grammar.literal("ab");
  for (int i = 0; i < 40; ++i) text = grammar.sequence({text, text});
  (void)store.add(grammar, grammar.choice({node, text}));
  CHECK(store.size() < size + 100);
}

TEST_CASE("NodeStore stores a recursive node once and drops a recursion that never ends") {
  NodeStore store;
  Grammar grammar;
  const NodeId value = grammar.reserve();
  grammar.define(value, grammar.choice({grammar.literal("a"),
                                        grammar.sequence({grammar.literal("["), value, value,
                                                          grammar.literal("]")})}));
  const NodeId pair = grammar.sequence({value, grammar.literal(","), value});
  const auto* both  = store[store.add(grammar, pair)].as<NodeStore::Node::Sequence>();
  REQUIRE(both != nullptr);
  REQUIRE(both->children.size() == 3);
  CHECK(both->children[0] == both->children[2]);
  CHECK(store.size() <= 2 + 8);
  const std::vector<StoredId> reached = NodeOrder(store, both->children[0]).nodes();
  CHECK(std::count(reached.begin(), reached.end(), NodeStore::nothing) == 0);
  CHECK(std::count_if(reached.begin(), reached.end(), [&](StoredId at) {
          return store[at].as<NodeStore::Node::Reference>() != nullptr;
        }) == 1);

  const NodeId endless = grammar.reserve();  // no text ends
  grammar.define(endless, grammar.sequence({grammar.literal("a"), endless}));
  CHECK(store.add(grammar, endless) == NodeStore::nothing);
  CHECK(store.add(grammar, grammar.choice({endless, grammar.empty()})) == NodeStore::empty);
}

TEST_CASE("NodeStore stores a linked node as the node that was stored before") {
  NodeStore store;
  const auto part = [](Grammar& g) { return g.choice({g.literal("a"), g.literal("b")}); };
  Grammar first, linked, whole;
  const StoredId number = store.add(first, part(first));
  CHECK(store.add(linked, linked.linked(number)) == number);
  const NodeId with_link =
      linked.sequence({linked.literal("("), linked.linked(number), linked.literal(")")});
  const NodeId without = whole.sequence({whole.literal("("), part(whole), whole.literal(")")});
  CHECK(store.add(linked, with_link) == store.add(whole, without));
}

TEST_CASE("NodeStore records where other keys differ from the members' keys") {
  for (unsigned seed = 1; seed <= 400; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const auto keys = [&] {
      std::set<std::string> result;
      for (auto n = 1 + random() % 5; n > 0; --n) {
        std::string key;
        for (auto m = 1 + random() % 3; m > 0; --m) key += "ab"[random() % 2];
        result.insert(key);
      }
      return result;
    };
    const std::set<std::string> own = keys(), others = keys();
    Grammar grammar;
    const NodeId value = grammar.literal(":");
    KeyedSet set{
        .members = {}, .others = {{one_of(others), value}}, .separator = grammar.literal(",")};
    for (const std::string& key : own) set.members.push_back({{key}, value, false});
    NodeStore store;
    const StoredId id    = store.add(grammar, grammar.keyed_set(set));
    const auto& node     = *store[id].as<NodeStore::Node::Members>();
    const auto completes = [&](const std::string& begin) {
      return std::any_of(others.begin(), others.end(), [&](const std::string& key) {
        return key.size() > begin.size() && key.starts_with(begin) && own.count(key) == 0;
      });
    };
    REQUIRE(node.others.size() == (completes("") ? 1 : 0));
    if (node.others.empty()) continue;
    const Dfa& dfa   = store.lexeme(node.others[0].key);
    const auto visit = [&](const auto& self, ByteTrie::NodeIndex at, Dfa::State state,
                           const std::string& path) -> void {
      INFO("after " << path);
      REQUIRE(node.others[0].state[at] == state);
      REQUIRE((node.others[0].completes[at] != 0) == completes(path));
      const auto [first, last] = node.literals->children(at);
      for (auto child = first; child < last; ++child) {
        const std::uint8_t byte = node.literals->label(child);
        self(self, child, state == Dfa::dead ? state : dfa.next(state, byte),
             path + static_cast<char>(byte));
      }
    };
    visit(visit, 0, 0, "");
  }
}

TEST_CASE("NodeStore drops members that depend on members that cannot be written") {
  NodeStore store;
  const auto children_of = [&](bool third_is_live) {
    Grammar grammar;
    const NodeId value = grammar.literal(":"), dead = grammar.nothing();
    const StoredId id = store.add(
        grammar, grammar.keyed_set({.members   = {{{"a"}, value, false},
                                                  {{"b"}, value, false},
                                                  {{"c"}, third_is_live ? value : dead, false},
                                                  {{"d"}, value, false}},
                                    .others    = {},
                                    .separator = grammar.literal(","),
                                    .dependent = {{0, 1}, {1, 2}}}));
    return store[id].as<NodeStore::Node::Members>()->children;
  };
  const auto live = children_of(true), dead = children_of(false);
  CHECK(std::count(live.begin(), live.end(), NodeStore::nothing) == 0);
  CHECK(dead ==
        std::vector<StoredId>{NodeStore::nothing, NodeStore::nothing, NodeStore::nothing, live[3]});
}

TEST_CASE(
    "NodeStore::add of a large grammar pauses so that other grammars can be added meanwhile") {
  Grammar large;
  std::vector<NodeId> parts;
  for (int i = 0; i < 5000; ++i) {
    parts.push_back(large.trie(
        {{"a" + std::to_string(i), large.empty()}, {"b" + std::to_string(i), large.empty()}}));
  }
  const NodeId root = large.choice(parts);
  Grammar small;
  const NodeId part = small.trie({{"a4999", small.empty()}, {"b4999", small.empty()}});
  NodeStore alone, shared;
  const StoredId expected = alone.add(large, root);
  std::size_t pauses      = 0;
  StoredId known          = NodeStore::nothing;
  const StoredId node     = shared.add(large, root, [&] {
    ++pauses;
    const StoredId made = shared.add(small, part);
    CHECK((known == NodeStore::nothing || known == made));
    known = made;
  });
  CHECK(pauses >= 5000 / NodeStore::max_at_once);
  const auto& children = shared[node].as<NodeStore::Node::Choice>()->children;
  CHECK(children.size() == 5000);
  CHECK(shared.size() == alone.size());
  CHECK(shared.add(large, root) == node);
  CHECK(alone.add(large, root) == expected);
  CHECK(std::find(children.begin(), children.end(), known) != children.end());
}

TEST_CASE("Grammar::trie gives tries of different literals different hashes") {
  // Nodes are looked up by hash: equal hashes would make the time quadratic.
  Grammar grammar;
  std::set<std::uint64_t> hashes;
  for (int i = 1000; i < 3000; ++i) {
    const NodeId node = grammar.trie(
        {{std::to_string(i), grammar.empty()}, {std::to_string(i) + ".0", grammar.empty()}});
    hashes.insert(grammar[node].as<Grammar::Node::Trie>()->literals->hash());
  }
  CHECK(hashes.size() == 2000);
}

// A large block is mapped, which takes up to a page more than is counted.
TEST_CASE("NodeStore::bytes is what is kept for the nodes of each kind") {
  using Build       = NodeId (*)(Grammar&, unsigned);
  const Build all[] = {
      [](Grammar& g, unsigned i) {
        return g.literal("a longer text, number " + std::to_string(i));
      },
      [](Grammar& g, unsigned i) {
        return g.repeat(g.literal("a"), {0, 9U + i}, g.literal(","));
      },
      [](Grammar& g, unsigned i) {
        return g.sequence({g.literal(std::to_string(i)), g.lexeme(one_of({"a", "b"})),
                           g.literal("x"), g.literal("y"), g.lexeme(one_of({"c"}))});
      },
      [](Grammar& g, unsigned i) {
        std::vector<NodeId> choices;
        for (unsigned n = 0; n < 40; ++n) choices.push_back(g.literal(std::to_string(20 * i + n)));
        return g.choice(choices);
      },
      [](Grammar& g, unsigned i) {
        return g.lexeme(one_of({std::string(i % 200, 'a'), "b"}));
      },
      [](Grammar& g, unsigned i) {
        std::vector<std::pair<std::string, NodeId>> texts;
        for (unsigned n = 0; n < 20; ++n) {
          texts.emplace_back(std::to_string(i) + '_' + std::to_string(n), g.literal("v"));
        }
        return g.trie(texts);
      },
      [](Grammar& g, unsigned i) {
        const NodeId loop = g.reserve();
        g.define(loop,
                 g.choice({g.literal(std::to_string(i)), g.sequence({g.literal("b"), loop})}));
        return loop;
      },
      [](Grammar& g, unsigned i) {
        KeyedSet set{.members = {}, .others = {}, .separator = g.literal(",")};
        for (unsigned n = 0; n < 10; ++n) {
          set.members.push_back({{"k" + std::to_string(10 * i + n)}, g.literal("v"), n < 3});
        }
        set.others.push_back({one_of({"other", "o"}), g.literal("w")});
        if (i % 2 == 0) set.dependent = {{4, 5}, {5, 6}};
        return g.keyed_set(set);
      },
  };
  for (std::size_t kind = 0; kind < std::size(all); ++kind) {
    CAPTURE(kind);
    NodeStore store;
    const std::size_t before = store.bytes();
    const auto kept          = test::kept_memory([&] {
      for (unsigned i = 0; i < 500; ++i) {
        Grammar grammar;
        (void)store.add(grammar, all[kind](grammar, i));
      }
    });
    if (!kept) return;
    const auto counted = static_cast<double>(store.bytes() - before);
    CHECK(counted > 0.98 * static_cast<double>(*kept));
    CHECK(counted < 1.02 * static_cast<double>(*kept));
  }
}

TEST_CASE("NodeStore drops a literal of any length that another hides") {
  const std::string text(1'000'000, 'a');
  Grammar grammar;
  const NodeId root = grammar.trie({{text, grammar.literal("b")},
                                    {text, grammar.literal("c")},
                                    {text + 'd', grammar.literal("e")}});
  NodeStore store;
  const auto* trie = store[store.add(grammar, root)].as<NodeStore::Node::Trie>();
  REQUIRE(trie != nullptr);
  CHECK(trie->literals->size() == text.size() + 2);
  CHECK(trie->literals->count_below(0) == 2);
}
