#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <tooldecode/mask/shared_states.hpp>
#include <tooldecode/text/regex.hpp>
#include <tooldecode/text/string_lexeme.hpp>
#include <tooldecode/vocabulary/vocabulary_trie.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::vocabulary;
using namespace tooldecode::mask;
using namespace tooldecode::core;
using namespace tooldecode::grammar;
using namespace tooldecode::text;

namespace {

// Letters from `first` to 'z' between quotes; a new DFA on each call.
DfaPointer quoted(char first) {
  std::vector<Dfa::Row> rows(3);
  rows[0].next['"'] = 1;
  for (char c = first; c <= 'z'; ++c) rows[1].next[static_cast<std::uint8_t>(c)] = 1;
  rows[1].next['"'] = 2;
  rows[2].accepting = true;
  return std::make_shared<const Dfa>(rows);
}

struct Fixture {
  Vocabulary vocabulary;
  ByteTrie trie = make_trie(vocabulary);
  TokenClasses classes{trie, vocabulary.size()};
  SharedStates states{vocabulary, trie, classes};
  const LexemeSlice* slice(char first, Dfa::State state, ByteTrie::NodeIndex node) const {
    return states.slice(quoted(first), state, node);
  }

  static Vocabulary letters() {
    std::vector<Vocabulary::Entry> entries;
    for (char c = 'a'; c <= 'z'; ++c) {
      entries.push_back({std::string(1, c), TokenType::normal});
      entries.push_back({std::string(2, c), TokenType::normal});
    }
    entries.push_back({"\"", TokenType::normal});
    return Vocabulary(entries);
  }
  Fixture() : vocabulary(letters()) {}
  Automaton::State add(const std::string& text) {
    Grammar grammar;
    return states.automaton().add(grammar, grammar.literal(text));
  }
};

}  // namespace

TEST_CASE("SharedStates::slice is one for equal lexemes at the same state and trie node") {
  const Fixture f;
  const std::size_t before = f.states.bytes();
  const LexemeSlice* slice = f.states.slice(quoted('a'), 1, 0);
  const std::size_t after  = f.states.bytes();
  REQUIRE(slice != nullptr);
  CHECK(after > before);
  CHECK(f.states.slice(quoted('a'), 1, 0) == slice);
  CHECK(f.states.bytes() == after);
  const std::set<const LexemeSlice*> slices{nullptr, slice, f.slice('b', 1, 0), f.slice('a', 0, 0),
                                            f.slice('a', 1, f.trie.find_child(0, 'a'))};
  CHECK(slices.size() == 5);
  CHECK(f.states.bytes() > after);
  CHECK(slice->count() == 53);
  CHECK(f.slice('b', 1, 0)->count() == 51);
}

TEST_CASE("SharedStates::slice serves states from which each token does the same") {
  const Fixture f;
  const auto words = std::make_shared<const Dfa>(
      string_lexeme(compile_pattern("^(?:[a-z]+ ){0,20}[a-z]+$"), ValueSyntax::json, '"'));
  const auto after = [&](std::string_view text) {
    Dfa::State state = 0;
    for (const char c : text) state = words->next(state, static_cast<std::uint8_t>(c));
    return state;
  };
  std::string text = "\"a";
  std::vector<const LexemeSlice*> slices;
  for (int n = 1; n <= 21; ++n, text += " a")
    slices.push_back(f.states.slice(words, after(text), 0));
  REQUIRE(slices[0] != nullptr);
  for (std::size_t n = 1; n < 20; ++n) CHECK(slices[n] == slices[0]);
  CHECK(slices[0]->count() == 53);
  REQUIRE(slices[20] != nullptr);
  CHECK(slices[20] != slices[0]);  // no space may follow the last word
}

TEST_CASE(
    "SharedStates::slice is made at once for a few states of a lexeme, then when asked again") {
  const Fixture f;
  // A different letter in each state.
  const auto alphabet = std::make_shared<const Dfa>(
      string_lexeme(compile_pattern("^abcdefghijklmnopqrstuvwxyz$"), ValueSyntax::json, '"'));
  std::vector<Dfa::State> states{alphabet->next(0, '"')};
  for (char c = 'a'; c < 'y'; ++c) {
    states.push_back(alphabet->next(states.back(), static_cast<std::uint8_t>(c)));
  }
  std::size_t at_once = 0;
  std::vector<Dfa::State> refused;
  for (const Dfa::State state : states) {
    if (f.states.slice(alphabet, state, 0) != nullptr) {
      ++at_once;
    } else {
      refused.push_back(state);
    }
  }
  CAPTURE(at_once, refused.size());
  CHECK(at_once >= 8);
  REQUIRE(refused.size() > 10);
  // One request more is not enough, the third is.
  CHECK(f.states.slice(alphabet, refused.back(), 0) == nullptr);
  CHECK(f.states.slice(alphabet, refused.back(), 0) != nullptr);
}

TEST_CASE("SharedStates::mask is made on the first request and then kept") {
  Fixture f;
  int made        = 0;
  const auto with = [&](TokenId token) {
    return [&made, token] {
      ++made;
      return MaskEntry{.added = {token}};
    };
  };
  const auto a = f.add("a"), b = f.add("b");
  const std::size_t before = f.states.bytes();
  const MaskEntry& first   = f.states.mask(a, with(1));
  CHECK(f.states.bytes() > before);
  CHECK(&f.states.mask(a, with(2)) == &first);
  CHECK(first.added == std::vector<TokenId>{1});
  CHECK(&f.states.mask(b, with(3)) != &first);
  CHECK(made == 2);
  CHECK(f.add("a") == a);  // of another grammar
  CHECK(&f.states.mask(f.add("a"), with(4)) == &first);
  CHECK(made == 2);
}

TEST_CASE("SharedStates::find_past returns what was kept for the same slice and positions") {
  Fixture f;
  const LexemeSlice &slice = *f.slice('a', 1, 0), &other = *f.slice('b', 1, 0);
  const auto a = f.add("a"), b = f.add("b");
  const auto positions = [&](Automaton::State state) {
    return f.states.automaton().positions(state);
  };
  REQUIRE(!std::ranges::equal(positions(a), positions(b)));
  CHECK(f.states.find_past(slice, positions(a)) == nullptr);
  const std::size_t before = f.states.bytes();
  const PastTokens& kept   = f.states.keep_past(slice, positions(a), {{7, 2}, {9, 0}});
  CHECK(f.states.bytes() > before);
  CHECK(f.states.find_past(slice, positions(a)) == &kept);
  CHECK((kept.size() == 2 && kept[0].token == 7 && kept[0].units == 2 && kept[1].token == 9));
  CHECK(f.states.find_past(other, positions(a)) == nullptr);
  CHECK(f.states.find_past(slice, positions(b)) == nullptr);
  CHECK(f.states.keep_past(slice, positions(b), {}).empty());
  CHECK(f.states.find_past(slice, positions(b)) != nullptr);
}

TEST_CASE("SharedStates::find_past returns what was kept for the same slice and value") {
  Fixture f;
  const LexemeSlice &slice = *f.slice('a', 1, 0), &other = *f.slice('b', 1, 0);
  const StoredId value(3);
  CHECK(f.states.find_past(slice, value) == nullptr);
  const std::size_t before = f.states.bytes();
  const PastInValue& kept  = f.states.keep_past(slice, value, {.tokens = {{7, 2}}, .ends = {4, 5}});
  CHECK(f.states.bytes() > before);
  CHECK(f.states.find_past(slice, value) == &kept);
  CHECK((kept.tokens.size() == 1 && kept.tokens[0].token == 7 && kept.ends.size() == 2));
  CHECK(f.states.find_past(other, value) == nullptr);
  CHECK(f.states.find_past(slice, StoredId(4)) == nullptr);
}

TEST_CASE("SharedStates::tokens_below lists the tokens below a node in ascending order, once") {
  Fixture f;
  const std::size_t before = f.states.bytes();
  for (ByteTrie::NodeIndex node = 0; node < f.trie.size(); ++node) {
    const std::vector<TokenId>& below = f.states.tokens_below(node);
    REQUIRE(below.size() == f.trie.count_below(node));
    REQUIRE(std::ranges::is_sorted(below));
    REQUIRE(std::ranges::adjacent_find(below) == below.end());
    for (const TokenId token : below) {
      REQUIRE(f.vocabulary.grammar_bytes(token).starts_with(f.trie.text(node)));
    }
    REQUIRE(&f.states.tokens_below(node) == &below);
  }
  CHECK(f.states.bytes() > before);
}

TEST_CASE("SharedStates gives threads that ask at once the same masks and slices") {
  Fixture f;
  std::vector<Automaton::State> states;
  for (int i = 0; i < 300; ++i) states.push_back(f.add(std::to_string(i)));
  using Seen     = std::vector<std::pair<const MaskEntry*, const LexemeSlice*>>;
  const auto run = [&](Seen& seen) {
    for (std::size_t i = 0; i < states.size(); ++i) {
      const auto make = [&] { return MaskEntry{.added = {static_cast<TokenId>(i % 50)}}; };
      const char c    = static_cast<char>('a' + i % 26);
      seen.emplace_back(&f.states.mask(states[i], make), f.slice(c, 1, 0));
    }
  };
  Seen one, other;
  std::thread thread([&] { run(other); });
  run(one);
  thread.join();
  CHECK(one == other);
  for (std::size_t i = 0; i < states.size(); ++i) {
    REQUIRE(one[i].first->added == std::vector<TokenId>{static_cast<TokenId>(i % 50)});
  }
}

TEST_CASE("MaskEntry::fill writes the base without the removed tokens, and the added ones") {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    const std::size_t size = 1 + random() % 100;
    std::vector<bool> expected(size);
    TokenMask base(size), written(size);
    MaskEntry entry;
    for (std::size_t i = 0; i < size; ++i) {
      const auto token = static_cast<TokenId>(i);
      if (random() % 2 == 0) base.insert(token), expected[i] = round % 3 != 0;
      if (random() % 2 == 0) written.insert(token);  // what was there before is gone
    }
    if (round % 3 != 0) entry.base = &base;
    for (std::size_t i = 0; i < size; ++i) {
      const auto token = static_cast<TokenId>(i);
      if (random() % 5 == 0) entry.removed.push_back(token), expected[i] = false;
      if (random() % 5 == 0) entry.added.push_back(token), expected[i] = true;
    }
    entry.fill(written.words());
    for (std::size_t i = 0; i < size; ++i) {
      REQUIRE(written.contains(static_cast<TokenId>(i)) == expected[i]);
    }
  }
}
