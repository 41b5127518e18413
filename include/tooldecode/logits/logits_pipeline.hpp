/// \file
/// LogitsPipeline: from a model's raw logits to the distribution that a token is drawn from.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/core/config.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/logits/masked_softmax.hpp>

namespace tooldecode {

/// What a LogitsPipeline does; the defaults leave the model's distribution as it is.
struct SamplingParameters {
  float temperature        = 1.0F;  ///< divides the logits; 0 leaves them, for greedy choice
  std::size_t top_k        = 0;     ///< keeps the k best tokens; 0 keeps all
  float top_p              = 1.0F;  ///< keeps the fewest best tokens that hold this probability
  float min_p              = 0.0F;  ///< keeps tokens of at least this share of the best's
  float repetition_penalty = 1.0F;  ///< divides logits > 0, multiplies others, of tokens seen
  float presence_penalty   = 0.0F;  ///< subtracted once from tokens already generated
  float frequency_penalty  = 0.0F;  ///< subtracted for each time a token was generated
  std::vector<std::pair<TokenId, float>> bias =
      {};  ///< added to logits; -infinity forbids the token
};

/// The tokens before the one that is to be drawn, in three pieces that need not be contiguous.
struct TokenPath {
  std::span<const TokenId> prompt;     ///< only the repetition penalty looks here
  std::span<const TokenId> generated;  ///< emitted so far
  std::span<const TokenId> branch;     ///< of a draft tree, from its root to the node
};

/// Makes the target distribution of one position, in place: bias, penalties along the path,
/// constraint mask, temperature, top-k, top-p, min-p, in this order.
///
/// The result are logits: softmax of the row is the distribution, and a token with -infinity is
/// never drawn. Plain decoding and verification use one pipeline, hence one distribution.
/// Candidates are ranked by (logit descending, id ascending), so ties at a cut fall the same way
/// everywhere. A model may produce anything: NaN and -infinity become a very small finite logit,
/// +infinity a very large one, so that what the mask allows always has a token to draw; only a mask
/// or a bias forbids.
///
/// \par Shapes      logits [V]; mask [ceil(V / 32)], or empty to allow all
/// \par Complexity  O(V), and O(V log V) in the worst case where top-p is used; allocates only for
///                  penalties and cuts
/// \par Threads     immutable; const members may run concurrently
/// \par Errors      Error{invalid_option} from the constructor, nothing afterwards
class LogitsPipeline {
 public:
  /// The greatest finite magnitude of a logit before the temperature divides it.
  static constexpr float logit_limit = 1e30F;
  /// The least temperature other than 0.
  static constexpr float min_temperature = 1e-6F;

  explicit LogitsPipeline(SamplingParameters options = {});

  [[nodiscard]] const SamplingParameters& options() const noexcept { return options_; }

  /// Whether the bias forbids a token whatever the logits.
  [[nodiscard]] bool is_banned(TokenId token) const noexcept;

  /// Turns raw logits into the target distribution.
  ///
  /// \return how many tokens can be drawn; 0 where mask and bias forbid all, and the row is then
  ///         all -infinity
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

  /// Top-k, then top-p of what it leaves.
  std::size_t keep_best(std::span<float> logits, std::size_t remaining) const;

  /// Min-p: the ratio of two probabilities is the exponential of a difference of logits.
  std::size_t keep_likely(std::span<float> logits) const;

  SamplingParameters options_;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/logits/logits_pipeline.ipp>
#endif
