#pragma once

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include <tooldecode/decode/sequence.hpp>
#include <tooldecode/research/self_consistency.hpp>

namespace tooldecode {

namespace detail {

TOOLDECODE_INLINE double mean_log_probability(const Output& out) {
  if (out.tokens.empty()) return -std::numeric_limits<double>::infinity();
  return std::accumulate(out.log_probabilities.begin(), out.log_probabilities.end(), 0.0) /
         static_cast<double>(out.tokens.size());
}

TOOLDECODE_INLINE std::vector<decode::Sequence> draw_all(std::size_t samples, const ModelRef& model,
                                                         const decode::Run& run, Output& cost) {
  const std::size_t vocabulary = model.vocabulary_size();
  std::vector<decode::Sequence> sequences;
  for (std::size_t i = 0; i < samples; ++i) sequences.emplace_back(run, run.options.seed + i);
  std::vector<ModelRef::Cache> caches;
  std::vector<float> rows;                  // [B, V]
  std::vector<std::size_t> asked(samples);  // [B], samples in the next pass
  std::iota(asked.begin(), asked.end(), std::size_t{0});

  for (;;) {
    decode::Stopwatch watch;
    std::erase_if(asked, [&](std::size_t i) {
      while (!sequences[i].is_finished()) {
        const auto forced = sequences[i].find_forced();
        if (!forced) return false;
        sequences[i].take(*forced);
      }
      return true;
    });
    watch.add_to(cost.times.constraint);
    if (asked.empty()) return sequences;

    rows.resize(asked.size() * vocabulary);
    if (caches.empty()) {
      // Nothing has been sampled yet, so all samples have read the same tokens.
      caches.push_back(model.make_cache());
      const auto first = std::span(rows).first(vocabulary);
      model.forward(caches[0], sequences[0].unread(), first);
      for (std::size_t i = 1; i < samples; ++i) {
        caches.push_back(model.fork(caches[0]));
        std::copy(first.begin(), first.end(),
                  rows.begin() + static_cast<std::ptrdiff_t>(i * vocabulary));
      }
      ++cost.passes;
      watch.add_to(cost.times.prefill);
    } else {
      std::vector<ModelRef::Cache*> open;
      std::vector<std::span<const TokenId>> unread;
      for (const std::size_t i : asked) {
        open.push_back(&caches[i]);
        unread.push_back(sequences[i].unread());
      }
      cost.passes += model.forward_batch(open, unread, rows);
      watch.add_to(cost.times.model);
    }

    std::vector<std::optional<TokenEvent>> drawn;
    for (std::size_t b = 0; b < asked.size(); ++b) {
      sequences[asked[b]].mark_read();
      drawn.push_back(
          sequences[asked[b]].draw(std::span(rows).subspan(b * vocabulary, vocabulary)));
    }
    watch.add_to(cost.times.sampling);
    for (std::size_t b = 0; b < asked.size(); ++b) {
      if (drawn[b]) sequences[asked[b]].take(*drawn[b]);
    }
    watch.add_to(cost.times.constraint);
  }
}

TOOLDECODE_INLINE std::size_t find_winner(
    const std::function<std::optional<std::string>(std::span<const TokenId>)>& vote_of,
    const std::vector<decode::Sequence>& drawn) {
  std::vector<std::optional<std::string>> votes;
  std::map<std::string, std::size_t> counts;
  for (const decode::Sequence& sequence : drawn) {
    const auto& tokens = sequence.output().tokens;
    votes.push_back(vote_of(tokens));
    if (votes.back()) ++counts[*votes.back()];
  }
  const auto rank = [&](std::size_t i) {
    return std::pair(votes[i] ? counts[*votes[i]] : 0, mean_log_probability(drawn[i].output()));
  };
  std::size_t best = 0;
  for (std::size_t i = 1; i < drawn.size(); ++i) {
    if (rank(i) > rank(best)) best = i;
  }
  return best;
}

}  // namespace detail

TOOLDECODE_INLINE Output SelfConsistency::draw(
    const ModelRef& model, const ConstraintRef& constraint, std::span<const TokenId> prompt,
    const LogitsPipeline& pipeline, const DecodeOptions& options, const Key& vote_of) const {
  if (samples == 0) throw Error(Errc::invalid_option, "samples", samples, "must be 1 or more");
  if (samples > 1 && options.temperature == 0) {
    throw Error(Errc::invalid_option, "temperature", options.temperature,
                "must be above 0 for samples to differ");
  }
  const decode::Run run{constraint, prompt, pipeline, options, model.context_length()};
  Output cost;
  std::vector<decode::Sequence> drawn = detail::draw_all(samples, model, run, cost);
  decode::Sequence& best              = drawn[detail::find_winner(vote_of, drawn)];
  best.report();
  Output& out = best.output();
  out.passes  = cost.passes;
  out.times   = cost.times;
  return std::move(out);
}

}  // namespace tooldecode
