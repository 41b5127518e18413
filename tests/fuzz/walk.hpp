/// \file
/// Walks of the fuzz targets through constraints with a tiny vocabulary.
#pragma once

#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

#include <fuzz/fuzz.hpp>

namespace tooldecode::fuzz {

/// Every byte, pieces that cross the edges of values, a control token and an end token.
inline Vocabulary tiny_vocabulary() {
  std::vector<Vocabulary::Entry> entries{{"<end>", TokenType::control},
                                         {"<tool_call>", TokenType::control}};
  for (int b = 0; b < 256; ++b) {
    entries.push_back({std::string(1, static_cast<char>(b)), TokenType::byte});
  }
  for (const char* piece :
       {"aa",       "aaaa", "ab",   "xy",     "12",    "0.",   ".5",          "e1",     "  ",
        "\n  ",     "\": ", "\":",  "\", \"", "\",",   "{\"",  "\"}",         "\"}}",   "[]",
        "],",       "[{",   "true", "null",   "\\u00", "\\\"", "\\\\",        "\u00E9", "\xC3",
        "\xE2\x82", "(",    "='",   "',",     "')",    "</",   "<tool_call>", "-1",     "00"}) {
    entries.push_back({piece, TokenType::normal});
  }
  return Vocabulary(entries, {.end_tokens = {0}});
}

/// A constraint that shares no states, so that a finding depends on its input only.
inline Constraint constraint_of(const Grammar& grammar) {
  static const Vocabulary vocabulary = tiny_vocabulary();
  return {VocabularyIndex(vocabulary), grammar};
}

/// Takes random allowed tokens. Demands that masks and `advance` agree on every token, and that
/// some token is always allowed.
template <class C>
void walk_masks(const C& constraint, std::mt19937& random, int steps = 3) {
  TokenMask mask(constraint.vocabulary_size());
  auto state = constraint.initial();
  std::string text;
  for (; steps > 0 && !constraint.is_finished(state); --steps) {
    if (constraint.automaton().positions(state.id).size() > max_positions) return;
    constraint.fill_mask(state, mask.words());
    std::vector<TokenId> allowed;
    for (std::size_t i = 0; i < constraint.vocabulary_size(); ++i) {
      const auto token = static_cast<TokenId>(i);
      if (mask.contains(token)) allowed.push_back(token);
      demand(constraint.advance(state, token).has_value() == mask.contains(token),
             "mask and advance differ on token " + std::to_string(token) + " after", text);
    }
    demand(!allowed.empty(), "no token is allowed after", text);
    const TokenId token = allowed[random() % allowed.size()];
    text += constraint.vocabulary().bytes(token);
    state = *constraint.advance(state, token);
  }
}

}  // namespace tooldecode::fuzz
