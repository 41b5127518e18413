/// \file
/// FrequencyRanks: a vocabulary ordered by how often its tokens occur.
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

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode {

namespace detail {

// Shared by FrequencyRanks and the subsets taken from it.
struct RankTable {
  std::vector<TokenId> ids;                   // [V] by rank
  std::vector<std::uint32_t> ranks;           // [V] by token
  std::vector<std::uint64_t> running_counts;  // [V + 1] occurrences of the first k tokens
  std::size_t always = 0;                     // tokens ranked first regardless of count
  std::string source;

  [[nodiscard]] std::size_t rank_of(TokenId token) const;
};

}  // namespace detail

/// The tokens of a request's text, and for each token that begins with a space also the token
/// without it: text after a space in a prompt often follows a quote in a call.
[[nodiscard]] std::vector<TokenId> context_tokens(std::span<const TokenId> text,
                                                  const Vocabulary& vocabulary);

/// The tokens that a draft may propose: the first K of a ranking, plus added ones.
///
/// The rows of a pruned head are in this order, so a larger K only appends rows to the ranked ones.
///
/// \par Shapes      K ranked tokens, then the added ones
/// \par Complexity  a copy shares everything; `with` is O(added + L) for L tokens; O(1) per read
/// \par Threads     immutable after construction
/// \par Errors      Error{unknown_token} for a token outside the vocabulary
class RankedTokens {
 public:
  /// V.
  [[nodiscard]] std::size_t vocabulary_size() const noexcept { return table_->ids.size(); }
  /// The first K by rank; valid as long as any copy of the ranking or of this subset.
  [[nodiscard]] std::span<const TokenId> ranked() const noexcept;
  /// The added tokens, in the order given.
  [[nodiscard]] std::span<const TokenId> added() const noexcept { return added_->given; }
  [[nodiscard]] std::size_t size() const noexcept { return k_ + added_->given.size(); }
  /// Ranked tokens first, then the added ones.
  [[nodiscard]] TokenId operator[](std::size_t row) const noexcept;
  [[nodiscard]] bool contains(TokenId token) const;

  /// Adds tokens, such as those of the call syntax, or the `context_tokens` of a request: tokens of
  /// its prompt are likely in the answer, even if they are rare elsewhere.
  ///
  /// \par Source      the limitation that Zhao et al., arXiv:2502.14856, name: ranks are static
  [[nodiscard]] RankedTokens with(std::span<const TokenId> tokens) const;

 private:
  friend class FrequencyRanks;
  struct Added {
    std::vector<TokenId> given{};
    std::unordered_set<TokenId> set{};  // the tokens of `given`
  };

  RankedTokens(std::shared_ptr<const detail::RankTable> table, std::size_t k,
               std::shared_ptr<const Added> added)
      : table_(std::move(table)), k_(k), added_(std::move(added)) {}

  std::shared_ptr<const detail::RankTable> table_;
  std::size_t k_;
  std::shared_ptr<const Added> added_;
};

/// All tokens of a vocabulary by how often they occur in some text, most frequent first.
///
/// Few tokens make up most of any text, so drafts can omit the others. First come the tokens that
/// must always be included (end tokens and named ones), by id; then those that occur, by count and,
/// if equal, by id; then the rest, by id. Every token has one rank, so `first(k)` is a prefix of
/// `first(k + 1)`.
///
/// \par Shapes      V ranks; counts [V] by token
/// \par Complexity  O(V log V) to build; a copy shares everything; O(1) per read
/// \par Threads     immutable after construction
/// \par Errors      Error{unknown_token} for a token outside the vocabulary; {shape_mismatch} if
///                  the counts are not V; {invalid_option} from `first`; from `parse` and `load`
///                  {file_unreadable}, {malformed_json} and, with a JSON pointer, {malformed_file}
/// \par Source      Zhao et al., FR-Spec, arXiv:2502.14856, section 3
class FrequencyRanks {
 public:
  /// The share of the text that the first k tokens cover.
  struct Coverage {
    std::size_t k = 0;
    double share  = 0;  ///< of the occurrences, in [0, 1]
  };

  /// \param always  tokens to rank first; repeated ones count once
  /// \param source  a description of the text that was counted
  explicit FrequencyRanks(std::span<const std::uint64_t> counts,  // [V]
                          std::span<const TokenId> always = {}, std::string source = {});
  /// Ranks end tokens and named (control and user-defined) tokens first.
  FrequencyRanks(std::span<const std::uint64_t> counts,  // [V]
                 const Vocabulary& vocabulary, std::string source = {});

  /// V.
  [[nodiscard]] std::size_t size() const noexcept { return table_->ids.size(); }
  /// Number of tokens that rank first regardless of count.
  [[nodiscard]] std::size_t always_count() const noexcept { return table_->always; }
  [[nodiscard]] const std::string& source() const noexcept { return table_->source; }
  [[nodiscard]] std::size_t rank_of(TokenId token) const { return table_->rank_of(token); }
  [[nodiscard]] std::uint64_t count(TokenId token) const;
  [[nodiscard]] std::uint64_t total() const noexcept { return table_->running_counts.back(); }

  /// The first k tokens; k is at least `always_count()` and at most V.
  [[nodiscard]] RankedTokens first(std::size_t k) const;

  /// Share of the occurrences covered by the first k tokens; 0 if nothing was counted.
  [[nodiscard]] double coverage(std::size_t k) const noexcept;
  /// Coverage for several k, from V down to V / 32.
  [[nodiscard]] std::vector<Coverage> coverage_table() const;

  /// JSON text. Tokens that do not occur are left out. Values derived from the counts are included
  /// for readers and ignored by `parse`.
  [[nodiscard]] std::string to_json() const;
  /// Reads the output of `to_json`; `place` precedes the place in errors.
  [[nodiscard]] static FrequencyRanks parse(std::string_view text, const std::string& place = "");

  /// Writes a file; Error{file_unreadable} on failure.
  void save(const std::filesystem::path& path) const;
  [[nodiscard]] static FrequencyRanks load(const std::filesystem::path& path);

 private:
  static constexpr const char* format_ = "tooldecode-ranks-1";

  static std::vector<TokenId> always_in(const Vocabulary& vocabulary, std::size_t size);

  std::shared_ptr<const detail::RankTable> table_;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/vocabulary/frequency_ranks.ipp>
#endif
