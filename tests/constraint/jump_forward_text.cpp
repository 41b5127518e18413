#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <tooldecode/constraint/jump_forward_text.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>
#include <tooldecode/vocabulary/vocabulary_trie.hpp>

#include <support/catch.hpp>

using namespace tooldecode;
using namespace tooldecode::constraint;
using namespace tooldecode::core;
using namespace tooldecode::vocabulary;

namespace {

const std::vector<std::string> texts{"a",   "b", "ab", "abc",   "bc",  "ca",
                                     "cab", "c", "bb", "<end>", "abca"};

Vocabulary all_tokens() {
  std::vector<Vocabulary::Entry> entries;
  for (const std::string& text : texts) {
    entries.push_back({text, text == "<end>" ? TokenType::control : TokenType::normal});
  }
  return Vocabulary(entries, {.end_tokens = {9}});
}

std::string random_text(std::mt19937& random) {
  std::string text;
  for (std::size_t length = random() % 7; text.size() < length;) {
    text += static_cast<char>('a' + random() % 3);
  }
  return text;
}

}  // namespace

TEST_CASE("ForcedText::encode writes a text in the longest tokens that fit") {
  const Vocabulary words = all_tokens();
  const ByteTrie trie    = make_trie(words);
  const JumpForwardText forced(trie);
  CHECK(forced.encode("abcab") == std::vector<TokenId>{10, 1});  // abca b
  CHECK(forced.encode("").empty());
  CHECK(forced.encode("abx") == std::vector<TokenId>{2});  // no token begins with x
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    const std::string text = random_text(random);
    std::string written;
    for (const TokenId token : forced.encode(text)) written += words.bytes(token);
    CHECK(written == text);
  }
}

TEST_CASE(
    "ForcedText::keep_agreeing leaves tokens that are a prefix of the text or begin with it") {
  const Vocabulary words = all_tokens();
  const ByteTrie trie    = make_trie(words);
  const JumpForwardText forced(trie);
  std::mt19937 random(4);
  for (int round = 0; round < 300; ++round) {
    const std::string text = random_text(random) + "a";
    INFO(text);
    TokenMask mask(words.size());
    std::size_t prefixes = 0;
    bool longer          = false;
    for (std::size_t t = 0; t < words.size(); ++t) {
      if (random() % 5 != 0) mask.insert(static_cast<TokenId>(t));
    }
    TokenMask expected(words.size());
    for (std::size_t t = 0; t < words.size(); ++t) {
      const auto token = static_cast<TokenId>(t);
      if (texts[t] == "<end>") continue;
      const bool is_prefix = text.starts_with(texts[t]), goes_on = texts[t].starts_with(text);
      prefixes += is_prefix;
      longer |= goes_on && !is_prefix;
      if ((is_prefix || goes_on) && mask.contains(token)) expected.insert(token);
    }
    forced.keep_agreeing(text, mask.words());
    CHECK(mask == expected);
    CHECK(forced.count_prefixes(text) == prefixes);
    CHECK(forced.is_within_token(text) == longer);
    std::vector<TokenId> found = forced.find_longer(text), wanted;
    for (std::size_t t = 0; t < words.size(); ++t) {
      const bool goes_on = texts[t] != text && texts[t].starts_with(text);
      if (goes_on && texts[t] != "<end>") wanted.push_back(static_cast<TokenId>(t));
    }
    std::sort(found.begin(), found.end());
    CHECK(found == wanted);
  }
}
