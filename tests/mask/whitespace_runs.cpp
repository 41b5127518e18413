#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/mask/whitespace_runs.hpp>
#include <tooldecode/vocabulary/vocabulary_trie.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::core;
using namespace tooldecode::mask;
using namespace tooldecode::vocabulary;

namespace {

Vocabulary blank_vocabulary(unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Vocabulary::Entry> entries;
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (std::size_t n = random() % 5; n > 0; --n) text.push_back(" \t\n\r"[random() % 4]);
    for (std::size_t n = random() % 4; n > 0; --n) text.push_back("a\" 1\n]"[random() % 6]);
    if (text.empty()) text = "a";
    entries.push_back({text, TokenType::normal});
  }
  return Vocabulary(entries);
}

// The bytes of white space that a text begins with.
std::size_t blanks(std::string_view text) {
  return std::min(text.find_first_not_of(" \t\n\r"), text.size());
}

}  // namespace

TEST_CASE("WhitespaceRuns sorts every token by the white space that it begins with") {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    INFO("seed " << seed);
    const Vocabulary vocabulary = blank_vocabulary(seed);
    const ByteTrie trie         = make_trie(vocabulary);
    const WhitespaceRuns runs(trie, vocabulary.size());
    std::map<TokenId, std::pair<std::uint32_t, std::string>> past;
    const auto visit = [&](auto&& self, ByteTrie::NodeIndex node, const std::string& rest) -> void {
      for (const std::uint32_t i : runs.past().values(node)) {
        const CountedToken& token = runs.past_end()[i];
        past[token.token]         = {token.units, rest};
      }
      const auto [first, last] = runs.past().children(node);
      for (auto child = first; child < last; ++child) {
        self(self, child, rest + static_cast<char>(runs.past().label(child)));
      }
    };
    visit(visit, 0, "");
    std::set<std::string> behind_one;
    for (const ByteTrie::NodeIndex node : runs.behind_one()) behind_one.insert(trie.text(node));
    CHECK(behind_one == std::set<std::string>{" ", "\t", "\n", "\r"});
    std::size_t alone = 0;
    for (std::size_t t = 0; t < vocabulary.size(); ++t) {
      const auto token             = static_cast<TokenId>(t);
      const std::string_view bytes = vocabulary.bytes(token);
      const std::size_t units      = blanks(bytes);
      INFO("token " << t);
      REQUIRE(runs.mask().contains(token) == (units == bytes.size()));
      alone += units == bytes.size();
      const bool is_past = units >= 2 && units < bytes.size();
      REQUIRE(past.contains(token) == is_past);
      if (!is_past) continue;
      REQUIRE(past[token].first == units);
      REQUIRE(past[token].second == bytes.substr(units));
    }
    CHECK(alone > 100);
    CHECK(runs.listed().size() == alone);
    CHECK(past.size() > 100);
    for (const std::uint32_t limit : {0U, 1U, 3U, 9U}) {
      std::set<TokenId> longer, expected;
      for (const CountedToken& token : runs.longer_than(limit)) longer.insert(token.token);
      for (std::size_t t = 0; t < vocabulary.size(); ++t) {
        const auto token             = static_cast<TokenId>(t);
        const std::string_view bytes = vocabulary.bytes(token);
        if (blanks(bytes) == bytes.size() && bytes.size() > limit) expected.insert(token);
      }
      CHECK(longer == expected);
    }
  }
}
