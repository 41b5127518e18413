#include <algorithm>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <tooldecode/mask/token_classes.hpp>
#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/regex.hpp>
#include <tooldecode/text/string_lexeme.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>
#include <tooldecode/vocabulary/vocabulary_trie.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::mask;
using namespace tooldecode::core;
using namespace tooldecode::text;
using namespace tooldecode::vocabulary;

namespace {

Vocabulary random_vocabulary(unsigned seed, std::size_t longest) {
  std::mt19937 random(seed);
  const std::vector<std::string> parts{"a",        "Z",    "7",  " ",    "_",    "-",
                                       "+",        "\"",   "\\", "\xC3", "\xA9", "\xC3\xA9",
                                       "\xE2\x82", "\xAC", "\n", "\x7F"};
  std::vector<Vocabulary::Entry> entries;
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (std::size_t n = 1 + random() % longest; n > 0; --n) text += parts[random() % parts.size()];
    entries.push_back({text, TokenType::normal});
  }
  return Vocabulary(entries);
}

// The units that a text adds inside a lexeme; nothing where it does not stay inside.
std::optional<std::size_t> units_inside(const Dfa& dfa, Dfa::State state, std::string_view bytes) {
  std::size_t units = 0;
  for (const char c : bytes) {
    const Dfa::State next = dfa.next(state, static_cast<std::uint8_t>(c));
    if (next == Dfa::dead || dfa.closing(next)) return std::nullopt;
    units += dfa.boundary(state);
    state = next;
  }
  return units;
}

// Nearly all tokens are of letters alone.
Vocabulary mostly_letters() {
  std::mt19937 random(11);
  std::vector<Vocabulary::Entry> entries;
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (std::size_t n = 1 + random() % 8; n > 0; --n)
      text += static_cast<char>('a' + random() % 26);
    if (random() % 30 == 0) text += random() % 2 == 0 ? "\"}" : " ,";
    entries.push_back({text, TokenType::normal});
  }
  return Vocabulary(entries);
}

}  // namespace

TEST_CASE("TokenClasses has the characters that strings need not escape, without white space") {
  std::vector<Vocabulary::Entry> entries;
  std::vector<char32_t> characters;
  for (char32_t c = 0; c < 0x110000; c += c < 0x10000 ? 1 : 0x101) {
    if (c >= 0xD800 && c < 0xE000) continue;
    characters.push_back(c);
    entries.emplace_back();
    append_utf8(entries.back().bytes, c);
  }
  const Vocabulary vocabulary(entries);
  const ByteTrie trie = make_trie(vocabulary);
  const TokenClasses classes(trie, vocabulary.size());
  const TokenMask& all = classes.mask(TokenClasses::count - 1);
  const Dfa space      = string_lexeme(compile_pattern("^[\\s\\u0085]$"), ValueSyntax::json, '"');
  for (std::size_t t = 0; t < characters.size(); ++t) {
    const char32_t c = characters[t];
    Dfa::State state = 0;
    for (const char byte : '"' + entries[t].bytes + '"') {
      if (state != Dfa::dead) state = space.next(state, static_cast<std::uint8_t>(byte));
    }
    const bool is_plain = c >= 0x20 && c != '"' && c != '\\' && c != 0x7F;
    const bool expected = is_plain && (c == ' ' || state == Dfa::dead);
    if (all.contains(static_cast<TokenId>(t)) != expected) {
      FAIL("U+" << std::hex << static_cast<std::uint32_t>(c));
    }
  }
}

TEST_CASE(
    "TokenClasses::find gives a class of tokens that stay in the lexeme, except those apart and those "
    "that are too long") {
  const Vocabulary vocabulary = random_vocabulary(3, 10);
  const ByteTrie trie         = make_trie(vocabulary);
  const TokenClasses classes(trie, vocabulary.size());
  const auto characters = [&](TokenId token) {
    return decode_utf8(std::string(vocabulary.bytes(token))).size();
  };
  for (std::size_t k = 0; k < TokenClasses::count; ++k) CHECK(classes.size(k) > 50);
  std::size_t found = 0, apart = 0, of_short = 0;
  for (const char* pattern :
       {"^\\w+$", "^[a-z]+$", ".*", "^[^7]*$", "^.{0,3}$", "^(a|Z)*7", "^[^_]", "^[^Z]+$",
        "^(?!_a).+$", "^[\\w-]+$", "^[\\w -]+$", "^\\S+$", "^[ -~]+$", "^[!-~]+$",
        "^(\\S+\\s+){0,4}\\S+$", "^(\\S+ ){3}\\S*$", "^(\\w+-){0,4}\\w+$"}) {
    INFO(pattern);
    const Dfa dfa = string_lexeme(compile_pattern(pattern), ValueSyntax::json, '"');
    for (Dfa::State state = 0; state < dfa.size(); ++state) {
      const auto taken = classes.find(dfa, state);
      if (!taken) continue;
      const std::size_t k = taken->k;
      ++found;
      of_short += taken->most + 1 < classes.by_characters(k).size();
      std::set<TokenId> otherwise;
      classes.for_each_apart(*taken, [&](TokenId token) { otherwise.insert(token); });
      apart += otherwise.size();
      for (std::size_t t = 0; t < vocabulary.size(); ++t) {
        const auto token = static_cast<TokenId>(t);
        const auto first = static_cast<std::uint8_t>(vocabulary.bytes(token)[0]);
        INFO("token " << token);
        REQUIRE(otherwise.contains(token) ==
                (classes.mask(k).contains(token) && taken->apart.contains(first)));
        if (!classes.mask(k).contains(token) || otherwise.contains(token)) continue;
        if (characters(token) > taken->most) continue;
        const auto units = units_inside(dfa, state, vocabulary.bytes(token));
        REQUIRE(units);
        REQUIRE(*units == (taken->counts ? characters(token) : 0));
      }
    }
  }
  CHECK(found >= 15);
  CHECK(apart >= 100);
  CHECK(of_short >= 3);
  for (std::size_t k = 0; k < TokenClasses::count; ++k) {
    std::set<TokenId> listed;
    const auto counts = classes.by_characters(k);
    for (std::size_t n = 0; n < counts.size(); ++n) {
      std::size_t count = 0;
      classes.for_each(k, n, [&](TokenId token) {
        REQUIRE(classes.mask(k).contains(token));
        REQUIRE(characters(token) == n);
        listed.insert(token);
        ++count;
      });
      REQUIRE(count == counts[n]);
    }
    CHECK(listed.size() == classes.size(k));
    CHECK(classes.mask(k).count() == classes.size(k));
    for (const std::size_t most : {std::size_t{0}, std::size_t{2}, counts.size() - 1}) {
      const TokenClasses::Taken taken{.k = k, .most = most};
      const TokenMask& mask = classes.up_to(k, most);
      for (ByteTrie::NodeIndex node = 0; node < trie.size(); ++node) {
        const auto values = trie.values(node);
        bool others       = std::any_of(values.begin(), values.end(), [&](std::uint32_t token) {
          return !mask.contains(static_cast<TokenId>(token));
        });
        const auto [first, last] = trie.children(node);
        for (auto child = first; child < last; ++child) others |= classes.has_others(taken, child);
        if (classes.has_others(taken, node) != others) FAIL("node " << node << ", " << most);
      }
    }
  }
}

TEST_CASE(
    "TokenClasses::find_bounded gives the tokens of a class that a lexeme takes, and no other") {
  const Vocabulary vocabulary = random_vocabulary(3, 5);
  const ByteTrie trie         = make_trie(vocabulary);
  const TokenClasses classes(trie, vocabulary.size());
  std::size_t found = 0, taken = 0;
  for (const char* pattern : {"^[0-9A-Za-z]{4}-[0-9A-Za-z]{2}$", "^\\w{3}$", "^[\\w -]{2}!{3}$",
                              "^[a-z0-9]{3}$", "^[0-9A-Za-z]{2,4}$", "^(\\w{2}-)*$", "^\\w*$"}) {
    INFO(pattern);
    const Dfa dfa = string_lexeme(compile_pattern(pattern), ValueSyntax::json, '"');
    for (Dfa::State state = 0; state < dfa.size(); ++state) {
      const auto bounded = classes.find_bounded(dfa, state);
      if (!bounded) continue;
      ++found;
      const TokenMask& mask = classes.up_to(bounded->k, bounded->most);
      REQUIRE(mask.count() == classes.count_up_to(*bounded));
      for (std::size_t t = 0; t < vocabulary.size(); ++t) {
        const auto token = static_cast<TokenId>(t);
        if (!classes.mask(bounded->k).contains(token)) {
          REQUIRE_FALSE(mask.contains(token));
          continue;
        }
        const auto units = units_inside(dfa, state, vocabulary.bytes(token));
        INFO("state " << state << ", token " << token);
        REQUIRE(mask.contains(token) == units.has_value());
        if (!units) continue;
        ++taken;
        REQUIRE(*units == (bounded->counts ? vocabulary.bytes(token).size() : 0));
      }
    }
  }
  CHECK(found >= 10);
  CHECK(taken >= 1000);
}

TEST_CASE(
    "ClassWalk visits all tokens except those taken, whether the class lists its others or not") {
  const bool is_listed        = GENERATE(true, false);
  const Vocabulary vocabulary = is_listed ? mostly_letters() : random_vocabulary(3, 10);
  const ByteTrie trie         = make_trie(vocabulary);
  const TokenClasses classes(trie, vocabulary.size());
  for (const char* pattern : {".*", "^[^q]", "^\\w+$", "^[^,]*$", "^(\\S+ ){3}\\S*$"}) {
    INFO(pattern);
    const Dfa dfa    = string_lexeme(compile_pattern(pattern), ValueSyntax::json, '"');
    const auto taken = classes.find(dfa, dfa.next(0, '"'));
    REQUIRE(taken);
    CHECK((classes.others(*taken) != nullptr) == is_listed);
    const ClassWalk walk(trie, classes, taken);
    std::set<std::uint32_t> visited;
    std::vector<std::pair<ClassWalk::Place, std::string>> work{{walk.begin(0), ""}};
    while (!work.empty()) {
      const auto [place, path] = work.back();
      work.pop_back();
      walk.for_each_child(place, [&, &before = path](const ClassWalk::Child& child) {
        const std::string text = before + static_cast<char>(child.label);
        REQUIRE(trie.text(child.node) == text);
        REQUIRE(std::ranges::equal(walk.tokens(child), trie.values(child.node)));
        for (const std::uint32_t token : walk.tokens(child)) REQUIRE(visited.insert(token).second);
        if (!walk.below(child).empty()) work.emplace_back(walk.below(child), text);
      });
    }
    if (is_listed) CHECK(visited.size() < vocabulary.size() / 2);
    std::set<TokenId> apart;
    classes.for_each_apart(*taken, [&](TokenId token) { apart.insert(token); });
    for (std::size_t t = 0; t < vocabulary.size(); ++t) {
      const auto token    = static_cast<TokenId>(t);
      const bool is_taken = classes.up_to(taken->k, taken->most).contains(token);
      INFO("token " << token);
      if (!is_taken || apart.contains(token))
        REQUIRE(visited.contains(static_cast<std::uint32_t>(t)));
    }
  }
}
