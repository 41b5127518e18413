#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/constraint/completions.hpp>
#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/left_recursion.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/schema/json_schema.hpp>

#include <support/byte_vocabulary.hpp>
#include <support/cases.hpp>
#include <support/catch.hpp>
#include <support/random_grammar.hpp>
#include <support/random_tools.hpp>

using namespace tooldecode;

namespace {

// Whether a state can end within so many tokens, by trying every token of the vocabulary.
class BruteForce {
 public:
  explicit BruteForce(const Constraint& constraint) : constraint_(constraint) {}

  bool can_end(Constraint::State state, std::size_t left) {
    if (constraint_.is_finished(state)) return true;
    if (left == 0) return false;
    const auto [at, is_new] = known_.try_emplace({state.id, left}, false);
    if (!is_new) return at->second;
    bool can = false;
    for (std::size_t t = 0; t < constraint_.vocabulary_size() && !can; ++t) {
      const auto next = constraint_.advance(state, static_cast<TokenId>(t));
      can             = next && can_end(*next, left - 1);
    }
    known_[{state.id, left}] = can;
    return can;
  }
  TokenMask mask(Constraint::State state, std::size_t left) {
    TokenMask result(constraint_.vocabulary_size());
    for (std::size_t t = 0; t < constraint_.vocabulary_size(); ++t) {
      const auto next = constraint_.advance(state, static_cast<TokenId>(t));
      if (next && can_end(*next, left - 1)) result.insert(static_cast<TokenId>(t));
    }
    return result;
  }

 private:
  const Constraint& constraint_;
  std::map<std::pair<std::uint32_t, std::size_t>, bool> known_;
};

// Tokens of a grammar's letters; some letters may be missing, and the first token ends.
Vocabulary random_tokens(std::mt19937& random) {
  const std::string& letters = test::RandomGrammar::alphabet;
  std::vector<Vocabulary::Entry> entries{{"<end>", TokenType::control}};
  for (const char letter : letters) {
    if (random() % 8 != 0) entries.push_back({std::string(1, letter)});
  }
  for (unsigned i = 0; i < 8; ++i) {
    std::string text;
    for (auto n = 2 + random() % 3; n > 0; --n) text += letters[random() % letters.size()];
    entries.push_back({text});
  }
  return Vocabulary(entries, {.end_tokens = {0}});
}

TokenMask plain_mask(const Constraint& constraint, Constraint::State state) {
  TokenMask mask(constraint.vocabulary_size());
  constraint.fill_mask(state, mask.words());
  return mask;
}

std::vector<TokenId> list_of(const TokenMask& mask) {
  std::vector<TokenId> tokens;
  mask.for_each([&](TokenId token) { tokens.push_back(token); });
  return tokens;
}

// All answers of so many tokens, the end token included; `mask_of(state, left)` gives the tokens.
template <class MaskOf>
void list_answers(const Constraint& constraint, Constraint::State state, std::size_t left,
                  MaskOf mask_of, std::vector<TokenId>& path,
                  std::set<std::vector<TokenId>>& answers) {
  if (constraint.is_finished(state)) {
    answers.insert(path);
    return;
  }
  if (left == 0) return;
  for (const TokenId token : list_of(mask_of(state, left))) {
    path.push_back(token);
    list_answers(constraint, *constraint.advance(state, token), left - 1, mask_of, path, answers);
    path.pop_back();
  }
}

}  // namespace

TEST_CASE("Completions::narrow over random grammars leaves what trying every continuation gives") {
  std::size_t masks = 0, narrowed = 0, forced = 0;
  for (unsigned seed = 1; seed <= test::cases(1200); ++seed) {
    INFO("seed " << seed);
    test::RandomGrammar maker{std::mt19937(seed)};
    const NodeId root = maker.node(3);
    if (!maker.grammar.satisfiable()[root.index()] || grammar::is_left_recursive(maker.grammar)) {
      continue;
    }
    const Constraint constraint(random_tokens(maker.random), maker.grammar.rooted(root));
    BruteForce slow(constraint);
    constexpr std::size_t most = 9;
    std::size_t least          = 1;
    while (least <= most && !slow.can_end(constraint.initial(), least)) ++least;
    Completions completions(constraint);
    const auto shortest = completions.shortest(constraint.initial());
    if (least > most) {
      CHECK((!shortest || *shortest > most));
      continue;
    }
    REQUIRE(shortest == least);
    for (std::size_t budget = least; budget < least + 4; ++budget) {
      auto state = constraint.initial();
      for (std::size_t left = budget; !constraint.is_finished(state); --left) {
        INFO(left << " tokens left of " << budget);
        REQUIRE(left > 0);
        TokenMask mask        = plain_mask(constraint, state);
        const TokenMask plain = mask;
        completions.narrow(state, left, mask.words());
        REQUIRE(list_of(mask) == list_of(slow.mask(state, left)));
        REQUIRE(mask.count() > 0);
        ++masks;
        narrowed += mask != plain;
        forced += mask.count() == 1 && mask != plain;
        const auto tokens = list_of(mask);
        state             = *constraint.advance(state, tokens[maker.random() % tokens.size()]);
      }
    }
    CHECK(completions.counts().searches_given_up == 0);
  }
  INFO(masks << " masks, " << narrowed << " narrowed, " << forced << " to one token");
  CHECK(masks > test::cases(8000));
  CHECK(narrowed > test::cases(3000));
  CHECK(forced > test::cases(500));
}

TEST_CASE("Completions::narrow under a token budget leaves exactly the answers that fit it") {
  std::size_t all = 0;
  for (unsigned seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    test::RandomGrammar maker{std::mt19937(seed)};
    const NodeId root = maker.node(2);
    if (!maker.grammar.satisfiable()[root.index()] || grammar::is_left_recursive(maker.grammar)) {
      continue;
    }
    const Constraint constraint(random_tokens(maker.random), maker.grammar.rooted(root));
    for (std::size_t budget = 1; budget <= 4; ++budget) {
      Completions completions(constraint);
      std::vector<TokenId> path;
      std::set<std::vector<TokenId>> expected, found;
      list_answers(
          constraint, constraint.initial(), budget,
          [&](Constraint::State state, std::size_t) { return plain_mask(constraint, state); }, path,
          expected);
      list_answers(
          constraint, constraint.initial(), budget,
          [&](Constraint::State state, std::size_t left) {
            TokenMask mask = plain_mask(constraint, state);
            completions.narrow(state, left, mask.words());
            return mask;
          },
          path, found);
      REQUIRE(found == expected);
      all += found.size();
      // Each admitted token begins an answer.
      TokenMask first = plain_mask(constraint, constraint.initial());
      completions.narrow(constraint.initial(), budget, first.words());
      std::set<TokenId> begun;
      for (const auto& answer : expected) begun.insert(answer.front());
      REQUIRE(list_of(first) == std::vector<TokenId>(begun.begin(), begun.end()));
    }
  }
  CHECK(all > 1000);
}

TEST_CASE("Completions with few steps counts the searches it gives up, and the text still ends") {
  std::size_t given_up = 0;
  for (unsigned seed = 1; seed <= 400; ++seed) {
    INFO("seed " << seed);
    test::RandomGrammar maker{std::mt19937(seed)};
    const NodeId root = maker.node(3);
    if (!maker.grammar.satisfiable()[root.index()] || grammar::is_left_recursive(maker.grammar)) {
      continue;
    }
    const Constraint constraint(random_tokens(maker.random), maker.grammar.rooted(root));
    BruteForce slow(constraint);
    for (const std::uint64_t steps : {1U, 10U}) {
      Completions completions(constraint, {.max_steps = steps});
      const auto least = completions.shortest(constraint.initial(), 1000);
      if (!least) continue;
      for (std::size_t budget = *least; budget < *least + 3; ++budget) {
        auto state = constraint.initial();
        for (std::size_t left = budget; !constraint.is_finished(state); --left) {
          REQUIRE(left > 0);
          TokenMask mask = plain_mask(constraint, state);
          completions.narrow(state, left, mask.words());
          const auto tokens = list_of(mask);
          REQUIRE(tokens.size() > 0);
          state = *constraint.advance(state, tokens[maker.random() % tokens.size()]);
        }
      }
      given_up += completions.counts().searches_given_up;
    }
  }
  CHECK(given_up > 20);
}

TEST_CASE("Completions::narrow far from the limit searches nothing and leaves the mask unchanged") {
  const VocabularyIndex cache(test::call_vocabulary());
  std::mt19937 random(5);
  for (int round = 0; round < 40; ++round) {
    const ToolSet tools = test::random_tools(random);
    const ToolCallFSM calls(cache, tools, PythonCall{}, {.choice = ToolChoice::required});
    Completions completions(calls.constraint());
    auto state = calls.initial();
    for (std::size_t left = 1000; !calls.is_finished(state) && left > 900; --left) {
      TokenMask mask        = plain_mask(calls.constraint(), state);
      const TokenMask plain = mask;
      completions.narrow(state, left, mask.words());
      REQUIRE(mask == plain);
      const auto tokens = list_of(mask);
      state             = *calls.advance(state, tokens[random() % tokens.size()]);
    }
    CHECK(completions.counts().walks == 0);
    CHECK(completions.counts().searches == 0);
  }
}

TEST_CASE("Completions::narrow near the limit keeps enough tokens to close the open JSON values") {
  const VocabularyIndex cache(test::byte_vocabulary());
  const auto value = Constraint(cache, Grammar::json_schema("{}", {.whitespace = 0}));
  Completions completions(value);
  CHECK(completions.shortest(value.initial()) == 2);  // a digit and the end
  const auto allowed = [&](std::string_view before, std::size_t left) {
    const auto state = *value.advance_bytes(value.initial(), before);
    TokenMask mask   = plain_mask(value, state);
    completions.narrow(state, left, mask.words());
    std::string bytes;
    mask.for_each([&](TokenId token) { bytes += token == 256 ? '$' : static_cast<char>(token); });
    return bytes;
  };
  CHECK(allowed("[[[", 4) == "]");
  CHECK(allowed("[[[", 5) == "0123456789]");
  CHECK(allowed("[[[", 6) == "\"-0123456789[]{");
  CHECK(allowed("[[[\"", 5) == "\"");
  CHECK(allowed("12", 1) == "$");
  CHECK(allowed("12", 2) == "0123456789$");
  CHECK(allowed("{\"a\"", 5) == ":");
  CHECK(allowed("{\"a\": t", 5) == "r");
}

TEST_CASE("Completions::shortest does not use banned tokens") {
  const VocabularyIndex cache(test::byte_vocabulary());
  const Constraint texts(cache, Grammar::choice({"a", "bcd"}));
  CHECK(Completions(texts).shortest(texts.initial()) == 2);
  CHECK(Completions(texts, {.banned = {'a'}}).shortest(texts.initial()) == 4);
  CHECK_FALSE(Completions(texts, {.banned = {'a', 'c'}}).shortest(texts.initial()));
  CHECK_FALSE(Completions(texts, {.banned = {256}}).shortest(texts.initial()));
  CHECK(Completions(texts, {.banned = {1000, -1}}).shortest(texts.initial()) == 2);
}

TEST_CASE("Completions::shortest without a limit finds the fewest tokens, not the shortest text") {
  // "ab" takes two tokens, "cdefg" one.
  const VocabularyIndex cache(
      test::byte_vocabulary({{"cdefg", TokenType::normal}, {"cd", TokenType::normal}}));
  const Constraint texts(cache, Grammar::choice({"ab", "cdefg"}));
  Completions completions(texts);
  CHECK(completions.shortest(texts.initial(), 3) == 3);
  CHECK(completions.counts().searches == 0);
  CHECK(completions.shortest(texts.initial()) == 2);
  CHECK(completions.counts().searches == 1);
  TokenMask mask = plain_mask(texts, texts.initial());
  completions.narrow(texts.initial(), 2, mask.words());
  CHECK(list_of(mask) == std::vector<TokenId>{257});
}
