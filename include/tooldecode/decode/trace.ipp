#pragma once

#include <algorithm>
#include <cmath>
#include <utility>

#include <tooldecode/decode/trace.hpp>
#include <tooldecode/logits/log_sum_exp.hpp>

namespace tooldecode {

TOOLDECODE_INLINE std::chrono::steady_clock::time_point Trace::end() const noexcept {
  return phases.empty() ? begin : phases.back().end;
}

}  // namespace tooldecode

namespace tooldecode::decode {

TOOLDECODE_INLINE TokenTrace trace_mask(std::span<const float> logits, ConstMaskView mask,
                                        std::size_t count) {
  TokenTrace result{.allowed = mask.count()};
  const double total = log_sum_exp(logits);
  if (!std::isfinite(total)) return result;  // models may produce non-finite logits
  const auto is_likelier = [](const RemovedToken& a, const RemovedToken& b) {
    return a.probability > b.probability || (a.probability == b.probability && a.token < b.token);
  };
  std::vector<RemovedToken>& best = result.removed;  // a heap; the least likely token is first
  for (std::size_t t = 0; t < logits.size(); ++t) {
    if (mask.contains(t)) continue;
    const RemovedToken removed{static_cast<TokenId>(t),
                               std::exp(static_cast<double>(logits[t]) - total)};
    if (!(removed.probability > 0)) continue;
    result.removed_probability += removed.probability;
    if (best.size() == count) {
      if (count == 0 || !is_likelier(removed, best.front())) continue;
      std::pop_heap(best.begin(), best.end(), is_likelier);
      best.pop_back();
    }
    best.push_back(removed);
    std::push_heap(best.begin(), best.end(), is_likelier);
  }
  std::sort_heap(best.begin(), best.end(), is_likelier);
  result.removed_probability = std::min(result.removed_probability, 1.0);
  return result;
}

TOOLDECODE_INLINE std::optional<double> model_probability(std::span<const float> logits,
                                                          TokenId token) {
  const double probability =
      std::exp(static_cast<double>(logits[static_cast<std::size_t>(token)]) - log_sum_exp(logits));
  return std::isfinite(probability) ? std::optional(probability) : std::nullopt;
}

TOOLDECODE_INLINE void Tracer::spend(Trace& trace, Phase phase) {
  const auto now = Clock::now();
  auto& spans    = trace.phases;
  if (!spans.empty() && spans.back().phase == phase && spans.back().end == last_) {
    spans.back().end = now;
  } else {
    spans.push_back({phase, last_, now});
  }
  last_ = now;
}

TOOLDECODE_INLINE void Tracer::see(Trace& trace, std::span<const float> logits,
                                   ConstMaskView mask) {
  const bool is_first =
      std::none_of(trace.phases.begin(), trace.phases.end(),
                   [](const PhaseSpan& span) { return span.phase == Phase::prefill; });
  spend(trace, is_first ? Phase::prefill : Phase::model);
  next_ = trace_mask(logits, mask, removed_);
  logits_.assign(logits.begin(), logits.end());
}

TOOLDECODE_INLINE void Tracer::open(Trace& trace, const DraftTree& tree) {
  spend(trace, Phase::drafting);
  node_.reset();
  if (tree.size() == 1) return;
  trace.trees.push_back({.tree = tree, .path = {}, .at = last_});
  node_ = 0;
}

TOOLDECODE_INLINE void Tracer::drop(Trace& trace) {
  if (node_) trace.trees.pop_back();
  node_.reset();
}

TOOLDECODE_INLINE void Tracer::take(Trace& trace, TokenTrace token,
                                    std::optional<TokenTrace> known) {
  if (known) {
    known->token           = token.token;
    known->is_end          = token.is_end;
    known->log_probability = token.log_probability;
    token                  = *std::move(known);
  } else if (token.origin == TokenOrigin::forced) {
    token.allowed = 1;
  } else if (next_) {
    next_->token             = token.token;
    next_->is_end            = token.is_end;
    next_->log_probability   = token.log_probability;
    next_->model_probability = model_probability(logits_, token.token);
    token                    = *std::move(next_);
  }
  next_.reset();
  // Follow the tree as the verifier does, while a child holds the token.
  if (node_) node_ = trace.trees.back().tree.find_child(*node_, token.token);
  if (node_) {
    trace.trees.back().path.push_back(*node_);
    token.draft = DraftPlace{trace.trees.size() - 1, *node_};
    if (token.origin == TokenOrigin::sampled) token.origin = TokenOrigin::drafted;
  }
  spend(trace, Phase::constraint);
  token.at = last_;
  trace.tokens.push_back(std::move(token));
}

}  // namespace tooldecode::decode
