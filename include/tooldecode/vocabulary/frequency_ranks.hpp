/// \file
/// FrequencyRanks: a vocabulary in the order of how often its tokens are used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <tooldecode/core/config.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode {

namespace detail {

// What FrequencyRanks and the subsets taken from it share.
struct RankTable {
  std::vector<TokenId> ids;                   // [V] by rank
  std::vector<std::uint32_t> ranks;           // [V] by token
  std::vector<std::uint64_t> running_counts;  // [V + 1] occurrences of the first k tokens
  std::size_t always = 0;                     // tokens put first whatever their count
  std::string source;

  [[nodiscard]] std::size_t rank_of(TokenId token) const;
};

}  // namespace detail

/// The tokens of a request's text, and each that begins with a space also without it: what follows
/// a space in a prompt often follows a quote in a call.
[[nodiscard]] std::vector<TokenId> context_tokens(std::span<const TokenId> text,
                                                  const Vocabulary& vocabulary);

/// The tokens that a draft may propose: the first K of a ranking, and others beside them.
///
/// Rows of a head built from it stand in this order, so that a larger K only appends rows to the
/// ranked ones.
///
/// \par Shapes      K ranked tokens and those added
/// \par Complexity  a copy shares everything; `with` is O(added + L) for L tokens; O(1) per read
/// \par Threads     immutable after construction
/// \par Errors      Error{unknown_token} for a token outside the vocabulary
class RankedTokens {
 public:
  /// V.
  [[nodiscard]] std::size_t vocabulary_size() const noexcept { return table_->ids.size(); }
  /// The first K by rank; valid while any copy of the ranking or of this subset lives.
  [[nodiscard]] std::span<const TokenId> ranked() const noexcept;
  /// Those of other ranks, in the order in which they were given.
  [[nodiscard]] std::span<const TokenId> added() const noexcept { return added_->given; }
  /// Number of tokens, ranked and added.
  [[nodiscard]] std::size_t size() const noexcept { return k_ + added_->given.size(); }
  /// Ranked tokens first, then the added ones.
  [[nodiscard]] TokenId operator[](std::size_t row) const noexcept;
  [[nodiscard]] bool contains(TokenId token) const;

  /// The same with tokens that must be there for good, such as those that the syntax of calls is
  /// written with.
  [[nodiscard]] RankedTokens with(std::span<const TokenId> tokens) const;
  /// The same with the tokens of one request: those of its prompt and of its tools' documents, rare
  /// as they may be elsewhere, are likely in its answer.
  ///
  /// \par Source      the limitation that Zhao et al., arXiv:2502.14856, name: ranks are static
  [[nodiscard]] RankedTokens with_context(std::span<const TokenId> tokens) const;
  /// The same with `context_tokens`; Error{shape_mismatch} for another vocabulary's size.
  [[nodiscard]] RankedTokens with_context(std::span<const TokenId> tokens,
                                          const Vocabulary& vocabulary) const;

 private:
  friend class FrequencyRanks;
  struct Added {
    std::vector<TokenId> given{};
    std::unordered_set<TokenId> set{};  // the same
  };

  RankedTokens(std::shared_ptr<const detail::RankTable> table, std::size_t k,
               std::shared_ptr<const Added> added)
      : table_(std::move(table)), k_(k), added_(std::move(added)) {}

  std::shared_ptr<const detail::RankTable> table_;
  std::size_t k_;
  std::shared_ptr<const Added> added_;
};

/// All tokens of a vocabulary by how often they occur in some text, the most frequent first.
///
/// Few tokens make up most of any text, so that a draft may do without the others. First come the
/// tokens that must always be there (those that end a text or have a name), by id; then those that
/// occur, by count and among equals by id; then the others by id. Every token has one rank, so
/// that any `first(k)` is the beginning of any larger one.
///
/// \par Shapes      V ranks; counts [V] by token
/// \par Complexity  O(V log V) to build; a copy shares everything; O(1) per read
/// \par Threads     immutable after construction
/// \par Errors      Error{unknown_token} for a token outside the vocabulary; {shape_mismatch} for
///                  counts that are not V; {invalid_option} from `first`; from `parse` and `load`
///                  {file_unreadable}, {malformed_json} and, with a JSON pointer, {malformed_file}
/// \par Source      Zhao et al., FR-Spec, arXiv:2502.14856, section 3
class FrequencyRanks {
 public:
  /// How much of the text the first k tokens make up.
  struct Coverage {
    std::size_t k = 0;
    double share  = 0;  ///< of the occurrences, in [0, 1]
  };

  /// \param always  tokens to rank first; repeated ones count once
  /// \param source  says in words what was counted
  explicit FrequencyRanks(std::span<const std::uint64_t> counts,  // [V]
                          std::span<const TokenId> always = {}, std::string source = {});
  /// Tokens that end a text and those with a name, control and user-defined ones, rank first.
  FrequencyRanks(std::span<const std::uint64_t> counts,  // [V]
                 const Vocabulary& vocabulary, std::string source = {});

  /// V.
  [[nodiscard]] std::size_t size() const noexcept { return table_->ids.size(); }
  /// Tokens that rank first whatever their count.
  [[nodiscard]] std::size_t always_count() const noexcept { return table_->always; }
  /// What was counted, in words.
  [[nodiscard]] const std::string& source() const noexcept { return table_->source; }
  [[nodiscard]] std::size_t rank_of(TokenId token) const { return table_->rank_of(token); }
  /// Occurrences of a token.
  [[nodiscard]] std::uint64_t count(TokenId token) const;
  /// Occurrences of all tokens.
  [[nodiscard]] std::uint64_t total() const noexcept { return table_->running_counts.back(); }

  /// The k tokens of the first ranks; k is at least `always_count()` and at most V.
  [[nodiscard]] RankedTokens first(std::size_t k) const;
  /// The same with more tokens that rank first.
  [[nodiscard]] FrequencyRanks with(std::span<const TokenId> tokens) const;

  /// Share of the occurrences that the first k tokens hold; 0 where nothing was counted.
  [[nodiscard]] double coverage(std::size_t k) const noexcept;
  /// Coverage for shares of the vocabulary from all of it down to a thirty-second.
  [[nodiscard]] std::vector<Coverage> coverage_table() const;

  /// JSON text: what follows from the counts is there for readers, and is not read back. Tokens
  /// that do not occur are left out.
  [[nodiscard]] std::string to_json() const;
  /// Reads what `to_json` has written; `place` is put before the place in errors.
  [[nodiscard]] static FrequencyRanks parse(std::string_view text, const std::string& place = "");

  /// Writes a file; Error{file_unreadable} where that fails.
  void save(const std::filesystem::path& path) const;
  /// Reads a file.
  [[nodiscard]] static FrequencyRanks load(const std::filesystem::path& path);

 private:
  static constexpr const char* format_ = "tooldecode-ranks-1";

  static std::vector<TokenId> always_in(const Vocabulary& vocabulary, std::size_t size);

  std::shared_ptr<const detail::RankTable> table_;
};

/// Out of line, because it is long.

/// Out of line, because it is long.

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/vocabulary/frequency_ranks.ipp>
#endif
