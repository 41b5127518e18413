/// \file
/// CrossCheck: whether bytes, tokens and masks of a constraint agree.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace program {

/// Judges texts by one constraint in three ways that must agree: byte by byte; token by token, with
/// the text cut at random into tokens of the vocabulary; and by the mask of every state on the way,
/// for each token of the vocabulary. From each text it then follows tokens that masks allow; no
/// state may be a dead end.
///
/// Each state is compared once, so a second text costs only its new states.
///
/// \par Complexity  O(bytes of the vocabulary) per state
template <tooldecode::ConstraintPolicy C>
class CrossCheck {
 public:
  /// Refers to both arguments.
  CrossCheck(const C& constraint, const tooldecode::Vocabulary& vocabulary)
      : constraint_(constraint), vocabulary_(vocabulary), mask_(constraint.vocabulary_size()) {
    for (std::size_t i = 0; i < vocabulary.token_count(); ++i) {
      const auto token            = static_cast<tooldecode::TokenId>(i);
      const std::string_view text = vocabulary.bytes(token);
      if (vocabulary.is_text(token) && text == vocabulary.grammar_bytes(token)) {
        by_first_[static_cast<std::uint8_t>(text[0])].push_back(token);
      }
    }
  }

  [[nodiscard]] std::optional<std::string> find_disagreement(std::string_view text) {
    auto by_bytes       = std::optional(constraint_.initial());
    std::size_t refused = 0;
    for (; by_bytes && refused < text.size(); ++refused) {
      by_bytes = constraint_.advance_bytes(*by_bytes, text.substr(refused, 1));
    }
    State state    = constraint_.initial();
    std::size_t at = 0;
    while (true) {
      if (auto wrong = compare(state, text.substr(0, at))) return wrong;
      const auto token = draw(text.substr(at));
      if (!token) break;  // at the end, or no token writes the next bytes
      const std::size_t size = vocabulary_.bytes(*token).size();
      const auto next        = constraint_.advance(state, *token);
      const bool is_possible = by_bytes || at + size < refused;
      if (next.has_value() != is_possible) {
        return about(*token, text.substr(0, at)) +
               (next ? " is read as a token and not by its bytes"
                     : " is read by its bytes and not as a token");
      }
      if (!next) break;
      state = *next;
      at += size;
    }
    if (at == text.size() &&
        constraint_.is_accepting(state) != constraint_.is_accepting(*by_bytes)) {
      return std::string("bytes and tokens do not end alike");
    }
    return wander(state, std::string(text.substr(0, at)));
  }

 private:
  using State = typename C::State;

  static constexpr int max_wandered = 24;

  std::string about(tooldecode::TokenId token, std::string_view text) const {
    return "token " + std::to_string(token) + ", \"" + std::string(vocabulary_.name(token)) +
           "\", after \"" + std::string(text) + '"';
  }

  // A random token that is a prefix of the text.
  std::optional<tooldecode::TokenId> draw(std::string_view text) {
    if (text.empty()) return std::nullopt;
    std::vector<tooldecode::TokenId> fitting;
    for (const tooldecode::TokenId token : by_first_[static_cast<std::uint8_t>(text[0])]) {
      if (text.starts_with(vocabulary_.bytes(token))) fitting.push_back(token);
    }
    if (fitting.empty()) return std::nullopt;
    return fitting[random_() % fitting.size()];
  }

  // Whether a token's bytes can follow, byte by byte.
  bool can_follow(State state, tooldecode::TokenId token) const {
    if (vocabulary_.is_end(token)) return constraint_.is_accepting(state);
    const std::string_view bytes = vocabulary_.grammar_bytes(token);
    auto reached                 = std::optional(state);
    for (std::size_t i = 0; reached && i < bytes.size(); ++i) {
      reached = constraint_.advance_bytes(*reached, bytes.substr(i, 1));
    }
    return reached && !bytes.empty();
  }

  std::optional<std::string> compare(State state, std::string_view text) {
    if (std::find(compared_.begin(), compared_.end(), state) != compared_.end()) {
      return std::nullopt;
    }
    compared_.push_back(state);
    constraint_.fill_mask(state, mask_.words());
    for (std::size_t i = 0; i < constraint_.vocabulary_size(); ++i) {
      const auto token   = static_cast<tooldecode::TokenId>(i);
      const bool bytes   = can_follow(state, token);
      const bool allows  = mask_.contains(token);
      const bool is_read = constraint_.advance(state, token).has_value();
      if (bytes == allows && bytes == is_read) continue;
      const auto say = [](bool yes) { return yes ? "yes" : "no"; };
      return about(token, text) + ": bytes " + say(bytes) + ", mask " + say(allows) + ", advance " +
             say(is_read);
    }
    const bool can_end = constraint_.is_accepting(state) && vocabulary_.end_tokens().empty();
    if (mask_.count() == 0 && !can_end) return "no token may follow \"" + std::string(text) + '"';
    return std::nullopt;
  }

  // Continues from a state with random tokens from the masks.
  std::optional<std::string> wander(State state, std::string text) {
    for (int step = 0; step < max_wandered; ++step) {
      if (auto wrong = compare(state, text)) return wrong;
      constraint_.fill_mask(state, mask_.words());
      std::vector<tooldecode::TokenId> allowed;
      mask_.for_each([&](tooldecode::TokenId token) {
        if (!vocabulary_.is_end(token)) allowed.push_back(token);
      });
      if (allowed.empty()) break;
      const tooldecode::TokenId token = allowed[random_() % allowed.size()];
      state                           = *constraint_.advance(state, token);
      text += vocabulary_.name(token);
    }
    return std::nullopt;
  }

  const C& constraint_;
  const tooldecode::Vocabulary& vocabulary_;
  tooldecode::TokenMask mask_;  // [ceil(V / 32)]
  std::array<std::vector<tooldecode::TokenId>, 256> by_first_;
  std::vector<State> compared_;
  std::mt19937 random_{1};  // used without a distribution, whose results differ between machines
};

}  // namespace program
