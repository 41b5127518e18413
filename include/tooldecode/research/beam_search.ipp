#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/decode/sequence.hpp>
#include <tooldecode/logits/selection.hpp>
#include <tooldecode/research/beam_search.hpp>

namespace tooldecode {

class BeamSearch::Search {
 public:
  Search(const BeamSearch& settings, const ModelRef& model, const decode::Run& run)
      : settings_(settings), model_(model), run_(run) {
    place({decode::Sequence{run, run.options.seed}, model.make_cache()});
  }

  [[nodiscard]] bool is_over() const {
    return std::all_of(beams_.begin(), beams_.end(), [this](const Beam& beam) {
      const std::size_t length =
          settings_.length_penalty < 0 ? beam.sequence.length() + 1 : run_.max_tokens();
      return best_ && rank(*best_) == 0 && score(beam.sum, length) <= best_->score;
    });
  }

  void step() {
    decode::Stopwatch watch;
    std::vector<std::optional<TokenEvent>> forced;
    std::vector<ModelRef::Cache*> caches;
    std::vector<std::span<const TokenId>> unread;
    for (Beam& beam : beams_) {
      forced.push_back(beam.sequence.find_forced());
      if (forced.back()) continue;
      caches.push_back(&beam.cache);
      unread.push_back(beam.sequence.unread());
    }
    watch.add_to(cost_.times.constraint);

    const std::size_t vocabulary = model_.vocabulary_size();
    rows_.resize(caches.size() * vocabulary);
    const std::size_t passes = model_.forward_batch(caches, unread, rows_);
    watch.add_to(cost_.passes == 0 ? cost_.times.prefill : cost_.times.model);
    cost_.passes += passes;

    std::vector<Candidate> candidates;
    std::span<float> rest = rows_;
    for (std::size_t b = 0; b < beams_.size(); ++b) {
      if (forced[b]) {
        candidates.push_back({b, *forced[b], beams_[b].sum});
      } else {
        beams_[b].sequence.mark_read();
        add_best(candidates, b, rest.first(vocabulary));
        rest = rest.subspan(vocabulary);
      }
    }
    keep_best(candidates);
    watch.add_to(cost_.times.sampling);

    std::vector<Beam> parents = std::exchange(beams_, {});
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const auto& [parent, event, sum] = candidates[i];
      const bool is_last = i + 1 == candidates.size() || candidates[i + 1].beam != parent;
      Beam& from         = parents[parent];
      Beam child         = is_last ? std::move(from) : Beam{from.sequence, model_.fork(from.cache)};
      child.sum          = sum;
      child.sequence.take(event);
      place(std::move(child));
    }
    watch.add_to(cost_.times.constraint);
  }

  [[nodiscard]] Output result() {
    best_->sequence.report();
    Output& out = best_->sequence.output();
    out.passes  = cost_.passes;
    out.times   = cost_.times;
    return std::move(out);
  }

 private:
  struct Beam {
    decode::Sequence sequence;
    ModelRef::Cache cache;
    double sum = 0;  // of log-probabilities
  };
  struct Candidate {
    std::size_t beam;
    TokenEvent event;
    double sum;
  };
  struct Answer {
    decode::Sequence sequence;
    double score;
  };

  [[nodiscard]] double score(double sum, std::size_t length) const {
    return sum / std::pow(static_cast<double>(std::max<std::size_t>(length, 1)),
                          settings_.length_penalty);
  }

  // The `width` best tokens of one beam; no other token can be among the best of all.
  void add_best(std::vector<Candidate>& candidates, std::size_t b, std::span<float> row) {
    auto& [sequence, cache, sum] = beams_[b];
    sequence.make_distribution(row);
    const auto best = find_likeliest(row, settings_.width);
    const auto told = find_likeliest(row, run_.options.likeliest);
    for (const LikelyToken& one : best) {
      TokenEvent event{.token = one.token, .index = sequence.output().tokens.size()};
      event.log_probability = one.log_probability;
      event.likeliest       = told;
      candidates.push_back({b, event, sum + event.log_probability});
    }
    if (best.empty()) {
      sequence.stop(Finish::stuck);
      offer({sequence, score(sum, sequence.length())});
    }
  }

  // Keeps the `width` best candidates. The sort is stable: beams stay in the order of their tokens,
  // and within a beam the better token comes first, even if rounding makes the sums equal.
  void keep_best(std::vector<Candidate>& candidates) const {
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.sum > b.sum; });
    if (candidates.size() > settings_.width) {
      candidates.erase(candidates.begin() + static_cast<std::ptrdiff_t>(settings_.width),
                       candidates.end());
    }
    std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
      return std::pair(a.beam, a.event.token) < std::pair(b.beam, b.event.token);
    });
  }

  void place(Beam beam) {
    if (beam.sequence.is_finished()) {
      const double reached = score(beam.sum, beam.sequence.length());
      offer({std::move(beam.sequence), reached});
    } else {
      beams_.push_back(std::move(beam));
    }
  }

  // Complete answers come before cut ones, and cut ones before stuck ones.
  static int rank(const Answer& answer) {
    const Finish finish = answer.sequence.output().finish;
    return finish == Finish::end ? 0 : finish == Finish::stuck ? 2 : 1;
  }
  void offer(Answer answer) {
    const auto key = [](const Answer& a) {
      using Key = std::tuple<int, double, const std::vector<TokenId>&>;
      return Key(rank(a), -a.score, a.sequence.output().tokens);
    };
    if (!best_ || key(answer) < key(*best_)) best_ = std::move(answer);
  }

  const BeamSearch& settings_;
  ModelRef model_;
  const decode::Run& run_;
  std::vector<Beam> beams_;  // [B], in the order of their tokens
  std::optional<Answer> best_;
  std::vector<float> rows_;  // [B, V]
  Output cost_;
};

TOOLDECODE_INLINE Output BeamSearch::operator()(const ModelRef& model,
                                                const ConstraintRef& constraint,
                                                std::span<const TokenId> prompt,
                                                const LogitsPipeline& pipeline,
                                                const DecodeOptions& options) const {
  const auto require = [](bool met, const char* where, auto value, const char* what) {
    if (!met) throw Error(Errc::invalid_option, where, value, what);
  };
  require(width > 0, "width", width, "must be 1 or more");
  require(std::abs(length_penalty) <= 10, "length_penalty", length_penalty,
          "must be from -10 to 10");
  require(options.temperature == 0, "temperature", options.temperature,
          "must be 0 for a beam search");
  const decode::Run run{constraint, prompt, pipeline, options, model.context_length()};
  Search search{*this, model, run};
  while (!search.is_over()) search.step();
  return search.result();
}

}  // namespace tooldecode
