// The target, its drafts and their heads, and the measurement of each way for a prompt.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/decode/tree_speculation.hpp>
#include <tooldecode/draft/drafter_group.hpp>
#include <tooldecode/draft/eagle_drafter.hpp>
#include <tooldecode/draft/frequency_ranked_head.hpp>
#include <tooldecode/draft/jump_forward_drafter.hpp>
#include <tooldecode/draft/mapped_head.hpp>
#include <tooldecode/draft/medusa_drafter.hpp>
#include <tooldecode/draft/sized_drafter.hpp>
#include <tooldecode/draft/suffix_drafter.hpp>
#include <tooldecode/draft/tree_costs.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>
#include <tooldecode/model/eagle_model.hpp>
#include <tooldecode/model/feature_model.hpp>
#include <tooldecode/model/llama_model.hpp>
#include <tooldecode/model/medusa_model.hpp>
#include <tooldecode/research/sized_head_drafter.hpp>
#include <tooldecode/vocabulary/frequency_ranks.hpp>
#include <tooldecode/vocabulary/load_vocabulary.hpp>
#include <tooldecode/vocabulary/token_counts.hpp>

#include "corpus.hpp"
#include "prompts.hpp"
#include "replay.hpp"
#include "timed.hpp"
#include "ways.hpp"
#include <program/prefilled_model.hpp>

namespace fr_spec {

namespace td = tooldecode;

class Bench {
 public:
  using Target = program::PrefilledModel<td::FeatureModel>;
  using Head   = td::FrequencyRankedHead;

  static Head rounded_head(td::HeadView head, const td::RankedTokens& tokens) {
    return {head, tokens, {.weights = td::WeightType::scaled_byte}};
  }

  explicit Bench(const Options& options)
      : options_(options),
        target_(td::LlamaModel::load(options.model)),
        tokenizer_(td::load_tokenizer(options.model)),
        corpus_(options.corpus, tokenizer_),
        masks_(tokenizer_.vocabulary()),
        features_(options.eagle3.empty() ? td::FeatureModel{target_, {}}
                                         : td::FeatureModel::for_eagle3(target_)),
        prefilled_(features_),
        eagle_(td::EagleModel::load(target_, options.eagle)),
        lookup_(masks_),
        forced_([this](std::string_view text) { return tokenizer_.encode(text); }),
        costs_(td::TreeCosts::measure(target_, tokenizer_.encode(sample_text))) {
    if (!options.eagle3.empty()) {
      const auto checkpoint = td::SafeTensors::load(options.eagle3);
      eagle3_.emplace(target_, td::Eagle3Weights::read(checkpoint, target_.config()));
      own_head_ = td::MappedHead::read(checkpoint, target_.config(), td::WeightType::scaled_byte);
    }
    if (!options.medusa.empty())
      medusa_ = td::MedusaModel::load(options.medusa, target_.hidden_size());
    replayed_ways_ = replayed_ways(options, target_.vocabulary_size());
    timed_ways_    = timed_ways(options, target_.vocabulary_size());
  }
  Bench(const Bench&)            = delete;
  Bench& operator=(const Bench&) = delete;

  [[nodiscard]] const td::TreeCosts& costs() const { return costs_; }
  [[nodiscard]] std::size_t vocabulary_size() const { return target_.vocabulary_size(); }
  // Rows of the head with which a way drafts.
  [[nodiscard]] std::size_t rows_of(const Way& way) const {
    if (way.layer == Layer::eagle3) return own_head_->size();
    return way.k == 0 ? vocabulary_size() : way.k;
  }
  [[nodiscard]] const std::vector<Way>& replayed() const { return replayed_ways_; }
  [[nodiscard]] const std::vector<Way>& timed() const { return timed_ways_; }

  // In free.cpp and calls.cpp: without a constraint, and with that of the prompt's functions.
  Measured measure_free(const Prompt& prompt, bool is_timed);
  Measured measure_calls(const Prompt& prompt, bool is_timed);

  // The head's share of the tokens in a part of the corpus, or in all that it is ranked by.
  struct Coverage {
    std::size_t k  = 0;
    double counted = 0, own = 0;
  };
  [[nodiscard]] Coverage coverage(const std::string& part, std::size_t k) {
    const td::FrequencyRanks& ranks = ranked(part).ranks;
    const td::TokenCounts& own      = corpus_.counts(part);
    const td::RankedTokens tokens   = ranks.first(ranks.size());
    std::uint64_t covered = 0, all = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const std::uint64_t count = own.counts()[static_cast<std::size_t>(tokens[i])];
      all += count;
      if (i < k) covered += count;
    }
    return {k, ranks.coverage(k), static_cast<double>(covered) / static_cast<double>(all)};
  }

 private:
  struct Ranked {
    td::FrequencyRanks ranks;
    Head head;
  };
  // Passes are timed after this text, which is as long as a prompt.
  static constexpr std::string_view sample_text =
      "A pass of one token reads every weight of a model once and does next to nothing with it, so that "
      "a few more tokens in the same pass come for little more than their arithmetic.";
  // Logits with at most this gap may swap order if sums are computed in another order.
  static constexpr float near_tie = 1e-3F;

  static double seconds(std::chrono::nanoseconds time) {
    return std::chrono::duration<double>(time).count();
  }

  template <td::ConstraintPolicy C>
  Measured measure(const Prompt& prompt, bool is_timed, const C& constraint) {
    prefilled_.read(prompt.tokens);
    const td::DecodeOptions settings{.max_tokens  = options_.max_tokens,
                                     .temperature = static_cast<float>(options_.temperature)};
    Measured measured;
    const td::Output plain = td::Decoder{prefilled_, constraint}(prompt.tokens, settings);
    // Made here, so that the first way that needs it does not pay for it.
    const Head& head = ranked(prompt.domain).head;
    if (!target_head_) {
      const td::FrequencyRanks& ranks = ranked(prompt.domain).ranks;
      target_head_.emplace(target_.lm_head(), ranks.first(ranks.size()));
    }
    if (!head_costs_) head_costs_ = td::draft::HeadCosts::measure(head, options_.tree.width);
    auto& rows = coverage_[prompt.domain];
    if (!rows) rows = std::make_shared<td::draft::CoverageEstimate>(*head_costs_);
    if (is_timed) {
      measured.timed.resize(timed_ways_.size());
      // The ways take turns at being first.
      for (std::size_t i = 0; i < timed_ways_.size(); ++i) {
        const std::size_t w = (i + turn_) % timed_ways_.size();
        measured.timed[w]   = time(timed_ways_[w], constraint, prompt, settings, plain);
      }
      ++turn_;
    }
    Answer<C> answer(constraint, plain.tokens, plain.finish == td::Finish::end,
                     options_.max_tokens);
    std::vector<td::TokenId> text = prompt.tokens;
    text.insert(text.end(), plain.tokens.begin(), plain.tokens.end());
    answer.states.resize(text.size() * features_.hidden_size());
    auto cache = prefilled_.make_cache();
    prefilled_.forward_hidden(cache, text, answer.states);
    for (const Way& way : replayed_ways_) {
      Run run;
      const auto follow = [&](const auto& drafter) {
        replay(drafter, constraint, std::span<const td::TokenId>(prompt.tokens), answer,
               features_.hidden_size(), run);
      };
      if (way.drafts()) {
        with_drafter(way, paper_tree, prompt, run, follow);
      } else {
        follow(NoDrafter{});
      }
      measured.replayed.push_back(run);
    }
    if (measured.replayed[0].passes != plain.passes)
      throw std::runtime_error("a replay without drafts has " +
                               std::to_string(measured.replayed[0].passes) + " passes, decoding " +
                               std::to_string(plain.passes));
    const td::FrequencyRanks& ranks = ranked(prompt.domain).ranks;
    for (const std::size_t k : options_.rows) {
      measured.covered.push_back(
          static_cast<std::size_t>(std::ranges::count_if(plain.tokens, [&](td::TokenId token) {
            return ranks.first(k == 0 ? ranks.size() : k).contains(token);
          })));
    }
    measured.covered.push_back(plain.tokens.size());
    measured.near_ties = count_near_ties(constraint, answer, prompt.tokens.size());
    return measured;
  }

  template <td::ConstraintPolicy C>
  Run time(const Way& way, const C& constraint, const Prompt& prompt,
           const td::DecodeOptions& settings, const td::Output& plain) {
    Run run;
    td::Output output;
    const auto decode = [&](const auto& drafter) {
      output = td::Decoder{prefilled_, constraint,
                           td::TreeSpeculation{drafter, td::TreeVerifier{td::GumbelCoupling{}}}}(
          prompt.tokens, settings);
    };
    const auto start = std::chrono::steady_clock::now();
    if (!way.drafts()) {
      output = td::Decoder{prefilled_, constraint}(prompt.tokens, settings);
    } else {
      // As large as pays off, learned from prompt to prompt.
      auto& learnt = learnt_[way.name + prompt.domain];
      if (!learnt) learnt = std::make_shared<td::draft::AcceptanceEstimate>();
      with_drafter(way, options_.tree, prompt, run, [&](const auto& drafter) {
        decode(td::SizedDrafter{drafter, costs_, learnt});
      });
    }
    run.seconds = seconds(std::chrono::steady_clock::now() - start) - run.reading;
    run.tokens  = output.tokens.size() + (output.finish == td::Finish::end ? 1 : 0);
    run.passes  = output.passes;
    run.rounds  = output.drafts.rounds;
    run.drafted = output.drafts.nodes;
    // Includes the head: its rows are multiplied when a token is chosen.
    run.target   = seconds(output.times.prefill + output.times.model + output.times.sampling);
    run.drafting = seconds(output.times.drafting) - run.reading;
    run.differs  = output.tokens != plain.tokens || output.finish != plain.finish;
    return run;
  }

  // Calls `use(drafter)` with the way's drafter; its layer and head add their time to the run.
  template <class Use>
  void with_drafter(const Way& way, const TreeShape& tree, const Prompt& prompt, Run& run,
                    const Use& use) {
    const td::DrafterGroupOptions group{.budget          = tree.budget,
                                        .min_probability = tree.min_probability};
    if (way.layer == Layer::none) return use(td::DrafterGroup{group, lookup_, forced_});
    const auto context = way.with_context ? std::optional(tokenizer_.vocabulary()) : std::nullopt;
    const Head& whole  = ranked(prompt.domain).head;
    const TimedHead head{whole.first(way.k == 0 ? whole.ranked_size() : way.k), run.head};
    if (way.layer == Layer::medusa) {
      return use(td::MedusaDrafter{*medusa_,
                                   head,
                                   {.choices         = {6, 4, 3, 2},
                                    .width           = tree.width,
                                    .budget          = tree.budget,
                                    .min_probability = tree.min_probability,
                                    .context         = context}});
    }
    const td::EagleOptions settings{.depth           = tree.depth,
                                    .width           = tree.width,
                                    .budget          = tree.budget,
                                    .min_probability = tree.min_probability,
                                    .context         = context};
    if (way.layer == Layer::eagle3) {
      const TimedDraft layer{*eagle3_, run.layer, run.reading};
      return use(td::EagleDrafter{layer, TimedHead{*own_head_, run.head}, settings});
    }
    const TimedDraft layer{eagle_, run.layer, run.reading};
    if (!way.has_own_head) {
      return use(td::EagleDrafter{layer, TimedHead{*target_head_, run.head}, settings});
    }
    const td::EagleDrafter eagle{layer, head, settings};
    if (way.chooses_rows) return use(td::SizedHeadDrafter{eagle, coverage_.at(prompt.domain)});
    if (way.with_text) return use(td::DrafterGroup{group, eagle, lookup_, forced_});
    use(eagle);
  }

  template <td::ConstraintPolicy C>
  std::size_t count_near_ties(const C& constraint, const Answer<C>& answer, std::size_t begin) {
    const std::size_t width = features_.hidden_size();
    td::TokenMask mask(vocabulary_size());
    std::vector<float> row(vocabulary_size());
    std::size_t ties = 0;
    for (std::size_t i = 0; i < answer.tokens.size(); ++i) {
      if (answer.is_forced[i]) continue;
      constraint.fill_mask(answer.constraint[i], mask.words());
      features_.fill_logits(std::span(answer.states).subspan((begin + i - 1) * width, width), row);
      float first = -INFINITY, second = -INFINITY;
      for (std::size_t token = 0; token < row.size(); ++token) {
        if (!mask.contains(static_cast<td::TokenId>(token))) continue;
        if (row[token] > first)
          second = std::exchange(first, row[token]);
        else
          second = std::max(second, row[token]);
      }
      ties += first - second < near_tie;
    }
    return ties;
  }

  // Ranked by every part of the corpus except the prompt's.
  const Ranked& ranked(const std::string& domain) {
    const std::string own = Corpus::part_of(domain);
    const auto found      = ranked_.find(own);
    if (found != ranked_.end()) return found->second;
    const td::FrequencyRanks ranks = corpus_.ranks_without(own);
    return ranked_
        .emplace(own, Ranked{ranks, rounded_head(target_.lm_head(), ranks.first(ranks.size()))})
        .first->second;
  }

  const Options& options_;
  td::LlamaModel target_;
  td::Tokenizer tokenizer_;
  Corpus corpus_;
  td::VocabularyIndex masks_;
  td::FeatureModel features_;
  Target prefilled_;
  td::EagleModel eagle_;
  std::optional<td::Eagle3Model> eagle3_;
  std::optional<td::MappedHead> own_head_;
  std::optional<td::MedusaModel> medusa_;
  td::SuffixDrafter lookup_;
  td::JumpForwardDrafter forced_;
  td::TreeCosts costs_;
  std::vector<Way> replayed_ways_, timed_ways_;
  std::optional<Head> target_head_;
  std::optional<td::draft::HeadCosts> head_costs_;
  std::size_t turn_ = 0;
  std::map<std::string, Ranked> ranked_;  // by the part that is left out
  std::map<std::string, std::shared_ptr<td::draft::AcceptanceEstimate>> learnt_;
  std::map<std::string, std::shared_ptr<td::draft::CoverageEstimate>> coverage_;
};

}  // namespace fr_spec
