#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include <tooldecode/text/unicode_properties.hpp>
#include <tooldecode/text/utf8.hpp>
#include <tooldecode/vocabulary/added_tokens.hpp>
#include <tooldecode/vocabulary/white_space.hpp>

namespace tooldecode::vocabulary::detail {

TOOLDECODE_INLINE std::size_t last_character(std::string_view text) noexcept {
  std::size_t at = text.size() - 1;
  while (at > 0 && (static_cast<std::uint8_t>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

}  // namespace tooldecode::vocabulary::detail

namespace tooldecode::vocabulary {

TOOLDECODE_INLINE AddedTokens::AddedTokens(std::vector<AddedToken> tokens) {
  for (AddedToken& token : tokens) {
    if (token.text.empty()) continue;
    strip_ = strip_ || token.strips_left || token.strips_right;
    tokens_[static_cast<std::uint8_t>(token.text[0])].push_back(std::move(token));
  }
  for (auto& group : tokens_) {
    std::stable_sort(group.begin(), group.end(), [](const AddedToken& a, const AddedToken& b) {
      return a.text.size() > b.text.size();
    });
  }
}

TOOLDECODE_INLINE AddedTokens AddedTokens::of(const Vocabulary& vocabulary) {
  std::vector<AddedToken> tokens;
  for (std::size_t i = 0; i < vocabulary.token_count(); ++i) {
    const auto id         = static_cast<TokenId>(i);
    const bool is_control = vocabulary.type(id) == TokenType::control;
    if (!is_control && vocabulary.type(id) != TokenType::user_defined) continue;
    tokens.push_back({std::string(vocabulary.name(id)), id, is_control});
  }
  return AddedTokens(std::move(tokens));
}

TOOLDECODE_INLINE std::vector<AddedTokens::Stretch> AddedTokens::split(std::string_view text,
                                                                       bool finds_control) const {
  std::vector<Stretch> stretches;
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size();) {
    const AddedToken* token = find(text.substr(at), finds_control);
    if (token == nullptr) {
      ++at;
      continue;
    }
    std::size_t begin = at, end = at + token->text.size();
    at = end;
    if (token->single_word) {
      const auto is_word_at = [&](std::size_t place) {
        const auto character = text::find_code_point(text, place);
        return character && text::unicode_word().contains(character->value);
      };
      const std::string_view before = text.substr(0, begin);
      if ((begin > 0 && is_word_at(detail::last_character(before))) ||
          (end < text.size() && is_word_at(end))) {
        continue;
      }
    }
    if (token->strips_left) {
      // What the previous token took is not searched again.
      const std::size_t first =
          begin <= done ? done : done + without_last_spaces(text.substr(done, begin - done)).size();
      const std::size_t space = token->keeps_spaces && first < begin
                                    ? text.substr(first, begin - first).rfind(' ')
                                    : std::string_view::npos;
      begin                   = space != std::string_view::npos ? first + space + 1 : first;
    }
    if (token->strips_right) {
      end                          = std::max(end, done);
      const std::string_view after = text.substr(end);
      const std::size_t taken      = after.size() - without_first_spaces(after).size();
      end += token->keeps_spaces ? std::min(taken, after.substr(0, taken).find(' ')) : taken;
    }
    if (done < begin) stretches.push_back({text.substr(done, begin - done), nullptr});
    // A token may begin within the white space that the previous one took. It is matched too, but
    // appended only if it takes no white space itself.
    if (begin < end) stretches.push_back({text.substr(begin, end - begin), token});
    done = end;
  }
  if (done < text.size()) stretches.push_back({text.substr(done), nullptr});
  return stretches;
}

TOOLDECODE_INLINE const AddedToken* AddedTokens::find(std::string_view rest,
                                                      bool finds_control) const {
  for (const AddedToken& token : tokens_[static_cast<std::uint8_t>(rest[0])]) {
    if ((finds_control || !token.is_control) && rest.starts_with(token.text)) return &token;
  }
  return nullptr;
}

}  // namespace tooldecode::vocabulary
