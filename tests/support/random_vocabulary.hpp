/// \file
/// A large random vocabulary of JSON fragments.
#pragma once

#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode::test {

/// Thousands of short tokens, with duplicates, all special kinds and all single bytes.
inline Vocabulary random_vocabulary(unsigned seed) {
  std::mt19937 random(seed);
  const std::string bytes = "abcdefghij\"\\,:{}[] 0123456789\xC3\xA9\nu";
  std::vector<Vocabulary::Entry> entries{{"<end>", TokenType::control},
                                         {"<stop>", TokenType::control},
                                         {"", TokenType::unused},
                                         {"<unk>", TokenType::unknown}};
  for (int i = 0; i < 4000; ++i) {
    std::string text;
    for (std::size_t n = 1 + random() % 5; n > 0; --n)
      text.push_back(bytes[random() % bytes.size()]);
    entries.push_back({text, i % 50 == 0 ? TokenType::user_defined : TokenType::normal});
  }
  for (int b = 0; b < 256; ++b)
    entries.push_back({std::string(1, static_cast<char>(b)), TokenType::byte});
  const std::size_t size = entries.size() + 77;
  return Vocabulary(entries, {.end_tokens = {0, 1}, .size = size});
}

}  // namespace tooldecode::test
