#include <algorithm>
#include <cstddef>
#include <deque>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <tooldecode/draft/suffix_history.hpp>

#include <support/byte_vocabulary.hpp>
#include <support/catch.hpp>

namespace td = tooldecode;
using Tokens = std::vector<td::TokenId>;

namespace {

const td::Vocabulary& bytes() {
  static const td::Vocabulary vocabulary = td::test::byte_vocabulary();
  return vocabulary;
}

Tokens tokens_of(std::string_view text) {
  return {reinterpret_cast<const unsigned char*>(text.data()),
          reinterpret_cast<const unsigned char*>(text.data()) + text.size()};
}

struct Found {
  std::size_t bytes;
  std::string follow;

  friend bool operator==(const Found&, const Found&) = default;
};

std::vector<Found> find(const td::SuffixHistory::View& view, std::string_view text, std::size_t min,
                        std::size_t most, std::size_t count) {
  std::vector<Found> found;
  for (const td::SuffixMatch& match : view.find(text, min, most, count)) {
    found.push_back({match.bytes, std::string(match.follow)});
  }
  return found;
}

/// A slow reference: every place of every text, compared byte by byte.
std::vector<Found> find_slowly(const std::deque<std::string>& texts, const std::string& text,
                               std::size_t min, std::size_t most, std::size_t count) {
  std::vector<Found> found;
  for (std::size_t i = texts.size(); i-- > 0;) {
    const std::string& one = texts[i];
    for (std::size_t end = one.size(); end-- > 1;) {
      std::size_t same = 0;
      for (std::size_t n = 1; n <= std::min({end, text.size(), most}); ++n) {
        if (one.substr(end - n, n) == text.substr(text.size() - n)) same = n;
      }
      if (same >= std::max<std::size_t>(min, 1)) found.push_back({same, one.substr(end)});
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Found& a, const Found& b) { return a.bytes > b.bytes; });
  if (found.size() > count) found.resize(count);
  return found;
}

std::string random_text(std::mt19937& random, std::size_t most, char first) {
  std::string text;
  for (std::size_t i = 0, size = random() % (most + 1); i < size; ++i) {
    text += static_cast<char>(first + static_cast<char>(random() % 2));
  }
  return text;
}

}  // namespace

TEST_CASE("SuffixHistory over random texts finds what a search of all places finds") {
  std::size_t found = 0, left = 0;
  for (unsigned seed = 0; seed < 150; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    const std::size_t max_tokens = 20 + random() % 120;
    // Bytes above 127 sort as unsigned ones.
    const char first = random() % 2 == 0 ? 'p' : '\xE2';
    td::SuffixHistory history(max_tokens);
    std::deque<std::string> kept;
    std::size_t tokens = 0;
    for (int round = 0; round < 20; ++round) {
      std::string text = random_text(random, 40, first);
      history.add(bytes(), tokens_of(text));
      text = text.substr(text.size() - std::min(text.size(), max_tokens));
      if (text.size() > 1) {
        tokens += text.size();
        kept.push_back(text);
      }
      for (; tokens > max_tokens; kept.pop_front(), ++left) tokens -= kept.front().size();
      const auto view = history.view();
      REQUIRE(view.tokens() == tokens);
      REQUIRE(view.texts() == kept.size());
      const std::string end = random_text(random, 12, first);
      const std::size_t min = random() % 4, most = random() % 9, count = random() % 12;
      const auto expected = find_slowly(kept, end, min, most, count);
      REQUIRE(find(view, end, min, most, count) == expected);
      found += expected.size();
    }
  }
  CHECK(found > 1000);
  CHECK(left > 100);
}

TEST_CASE("SuffixHistory tells agreement apart up to its most bytes, and then takes the latest") {
  td::SuffixHistory history(1000);
  const std::string end(100, 'e');
  for (const char* text : {"1", "2", "3"}) history.add(bytes(), tokens_of(end + text));
  history.add(bytes(), tokens_of(end.substr(0, 63) + "4"));
  CHECK(find(history.view(), end, 1, 200, 3) ==
        std::vector<Found>{{64, "3"}, {64, "e3"}, {64, "ee3"}});
  // In a text that begins otherwise, fewer bytes agree.
  const std::string begun = "b" + end.substr(0, 63);
  CHECK(find(history.view(), begun, 64, 200, 9).empty());
  CHECK(find(history.view(), begun, 63, 200, 1) == std::vector<Found>{{63, "4"}});
}

TEST_CASE("SuffixHistory keeps the end of a text that is longer than it, and none if it is empty") {
  td::SuffixHistory history(4);
  history.add(bytes(), tokens_of("abcdefgh"));
  CHECK(history.view().tokens() == 4);
  CHECK(find(history.view(), "xf", 1, 9, 9) == std::vector<Found>{{1, "gh"}});
  CHECK(find(history.view(), "xd", 1, 9, 9).empty());
  td::SuffixHistory none(0);
  none.add(bytes(), tokens_of("abcdefgh"));
  CHECK(none.view().texts() == 0);
  CHECK(find(none.view(), "ab", 0, 9, 9).empty());
  CHECK(find(history.view(), "", 0, 9, 9).empty());
}

TEST_CASE("SuffixHistory's tokens without text write nothing") {
  td::SuffixHistory history(9);
  history.add(bytes(), Tokens{256, 'a', 'b', 256});
  CHECK(history.view().tokens() == 4);
  CHECK(find(history.view(), "a", 1, 9, 9) == std::vector<Found>{{1, "b"}});
}

TEST_CASE("SuffixHistory's view does not change while others add texts") {
  td::SuffixHistory history(30);
  history.add(bytes(), tokens_of("key=1;"));
  const auto before = history.view();
  for (int i = 0; i < 10; ++i) history.add(bytes(), tokens_of("key=2;"));
  CHECK(find(before, "key=", 2, 9, 9) == std::vector<Found>{{4, "1;"}});
  CHECK(find(history.view(), "key=", 2, 9, 2) == std::vector<Found>{{4, "2;"}, {4, "2;"}});
}

TEST_CASE("SuffixHistory added to and read by several threads finds whole texts") {
  td::SuffixHistory history(400);
  std::vector<std::thread> threads;
  std::vector<std::size_t> wrong(4), right(4);
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const std::string value = std::to_string(t) + std::to_string(i);
        history.add(bytes(), tokens_of("begin " + value + " end " + value));
        const auto view = history.view();
        for (const td::SuffixMatch& match : view.find("begin ", 6, 9, 50)) {
          const std::string follow(match.follow);
          const std::string one = follow.substr(0, follow.find(' '));
          (follow == one + " end " + one ? right : wrong)[t] += 1;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::size_t count : wrong) CHECK(count == 0);
  for (const std::size_t count : right) CHECK(count >= 200);
}
