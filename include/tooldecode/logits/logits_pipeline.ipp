#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <tooldecode/core/error.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>

namespace tooldecode {

TOOLDECODE_INLINE LogitsPipeline::LogitsPipeline(SamplingParameters options)
    : options_(std::move(options)) {
  const SamplingParameters& o = options_;
  const auto require          = [](bool met, const char* where, auto value, const char* what) {
    if (!met) throw Error(Errc::invalid_option, where, value, what);
  };
  const auto finite = [](float x, float limit) { return std::abs(x) <= limit; };
  require(o.temperature == 0 || (o.temperature >= min_temperature && finite(o.temperature, 1e6F)),
          "temperature", o.temperature, "must be 0, or from 1e-6 to 1e6");
  require(o.top_p > 0 && o.top_p <= 1, "top_p", o.top_p, "must be above 0 and at most 1");
  require(o.min_p >= 0 && o.min_p <= 1, "min_p", o.min_p, "must be from 0 to 1");
  require(o.repetition_penalty > 0 && finite(o.repetition_penalty, 1e6F), "repetition_penalty",
          o.repetition_penalty, "must be above 0 and at most 1e6");
  require(finite(o.presence_penalty, 1e6F), "presence_penalty", o.presence_penalty,
          "must be from -1e6 to 1e6");
  require(finite(o.frequency_penalty, 1e6F), "frequency_penalty", o.frequency_penalty,
          "must be from -1e6 to 1e6");
  for (const auto& [token, bias] : o.bias) {
    require(token >= 0, "bias", token, "must name a token: 0 or more");
    require(finite(bias, 1e6F) || bias == none, "bias", bias,
            "must be from -1e6 to 1e6, or -infinity");
  }
}

TOOLDECODE_INLINE bool LogitsPipeline::is_banned(TokenId token) const noexcept {
  return std::any_of(options_.bias.begin(), options_.bias.end(), [token](const auto& entry) {
    return entry.first == token && entry.second == none;
  });
}

TOOLDECODE_INLINE std::size_t LogitsPipeline::apply(std::span<float> logits, ConstMaskView mask,
                                                    const TokenPath& path) const {
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

TOOLDECODE_INLINE float LogitsPipeline::tame(float logit) noexcept {
  if (logit != logit) return -logit_limit;
  return std::min(std::max(logit, -logit_limit), logit_limit);
}

TOOLDECODE_INLINE void LogitsPipeline::penalise(std::span<float> logits,
                                                const TokenPath& path) const {
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
      logit = logit > 0 ? logit / options_.repetition_penalty : logit * options_.repetition_penalty;
    });
  }
  for_each_run(generated, logits, [this](float& logit, std::size_t count) {
    logit -= options_.presence_penalty + options_.frequency_penalty * static_cast<float>(count);
  });
}

TOOLDECODE_INLINE std::size_t LogitsPipeline::keep_best(std::span<float> logits,
                                                        std::size_t remaining) const {
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
    const auto top     = static_cast<double>(logit_of(*std::min_element(at(0), at(kept), before)));
    const auto mass_of = [&](TokenId t) {
      return std::exp(static_cast<double>(logit_of(t)) - top);
    };
    double total = 0;
    for (std::size_t i = 0; i < kept; ++i) total += mass_of(ranked[i]);
    // The cut is usually near the front, so the rest is never sorted.
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

TOOLDECODE_INLINE std::size_t LogitsPipeline::keep_likely(std::span<float> logits) const {
  const float top   = *std::max_element(logits.begin(), logits.end());
  const float floor = top + std::log(options_.min_p);
  std::size_t kept  = 0;
  for (float& logit : logits) {
    if (logit < floor) logit = none;
    kept += logit != none;
  }
  return kept;
}

}  // namespace tooldecode
