#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/mask/mask_builder.hpp>
#include <tooldecode/text/regex.hpp>
#include <tooldecode/text/string_escape.hpp>
#include <tooldecode/text/string_lexeme.hpp>
#include <tooldecode/vocabulary/vocabulary_trie.hpp>

#include <support/cases.hpp>
#include <support/catch.hpp>
#include <support/random_vocabulary.hpp>

using namespace tooldecode;
using namespace tooldecode::vocabulary;
using namespace tooldecode::mask;
using namespace tooldecode::core;
using namespace tooldecode::grammar;
using namespace tooldecode::text;

namespace {

// A key that begins with one of these letters: long runs of characters, so that slices serve it.
DfaPointer key_from(char first, char last) {
  std::vector<Dfa::SparseRow> rows(4);
  rows[0].edges     = {{'"', '"', 1}};
  rows[1].edges     = {{static_cast<std::uint8_t>(first), static_cast<std::uint8_t>(last), 2}};
  rows[2].edges     = {{' ', '!', 2}, {'#', '[', 2}, {']', 0x7E, 2}, {'"', '"', 3}};
  rows[3].accepting = true;
  return std::make_shared<const Dfa>(rows);
}
// Digits between quotes: too small a lexeme for slices inside of it to matter.
DfaPointer short_key() {
  std::vector<Dfa::SparseRow> rows(4);
  rows[0].edges     = {{'"', '"', 1}};
  rows[1].edges     = {{'0', '9', 2}};
  rows[2].edges     = {{'0', '3', 2}, {'"', '"', 3}};
  rows[3].accepting = true;
  return std::make_shared<const Dfa>(rows);
}

struct Maker {
  std::mt19937& random;
  Grammar grammar;

  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); }

  // Keys that begin alike, and some that only look like one.
  std::string key() {
    std::string text;
    for (std::uint32_t n = below(4); n > 0; --n) text += "abcf1"[below(5)];
    return '"' + text + (below(12) == 0 ? "" : "\"");
  }
  // The same as strings, with characters that are escaped.
  std::string name() {
    std::string text;
    for (std::uint32_t n = below(4); n > 0; --n) {
      static const std::vector<std::string> characters{"a",        "b",  "c",  "1", "\xC3\xA9",
                                                       "\xC3\xAA", "\n", "\"", "\\"};
      text += characters[below(9)];
    }
    return StringEscape::quoted(text, ValueSyntax::json, '"');
  }
  NodeId value(int depth) {
    const std::uint32_t min = below(3);
    switch (depth == 0 ? below(3) : below(5)) {
      case 0:
        return grammar.lexeme(any_string(ValueSyntax::json, '"'));
      case 1:
        return grammar.lexeme(any_string(ValueSyntax::json, '"'), {min, min + below(3)});
      case 2:
        return grammar.choice({grammar.literal("12"), grammar.literal("[]")});
      default:
        return keyed_set(depth - 1);
    }
  }
  NodeId keyed_set(int depth) {
    const NodeId space = grammar.lexeme(any_whitespace(), {0, 2});
    const NodeId colon =
        grammar.sequence({grammar.literal(":"), below(2) ? space : grammar.empty()});
    KeyedSet set{
        .members = {}, .others = {}, .separator = grammar.sequence({grammar.literal(","), space})};
    if (below(2) == 0) set.strings = ValueSyntax::json;
    set.every_spelling = below(2) == 0;
    for (std::uint32_t n = below(5); n > 0; --n) {
      const NodeId what = below(8) == 0 ? grammar.nothing() : value(depth);
      set.members.push_back(
          {{set.strings ? name() : key()}, grammar.sequence({colon, what}), below(4) == 0});
    }
    const auto add = [&](const DfaPointer& lexeme) {
      set.others.push_back({lexeme, grammar.sequence({colon, value(depth)})});
    };
    const auto strings_of = [&](const char* pattern) {
      const TextDfa texts = compile_pattern(pattern);
      add(std::make_shared<const Dfa>(key_lexeme(texts, ValueSyntax::json, '"')));
    };
    if (set.strings) {
      switch (below(5)) {
        case 0:
        case 1:
          add(any_string(ValueSyntax::json, '"'));
          break;
        case 2:
          strings_of("^[a\u00e9\"]+$");
          strings_of("^[^a\u00e9\"]");
          break;
        case 3:
          strings_of("^(a|b\u00e9?|\n.*|1+)$");
          break;
        default:
          break;
      }
    }
    switch (set.strings ? 4 : below(5)) {
      case 0:
        add(any_string(ValueSyntax::json, '"'));
        break;
      case 1:
      case 2:
        add(key_from('a', 'e'));
        add(key_from('f', 'j'));
        if (below(2)) add(short_key());
        break;
      case 3:
        add(key_from('a', 'j'));
        break;
      default:
        break;
    }
    if (below(3) == 0) set.count.min = below(3);
    if (below(3) == 0) set.count.max = set.count.min + below(4);
    set.documented_order = below(4) == 0;
    return grammar.sequence({grammar.literal("{"), grammar.keyed_set(set), grammar.literal("}")});
  }
};

struct Judged {
  std::size_t states = 0, large = 0;
};

struct Fixture {
  explicit Fixture(unsigned seed) : Fixture(seed, test::random_vocabulary(seed % 4)) {}
  Fixture(unsigned seed, Vocabulary all) : random(seed), vocabulary(std::move(all)) {}

  std::mt19937 random;
  Vocabulary vocabulary;
  ByteTrie trie = make_trie(vocabulary);
  TokenClasses classes{trie, vocabulary.size()};
  SharedStates shared{vocabulary, trie, classes};

  // Walks at random and compares each mask with the tokens that the automaton reads one by one.
  void judge(const Grammar& grammar, NodeId root, Judged& judged, std::string_view before = {}) {
    const Automaton::State initial = shared.automaton().add(grammar, root);
    TokenMask mask(vocabulary.size());
    for (int walk = 0; walk < 2; ++walk) {
      auto state = shared.automaton().advance(initial, before).value();
      std::string text(before);
      for (int step = 0; step < 10; ++step) {
        INFO("text " << text);
        ++judged.states;
        // The mask comes first, because it must not need the states that single tokens create. It
        // is built again where slices are ready.
        const auto build = [&] {
          MaskBuilder(shared, vocabulary.size()).build(state).fill(mask.words());
        };
        build();
        const TokenMask first = mask;
        for (int times = 0; times < 3; ++times) build();
        REQUIRE(mask == first);
        const auto alike = shared.automaton().representative(state);
        MaskBuilder(shared, vocabulary.size()).build(alike).fill(mask.words());
        REQUIRE(mask == first);
        std::vector<TokenId> allowed;
        for (std::size_t i = 0; i < vocabulary.size(); ++i) {
          const auto token             = static_cast<TokenId>(i);
          const std::string_view bytes = vocabulary.grammar_bytes(token);
          const bool expected          = !bytes.empty() && shared.automaton().advance(state, bytes);
          if (mask.contains(token) != expected) {
            FAIL("token " << token << " '" << vocabulary.name(token) << "' wanted " << expected);
          }
          if (expected) allowed.push_back(token);
        }
        judged.large += allowed.size() > 100;
        if (allowed.empty()) {
          REQUIRE(shared.automaton().is_accepting(state));
          break;
        }
        const TokenId token = allowed[random() % allowed.size()];
        state               = *shared.automaton().advance(state, vocabulary.grammar_bytes(token));
        text += vocabulary.bytes(token);
      }
    }
  }
};

// Tokens that end an item and go on into the next ones.
Vocabulary vocabulary_of_items(unsigned seed) {
  std::mt19937 random(seed);
  const std::string bytes = "ab01\"\"\",,,:]}";
  std::vector<Vocabulary::Entry> entries{{"<end>", TokenType::control}};
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (std::size_t n = 1 + random() % 8; n > 0; --n)
      text.push_back(bytes[random() % bytes.size()]);
    entries.push_back({text, TokenType::normal});
  }
  for (int b = 0; b < 256; ++b)
    entries.push_back({std::string(1, static_cast<char>(b)), TokenType::byte});
  return Vocabulary(entries, {.end_tokens = {0}, .size = entries.size()});
}

// Strings that match one of the patterns, none of them twice.
KeyedSet items_that_do_not_repeat(Grammar& grammar, const std::vector<std::string>& patterns) {
  KeyedSet set{.members = {}, .others = {}, .separator = grammar.literal(",")};
  set.strings  = ValueSyntax::json;
  set.distinct = true;
  for (const std::string& pattern : patterns) {
    const TextDfa texts = compile_pattern(pattern);
    set.others.push_back({std::make_shared<const Dfa>(key_lexeme(texts, ValueSyntax::json, '"')),
                          set.others.empty() ? grammar.empty() : grammar.literal(":")});
  }
  return set;
}

}  // namespace

TEST_CASE("MaskBuilder over a keyed set allows exactly the tokens that the automaton reads") {
  Judged judged;
  for (unsigned seed = 1; seed <= test::cases(120); ++seed) {
    INFO("seed " << seed);
    Fixture f(seed);
    Maker maker{f.random, {}};
    const NodeId root = maker.keyed_set(2);
    if (!maker.grammar.satisfiable()[root.index()]) continue;
    f.judge(maker.grammar, root, judged);
  }
  CHECK(judged.states > test::cases(500));
  CHECK(judged.large > test::cases(100));
}

TEST_CASE("MaskBuilder in a key that may be unknown keeps what may follow the key") {
  Fixture f(1);
  Grammar grammar;
  KeyedSet set{.members = {}, .others = {}, .separator = grammar.literal(",")};
  const DfaPointer& key = any_string(ValueSyntax::json, '"');
  set.others.push_back({key, grammar.literal(":1")});
  set.members.push_back({{"\"abc\""}, grammar.literal(":2"), false});
  const Automaton::State initial = f.shared.automaton().add(
      grammar, grammar.sequence({grammar.literal("{"), grammar.keyed_set(set)}));
  const Dfa::State inside  = key->next(0, '"');
  const LexemeSlice& slice = f.shared.ready_slice(key, inside, 0);
  const auto kept          = [&](Automaton::State state) {
    Automaton::Cursor walk(f.shared.automaton());
    const auto frame = walk.in_other_key(f.shared.automaton().positions(state)[0], 0, inside);
    return f.shared.find_past(slice, walk.positions(walk.after({frame})));
  };
  const auto a = f.shared.automaton().advance(initial, "{\"a").value();
  const auto b = f.shared.automaton().advance(initial, "{\"ab").value();
  REQUIRE(kept(a) == nullptr);
  (void)MaskBuilder(f.shared, f.vocabulary.size()).build(a);
  const PastTokens* past = kept(a);
  REQUIRE(past != nullptr);
  CHECK(!past->empty());
  (void)MaskBuilder(f.shared, f.vocabulary.size()).build(b);
  CHECK(kept(b) == past);
}

TEST_CASE("MaskBuilder over items that may not repeat allows exactly what the automaton reads") {
  Judged judged;
  const std::string patterns[] = {"", "^[ab:,]?$", "^[^a]{0,2}$", "^(a|b|0,?)$", "^[ab01 ]+$"};
  for (unsigned seed = 1; seed <= test::cases(60); ++seed) {
    INFO("seed " << seed);
    Fixture f(seed, vocabulary_of_items(seed % 4));
    Grammar grammar;
    std::vector<std::string> some{patterns[f.random() % 3 == 0 ? f.random() % 5 : 0]};
    if (f.random() % 2 == 0) some.push_back(patterns[f.random() % 5]);
    KeyedSet set  = items_that_do_not_repeat(grammar, some);
    set.count.min = static_cast<std::uint32_t>(f.random() % 3);
    if (f.random() % 2)
      set.count.max = set.count.min + 1 + static_cast<std::uint32_t>(f.random() % 4);
    const NodeId root =
        grammar.sequence({grammar.literal("["), grammar.keyed_set(set), grammar.literal("]"),
                          grammar.literal(f.random() % 2 ? "}" : ",")});
    if (grammar.satisfiable()[root.index()]) f.judge(grammar, root, judged);
  }
  CHECK(judged.states > test::cases(300));
  CHECK(judged.large > test::cases(50));
}

TEST_CASE("MaskBuilder, all items but one written, allows none behind the last") {
  Fixture f(1, vocabulary_of_items(1));
  Grammar grammar;
  KeyedSet set  = items_that_do_not_repeat(grammar, {"^[0-9A-Za-v]$"});
  set.count.max = 58;
  const NodeId root =
      grammar.sequence({grammar.literal("["), grammar.keyed_set(set), grammar.literal("]")});
  for (const std::size_t left : {1U, 2U, 3U}) {
    const std::string characters = "01ba23456789ABCDEFGHIJKLMNOPQRSTUVWXYZcdefghijklmnopqrstuv";
    std::string before           = "[";
    for (const char c : characters.substr(left)) before += std::string("\"") + c + "\",";
    Judged judged;
    f.judge(grammar, root, judged, before);
    f.judge(grammar, root, judged, before + '"');
    CHECK(judged.states > 4);
  }
}

TEST_CASE(
    "MaskBuilder in strings of any pattern and length allows exactly what the automaton reads") {
  const std::string patterns[] = {"^[\\w .-]*$",
                                  "^\\S*$",
                                  "^[^ -~]*$",
                                  "^\\W*$",
                                  "^[\\w:]*$",
                                  "^[^a]*$",
                                  "^[^/]+/[^/]+$",
                                  "^_",
                                  "^[^_]",
                                  "^[a-z_][\\w-]*$",
                                  "\\W",
                                  "^(?!abc)",
                                  "^[^a]*a?$",
                                  "^.$",
                                  "^(ab|[^a])+$",
                                  "^x-|^[^x]",
                                  "^(.+)1(.+)$",
                                  "é",
                                  "^[0-9A-Za-z]{4}-[a-z]{2}$",
                                  "^\\w{3}!*$",
                                  "^[^ ]+( [^ ]+)*$",
                                  "^[^,]+(,[^,]{2,3})?$",
                                  "^([^]{2}|[^]{5})*$",
                                  "^([^,]{2},)*$",
                                  "^(\\S+\\s+){0,5}\\S+$",
                                  "^[^ ]+( [^ ]+){0,4}$",
                                  "^$|^(\\S+\\s){3,7}$",
                                  "^([^1]*1){0,6}[^1]*$",
                                  "^(\\S+\\s+){0,40}\\S+$",
                                  "^([a-j]{2},){4,40}$",
                                  "^(é?[0-9]){0,70}[a-j]$"};
  Judged judged;
  for (unsigned seed = 1; seed <= 40; ++seed) {
    Fixture f(seed);
    for (int i = 0; i < 4; ++i) {
      const std::string& pattern = patterns[f.random() % std::size(patterns)];
      Occurrences length;
      if (f.random() % 3) {
        length.min = static_cast<std::uint32_t>(f.random() % 5);
        length.max = length.min + static_cast<std::uint32_t>(f.random() % 20);
      }
      INFO("seed " << seed << ", pattern " << pattern << ", " << length.min << " to "
                   << length.max);
      Grammar grammar;
      const NodeId text = grammar.lexeme(compile_pattern(pattern), length, [](const TextDfa& some) {
        return std::make_shared<const Dfa>(string_lexeme(some, ValueSyntax::json, '"'));
      });
      const NodeId root = grammar.sequence({text, grammar.literal(f.random() % 2 ? "}" : ", 1")});
      if (!grammar.satisfiable()[root.index()]) continue;
      f.judge(grammar, root, judged);
    }
  }
  CHECK(judged.states > 500);
  CHECK(judged.large > 100);
}

TEST_CASE("MaskBuilder where white space may stand allows exactly what the automaton reads") {
  Judged judged;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    Fixture f(seed);
    Grammar grammar;
    const auto space = [&] {
      const auto min = static_cast<std::uint32_t>(f.random() % 8 == 0);
      const auto max = min + static_cast<std::uint32_t>(f.random() % 4);
      return grammar.lexeme(any_whitespace(), {min, max});
    };
    // White space that follows white space, and what may begin with it.
    const auto item = [&]() -> NodeId {
      switch (f.random() % 6) {
        case 0:
          return grammar.empty();
        case 1:
          return grammar.literal(" a");
        case 2:
          return grammar.literal("\"ab\"");
        case 3:
          return space();
        case 4:
          return grammar.lexeme(std::make_shared<const Dfa>(
              string_lexeme(compile_pattern("^[a-f]*$"), ValueSyntax::json, '"')));
        default:
          return grammar.literal(std::to_string(f.random() % 100));
      }
    };
    std::vector<NodeId> parts;
    for (int n = 0; n < 6; ++n) {
      parts.push_back(space());
      parts.push_back(f.random() % 3 == 0 ? grammar.choice({item(), item()}) : item());
    }
    parts.push_back(grammar.literal("]"));
    const NodeId root = grammar.sequence(parts);
    f.judge(grammar, root, judged);
  }
  CHECK(judged.states > 500);
}

TEST_CASE("MaskBuilder in counted text without a closing mark allows tokens that reach past it") {
  const char* patterns[] = {
      "^[^<]*$",           "^[\\w .-]*$", "^[^]*$", "^\\S*$", "^[^b-d]+([b-d][^b-d]+)*$",
      "^([^]{2}|[^]{5})*$"};
  Judged judged;
  for (unsigned seed = 1; seed <= test::cases(40); ++seed) {
    Fixture f(seed);
    for (int i = 0; i < 3; ++i) {
      const char* pattern = patterns[f.random() % std::size(patterns)];
      Occurrences length{static_cast<std::uint32_t>(f.random() % 3), 0};
      length.max = length.min + static_cast<std::uint32_t>(f.random() % 9);
      INFO("seed " << seed << ", pattern " << pattern << ", " << length.min << " to "
                   << length.max);
      Grammar grammar;
      const NodeId text = grammar.lexeme(compile_pattern(pattern), length, [](const TextDfa& some) {
        return std::make_shared<const Dfa>(utf8_lexeme(some));
      });
      const NodeId end =
          grammar.literal(std::vector<std::string>{"a", "\n<", "1b", ""}[f.random() % 4]);
      const NodeId root = grammar.sequence({text, end, grammar.optional(grammar.literal("12"))});
      if (!grammar.satisfiable()[root.index()]) continue;
      f.judge(grammar, root, judged);
    }
  }
  CHECK(judged.states > test::cases(500));
  CHECK(judged.large > test::cases(100));
}

TEST_CASE("MaskBuilder in a pattern that counts words allows exactly what the automaton reads") {
  const char* patterns[] = {"^(?:\\S+\\s+){0,3}\\S+$", "^$|(^(?:\\S+\\s+){0,9}\\S+$)",
                            "^(?:[^ ]* ){0,30}[^ ]*$", "^(?:[^,b]*[,b]){2,12}[a-z]*$"};
  Judged judged;
  for (unsigned seed = 1; seed <= test::cases(24); ++seed) {
    Fixture f(seed);
    for (const char* pattern : patterns) {
      const Occurrences length{0, f.random() % 2 == 0 ? Occurrences::unbounded : 40U};
      INFO("seed " << seed << ", pattern " << pattern << ", at most " << length.max);
      Grammar grammar;
      const NodeId text = grammar.lexeme(compile_pattern(pattern), length, [](const TextDfa& some) {
        return std::make_shared<const Dfa>(string_lexeme(some, ValueSyntax::json, '"'));
      });
      f.judge(grammar, grammar.sequence({text, grammar.literal(",")}), judged, "\"a");
    }
  }
  CHECK(judged.states > test::cases(1000));
  CHECK(judged.large > test::cases(500));
}

TEST_CASE("MaskBuilder allows a token that ends counted text where it may not stay inside") {
  // No text of three characters matches: a token of three must end the text after two of them.
  Judged judged;
  for (unsigned seed = 0; seed < 4; ++seed) {
    for (const char* end : {"a", "1b", "7"}) {
      INFO("seed " << seed << ", end " << end);
      Fixture f(seed);
      Grammar grammar;
      const NodeId text = grammar.lexeme(
          compile_pattern("^([^]{2}|[^]{5})*$"), {2, 3},
          [](const TextDfa& some) { return std::make_shared<const Dfa>(utf8_lexeme(some)); });
      f.judge(grammar, grammar.sequence({text, grammar.literal(end)}), judged);
    }
  }
  CHECK(judged.states > 20);
}
