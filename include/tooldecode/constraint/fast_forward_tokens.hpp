/// \file
/// FastForwardTokens: the fast-forward tokens, cut as the model's tokenizer cuts the final text.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/constraint/jump_forward_text.hpp>
#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>
#include <tooldecode/text/utf8.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode {

/// Finds the tokens that every conforming text continues with when the tokenizer writes it.
///
/// A jump-forward string can be cut into tokens in many ways, but a model has learnt only its
/// tokenizer's, which may merge the end of the string with what the model writes next. You can
/// insert these tokens without a pass, and the whole answer is still what the tokenizer makes of
/// its text.
///
/// Proof: let the jump-forward string F follow a text T, and let the tokenizer write the whole as
/// T's tokens and then c1, c2, ... Either one of these ends with F, or one of them begins at some p
/// inside F and goes past its end: then it is a token w of the vocabulary that begins with F[p:]
/// and is allowed at p. A prefix of a tokenizer's tokens is what it makes of their text, so the
/// tokens up to w are its tokens for T plus the text up to the end of w. The search tries all such
/// w. The common prefix of all results, and of the tokens of T and F alone, is common to all whole
/// texts.
///
/// The premise is a theorem for BPE: no merge crosses the border of two final tokens, so the tokens
/// before a border result from the same merges whatever follows. Patterns that pre-split text keep
/// it if they look ahead no further than white space; so the search never cuts after white space
/// and stops at characters beyond ASCII. It does not hold for patterns that group digits from the
/// right.
///
/// \par Complexity  at most O(bytes of the longest token) encodings of T and F, plus one for each
///                  allowed token that could go past the end, until one does
/// \par Threads     immutable; const members may run concurrently if `encode` may
/// \par Errors      those of `encode` and of the constraint's members
class FastForwardTokens {
 public:
  using Encode = std::function<std::vector<TokenId>(std::string_view)>;

  FastForwardTokens(VocabularyIndex index, Encode encode);

  /// The fast-forward tokens; forced bytes may still follow them.
  ///
  /// \param state   state of the constraint after `before`
  /// \param before  the model's text so far, or its end from where the tokenizer starts anew: all
  ///                of an answer, or its last lines
  template <ConstraintPolicy C>
    requires requires(const C& c, const typename C::State& s, std::string_view bytes) {
      { c.advance_bytes(s, bytes) } -> std::same_as<std::optional<typename C::State>>;
    }
  [[nodiscard]] std::vector<TokenId> operator()(const C& constraint, typename C::State state,
                                                std::string_view before) const {
    std::string forced = constraint.jump_forward(state);
    forced.resize(std::min(forced.size(), first_beyond_ascii(forced)));
    forced.resize(forced.find_last_not_of(spaces) + 1);
    if (forced.empty() || !text::is_utf8(before)) return {};
    const std::string text                     = std::string(before) + forced;
    std::optional<std::vector<TokenId>> common = encode_behind(text, before.size());
    TokenMask mask(constraint.vocabulary_size());
    const std::size_t longest = std::max(index_.trie().longest(), controls_.longest());
    for (std::size_t p = 0; p < forced.size(); ++p) {
      if (p > 0) state = *constraint.advance_bytes(state, std::string_view(&forced[p - 1], 1));
      const std::string_view rest = std::string_view(forced).substr(p);
      if (rest.size() >= longest) continue;
      std::vector<TokenId> longer = constraint::JumpForwardText(index_.trie()).find_longer(rest);
      const auto named            = constraint::JumpForwardText(controls_).find_longer(rest);
      longer.insert(longer.end(), named.begin(), named.end());
      if (longer.empty()) continue;
      const std::size_t cut = before.size() + p;
      const auto alone      = encode_behind(std::string_view(text).substr(0, cut), before.size());
      // How white space is cut depends on what follows it; the tokens before it do not.
      const std::size_t word = std::string_view(text).substr(0, cut).find_last_not_of(spaces) + 1;
      const bool is_spaced   = word < cut;
      if (!is_spaced && !alone) continue;
      if (alone && common && begins_with(*alone, *common) &&
          before.size() + length(*common) <= word) {
        continue;
      }
      constraint.fill_mask(state, mask.words());
      for (const TokenId token : longer) {
        if (!mask.contains(token)) continue;
        const std::string whole =
            text + std::string(index_.vocabulary().name(token).substr(rest.size()));
        if (!text::is_utf8(whole)) {
          // The character is incomplete, so how the tokenizer cuts it is unknown.
          if (is_spaced) return {};
          keep_common(common, *alone);
          break;
        }
        auto tokens = encode_behind(whole, before.size());
        if (!tokens || tokens->empty() || tokens->back() != token) continue;
        tokens->pop_back();
        keep_common(common, *tokens);
        if (!is_spaced) break;
      }
      if (common && common->empty()) return {};
    }
    return std::move(common).value_or(std::vector<TokenId>());
  }

  /// The same with a budget of `remaining` tokens, end token included: those tokens that leave room
  /// for the end, then the ones that the budget alone forces. The tokenizer may need more tokens
  /// for a text than the budget has. Far from the limit the result is that of the other overload;
  /// it is empty if no end that fits is known.
  ///
  /// \param completions  Completions of this answer's constraint, or a type like it
  template <class C, class E>
    requires requires(E& completions, const C& c, MaskView words) {
      completions.shortest(c.initial(), std::size_t{1});
      completions.narrow(c.initial(), std::size_t{1}, words);
    }
  [[nodiscard]] std::vector<TokenId> operator()(const C& constraint, typename C::State state,
                                                std::string_view before, E& completions,
                                                std::size_t remaining) const {
    const auto has_room = [&](typename C::State behind, std::size_t left) {
      const auto least = completions.shortest(behind, left);
      return least && *least <= left;
    };
    if (remaining == 0 || !has_room(state, remaining)) return {};
    std::vector<TokenId> tokens = (*this)(constraint, state, before);
    std::size_t fitting         = 0;
    for (; fitting < tokens.size() && remaining > 1; ++fitting, --remaining) {
      const auto next = constraint.advance(state, tokens[fitting]);
      if (!next || !has_room(*next, remaining - 1)) break;
      state = *next;
    }
    tokens.resize(fitting);
    TokenMask mask(constraint.vocabulary_size());
    for (; remaining > 1; --remaining) {
      constraint.fill_mask(state, mask.words());
      const std::size_t allowed = mask.count();
      completions.narrow(state, remaining, mask.words());
      if (mask.count() != 1 || allowed == 1) break;
      TokenId only = 0;
      mask.for_each([&only](TokenId token) { only = token; });
      if (index_.vocabulary().is_end(only)) break;
      tokens.push_back(only);
      state = *constraint.advance(state, only);
    }
    return tokens;
  }

 private:
  static constexpr std::string_view spaces = " \t\r\n";

  static std::size_t first_beyond_ascii(std::string_view text);
  static bool begins_with(const std::vector<TokenId>& tokens, const std::vector<TokenId>& first);
  static void keep_common(std::optional<std::vector<TokenId>>& common,
                          const std::vector<TokenId>& other);

  [[nodiscard]] std::size_t length(const std::vector<TokenId>& tokens) const;

  // The tokens of a text from byte `at` on; nullopt if `at` is inside a token.
  [[nodiscard]] std::optional<std::vector<TokenId>> encode_behind(std::string_view text,
                                                                  std::size_t at) const;

  // The names of control tokens, which the tokenizer recognizes in text.
  [[nodiscard]] core::ByteTrie controls() const;

  VocabularyIndex index_;
  Encode encode_;
  core::ByteTrie controls_;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/constraint/fast_forward_tokens.ipp>
#endif
