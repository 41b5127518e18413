#include <cstddef>
#include <map>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/constraint/token_walk.hpp>
#include <tooldecode/grammar/left_recursion.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

#include <support/catch.hpp>
#include <support/random_grammar.hpp>

using namespace tooldecode;

namespace {

// Keeps the state after each visited node; wants four nodes of five.
struct Guide {
  using Number    = grammar::Automaton::State;
  using NodeIndex = core::ByteTrie::NodeIndex;
  using Path      = std::size_t;  // steps of the automaton

  static Path path(Path before, std::span<const grammar::StackFrame> positions) {
    CHECK_FALSE(positions.empty());
    return before + 1;
  }
  [[nodiscard]] bool wants(NodeIndex node) const { return node % 5 != skipped; }
  void visit(NodeIndex node, Number next, Path steps) {
    CHECK(found.emplace(node, next).second);
    CHECK(steps <= trie.text(node).size());
  }

  const core::ByteTrie& trie;
  NodeIndex skipped;
  std::map<NodeIndex, Number> found{};
};

Vocabulary random_tokens(std::mt19937& random) {
  const std::string& letters = test::RandomGrammar::alphabet;
  std::vector<Vocabulary::Entry> entries{{"<end>", TokenType::control}};
  for (int i = 0; i < 60; ++i) {
    std::string text;
    for (auto n = 1 + random() % 5; n > 0; --n) text += letters[random() % letters.size()];
    entries.push_back({text});
  }
  return Vocabulary(entries, {.end_tokens = {0}});
}

}  // namespace

TEST_CASE(
    "TokenWalk visits the wanted nodes whose text the automaton reads, with the state after") {
  std::size_t visited = 0, refused = 0;
  for (unsigned seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    test::RandomGrammar maker{std::mt19937(seed)};
    const NodeId root = maker.node(4);
    if (!maker.grammar.satisfiable()[root.index()] || grammar::is_left_recursive(maker.grammar)) {
      continue;
    }
    const VocabularyIndex index{random_tokens(maker.random)};
    const Constraint constraint(index, maker.grammar.rooted(root));
    Constraint::State state = constraint.initial();
    for (int step = 0; step < 4 && !constraint.is_finished(state); ++step) {
      const auto id = constraint.automaton_state(state);
      Guide guide{index.trie(), static_cast<Guide::NodeIndex>(maker.random() % 5)};
      constraint::TokenWalk<Guide>(constraint, guide)(id, std::size_t{0});
      for (Guide::NodeIndex node = 1; node < index.trie().size(); ++node) {
        INFO("text " << index.trie().text(node));
        const auto next  = constraint.automaton().advance(id, index.trie().text(node));
        const auto found = guide.found.find(node);
        REQUIRE((found != guide.found.end()) == (next && guide.wants(node)));
        if (found != guide.found.end()) REQUIRE(found->second == *next);
        ++(next ? visited : refused);
      }
      std::vector<Constraint::State> after;
      for (std::size_t t = 1; t < index.vocabulary().size(); ++t) {
        if (const auto next = constraint.advance(state, static_cast<TokenId>(t))) {
          after.push_back(*next);
        }
      }
      if (after.empty()) break;
      state = after[maker.random() % after.size()];
    }
  }
  CHECK(visited > 1000);
  CHECK(refused > 1000);
}
