/// \file
/// Trace: how each token of an answer came, what its mask removed, and when what was done.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_tree.hpp>
#include <tooldecode/logits/masked_softmax.hpp>

namespace tooldecode {

/// How a token came into an answer.
enum class TokenOrigin : std::uint8_t {
  sampled,   ///< chosen from the distribution after a pass over all before it
  forced,    ///< the only one that was allowed: no distribution was asked for
  drafted,   ///< guessed, read in one pass with the tokens before it, and then chosen
  supplied,  ///< put in: what an order of parameters has to have, or a call that won its vote
};

/// The origin's name, as written in machine-readable output.
[[nodiscard]] constexpr std::string_view name(TokenOrigin origin) noexcept {
  switch (origin) {
    case TokenOrigin::sampled:
      return "sampled";
    case TokenOrigin::forced:
      return "forced";
    case TokenOrigin::drafted:
      return "drafted";
    case TokenOrigin::supplied:
      return "supplied";
  }
  return "unknown";
}

/// What a stretch of time went into: the members of PhaseTimes, and the orders of a call.
enum class Phase : std::uint8_t {
  prefill,     ///< the first forward pass, and whatever it waited for
  model,       ///< the others, and the rows of the head
  constraint,  ///< masks and state transitions
  sampling,    ///< the logits pipeline and the choice
  drafting,    ///< guesses of what follows, by a drafter
  orders,      ///< a call under several orders of its parameters, passes included
};

/// The phase's name, as written in machine-readable output.
[[nodiscard]] constexpr std::string_view name(Phase phase) noexcept {
  switch (phase) {
    case Phase::prefill:
      return "prefill";
    case Phase::model:
      return "model";
    case Phase::constraint:
      return "constraint";
    case Phase::sampling:
      return "sampling";
    case Phase::drafting:
      return "drafting";
    case Phase::orders:
      return "orders";
  }
  return "unknown";
}

/// A stretch of an answer's time.
struct PhaseSpan {
  using Clock = std::chrono::steady_clock;

  Phase phase = Phase::model;
  Clock::time_point begin{};
  Clock::time_point end{};
};

/// A token that a mask removed, with what the model alone gave it.
struct RemovedToken {
  TokenId token      = 0;
  double probability = 0;
};

/// A node of one of a Trace's trees.
struct DraftPlace {
  std::size_t tree = 0;
  std::size_t node = 0;
};

/// One token of an answer. Probabilities are those of the softmax of the model's own logits, before
/// bias, penalties, mask and temperature.
struct TokenTrace {
  TokenId token                            = 0;
  TokenOrigin origin                       = TokenOrigin::sampled;
  bool is_end                              = false;  ///< the end token, which Output::tokens lacks
  double log_probability                   = 0;      ///< as Output has it
  std::optional<std::size_t> allowed       = {};     ///< tokens of the mask, where there was one
  std::optional<double> model_probability  = {};     ///< of the token, where the model was asked
  double removed_probability               = 0;   ///< of all tokens together that the mask removed
  std::vector<RemovedToken> removed        = {};  ///< the likeliest of them, the first one first
  std::optional<DraftPlace> draft          = {};  ///< where it had been guessed
  std::chrono::steady_clock::time_point at = {};  ///< when it was taken
};

/// A draft that was verified; nodes that were accepted are in the path, which has no root.
struct TreeTrace {
  DraftTree tree;
  std::vector<std::size_t> path{};
  std::chrono::steady_clock::time_point at{};
};

/// All that is known of how an answer came about; empty where DecodeOptions did not ask for it.
///
/// Spans of phases follow one another and do not overlap; those of passes that several sequences
/// share hold the time that this one waited, too.
struct Trace {
  std::chrono::steady_clock::time_point begin{};
  std::vector<TokenTrace> tokens;  ///< the end token, where one was chosen, is the last
  std::vector<TreeTrace> trees;    ///< of drafts of at least one token
  std::vector<PhaseSpan> phases;

  /// When the last of it was done.
  [[nodiscard]] std::chrono::steady_clock::time_point end() const noexcept;
};

namespace decode {

/// What a mask does to a model's logits, without the token that is then chosen.
///
/// \param count  how many of the tokens that are removed are named
/// \par Shapes      logits [V], raw; mask [ceil(V / 32)], what it has no bit for is not allowed
/// \par Complexity  O(V log count)
[[nodiscard]] TokenTrace trace_mask(std::span<const float> logits, ConstMaskView mask,
                                    std::size_t count);

/// What the model alone gave a token.
///
/// \par Shapes      logits [V], raw
/// \par Complexity  O(V)
[[nodiscard]] std::optional<double> model_probability(std::span<const float> logits, TokenId token);

/// Writes a Trace while an answer comes about: what was spent since it was last told, and tokens.
///
/// \par Shapes      keeps a row of logits [V] from a distribution to the token chosen from it
/// \par Complexity  O(V) per distribution, O(nodes) per token of a draft
/// \par Threads     a value; the copy of a branch goes on with the branch's own trace
class Tracer {
 public:
  using Clock = std::chrono::steady_clock;

  /// \param removed  how many removed tokens are named for each token
  explicit Tracer(std::size_t removed) : removed_(removed) {}

  /// What was done since it was last told is not a phase.
  void resume() { last_ = Clock::now(); }
  void spend(Trace& trace, Phase phase);
  /// The model's logits are there.
  void see(Trace& trace, std::span<const float> logits, ConstMaskView mask);
  /// A draft is about to be verified.
  void open(Trace& trace, const DraftTree& tree);
  /// The draft is not verified after all.
  void drop(Trace& trace);
  /// A token is taken, as `known` has it where that is said.
  void take(Trace& trace, TokenTrace token, std::optional<TokenTrace> known);

 private:
  std::size_t removed_;
  std::optional<TokenTrace> next_;   // of the token that is to be chosen
  std::vector<float> logits_;        // [V], raw, that it is chosen from
  std::optional<std::size_t> node_;  // of the last tree, where the answer is inside it
  Clock::time_point last_ = Clock::now();
};

}  // namespace decode

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/decode/trace.ipp>
#endif
