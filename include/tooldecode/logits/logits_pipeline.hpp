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

  explicit LogitsPipeline(SamplingParameters options = {}) : options_(std::move(options)) {
    const SamplingParameters& o = options_;
    const auto require          = [](bool met, const char* where, const char* what) {
      if (!met) throw Error(Errc::invalid_option, where, what);
    };
    const auto finite = [](float x, float limit) { return std::abs(x) <= limit; };
    require(o.temperature == 0 || (o.temperature >= min_temperature && finite(o.temperature, 1e6F)),
            "temperature", "must be 0, or from 1e-6 to 1e6");
    require(o.top_p > 0 && o.top_p <= 1, "top_p", "must be in (0, 1]");
    require(o.min_p >= 0 && o.min_p <= 1, "min_p", "must be in [0, 1]");
    require(o.repetition_penalty > 0 && finite(o.repetition_penalty, 1e6F), "repetition_penalty",
            "must be positive and at most 1e6");
    require(finite(o.presence_penalty, 1e6F), "presence_penalty", "must be from -1e6 to 1e6");
    require(finite(o.frequency_penalty, 1e6F), "frequency_penalty", "must be from -1e6 to 1e6");
    for (const auto& [token, bias] : o.bias) {
      require(token >= 0, "bias", "must name tokens from 0 on");
      require(finite(bias, 1e6F) || bias == none, "bias", "must be from -1e6 to 1e6, or -infinity");
    }
  }

  [[nodiscard]] const SamplingParameters& options() const noexcept { return options_; }

  /// Whether the bias forbids a token whatever the logits.
  [[nodiscard]] bool is_banned(TokenId token) const noexcept {
    return std::any_of(options_.bias.begin(), options_.bias.end(), [token](const auto& entry) {
      return entry.first == token && entry.second == none;
    });
  }

  /// Turns raw logits into the target distribution.
  ///
  /// \return how many tokens can be drawn; 0 where mask and bias forbid all, and the row is then
  ///         all -infinity
  std::size_t apply(std::span<float> logits, ConstMaskView mask, const TokenPath& path = {}) const {
    for (float& logit : logits) logit = tame(logit);
    for (const auto& [token, bias] : options_.bias) {
      if (static_cast<std::size_t>(token) < logits.size()) {
        logits[static_cast<std::size_t>(token)] += bias;
      }
    }
    penalise(logits, path);
    std::size_t remaining = 0;
    const float scale     = options_.temperature == 0 ? 1.0F : options_.temperature;
    for (std::size_t first = 0; first < logits.size(); first += 32) {
      const std::uint32_t allowed = mask.empty()               ? ~std::uint32_t{0}
                                    : first / 32 < mask.size() ? mask[first / 32]
                                                               : 0;
      const auto part = logits.subspan(first, std::min<std::size_t>(32, logits.size() - first));
      if (allowed == 0) {
        std::fill(part.begin(), part.end(), none);
        continue;
      }
      for (std::size_t i = 0; i < part.size(); ++i) {
        const bool drawn = (allowed >> i & 1) != 0 && part[i] != none;
        part[i]          = drawn ? tame(part[i]) / scale : none;
        remaining += drawn;
      }
    }
    const bool cuts = options_.top_p < 1 || (options_.top_k != 0 && options_.top_k < remaining);
    if (cuts && remaining > 1) remaining = keep_best(logits, remaining);
    if (options_.min_p > 0 && remaining > 1) remaining = keep_likely(logits);
    return remaining;
  }

 private:
  static constexpr float none = -std::numeric_limits<float>::infinity();

  static float tame(float logit) noexcept {
    if (logit != logit) return -logit_limit;
    return std::min(std::max(logit, -logit_limit), logit_limit);
  }

  void penalise(std::span<float> logits, const TokenPath& path) const {
    const bool repeats = options_.repetition_penalty != 1;
    if (!repeats && options_.presence_penalty == 0 && options_.frequency_penalty == 0) return;
    std::vector<TokenId> generated(path.generated.begin(), path.generated.end());
    generated.insert(generated.end(), path.branch.begin(), path.branch.end());
    std::sort(generated.begin(), generated.end());
    if (repeats) {
      std::vector<TokenId> seen(path.prompt.begin(), path.prompt.end());
      seen.insert(seen.end(), generated.begin(), generated.end());
      std::sort(seen.begin(), seen.end());
      for_each_run(seen, logits, [this](float& logit, std::size_t) {
        logit =
            logit > 0 ? logit / options_.repetition_penalty : logit * options_.repetition_penalty;
      });
    }
    for_each_run(generated, logits, [this](float& logit, std::size_t count) {
      logit -= options_.presence_penalty + options_.frequency_penalty * static_cast<float>(count);
    });
  }

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
  std::size_t keep_best(std::span<float> logits, std::size_t remaining) const {
    std::vector<TokenId> ranked;
    ranked.reserve(remaining);
    for (std::size_t t = 0; t < logits.size(); ++t) {
      if (logits[t] != none) ranked.push_back(static_cast<TokenId>(t));
    }
    const auto logit_of = [logits](TokenId t) { return logits[static_cast<std::size_t>(t)]; };
    const auto before   = [logit_of](TokenId a, TokenId b) {
      return logit_of(a) > logit_of(b) || (logit_of(a) == logit_of(b) && a < b);
    };
    const auto at = [&ranked](std::size_t i) {
      return ranked.begin() + static_cast<std::ptrdiff_t>(i);
    };

    std::size_t kept = ranked.size();
    if (options_.top_k != 0 && options_.top_k < kept) {
      kept = options_.top_k;
      std::nth_element(at(0), at(kept), ranked.end(), before);
    }
    if (options_.top_p < 1) {
      const auto top = static_cast<double>(logit_of(*std::min_element(at(0), at(kept), before)));
      const auto mass_of = [&](TokenId t) {
        return std::exp(static_cast<double>(logit_of(t)) - top);
      };
      double total = 0;
      for (std::size_t i = 0; i < kept; ++i) total += mass_of(ranked[i]);
      // The cut is usually near the front, so the rest is never put in order.
      double held          = 0;
      std::size_t nucleus  = 0;
      std::size_t in_order = 0;
      for (std::size_t batch = 64; nucleus < kept; batch *= 4) {
        const std::size_t end = std::min(kept, in_order + batch);
        if (end < kept) std::nth_element(at(in_order), at(end), at(kept), before);
        std::sort(at(in_order), at(end), before);
        in_order = end;
        while (nucleus < end &&
               (nucleus == 0 || held < static_cast<double>(options_.top_p) * total)) {
          held += mass_of(ranked[nucleus++]);
        }
        if (nucleus < end || held >= static_cast<double>(options_.top_p) * total) break;
      }
      kept = nucleus;
    }
    for (std::size_t i = kept; i < ranked.size(); ++i) {
      logits[static_cast<std::size_t>(ranked[i])] = none;
    }
    return kept;
  }

  /// Min-p: the ratio of two probabilities is the exponential of a difference of logits.
  std::size_t keep_likely(std::span<float> logits) const {
    const float top   = *std::max_element(logits.begin(), logits.end());
    const float floor = top + std::log(options_.min_p);
    std::size_t kept  = 0;
    for (float& logit : logits) {
      if (logit < floor) logit = none;
      kept += logit != none;
    }
    return kept;
  }

  SamplingParameters options_;
};

}  // namespace tooldecode
