#pragma once

#include <numeric>

#include <tooldecode/research/sampled_drafter.hpp>

namespace tooldecode {

TOOLDECODE_INLINE ProposalDistribution draw_drafts(draft::TokenLogits logits, float temperature,
                                                   std::size_t count, NoiseKey key,
                                                   std::vector<std::size_t>& drawn) {
  ProposalDistribution distribution{std::move(logits.tokens),
                                    std::vector<double>(logits.logits.size())};
  std::vector<double>& q = distribution.probabilities;  // [K]
  const auto top         = static_cast<double>(greatest(logits.logits));
  for (std::size_t i = 0; i < q.size(); ++i) {
    const double weight =
        std::exp((static_cast<double>(logits.logits[i]) - top) / static_cast<double>(temperature));
    q[i] = weight > 0 ? weight : 0;
  }
  double sum = std::accumulate(q.begin(), q.end(), 0.0);
  if (!(sum > 0)) return {};
  for (double& weight : q) weight /= sum;

  std::vector<double> left = q;
  for (std::size_t draw = 0; draw < count; ++draw) {
    sum = std::accumulate(left.begin(), left.end(), 0.0);
    if (sum == 0) break;
    double at          = sum * core::uniform(key.seed, key.position, static_cast<TokenId>(draw),
                                             core::NoiseStream::drafts);
    std::size_t chosen = 0;
    for (std::size_t i = 0; i < left.size() && at >= 0; ++i) {
      if (left[i] == 0) continue;
      chosen = i;
      at -= left[i];
    }
    left[chosen] = 0;
    drawn.push_back(chosen);
  }
  return distribution;
}

}  // namespace tooldecode
