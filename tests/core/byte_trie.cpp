#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <tooldecode/core/byte_trie.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::core;

TEST_CASE(
    "ByteTrie stores each value at the path of its text and counts the values below each node") {
  std::mt19937 random(21);
  for (int round = 0; round < 50; ++round) {
    INFO("round " << round);
    std::vector<std::string> texts;
    for (int i = 0; i < 300; ++i) {
      std::string text;
      for (std::size_t n = random() % 12; n > 0; --n)
        text.push_back(static_cast<char>(random() % 4 * 85));
      texts.push_back(text);
    }
    std::vector<ByteTrie::Entry> entries;
    std::map<std::string, std::multiset<std::uint32_t>> expected;
    for (std::uint32_t i = 0; i < texts.size(); ++i) {
      entries.emplace_back(texts[i], i);
      if (!texts[i].empty()) expected[texts[i]].insert(i);
    }
    const ByteTrie trie(entries);
    std::map<std::string, std::multiset<std::uint32_t>> found;
    std::size_t longest = 0, visited = 0;
    const auto visit = [&](auto&& self, ByteTrie::NodeIndex node,
                           const std::string& path) -> std::uint32_t {
      ++visited;
      longest             = std::max(longest, path.size());
      std::uint32_t below = 0;
      for (const std::uint32_t value : trie.values(node)) found[path].insert(value), ++below;
      const auto [first, last] = trie.children(node);
      for (auto child = first; child < last; ++child) {
        if (child > first) REQUIRE(trie.label(child - 1) < trie.label(child));
        below += self(self, child, path + static_cast<char>(trie.label(child)));
      }
      REQUIRE(trie.count_below(node) == below);
      return below;
    };
    visit(visit, 0, "");
    REQUIRE(found == expected);
    REQUIRE(trie.longest() == longest);
    REQUIRE(trie.size() == visited);
  }
}

TEST_CASE("sort_by_bytes orders texts as std::sort does when their first eight bytes are equal") {
  for (unsigned seed = 0; seed < 50; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    std::vector<std::string> texts(random() % 60);
    for (std::string& text : texts) {
      text.assign(random() % 12, 'a');
      for (char& c : text)
        c = static_cast<char>("a\0\xFF\x80"[random() % 8 < 5 ? 0 : random() % 4]);
      if (seed % 2 == 1) text.insert(0, "alike \xFF");
    }
    std::vector<ByteTrie::Entry> entries;
    for (const std::string& text : texts) entries.emplace_back(text, random() % 3);
    auto expected = entries;
    std::sort(expected.begin(), expected.end());
    sort_by_bytes(entries);
    CHECK(entries == expected);
  }
}

TEST_CASE("ByteTrie::text returns the path of each node") {
  const ByteTrie trie(
      std::vector<ByteTrie::Entry>{{"a", 0}, {"abc", 1}, {"abd", 2}, {"b", 3}, {"ba", 4}});
  const auto visit = [&](const auto& self, ByteTrie::NodeIndex at,
                         const std::string& text) -> void {
    CHECK(trie.text(at) == text);
    const auto [first, last] = trie.children(at);
    for (auto child = first; child < last; ++child) {
      self(self, child, text + static_cast<char>(trie.label(child)));
    }
  };
  visit(visit, 0, "");
}
