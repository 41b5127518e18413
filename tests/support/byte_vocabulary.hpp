/// \file
/// byte_vocabulary: the smallest vocabulary that can write every text.
#pragma once

#include <string>
#include <vector>

#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode::test {

/// Each byte as the token of its number, `<end>` as 256, then the additional tokens.
inline Vocabulary byte_vocabulary(const std::vector<Vocabulary::Entry>& more = {}) {
  std::vector<Vocabulary::Entry> entries;
  for (int b = 0; b < 256; ++b) {
    entries.push_back({std::string(1, static_cast<char>(b)), TokenType::normal});
  }
  entries.push_back({"<end>", TokenType::control});
  entries.insert(entries.end(), more.begin(), more.end());
  return Vocabulary(entries, {.end_tokens = {256}});
}

}  // namespace tooldecode::test
