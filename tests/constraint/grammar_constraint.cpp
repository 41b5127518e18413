#include <random>
#include <string>
#include <vector>

#include <tooldecode/constraint/grammar_constraint.hpp>
#include <tooldecode/grammar/string_lexeme.hpp>

#include <support/catch.hpp>
#include <support/random_vocabulary.hpp>

using namespace tooldecode;

namespace {

struct Sample {
  Grammar grammar;
  NodeId root = 0;
};

Sample sample(unsigned kind) {
  Sample s;
  Grammar& g           = s.grammar;
  const NodeId space   = g.lexeme(any_whitespace(), {0, 6});
  const NodeId comma   = g.sequence({space, g.literal(","), space});
  const NodeId text    = g.lexeme(any_string(ValueSyntax::json, '"'));
  const NodeId bounded = g.lexeme(any_string(ValueSyntax::json, '"'), {2, 5});
  std::vector<Dfa::Row> rows(1);
  for (unsigned b = 0; b < 256; ++b) rows[0].next[b] = 0;
  rows[0].accepting     = true;
  const NodeId anything = g.lexeme(std::make_shared<const Dfa>(rows));
  switch (kind % 5) {
    case 0:
      s.root = g.repeat(text, {1, 3}, comma);
      break;
    case 1:
      s.root = g.keyed_set(
          {.members   = {{{"\"a\""}, g.sequence({g.literal(":"), bounded}), true},
                         {{"\"ab\"", "\"a\\\""}, g.sequence({g.literal(":"), text}), kind % 2 == 0},
                         {{"\""}, g.literal("12"), false}},
           .others    = {{any_string(ValueSyntax::json, '"'), g.sequence({g.literal(":"), text})}},
           .separator = comma,
           .count     = {0, kind % 3 == 0 ? 4 : Occurrences::unbounded}});
      break;
    case 2: {  // two strings at once, and recursion
      const NodeId value = g.reserve();
      g.define(value, g.choice({text, bounded,
                                g.sequence({g.literal("["), space, g.repeat(value, {}, comma),
                                            space, g.literal("]")})}));
      s.root = value;
      break;
    }
    case 3:
      s.root = g.sequence({space, bounded, g.literal(":"), space, text});
      break;
    default:
      s.root = g.choice(
          {g.sequence({g.literal("[\""), anything}), g.repeat(bounded, {2, 2}, g.literal(","))});
  }
  return s;
}

}  // namespace

TEST_CASE("Masks are exactly the tokens whose bytes the automaton reads") {
  std::size_t states = 0, mixed = 0;
  for (unsigned seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    const Vocabulary vocabulary = test::random_vocabulary(seed);
    Sample one = sample(seed), twin = sample(seed);
    const GrammarConstraint constraint(vocabulary, std::move(one.grammar), one.root);
    const Automaton referee(std::move(twin.grammar), twin.root);
    std::mt19937 random(seed);
    TokenMask mask(vocabulary.size());
    for (int walk = 0; walk < 8; ++walk) {
      auto state         = constraint.initial();
      auto referee_state = referee.initial();
      std::string text;
      for (int step = 0; step < 8; ++step) {
        INFO("text " << text);
        constraint.fill_mask(state, mask.words());
        std::vector<TokenId> allowed;
        for (std::size_t i = 0; i < vocabulary.size(); ++i) {
          const auto token = static_cast<TokenId>(i);
          bool expected    = false;
          if (vocabulary.is_end(token)) {
            expected = referee.is_accepting(referee_state);
          } else if (const auto bytes = vocabulary.grammar_bytes(token); !bytes.empty()) {
            auto at = std::optional(referee_state);
            for (const char c : bytes) {
              if (at) at = referee.step(*at, static_cast<std::uint8_t>(c));
            }
            expected = at.has_value();
          }
          if (mask.contains(token) != expected)
            FAIL("token " << token << " '" << vocabulary.name(token) << "' wanted " << expected);
          if (constraint.advance(state, token).has_value() != expected)
            FAIL("advance disagrees on token " << token);
          if (expected) allowed.push_back(token);
        }
        ++states;
        mixed += allowed.size() > 100;
        REQUIRE_FALSE(allowed.empty());
        std::string forced;  // by the referee's bytes
        for (auto at = referee_state;
             forced.size() < 256 && !referee.is_accepting(at) && referee.allowed(at).size() == 1;) {
          forced.push_back(static_cast<char>(referee.allowed(at).front()));
          at = *referee.step(at, referee.allowed(at).front());
        }
        REQUIRE(constraint.forced(state) == forced);
        const TokenId token = allowed[random() % allowed.size()];
        state               = *constraint.advance(state, token);
        if (vocabulary.is_end(token)) {
          REQUIRE(constraint.is_finished(state));
          constraint.fill_mask(state, mask.words());
          REQUIRE(mask.count() == 2);
          REQUIRE(mask.contains(0));
          REQUIRE(mask.contains(1));
          REQUIRE(constraint.forced(state).empty());
          break;
        }
        for (const char c : vocabulary.bytes(token))
          referee_state = *referee.step(referee_state, static_cast<std::uint8_t>(c));
        text += vocabulary.bytes(token);
      }
    }
  }
  CHECK(states >= 1000);
  CHECK(mixed > 50);
}
