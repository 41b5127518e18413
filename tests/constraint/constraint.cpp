#include <algorithm>
#include <cstddef>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/constraint/fast_forward_tokens.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/mask/shared_states.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/schema/json_schema.hpp>
#include <tooldecode/text/string_lexeme.hpp>

#include <support/byte_vocabulary.hpp>
#include <support/cases.hpp>
#include <support/catch.hpp>
#include <support/kept_memory.hpp>
#include <support/random_vocabulary.hpp>

using namespace tooldecode;
using namespace tooldecode::grammar;
using namespace tooldecode::text;

namespace {

struct Sample {
  Grammar grammar;
  NodeId root{};
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

// Objects and arrays nested to any depth, with members in any order.
Sample nested() {
  Sample s;
  Grammar& g         = s.grammar;
  s.root             = g.reserve();
  const NodeId value = g.sequence({g.literal(":"), s.root});
  const NodeId comma = g.literal(",");
  const NodeId keyed = g.keyed_set({.members   = {{{"\"a\""}, value, true}, {{"\"b\""}, value}},
                                    .others    = {{any_string(ValueSyntax::json, '"'), value}},
                                    .separator = comma});
  const NodeId other = g.keyed_set({.members   = {{{"\"b\""}, value, true}, {{"\"c\""}, value}},
                                    .others    = {},
                                    .separator = comma,
                                    .count     = {1, 2}});
  const auto braces  = [&](NodeId inside) {
    return g.sequence({g.literal("{"), inside, g.literal("}")});
  };
  // Two ways to cut a run of digits, so that stacks are bundles and counts are sets.
  const NodeId digits =
      g.repeat(g.choice({g.literal("1"), g.literal("11"), g.literal("12")}), {2, 9}, g.empty());
  g.define(
      s.root,
      g.choice({digits, braces(keyed), braces(other),
                g.sequence({g.literal("["), g.repeat(s.root, {1, 5}, comma), g.literal("]")})}));
  return s;
}

// A token that may follow, at random.
TokenId choose(const Constraint& constraint, Constraint::State state, std::mt19937& random) {
  TokenMask mask(constraint.vocabulary_size());
  constraint.fill_mask(state, mask.words());
  std::vector<TokenId> allowed;
  mask.for_each([&](TokenId token) { allowed.push_back(token); });
  REQUIRE_FALSE(allowed.empty());
  return allowed[random() % allowed.size()];
}

template <class Call>
std::optional<Errc> error_of(Call call) {
  try {
    (void)call();
  } catch (const Error& error) {
    return error.code();
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("Constraint::compact replaces states by equal ones that allow the same tokens") {
  const VocabularyIndex cache{
      test::byte_vocabulary({{"{\"a\":"}, {"11"}, {"\":1"}, {"[["}, {"]]"}, {",\""}})};
  const Sample one    = nested();
  std::size_t smaller = 0;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const Constraint constraint(cache, one.grammar.rooted(one.root));
    Constraint compacted = constraint;
    std::vector<Constraint::State> states{constraint.initial()}, live = states;
    TokenMask mask(constraint.vocabulary_size()), same(constraint.vocabulary_size());
    for (int step = 0; step < 400; ++step) {
      const std::size_t branch = random() % states.size();
      const TokenId token      = choose(constraint, states[branch], random);
      const auto next          = constraint.advance(states[branch], token),
                 other         = compacted.advance(live[branch], token);
      REQUIRE(next);
      REQUIRE(other);
      const bool forks = states.size() < 4 && random() % 20 == 0;
      if (forks) states.push_back(*next), live.push_back(*other);
      if (!forks) states[branch] = *next, live[branch] = *other;
      if (constraint.is_finished(*next)) {
        states[branch] = constraint.initial();
        live[branch]   = compacted.initial();
      }
      for (std::size_t i = 0; i < states.size(); ++i) {
        constraint.fill_mask(states[i], mask.words());
        compacted.fill_mask(live[i], same.words());
        REQUIRE(mask == same);
        REQUIRE(constraint.is_accepting(states[i]) == compacted.is_accepting(live[i]));
        REQUIRE(constraint.jump_forward(states[i]) == compacted.jump_forward(live[i]));
      }
      if (step % 25 == 24) {
        const std::size_t before = compacted.automaton().size();
        compacted.compact(live);
        smaller += compacted.automaton().size() < before;
        REQUIRE(compacted.automaton().size() <= live.size() + 1);
      }
    }
  }
  CHECK(smaller > 200);
}

TEST_CASE(
    "Constraint throws unknown_state for a state of another constraint or from before compact") {
  const VocabularyIndex cache{test::byte_vocabulary()};
  const Sample one = nested();
  Constraint constraint(cache, one.grammar.rooted(one.root));
  const Constraint copy = constraint;
  const auto held       = *constraint.advance_bytes(constraint.initial(), "[{\"a\":[");
  TokenMask mask(constraint.vocabulary_size());
  std::vector<Constraint::State> live;
  constraint.compact(live);
  CHECK(error_of([&] { return constraint.advance(held, '1'); }) == Errc::unknown_state);
  CHECK(error_of([&] { return constraint.advance(held, 256); }) == Errc::unknown_state);
  CHECK(error_of([&] { return constraint.advance_bytes(held, "1"); }) == Errc::unknown_state);
  CHECK(error_of([&] { return constraint.is_accepting(held); }) == Errc::unknown_state);
  CHECK(error_of([&] { return constraint.jump_forward(held); }) == Errc::unknown_state);
  CHECK(error_of([&] { return constraint.fill_mask(held, mask.words()), 0; }) ==
        Errc::unknown_state);
  live = {held};
  CHECK(error_of([&] { return constraint.compact(live), 0; }) == Errc::unknown_state);
  CHECK(copy.advance(held, '1'));
  CHECK(copy.advance(copy.initial(), '['));
  CHECK(constraint.advance(constraint.initial(), '['));
  // Reading the same text makes the state again.
  CHECK(constraint.advance_bytes(constraint.initial(), "[{\"a\":["));
  const auto finished = *copy.advance(*copy.advance_bytes(copy.initial(), "11"), 256);
  CHECK(constraint.is_finished(finished));
  CHECK(constraint.is_accepting(finished));
  const Constraint other(VocabularyIndex{test::byte_vocabulary()}, one.grammar.rooted(one.root));
  CHECK(error_of([&] { return other.advance(held, '1'); }) == Errc::unknown_state);
}

TEST_CASE("Constraint that is renewed or compacted in time keeps to its memory budget") {
  const Sample one  = nested();
  const auto empty  = Constraint(test::byte_vocabulary(), one.grammar.rooted(one.root)).bytes();
  const auto budget = empty + 60'000;
  const VocabularyIndex cache{test::byte_vocabulary(), budget};
  const Constraint constraint(cache, one.grammar.rooted(one.root));
  const auto write = [](const Constraint& text, Constraint::State& state, std::mt19937& random) {
    for (int step = 0; step < 200 && !text.is_finished(state); ++step) {
      state = *text.advance(state, choose(text, state, random));
    }
  };
  std::size_t max = 0, memories = 0, last = 0;
  for (unsigned seed = 1; seed <= 150; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    Constraint text = constraint;
    text.reset();
    auto state = text.initial();
    memories += state.memory != last;
    last = state.memory;
    write(text, state, random);
    max = std::max(max, text.bytes());
  }
  CHECK(memories > 2);  // memory was renewed
  CHECK(memories < 40);
  CHECK(max < 2 * budget);

  std::mt19937 random(5);
  Constraint endless = constraint;
  auto state         = endless.initial();
  max                = 0;
  for (int round = 0; round < 150; ++round) {
    write(endless, state, random);
    if (endless.is_finished(state)) state = endless.initial();
    max = std::max(max, endless.bytes());
    if (endless.bytes() > budget) endless.compact({&state, 1});
  }
  CHECK(max < 2 * budget);

  const Constraint unbounded = constraint;
  for (unsigned seed = 1; seed <= 600; ++seed) {
    std::mt19937 again(seed);
    auto at = unbounded.initial();
    write(unbounded, at, again);
  }
  CHECK(unbounded.bytes() > 2 * budget);  // without renewal the budget is exceeded
}

// A few automata are shared by all grammars and counted where they are used first, too.
TEST_CASE("Constraint::bytes with those of its nodes is what is kept for states and masks") {
  const auto run = [](const VocabularyIndex& index) {
    TokenMask mask(index.vocabulary().size());
    for (unsigned i = 0; i < 60; ++i) {
      const std::string n = std::to_string(i + 1);
      const Constraint constraint(
          index,
          Grammar::json_schema(R"({"type": "object", "properties": {"a": {"maxLength": )" + n +
                               R"(}, "b": {"items": {"type": "integer", "maximum": )" + n +
                               R"(}}, "c": {"enum": ["x)" + n + R"(", "yy"]}, "d": {"type":
                                      "string", "pattern": "^[a-f]{1,)" +
                               n + R"(}$"}}})"));
      std::mt19937 random(i);
      for (unsigned text = 0; text < 5; ++text) {
        auto state = constraint.initial();
        for (unsigned step = 0; step < 50 && !constraint.is_finished(state); ++step) {
          constraint.fill_mask(state, mask.words());
          std::vector<TokenId> allowed;
          mask.for_each([&](TokenId token) { allowed.push_back(token); });
          state = constraint.advance(state, allowed.at(random() % allowed.size())).value();
        }
      }
    }
  };
  const auto counted = [](const VocabularyIndex& index) {
    return index.states()->bytes() + index.states()->automaton().nodes().bytes();
  };
  run(VocabularyIndex(test::random_vocabulary(1)));  // makes what is kept for good
  const VocabularyIndex index(test::random_vocabulary(1));
  const std::size_t before = counted(index);
  const auto kept          = test::kept_memory([&] { run(index); });
  if (!kept) return;
  const auto bytes = static_cast<double>(counted(index) - before);
  CAPTURE(bytes / static_cast<double>(*kept));
  CHECK(bytes > 0.98 * static_cast<double>(*kept));
  CHECK(bytes < 1.08 * static_cast<double>(*kept));
}

TEST_CASE("Constraint::fill_mask over random grammars allows exactly what the automaton reads") {
  std::size_t states = 0, mixed = 0;
  for (unsigned seed = 1; seed <= test::cases(40); ++seed) {
    INFO("seed " << seed);
    const Vocabulary vocabulary = test::random_vocabulary(seed);
    Sample one = sample(seed), twin = sample(seed);
    const Constraint constraint(vocabulary, std::move(one.grammar).rooted(one.root));
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
        REQUIRE(constraint.jump_forward(state) == forced);
        const TokenId token = allowed[random() % allowed.size()];
        state               = *constraint.advance(state, token);
        if (vocabulary.is_end(token)) {
          REQUIRE(constraint.is_finished(state));
          constraint.fill_mask(state, mask.words());
          REQUIRE(mask.count() == 2);
          REQUIRE(mask.contains(0));
          REQUIRE(mask.contains(1));
          REQUIRE(constraint.jump_forward(state).empty());
          break;
        }
        for (const char c : vocabulary.bytes(token))
          referee_state = *referee.step(referee_state, static_cast<std::uint8_t>(c));
        text += vocabulary.bytes(token);
      }
    }
  }
  CHECK(states >= test::cases(1000));
  CHECK(mixed > 50);
}

TEST_CASE("Constraint::update_mask writes the mask of a state, whatever the row shows") {
  const Vocabulary vocabulary = test::random_vocabulary(3);
  const VocabularyIndex index(vocabulary);
  for (unsigned seed = 0; seed < 10; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const Sample one = sample(seed), two = sample(seed + 1);
    const Constraint constraint(index, one.grammar.rooted(one.root)),
        other(index, two.grammar.rooted(two.root));
    const Constraint foreign(VocabularyIndex(vocabulary), one.grammar.rooted(one.root));
    std::vector<Constraint::State> states{constraint.initial(), other.initial(), foreign.initial(),
                                          Constraint::State{}};
    TokenMask mask(vocabulary.size()), expected(vocabulary.size());
    std::vector<Constraint::State> own{constraint.initial()};
    while (own.size() < 30) {
      const auto from = own[random() % own.size()];
      if (constraint.is_finished(from)) continue;
      own.push_back(constraint.advance(from, choose(constraint, from, random)).value());
    }
    states.insert(states.end(), own.begin(), own.end());
    for (int i = 0; i < 60; ++i) {
      const auto shown = states[random() % states.size()], to = own[random() % own.size()];
      const Constraint& owner = shown == foreign.initial() ? foreign : constraint;
      if (shown != Constraint::State{}) owner.fill_mask(shown, mask.words());
      constraint.update_mask(shown, to, mask.words());
      constraint.fill_mask(to, expected.words());
      REQUIRE(mask == expected);
    }
    std::vector<std::uint32_t> few(3);
    CHECK_THROWS_AS(constraint.update_mask(own[0], own[0], few), Error);
  }
}
