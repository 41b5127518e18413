#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/vocabulary/unigram.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;
using td::TokenType;
using td::Vocabulary;
using td::vocabulary::CharacterMap;
using td::vocabulary::Unigram;
using Ids = std::vector<td::TokenId>;

namespace {

Ids encode(const Unigram& unigram, std::string_view text) {
  Ids ids;
  unigram.encode(text, ids);
  return ids;
}

/// The best sum of scores of all cuts, by brute force.
float best_of_all_cuts(const Vocabulary& vocabulary, const std::vector<float>& scores,
                       std::string_view text) {
  if (text.empty()) return 0;
  float best = -std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const auto piece = vocabulary.name(static_cast<td::TokenId>(i));
    if (text.starts_with(piece))
      best = std::max(best,
                      scores[i] + best_of_all_cuts(vocabulary, scores, text.substr(piece.size())));
  }
  return best;
}

/// A double array of Darts-clone that maps one byte to its replacement.
std::string map_of(char from, const std::string& to) {
  std::vector<std::uint32_t> units(512, 0);
  const auto byte    = static_cast<std::uint8_t>(from);
  units[0]           = 256U << 10;                            // the root's children begin at 256
  units[256U ^ byte] = byte | 1U << 8 | (512U ^ 256U) << 10;  // a text ends below it
  units.resize(1024, 0);
  units[(256U ^ byte) ^ (512U ^ 256U)] = 1U << 31;  // with the value 0
  std::string bytes;
  const auto size = static_cast<std::uint32_t>(4 * units.size());
  bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
  bytes.append(reinterpret_cast<const char*>(units.data()), size);
  return bytes + to + std::string(1, '\0');
}

}  // namespace

TEST_CASE("Unigram chooses a cut with the best score on random pieces and texts") {
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    std::vector<Vocabulary::Entry> entries{{"a"}, {"b"}, {"c"}};
    for (int i = 0; i < 8; ++i) {
      std::string piece;
      for (std::size_t size = 2 + random() % 3; piece.size() < size;)
        piece.push_back(static_cast<char>('a' + random() % 3));
      entries.push_back({piece});
    }
    std::vector<float> scores;
    // Multiples of 1/16 have exact sums in any order.
    for (std::size_t i = 0; i < entries.size(); ++i)
      scores.push_back(-static_cast<float>(random() % 64) / 16.0F);
    const Vocabulary vocabulary(entries);
    const Unigram unigram(vocabulary, scores);
    std::string text;
    for (int i = 0; i < 10; ++i) text.push_back(static_cast<char>('a' + random() % 3));
    const Ids ids = encode(unigram, text);
    CHECK(vocabulary.decode(ids) == text);
    float sum = 0;
    for (const td::TokenId id : ids) sum += scores[static_cast<std::size_t>(id)];
    CHECK(sum == best_of_all_cuts(vocabulary, scores, text));
  }
}

TEST_CASE("Unigram keeps spaces and writes characters without a piece as bytes") {
  const Vocabulary vocabulary(
      {{" "}, {" a"}, {"a"}, {"\xC3", TokenType::byte}, {"\xA9", TokenType::byte}});
  const std::vector<float> scores{-3, -1, -2, 0, 0};
  const Unigram unigram(vocabulary, scores);
  CHECK(encode(unigram, " a  a ") == Ids{1, 0, 1, 0});
  CHECK(encode(unigram, "a\u00E9a") == Ids{2, 3, 4, 2});
  CHECK(encode(unigram, "") == Ids{});
  CHECK_THROWS_WITH(encode(unigram, "ax"), td::test::contains("byte 120"));
}

TEST_CASE("Unigram::of_doubles distinguishes scores that are equal in single precision") {
  const Vocabulary vocabulary({{"a"}, {"b"}, {"ab"}});
  const std::vector<double> scores{-1, -1, -2 - 1e-9};
  Ids ids;
  Unigram::of_doubles(vocabulary, scores, {}).encode("ab", ids);
  CHECK(ids == Ids{0, 1});
  CHECK(encode(Unigram(vocabulary, {scores.begin(), scores.end()}), "ab") == Ids{2});
}

TEST_CASE("Unigram options admit user-defined pieces, leave out pieces and set the lowest score") {
  const Vocabulary vocabulary({{"a"},
                               {"b", TokenType::user_defined},
                               {"ab"},
                               {"\xC3", TokenType::byte},
                               {"\xA9", TokenType::byte},
                               {"\u00E9a"}});
  const std::vector<td::TokenId> left_out{2};
  Ids ids;
  Unigram::of_doubles(vocabulary, {-1, -1, 0, 0, 0, -30},
                      {.user_defined = true, .left_out = left_out, .lowest = -40})
      .encode("ab\u00E9a", ids);
  CHECK(ids == Ids{0, 1, 5});
}

TEST_CASE("CharacterMap replaces characters that it has and keeps others") {
  const CharacterMap map(map_of('x', " a"));
  CHECK(map.apply("bxc\u00E9x") == "b ac\u00E9 a");
  CHECK(CharacterMap().apply("x") == "x");
}

TEST_CASE("Unigram and CharacterMap reject malformed input and read nothing outside the map") {
  const Vocabulary vocabulary({{"a"}, {"b"}});
  CHECK_THROWS_WITH(Unigram(vocabulary, {-1}), "scores 1: must be one for each token: 2");
  for (const std::string& bytes : {std::string("\x08"), std::string("\x08\0\0\0abcd", 8),
                                   std::string("\x03\0\0\0abc", 7), std::string(4, '\0')}) {
    CHECK_THROWS_WITH(CharacterMap(bytes),
                      "precompiled_charsmap: must begin with the length of its double array");
  }
  // Random units cause no read outside of the map (checked with sanitizers).
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    std::string bytes = map_of('x', "y");
    for (int i = 0; i < 40; ++i)
      bytes[4 + random() % (bytes.size() - 4)] = static_cast<char>(random());
    static_cast<void>(CharacterMap(bytes).apply("axb\u00E9x"));
  }
}
