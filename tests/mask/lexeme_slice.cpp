#include <algorithm>
#include <map>
#include <random>
#include <string>

#include <tooldecode/mask/lexeme_slice.hpp>
#include <tooldecode/vocabulary/vocabulary_trie.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::vocabulary;
using namespace tooldecode::mask;
using namespace tooldecode::core;
using namespace tooldecode::text;

TEST_CASE("LexemeSlice sorts every token as stepping through the lexeme does") {
  // "..." with escapes of two bytes; characters are units.
  std::vector<Dfa::Row> rows(4);
  rows[0].next['"'] = 1;
  for (unsigned b = 32; b < 128; ++b) rows[1].next[b] = rows[2].next[b] = 1;
  rows[1].next['\\'] = 2;
  rows[1].next['"']  = 3;
  rows[1].boundary   = true;
  rows[3].accepting = rows[3].closing = true;
  const Dfa dfa(rows);
  std::mt19937 random(41);
  std::vector<Vocabulary::Entry> entries;
  for (int i = 0; i < 2000; ++i) {
    std::string bytes;
    for (std::size_t n = 1 + random() % 6; n > 0; --n) bytes.push_back("ab\"\\,}\n"[random() % 7]);
    entries.push_back({bytes, TokenType::normal});
  }
  const Vocabulary vocabulary(entries);
  const ByteTrie trie = make_trie(vocabulary);
  const TokenClasses classes(trie, vocabulary.size());
  for (const Dfa::State start : {Dfa::State{1}, Dfa::State{2}}) {
    const LexemeSlice slice(vocabulary, trie, classes, dfa, start, 0);
    std::map<std::string, int> closing, past;
    for (const auto& token : slice.closing())
      ++closing[std::to_string(token.token) + '/' + std::to_string(token.units)];
    const auto visit = [&](auto&& self, ByteTrie::NodeIndex node, const std::string& path) -> void {
      for (const std::uint32_t i : slice.past().values(node)) {
        const auto& token = slice.past_end()[i];
        ++past[std::to_string(token.token) + '/' + std::to_string(token.units) + '/' + path];
      }
      const auto [first, last] = slice.past().children(node);
      for (auto child = first; child < last; ++child) {
        self(self, child, path + static_cast<char>(slice.past().label(child)));
      }
    };
    visit(visit, 0, "");
    std::map<std::string, int> expected_closing, expected_past;
    for (TokenId t = 0; t < 2000; ++t) {
      const std::string_view bytes = vocabulary.grammar_bytes(t);
      Dfa::State state             = start;
      std::uint32_t units          = 0;
      bool stays                   = true;
      for (std::size_t i = 0; i < bytes.size() && stays; ++i) {
        const Dfa::State next = dfa.next(state, static_cast<std::uint8_t>(bytes[i]));
        if (next == Dfa::dead) {
          stays = false;
          break;
        }
        units += dfa.boundary(state) && !dfa.closing(next);
        state = next;
        if (!dfa.closing(state)) continue;
        stays                  = false;
        const std::string name = std::to_string(t) + '/' + std::to_string(units);
        if (i + 1 == bytes.size()) {
          ++expected_closing[name];
        } else {
          ++expected_past[name + '/' + std::string(bytes.substr(i + 1))];
        }
      }
      for (const std::uint32_t limit : {0U, 1U, 3U, 1000U}) {
        REQUIRE(slice.staying(limit).contains(t) == (stays && units <= limit));
      }
    }
    const auto between = *slice.staying_between(1, 2, 2000);
    CHECK(between.empty() == (start == 2));
    if (!between.empty()) CHECK_FALSE(slice.staying_between(1, 2, between.size() - 1));
    for (TokenId t = 0; t < 2000; ++t) {
      const auto has = [&](std::uint32_t units) {
        return std::any_of(between.begin(), between.end(), [&](const CountedToken& one) {
          return one.token == t && one.units == units;
        });
      };
      const bool stays = slice.staying(2).contains(t) && !slice.staying(0).contains(t);
      REQUIRE((has(1) || has(2)) == stays);
      REQUIRE(has(1) == (stays && slice.staying(1).contains(t)));
    }
    REQUIRE(closing == expected_closing);
    REQUIRE(past == expected_past);
    CHECK(slice.is_listed() == (start == 2));
    const auto below = trie.find_child(trie.find_child(0, 'a'), 'b');
    const LexemeSlice few(vocabulary, trie, classes, dfa, start, below);
    REQUIRE(few.is_listed());
    for (const std::uint32_t limit : {0U, 1U, 3U, 1000U}) {
      TokenMask listed(vocabulary.size());
      few.for_each_staying(limit, [&](TokenId token) { listed.insert(token); });
      REQUIRE(listed == few.staying(limit));
    }
    CHECK(few.count() == few.staying(1000).count() + few.closing().size());
  }
}
