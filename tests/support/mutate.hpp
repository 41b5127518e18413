/// \file
/// mutate: random small changes of a text.
#pragma once

#include <cstddef>
#include <random>
#include <string>
#include <string_view>

namespace tooldecode::test {

/// Replaces, inserts and erases characters at random places, or cuts the text off.
inline void mutate(std::string& text, std::string_view alphabet, std::size_t edits,
                   std::mt19937& random) {
  for (; edits > 0 && !text.empty(); --edits) {
    const std::size_t at = random() % text.size();
    switch (random() % 4) {
      case 0:
        text[at] = alphabet[random() % alphabet.size()];
        break;
      case 1:
        text.insert(at, 1, alphabet[random() % alphabet.size()]);
        break;
      case 2:
        text.erase(at, 1 + random() % 3);
        break;
      default:
        text.resize(at);
    }
  }
}

}  // namespace tooldecode::test
