/// \file
/// LogitsPipeline: turns a model's raw logits into the distribution that a token is sampled from.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>

namespace tooldecode {

/// Settings of a LogitsPipeline; the defaults keep the model's distribution.
struct SamplingParameters {
  float temperature        = 1.0F;  ///< divides the logits; 0 keeps them, for greedy choice
  std::size_t top_k        = 0;     ///< keeps the k best tokens; 0 keeps all
  float top_p              = 1.0F;  ///< keeps the fewest best tokens that reach this probability
  float min_p              = 0.0F;  ///< keeps tokens with at least this share of the best one's
  float repetition_penalty = 1.0F;  ///< of seen tokens: divides logits > 0, multiplies others
  float presence_penalty   = 0.0F;  ///< subtracted once from generated tokens
  float frequency_penalty  = 0.0F;  ///< subtracted for each time a token was generated
  std::vector<std::pair<TokenId, float>> bias =
      {};  ///< added to logits; -infinity forbids the token
};

/// The tokens before the one to be sampled, in three pieces that need not be contiguous.
struct TokenPath {
  std::span<const TokenId> prompt;     ///< used only by the repetition penalty
  std::span<const TokenId> generated;  ///< emitted so far
  std::span<const TokenId> branch;     ///< from the root of a draft tree to the node
};

/// Makes the target distribution of one position, in place. Applies bias, penalties along the path,
/// constraint mask, temperature, top-k, top-p and min-p, in this order.
///
/// The result are logits: softmax of the row is the distribution, and a token with -infinity is
/// never sampled. Plain decoding and verification use the same pipeline, so they have the same
/// distribution. Candidates are ranked by (logit descending, id ascending), so ties at a cut are
/// resolved the same way everywhere. Non-finite logits are handled: NaN and -infinity become a very
/// small finite logit, +infinity a very large one. So a token can always be sampled from the mask;
/// only a mask or a bias forbids tokens.
///
/// \par Shapes      logits [V]; mask [ceil(V / 32)], or empty to allow all
/// \par Complexity  O(V), and O(V log V) in the worst case with top-p; allocates only for penalties
///                  and cuts
/// \par Threads     immutable; const members may run concurrently
/// \par Errors      constructor: Error{invalid_option}; none afterwards
class LogitsPipeline {
 public:
  /// The greatest magnitude of a logit before it is divided by the temperature.
  static constexpr float logit_limit = 1e30F;
  /// The least temperature other than 0.
  static constexpr float min_temperature = 1e-6F;

  explicit LogitsPipeline(SamplingParameters options = {});

  [[nodiscard]] const SamplingParameters& options() const noexcept { return options_; }

  /// Whether the bias forbids a token.
  [[nodiscard]] bool is_banned(TokenId token) const noexcept;

  /// Turns raw logits into the target distribution.
  ///
  /// \return number of tokens that can be sampled; if mask and bias forbid all, it is 0 and the row
  ///         is all -infinity
  std::size_t apply(std::span<float> logits, ConstMaskView mask, const TokenPath& path = {}) const;

 private:
  static constexpr float none = -std::numeric_limits<float>::infinity();

  static float tame(float logit) noexcept;

  void penalise(std::span<float> logits, const TokenPath& path) const;

  /// Calls `change(logit, count)` for each distinct token of a sorted sequence.
  template <class Change>
  static void for_each_run(const std::vector<TokenId>& sorted, std::span<float> logits,
                           Change change) {
    for (std::size_t begin = 0; begin < sorted.size();) {
      std::size_t end = begin;
      while (end < sorted.size() && sorted[end] == sorted[begin]) ++end;
      const auto token = static_cast<std::size_t>(sorted[begin]);
      if (sorted[begin] >= 0 && token < logits.size()) change(logits[token], end - begin);
      begin = end;
    }
  }

  /// Top-k, then top-p of the remaining tokens.
  std::size_t keep_best(std::span<float> logits, std::size_t remaining) const;

  /// Min-p. A ratio of probabilities is the exponential of a difference of logits.
  std::size_t keep_likely(std::span<float> logits) const;

  SamplingParameters options_;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/logits/logits_pipeline.ipp>
#endif
