/// \file
/// Trace: where each token of an answer came from, what its mask removed, and how the time was
/// spent.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_tree.hpp>

namespace tooldecode {

/// Where a token of an answer came from.
enum class TokenOrigin : std::uint8_t {
  sampled,   ///< sampled after a pass over all tokens before it
  forced,    ///< the only allowed token; taken without a distribution
  drafted,   ///< guessed, read in one pass with the tokens before it, and accepted
  supplied,  ///< inserted: required by an order of parameters, or part of a call that won its vote
};

/// The origin's name in machine-readable output.
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

/// What a span of time was spent on: the members of PhaseTimes, and the orders of a call.
enum class Phase : std::uint8_t {
  prefill,  ///< the first forward pass, with any waiting time
  model,    ///< later passes, and rows of the head
  constraint,
  sampling,
  drafting,
  orders,  ///< a call decoded under several orders of its parameters, passes included
};

/// The phase's name in machine-readable output.
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

/// A span of an answer's time.
struct PhaseSpan {
  using Clock = std::chrono::steady_clock;

  Phase phase = Phase::model;
  Clock::time_point begin{};
  Clock::time_point end{};
};

/// A token that a mask removed, with the probability that the model gave it.
struct RemovedToken {
  TokenId token      = 0;
  double probability = 0;
};

/// A node of one of a Trace's trees.
struct DraftPlace {
  std::size_t tree = 0;
  std::size_t node = 0;
};

/// One token of an answer. Probabilities are those of the softmax of the model's raw logits, before
/// bias, penalties, mask and temperature.
struct TokenTrace {
  TokenId token                            = 0;
  TokenOrigin origin                       = TokenOrigin::sampled;
  bool is_end                              = false;  ///< the end token, absent from Output::tokens
  double log_probability                   = 0;      ///< as in Output
  std::optional<std::size_t> allowed       = {};     ///< tokens in the mask, if there was one
  std::optional<double> model_probability  = {};     ///< of the token, if the model was run
  double removed_probability               = 0;      ///< total of all tokens that the mask removed
  std::vector<RemovedToken> removed        = {};     ///< the most likely of them, in order
  std::optional<DraftPlace> draft          = {};     ///< the draft node that guessed it
  std::chrono::steady_clock::time_point at = {};
};

/// A draft that was verified. `path` lists the accepted nodes, without the root.
struct TreeTrace {
  DraftTree tree;
  std::vector<std::size_t> path{};
  std::chrono::steady_clock::time_point at{};
};

/// How an answer came about; empty unless DecodeOptions asks for it.
///
/// Phases follow one another and do not overlap. Spans of passes that several sequences share
/// include the time that this one waited.
struct Trace {
  std::chrono::steady_clock::time_point begin{};
  std::vector<TokenTrace> tokens;  ///< ends with the end token, if one was chosen
  std::vector<TreeTrace> trees;    ///< drafts of at least one token
  std::vector<PhaseSpan> phases;

  /// The time of the last event.
  [[nodiscard]] std::chrono::steady_clock::time_point end() const noexcept;
};

namespace decode {

/// What a mask does to a model's logits, before a token is chosen.
///
/// \param count  number of removed tokens to name
/// \par Shapes      logits [V], raw; mask [ceil(V / 32)], tokens past its end are not allowed
/// \par Complexity  O(V log count)
[[nodiscard]] TokenTrace trace_mask(std::span<const float> logits, ConstMaskView mask,
                                    std::size_t count);

/// The probability that the model gave a token.
///
/// \par Shapes      logits [V], raw
/// \par Complexity  O(V)
[[nodiscard]] std::optional<double> model_probability(std::span<const float> logits, TokenId token);

/// Writes a Trace during decoding: the time since the last event, and the tokens.
///
/// \par Shapes      keeps a row of logits [V] from a distribution until a token is chosen from it
/// \par Complexity  O(V) per distribution, O(nodes) per token of a draft
/// \par Threads     a value; a copy belongs to the fork's trace
class Tracer {
 public:
  using Clock = std::chrono::steady_clock;

  /// \param removed  number of removed tokens to name for each token
  explicit Tracer(std::size_t removed) : removed_(removed) {}

  /// Discards the time since the last event: it belongs to no phase.
  void resume() { last_ = Clock::now(); }
  void spend(Trace& trace, Phase phase);
  void see(Trace& trace, std::span<const float> logits, ConstMaskView mask);
  /// Records a draft that is about to be verified.
  void open(Trace& trace, const DraftTree& tree);
  /// Removes the last draft, which is not verified after all.
  void drop(Trace& trace);
  /// Records a token that is taken, from `known` if it is set.
  void take(Trace& trace, TokenTrace token, std::optional<TokenTrace> known);

 private:
  std::size_t removed_;
  std::optional<TokenTrace> next_;   // the token that is chosen next
  std::vector<float> logits_;        // [V], raw, of the distribution it is chosen from
  std::optional<std::size_t> node_;  // node of the last tree, while the answer follows it
  Clock::time_point last_ = Clock::now();
};

}  // namespace decode

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/decode/trace.ipp>
#endif
