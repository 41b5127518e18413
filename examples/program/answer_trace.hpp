/// \file
/// AnswerTrace: the traces of an answer as JSON, turn by turn, and its spans on a timeline.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/consistency/order_consistency_sampler.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/decode/trace.hpp>
#include <tooldecode/text/utf8.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

#include <program/json.hpp>
#include <program/timeline.hpp>

namespace program {

/// How many of the removed tokens are named.
inline constexpr std::size_t traced_alternatives = 5;

/// One answer with one or several turns: an engine continues after cached tool results.
class AnswerTrace {
 public:
  /// \param name  of the answer and of its track
  AnswerTrace(const tooldecode::Vocabulary& vocabulary, std::string name)
      : vocabulary_(&vocabulary), name_(std::move(name)) {}

  void add(const tooldecode::Output& output);

  /// Adds the tokens of the results of a turn's calls, read before the next turn.
  ///
  /// \param until  when the next turn began
  void add_results(std::span<const tooldecode::TokenId> tokens,
                   std::chrono::steady_clock::time_point until);

  void add(std::span<const tooldecode::CallVote> votes);

  void set(const char* key, Json value) { facts_[key] = std::move(value); }

  [[nodiscard]] const std::vector<TimelineSpan>& spans() const noexcept { return spans_; }

  [[nodiscard]] Json json() const;

 private:
  struct Totals {
    std::size_t tokens = 0, forced = 0, cached = 0, passes = 0;
    tooldecode::DraftCounts drafts{};
    tooldecode::PhaseTimes times{};
  };

  // The trace of the answer's tokens. Tokens that a method replaced count as supplied.
  static std::vector<tooldecode::TokenTrace> told(const tooldecode::Output& output);

  static std::string readable(std::string_view bytes);
  // A token that writes no text also gets its name.
  [[nodiscard]] Json token_json(tooldecode::TokenId token, std::string text) const;
  static std::string hexadecimal(std::string_view bytes);
  // Appends the rest of an incomplete character to a token's text.
  static void append(Json& token, const std::string& rest);

  void span(std::string what, std::string category, TimelineSpan::Clock::time_point begin,
            TimelineSpan::Clock::time_point end, Json args = Json::object());

  void count(const tooldecode::Output& output);
  [[nodiscard]] Json totals_json() const;

  [[nodiscard]] Json tree_json(const tooldecode::TreeTrace& trace) const;

  [[nodiscard]] Json vote_json(const tooldecode::CallVote& vote) const;

  const tooldecode::Vocabulary* vocabulary_;
  std::string name_;
  std::string finish_;
  std::size_t text_end_ = 0;  // after the last token that is not an end token
  std::chrono::steady_clock::time_point end_{};
  Totals totals_;
  Json tokens_ = Json::array();
  Json trees_  = Json::array();
  Json votes_  = Json::array();
  Json facts_  = Json::object();
  std::vector<TimelineSpan> spans_;
};

}  // namespace program
