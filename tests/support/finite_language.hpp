/// \file
/// slow::check_masks: compares a constraint with the full list of texts that it must accept.
#pragma once

#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

#include <support/catch.hpp>

namespace tooldecode::slow {

using Language = std::set<std::string>;

/// Pieces of the texts, shuffled pieces, single bytes, and tokens without text; the first is the
/// end token.
inline Vocabulary pieces_of(const Language& language, unsigned seed, std::size_t count = 300) {
  std::mt19937 random(seed);
  const std::vector<std::string> texts(language.begin(), language.end());
  std::string bytes = "x";
  for (const std::string& text : texts) bytes += text;
  std::vector<Vocabulary::Entry> entries{
      {"<end>", TokenType::control}, {"<other>", TokenType::control}, {"", TokenType::unused}};
  for (std::size_t i = 0; i < count; ++i) {
    const std::string& text = texts[random() % texts.size()];
    std::string piece = text.empty() ? "x" : text.substr(random() % text.size(), 1 + random() % 6);
    if (i % 3 == 0) piece[random() % piece.size()] = bytes[random() % bytes.size()];
    entries.push_back({piece, TokenType::normal});
  }
  for (int b = 0; b < 256; ++b)
    entries.push_back({std::string(1, static_cast<char>(b)), TokenType::byte});
  return Vocabulary(entries, {.end_tokens = {0}, .size = entries.size() + 5});
}

/// Whether some text has this prefix.
inline bool is_begun(const Language& language, std::string_view prefix) {
  const auto next = language.lower_bound(std::string(prefix));
  return next != language.end() && next->starts_with(prefix);
}

/// Walks at random; in each state, each token and the jump-forward string must agree with the list.
/// Returns the number of states.
///
/// \param passed_over  a byte; tokens with it are not checked, because the list lacks it
template <class C>
std::size_t check_masks(const C& constraint, const Language& language, unsigned seed,
                        int walks = 20, std::optional<char> passed_over = {}) {
  std::mt19937 random(seed);
  const Vocabulary& vocabulary = constraint.vocabulary();
  TokenMask mask(vocabulary.size());
  std::size_t states = 0;
  for (int walk = 0; walk < walks; ++walk) {
    auto state = constraint.initial();
    for (std::string text;; ++states) {
      INFO("seed " << seed << ", after '" << text << "'");
      const bool is_whole = language.count(text) != 0;
      REQUIRE(constraint.is_accepting(state) == is_whole);
      constraint.fill_mask(state, mask.words());
      std::vector<TokenId> allowed;
      for (std::size_t i = 0; i < vocabulary.size(); ++i) {
        const auto token = static_cast<TokenId>(i);
        bool expected    = vocabulary.is_end(token) && is_whole;
        if (passed_over && vocabulary.bytes(token).find(*passed_over) != std::string_view::npos) {
          continue;
        }
        if (vocabulary.is_text(token) && !vocabulary.bytes(token).empty()) {
          expected = is_begun(language, text + std::string(vocabulary.bytes(token)));
        }
        if (mask.contains(token) != expected) FAIL("token " << token << " wanted " << expected);
        if (constraint.advance(state, token).has_value() != expected)
          FAIL("advance disagrees on token " << token);
        if (expected) allowed.push_back(token);
      }
      std::string forced;
      for (;;) {
        if (language.count(text + forced) != 0) break;
        std::set<char> next;
        for (auto at = language.lower_bound(text + forced);
             at != language.end() && at->starts_with(text + forced); ++at)
          next.insert((*at)[text.size() + forced.size()]);
        if (next.size() != 1) break;
        forced.push_back(*next.begin());
      }
      REQUIRE(constraint.jump_forward(state) == forced.substr(0, 256));
      REQUIRE_FALSE(allowed.empty());
      const TokenId token = allowed[random() % allowed.size()];
      state               = *constraint.advance(state, token);
      if (vocabulary.is_end(token)) {
        REQUIRE(constraint.is_finished(state));
        break;
      }
      text += vocabulary.bytes(token);
    }
  }
  return states;
}

template <class C>
bool accepts(const C& constraint, std::string_view text) {
  const auto state = constraint.advance_bytes(constraint.initial(), text);
  return state && constraint.is_accepting(*state);
}

}  // namespace tooldecode::slow
