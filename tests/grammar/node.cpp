#include <memory>
#include <string>
#include <vector>

#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/node.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using Node = Grammar::Node;

static_assert(sizeof(Node) <= 64);

namespace {

// Lexemes and references are distinguished by what a case for any kind returns.
std::string kind_of(const Node& node) {
  return node.visit([](const Node::Literal& literal) { return literal.text; },
                    [](const Node::Sequence& all) { return std::to_string(all.children.size()); },
                    [](const Node::Repeat&) { return std::string("repeat"); },
                    [](const Node::Trie&) { return std::string("trie"); },
                    [](const Node::Members& set) { return std::to_string(set.leading) + " first"; },
                    [](const auto&) { return std::string("any"); });
}

Node::Members members() {
  Node::Members set{{std::make_shared<const core::ByteTrie>(
                         std::vector<core::ByteTrie::Entry>{{"a", 0}, {"b", 1}}),
                     {NodeId(4), NodeId(5)}}};
  set.leading = 2;
  return set;
}

std::vector<NodeId> parts_of(const Node& node) {
  std::vector<NodeId> parts;
  while (const auto part = grammar::detail::part_of(node, parts.size())) parts.push_back(*part);
  return parts;
}

}  // namespace

TEST_CASE("BasicNode::visit calls the function of the node's kind or the one for any kind") {
  CHECK(kind_of(Node::Literal{"text"}) == "text");
  CHECK(kind_of(Node::Sequence{{NodeId(1), NodeId(2)}}) == "2");
  CHECK(kind_of(Node::Choice{{NodeId(1)}}) == "any");
  CHECK(kind_of(Node::Repeat{NodeId(1), NodeId(2), {0, 3}}) == "repeat");
  CHECK(kind_of(Node::Trie{nullptr, {}}) == "trie");
  CHECK(kind_of(members()) == "2 first");
  CHECK(kind_of(Node::Reference{}) == "any");
}

TEST_CASE("BasicNode::as returns a node as its own kind only") {
  const Node set = members(), tag = Node::Tag{7, NodeId(1)};
  REQUIRE(set.as<Node::Members>() != nullptr);
  CHECK(*set.as<Node::Members>() == members());
  CHECK(set.as<Node::Trie>() == nullptr);
  REQUIRE(tag.as<Node::Tag>() != nullptr);
  CHECK(tag.as<Node::Tag>()->number == 7);
  CHECK(tag.as<Node::Members>() == nullptr);
}

TEST_CASE("BasicNode: kinds are equal if their contents are, wherever their tries are stored") {
  Node::Members other = members();
  CHECK(other == members());
  other.children[1] = NodeId(6);
  CHECK_FALSE(other == members());
  other          = members();
  other.distinct = true;
  CHECK_FALSE(other == members());
  other          = members();
  other.literals = std::make_shared<const core::ByteTrie>(
      std::vector<core::ByteTrie::Entry>{{"a", 0}, {"c", 1}});
  CHECK_FALSE(other == members());
}

TEST_CASE("part_of enumerates the nodes that a node refers to, a separator last") {
  using Parts = std::vector<NodeId>;
  CHECK(parts_of(Node::Literal{"text"}).empty());
  CHECK(parts_of(Node::Lexeme{}).empty());
  CHECK(parts_of(Node::Sequence{{NodeId(2), NodeId(1)}}) == Parts{NodeId(2), NodeId(1)});
  CHECK(parts_of(Node::Choice{}).empty());
  CHECK(parts_of(Node::Repeat{NodeId(1), NodeId(2), {0, 3}}) == Parts{NodeId(1), NodeId(2)});
  CHECK(parts_of(Node::Trie{nullptr, {NodeId(3)}}) == Parts{NodeId(3)});
  CHECK(parts_of(Node::Reference{}).empty());
  CHECK(parts_of(Node::Reference{NodeId(9)}) == Parts{NodeId(9)});
  CHECK(parts_of(Node::Tag{7, NodeId(1)}) == Parts{NodeId(1)});
  Node::Members set = members();
  set.separator     = NodeId(6);
  set.others.push_back({nullptr, NodeId(8)});
  CHECK(parts_of(set) == Parts{NodeId(4), NodeId(5), NodeId(8), NodeId(6)});
}
