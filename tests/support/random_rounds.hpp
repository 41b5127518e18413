/// \file
/// Rounds: a sequence that a drafter follows as if a decoder emitted it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <tooldecode/draft/drafter.hpp>
#include <tooldecode/model/llama_model.hpp>
#include <tooldecode/vocabulary/frequency_ranks.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

#include <support/catch.hpp>

namespace tooldecode::test {

/// Ranks of random counts, with ties.
inline FrequencyRanks random_ranks(std::size_t vocabulary_size, std::mt19937& random) {
  std::vector<std::uint64_t> counts(vocabulary_size);
  for (auto& count : counts) count = random() % 40;
  return FrequencyRanks{counts};
}

/// Words, each also with a leading space.
inline Vocabulary word_vocabulary(std::size_t size) {
  std::vector<Vocabulary::Entry> entries;
  for (std::size_t i = 0; i < size; ++i) {
    entries.push_back({(i % 2 == 0 ? "w" : " w") + std::to_string(i / 2) + '.', TokenType::normal});
  }
  return Vocabulary(entries, {});
}

/// A random sequence of 80 tokens with the target's hidden states; the first nine tokens are the
/// prompt.
class Rounds {
 public:
  Rounds(const LlamaModel& target, std::mt19937& random)
      : random_(random), tokens_(80), hidden_(80 * target.hidden_size()) {
    for (auto& token : tokens_) {
      token = static_cast<TokenId>(random_() % target.vocabulary_size());
    }
    auto cache = target.make_cache();
    target.forward_hidden(cache, tokens_, hidden_);
  }

  [[nodiscard]] std::span<const TokenId> prompt() const { return std::span(tokens_).first(9); }

  /// Whether the prompt contains a token, or its word with a leading space.
  [[nodiscard]] bool prompt_has(TokenId token, const Vocabulary& vocabulary) const {
    return std::ranges::any_of(prompt(), [&](TokenId other) {
      return other == token ||
             vocabulary.bytes(other) == ' ' + std::string(vocabulary.bytes(token));
    });
  }

  /// The tree of a new request that reads the first `read` tokens, at least the prompt, and
  /// receives `unread` more.
  template <class D, class C>
  [[nodiscard]] DraftTree tree_at_once(const D& drafter, const C& constraint, std::size_t read,
                                       std::size_t unread, std::uint64_t seed = 0) const {
    auto request = drafter.begin(prompt());
    return tree(drafter, constraint, request, 0, read, unread, seed);
  }

  /// Requires that the trees of one request equal those of new requests, over rounds of any
  /// accepted length and with any number of tokens emitted without a pass.
  template <class D, class C>
  void require_memoryless(const D& drafter, const C& constraint) {
    auto request        = drafter.begin(prompt());
    std::size_t read    = 0;
    std::size_t to_read = 9;
    std::size_t unread  = 1;
    for (; to_read + unread <= 80; to_read += unread + random_() % 7, unread = draw_unread()) {
      INFO("read " << to_read << ", unread " << unread);
      const DraftTree followed = tree(drafter, constraint, request, read, to_read, unread);
      const DraftTree fresh    = tree_at_once(drafter, constraint, to_read, unread);
      REQUIRE(std::ranges::equal(followed.tokens(), fresh.tokens()));
      REQUIRE(std::ranges::equal(followed.ancestors(), fresh.ancestors()));
      for (std::size_t i = 0; i < fresh.size(); ++i) {
        REQUIRE(followed.score(i) == fresh.score(i));
      }
      read = to_read;
    }
  }

 private:
  std::size_t draw_unread() { return random_() % 2 == 0 ? 1 : 1 + random_() % 8; }

  template <class D, class C>
  [[nodiscard]] DraftTree tree(const D& drafter, const C& constraint, typename D::Request& request,
                               std::size_t before, std::size_t read, std::size_t unread,
                               std::uint64_t seed = 0) const {
    const std::size_t width = hidden_.size() / tokens_.size();
    const DraftContext<C> context{
        .constraint = constraint,
        .state      = constraint.initial(),
        .prompt     = prompt(),
        .generated  = std::span(tokens_).first(read + unread).subspan(9),
        .unread     = unread,
        .hidden     = std::span(hidden_).subspan(before * width, (read - before) * width),
        .max_depth  = 63,
        .max_nodes  = 64 - (unread - 1),
        .seed       = seed};
    return draft_tree(drafter, request, context);
  }

  std::mt19937& random_;
  std::vector<TokenId> tokens_;
  std::vector<float> hidden_;  // [L, H]
};

}  // namespace tooldecode::test
