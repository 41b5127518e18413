/// \file
/// SelfConsistency: the strategy that draws several answers and returns the one most agree on.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/decode/sequence.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>
#include <tooldecode/model/forward_batch.hpp>

namespace tooldecode {

/// What an answer votes for: its calls in canonical form where the constraint can `parse` a text of
/// its `vocabulary`, else its tokens. An answer without a call votes for making none; one that is
/// no answer of the format has no vote.
template <Constraint C>
[[nodiscard]] std::optional<std::string> find_vote(const C& constraint,
                                                   std::span<const TokenId> tokens) {
  std::string vote;
  if constexpr (requires(std::string_view text) {
                  constraint.parse(text).front().canonical_text();
                  constraint.vocabulary().decode(tokens);
                }) {
    try {
      for (const auto& call : constraint.parse(constraint.vocabulary().decode(tokens))) {
        vote += call.canonical_text() + '\n';
      }
    } catch (const Error&) {
      return std::nullopt;
    }
  } else {
    for (const TokenId token : tokens) vote += std::to_string(token) + ' ';
  }
  return vote;
}

/// Draws `samples` answers and returns the one whose vote most of them share.
///
/// Sample i is what Sequential gives with seed `options.seed + i`, token for token. All share the
/// prompt's pass by forks of its cache and then decode as one batch per step, which samples leave
/// when they end. The winner is the sample with the most votes for its key; among equals the one of
/// the greatest mean log-probability per token (an empty answer has the least), then the first. The
/// listener hears the winner's tokens when all is drawn; `passes` and `times` are the whole run's.
///
/// \par Shapes      prompt [L]; rows of logits [samples, V] and `samples` forks of the cache are
///                  kept
/// \par Complexity  at most max_tokens + 1 passes of a BatchModel
/// \par Threads     a value; runs may be concurrent where `key` may be called so
/// \par Errors      Error{invalid_option} for no samples, or for several at temperature 0, where
///                  all would be equal; what `key` throws
/// \par Source      Wang et al., Self-consistency, arXiv:2203.11171, section 2
struct SelfConsistency {
  std::size_t samples = 6;  ///< answers to draw
  /// What an answer votes for, nothing where it has no vote; where it is empty, `find_vote`.
  std::function<std::optional<std::string>(std::span<const TokenId>)> key = {};

  template <Model M, Constraint C>
  [[nodiscard]] Output operator()(const M& model, const C& constraint,
                                  std::span<const TokenId> prompt, const LogitsPipeline& pipeline,
                                  const DecodeOptions& options) const {
    if (samples == 0) throw Error(Errc::invalid_option, "samples", samples, "must be 1 or more");
    if (samples > 1 && options.temperature == 0) {
      throw Error(Errc::invalid_option, "temperature", options.temperature,
                  "must be above 0 for samples to differ");
    }
    const decode::Run<C> run{constraint, prompt, pipeline, options,
                             decode::context_length_of(model)};
    Output cost;
    std::vector<decode::Sequence<C>> drawn = draw_all(model, run, cost);
    decode::Sequence<C>& best              = drawn[find_winner(constraint, drawn)];
    best.report();
    Output& out = best.output();
    out.passes  = cost.passes;
    out.times   = cost.times;
    return std::move(out);
  }

 private:
  template <class M, class C>
  [[nodiscard]] std::vector<decode::Sequence<C>> draw_all(const M& model, const decode::Run<C>& run,
                                                          Output& cost) const {
    const std::size_t vocabulary = model.vocabulary_size();
    std::vector<decode::Sequence<C>> sequences;
    for (std::size_t i = 0; i < samples; ++i) sequences.emplace_back(run, run.options.seed + i);
    std::vector<typename M::Cache> caches;
    std::vector<float> rows;                  // [B, V]
    std::vector<std::size_t> asked(samples);  // [B]: the samples of the next pass
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
        // Nothing is drawn yet, so all samples have read the same tokens.
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
        std::vector<typename M::Cache*> open;
        std::vector<std::span<const TokenId>> unread;
        for (const std::size_t i : asked) {
          open.push_back(&caches[i]);
          unread.push_back(sequences[i].unread());
        }
        cost.passes += model::forward_batch<M>(model, open, unread, rows);
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

  template <class C>
  [[nodiscard]] std::size_t find_winner(const C& constraint,
                                        const std::vector<decode::Sequence<C>>& drawn) const {
    std::vector<std::optional<std::string>> votes;
    std::map<std::string, std::size_t> counts;
    for (const decode::Sequence<C>& sequence : drawn) {
      const auto& tokens = sequence.output().tokens;
      votes.push_back(key ? key(tokens) : find_vote(constraint, tokens));
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

  static double mean_log_probability(const Output& out);
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/decode/self_consistency.ipp>
#endif
