#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/constraint/completions.hpp>
#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/ebnf/grammar_text.hpp>
#include <tooldecode/mask/joint_walk.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>

#include <support/byte_vocabulary.hpp>
#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::mask;
using namespace tooldecode::core;
using namespace tooldecode::grammar;

namespace {

// Runs of letters of every length up to twelve, as tokenizers have, and single bytes.
Vocabulary words() {
  std::mt19937 random(3);
  std::set<std::string> texts;
  while (texts.size() < 3000) {
    std::string text;
    for (std::size_t n = 2 + random() % 11; n > 0; --n) text += "abcdeab "[random() % 8];
    texts.insert(text);
  }
  std::vector<Vocabulary::Entry> entries;
  for (const std::string& text : texts) entries.push_back({text});
  return test::byte_vocabulary(entries);
}

// A repetition whose items can be cut out of a text in many ways, `n` at most.
struct Family {
  std::string name;
  std::string (*grammar)(std::uint32_t n);
  std::string text;
};
std::string bounds(std::uint32_t min, std::uint32_t max) {
  return '{' + std::to_string(min) + ',' + std::to_string(max) + '}';
}
const std::vector<Family> families{
    {"letters", [](std::uint32_t n) { return "root ::= ([a-z]+)" + bounds(0, n); }, "abcdabcd"},
    {"words", [](std::uint32_t n) { return "root ::= ([a-z]+ \" \"?)" + bounds(1, n); },
     "ab cd abcd"},
    {"spaces around",
     [](std::uint32_t n) {
       return "root ::= item" + bounds(0, n) +
              "\nitem ::= ws word? ws\nws ::= [ \\t]*\nword ::= [a-z]+";
     },
     "  ab   cd "},
    {"nullable items", [](std::uint32_t n) { return "root ::= ([^x]*)" + bounds(0, n); }, "abc d"},
    {"at least half", [](std::uint32_t n) { return "root ::= ([a-z]+)" + bounds(n / 2, n); },
     "abcdabcd"},
    {"long items",
     [](std::uint32_t n) { return "root ::= ([a-z]" + bounds(2, n) + ")" + bounds(n / 2, n); },
     "abcdabcdabcdabcd"},
    {"levels",
     [](std::uint32_t n) {
       std::string level = "[a-z]+";
       for (std::uint32_t i = 0; i < n / 32; ++i) level = "(" + level + ")" + bounds(0, 99);
       return "root ::= " + level;
     },
     "abcdabcd"},
    {"levels with a least number",
     [](std::uint32_t n) {
       std::string level = "[a-z]+ \"b\"?";
       for (std::uint32_t i = 0; i < 3; ++i) level = "(" + level + ")" + bounds(n / 2, n);
       return "root ::= " + level;
     },
     "abcdabcd"},
    {"two runs",
     [](std::uint32_t n) {
       return "root ::= ([a-z]+ \" \"?)" + bounds(0, n) + " ([a-z]+ \" \"?)" + bounds(0, n);
     },
     "ab cd"},
    {"binary trees",
     [](std::uint32_t) { return std::string("root ::= s\ns ::= s s | [a-c] | [b-e] s"); }, "abcab"},
};

std::vector<bool> by_walk(const Constraint& constraint, const ByteTrie& trie,
                          Constraint::State state) {
  std::vector<bool> allowed(constraint.vocabulary_size());
  Automaton::Cursor walk(constraint.automaton());
  JointWalk joint(walk, trie);
  joint(walk.begin(state.id), [&](std::span<const std::uint32_t> tokens) {
    for (const std::uint32_t token : tokens) allowed[token] = true;
  });
  return allowed;
}

}  // namespace

TEST_CASE(
    "JointWalk and fill_mask over ambiguous grammars allow exactly the tokens that advance takes") {
  const VocabularyIndex cache{words()};
  const std::size_t V = cache.vocabulary().size();
  for (const Family& family : families) {
    const Constraint constraint(cache, Grammar::ebnf(family.grammar(24)));
    auto state = constraint.initial();
    for (std::size_t i = 0; i <= family.text.size(); ++i) {
      CAPTURE(family.name, family.text.substr(0, i));
      const auto walked = by_walk(constraint, cache.trie(), state);
      TokenMask mask(V);
      constraint.fill_mask(state, mask.words());
      std::size_t wrong = 0;
      for (TokenId token = 0; token < static_cast<TokenId>(V); ++token) {
        const bool is_end = cache.vocabulary().is_end(token);
        const bool taken  = constraint.advance(state, token).has_value();
        wrong += taken != mask.contains(token);
        wrong += !is_end && taken != walked[static_cast<std::size_t>(token)];
      }
      CHECK(wrong == 0);
      if (i == family.text.size()) break;
      const auto next = constraint.advance_bytes(state, std::string_view(family.text).substr(i, 1));
      REQUIRE(next);
      state = *next;
    }
  }
}

TEST_CASE("Constraint::fill_mask takes work at most quadratic in a repetition's bound") {
  const VocabularyIndex cache{words()};
  const std::size_t V = cache.vocabulary().size();
  for (const Family& family : families) {
    std::vector<std::uint64_t> work;
    for (const std::uint32_t n : {64U, 128U, 256U}) {
      const Constraint constraint(cache, Grammar::ebnf(family.grammar(n)));
      std::uint64_t most = 0;
      auto state         = constraint.initial();
      TokenMask mask(V);
      for (std::size_t i = 0; i <= family.text.size(); ++i) {
        const std::uint64_t before = Automaton::Cursor(constraint.automaton()).work();
        constraint.fill_mask(state, mask.words());
        most = std::max(most, Automaton::Cursor(constraint.automaton()).work() - before);
        if (i < family.text.size()) {
          state = *constraint.advance_bytes(state, std::string_view(family.text).substr(i, 1));
        }
      }
      work.push_back(most);
    }
    CAPTURE(family.name, work);
    CHECK(work[0] < 400'000);
    CHECK(work[1] <= 4 * work[0] + 1000);
    CHECK(work[2] <= 4 * work[1] + 1000);
  }
}

TEST_CASE("Constraint over an ambiguous repetition has few states however long the text is") {
  const VocabularyIndex cache{words()};
  const Constraint constraint(cache, Grammar::ebnf("root ::= ([a-z]+){0,64}"));
  auto state = constraint.initial();
  for (int i = 0; i < 10'000; ++i) state = *constraint.advance_bytes(state, "a");
  CHECK(constraint.is_accepting(state));
  CHECK(constraint.automaton().size() < 10);
}

namespace {

// The error that something throws, "none" where it throws none.
template <class Do>
std::string thrown_by(Do run) {
  try {
    run();
  } catch (const Error& error) {
    return std::string(name(error.code())) + ": " + error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("Constraint::fill_mask beyond mask_limits throws limit_exceeded and changes nothing") {
  const std::string grammar   = "root ::= \"x\" ([a-z]+ \" \"?){200,400}";
  const Vocabulary vocabulary = words();
  const Constraint whole(VocabularyIndex(vocabulary), Grammar::ebnf(grammar));
  const Constraint little(
      VocabularyIndex(vocabulary, VocabularyIndex::default_budget, {.steps = 8'000}),
      Grammar::ebnf(grammar));

  const auto begin = little.initial();
  TokenMask first(vocabulary.size()), first_whole(vocabulary.size());
  little.fill_mask(begin, first.words());
  whole.fill_mask(whole.initial(), first_whole.words());
  CHECK(first == first_whole);

  const auto inside = little.advance_bytes(begin, "xab");
  REQUIRE(inside);
  for (int again = 0; again < 2; ++again) {
    INFO("time " << again);
    TokenMask mask(vocabulary.size());
    CHECK(
        thrown_by([&] { little.fill_mask(*inside, mask.words()); }) ==
        "limit_exceeded: building this takes more than 8000 steps; the option mask_limits.steps raises that");
  }
  // With room for it, the same states have the mask that they have elsewhere.
  const BuildBudget room;
  TokenMask late(vocabulary.size()), late_whole(vocabulary.size());
  little.fill_mask(*inside, late.words());
  whole.fill_mask(*whole.advance_bytes(whole.initial(), "xab"), late_whole.words());
  CHECK(late == late_whole);
}

TEST_CASE(
    "Constraint::fill_mask and Completions::narrow stop when the thread's budget is cancelled") {
  const Vocabulary vocabulary = words();
  const Constraint constraint(VocabularyIndex(vocabulary),
                              Grammar::ebnf("root ::= \"x\" ([a-z]+ \" \"?){200,400}"));
  const auto inside = *constraint.advance_bytes(constraint.initial(), "xab");
  Completions completions(constraint);
  std::atomic<bool> cancelled = true;
  TokenMask mask(vocabulary.size());
  {
    const BuildBudget budget({.cancelled = &cancelled});
    CHECK(thrown_by([&] { constraint.fill_mask(inside, mask.words()); }) ==
          "cancelled: building this was cancelled");
    CHECK(thrown_by([&] { completions.narrow(inside, 300, mask.words()); }) ==
          "cancelled: building this was cancelled");
  }
  constraint.fill_mask(inside, mask.words());
  TokenMask narrowed = mask, expected = mask;
  completions.narrow(inside, 300, narrowed.words());
  Completions(constraint).narrow(inside, 300, expected.words());
  CHECK(narrowed == expected);
}
