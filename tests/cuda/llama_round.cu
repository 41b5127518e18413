#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/cuda/captured_graph.cuh>
#include <tooldecode/cuda/draft_tree.cuh>
#include <tooldecode/cuda/llama_layers.cuh>
#include <tooldecode/cuda/llama_round.cuh>
#include <tooldecode/cuda/logits_rows.cuh>
#include <tooldecode/cuda/number.cuh>
#include <tooldecode/cuda/speculation_round.cuh>
#include <tooldecode/cuda/state_table.cuh>
#include <tooldecode/logits/logits_pipeline.hpp>
#include <tooldecode/logits/selection.hpp>
#include <tooldecode/model/llama_config.hpp>
#include <tooldecode/model/llama_model.hpp>

#include <support/cases.hpp>
#include <support/catch.hpp>
#include <support/device.hpp>
#include <support/llama_rounds.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

namespace {

void check_rounds(const SamplingOptions& sampling, std::uint64_t seed, int rounds) {
  INFO("temperature " << sampling.temperature << ", seed " << seed << ", weights "
                      << test::calm_seed);
  const LlamaConfig config          = test::config_of_three_layers();
  const model::LlamaWeights weights = test::calm_weights(config);
  const tooldecode::cuda::LlamaLayers<__half> layers(config, weights);
  constexpr DraftTreeOptions shape{.depth = 3, .width = 3, .children = 3, .budget = 9};
  LlamaTarget<__half> target(layers, {.sequences = 2, .nodes = 10, .slots = 160});
  std::vector<TokenId> ranked;
  for (TokenId token = 0; token < 50; ++token) ranked.push_back(token);
  EarlyExitDraft<__half> draft(target, 1, shape.width, ranked);
  NoMasks masks;
  SpeculationRound round(
      target, draft, masks,
      {.sequences = 2, .tree = shape, .sampling = sampling, .seed = seed, .slots = 160});

  std::vector<std::vector<TokenId>> prompts{{5, 7, 9, 20, 31}, {3}};
  for (TokenId token = 0; token < 65; ++token) prompts[1].push_back(token % 61);
  for (int b = 0; b < 2; ++b) {
    const auto& prompt = prompts[static_cast<std::size_t>(b)];
    const auto read    = std::span(prompt).first(prompt.size() - 1);
    target.read(b, 0, read, round.stream());
    round.start(b, prompt.back(), static_cast<int>(read.size()));
  }
  std::vector<std::vector<TokenId>> emitted(2);
  int accepted = 0;
  for (int i = 0; i < rounds; ++i) {
    const auto verdicts = round.run();
    for (std::size_t b = 0; b < 2; ++b) {
      emitted[b].insert(emitted[b].end(), verdicts[b].tokens,
                        verdicts[b].tokens + verdicts[b].emitted);
      accepted += verdicts[b].accepted;
    }
  }
  test::HostJudge host{LlamaModel(config, weights),
                       LogitsPipeline({.temperature = sampling.temperature,
                                       .top_k       = static_cast<std::size_t>(sampling.top_k)}),
                       seed};
  for (std::size_t b = 0; b < 2; ++b) {
    INFO("sequence " << b);
    host.judge(prompts[b], emitted[b]);
    CHECK(round.length(static_cast<int>(b)) ==
          static_cast<int>(prompts[b].size() + emitted[b].size()) - 1);
  }
  CHECK(host.differ * 10 <= host.tokens);
  CHECK(accepted > rounds);  // otherwise next to nothing was drafted
}

}  // namespace

TEST_CASE("LlamaTarget, EarlyExitDraft: rounds emit the host's tokens") {
  test::on_device([] {
    if (!test::is_sanitized) check_rounds({.temperature = 0}, 1, 4);
    check_rounds({.temperature = 0.6F, .top_k = 20}, 2, 4);
  });
}

TEST_CASE("LlamaTarget, StateTable: rounds emit what the host allows, with and without cuts") {
  test::on_device([] {
    const LlamaConfig config          = test::config_of_three_layers();
    const model::LlamaWeights weights = test::calm_weights(config);
    const tooldecode::cuda::LlamaLayers<__half> layers(config, weights);
    const std::vector<TokenId> prompt{5, 7, 9, 20, 31};
    const test::FewTokens constraint;
    constexpr TokenId end_token = -1;  // none
    constexpr std::size_t limit = 12;
    //! [rounds]
    constexpr DraftTreeOptions shape{.depth = 3, .width = 3, .children = 3, .budget = 9};
    LlamaTarget<__half> target(layers, {.sequences = 1, .nodes = shape.budget + 1, .slots = 160});
    EarlyExitDraft<__half> draft(target, 1, shape.width);
    StateTable table(constraint, {.sequences = 1, .width = shape.width});
    SpeculationRound round(
        target, draft, table,
        {.sequences = 1, .tree = shape, .sampling = {.temperature = 0}, .slots = 160});

    const auto read = std::span(prompt).first(prompt.size() - 1);
    target.read(0, 0, read, round.stream());
    round.start(0, prompt.back(), static_cast<int>(read.size()));
    table.start(0, constraint.initial(), round.stream());
    std::vector<TokenId> text;
    while (round.length(0) >= 0) {
      const auto verdicts = round.run();
      table.learn(verdicts, round.stream());
      const std::span emitted(verdicts[0].tokens, static_cast<std::size_t>(verdicts[0].emitted));
      text.insert(text.end(), emitted.begin(), emitted.end());
      const auto end = std::ranges::find(text, end_token);  // the caller's, as is the limit
      if (end != text.end() || text.size() >= limit || !round.has_room(0)) {
        text.resize(std::min<std::size_t>(static_cast<std::size_t>(end - text.begin()), limit));
        round.stop(0);
        table.stop(0);
      }
    }
    //! [rounds]
    CHECK(text.size() == limit);
    test::HostJudge host{LlamaModel(config, weights), LogitsPipeline({.temperature = 0}), 0};
    host.judge(prompt, text, {constraint.allowed, 0});
    CHECK(host.differ * 10 <= host.tokens);
    CHECK(table.counts().misses > 0);

    // A second time the table cuts less, and the text stays.
    const std::size_t misses = table.counts().misses;
    round.start(0, prompt.back(), static_cast<int>(read.size()));
    table.start(0, constraint.initial(), round.stream());
    std::vector<TokenId> again;
    while (again.size() < limit) {
      const auto verdicts = round.run();
      table.learn(verdicts, round.stream());
      again.insert(again.end(), verdicts[0].tokens, verdicts[0].tokens + verdicts[0].emitted);
    }
    again.resize(limit);
    CHECK(again == text);
    CHECK(table.counts().misses - misses < misses);
  });
}

TEST_CASE("SpeculationRound, a sequence that is not there: its cache stays as it is") {
  test::on_device([] {
    const LlamaConfig config = test::config_of_three_layers();
    const tooldecode::cuda::LlamaLayers<__half> layers(config, test::calm_weights(config));
    constexpr DraftTreeOptions shape{.depth = 3, .width = 3, .children = 3, .budget = 9};
    const std::vector<TokenId> prompt{5, 7, 9, 20, 31, 4, 8};
    const auto read   = std::span(prompt).first(prompt.size() - 1);
    const auto length = static_cast<int>(read.size());
    std::vector<TokenId> texts[2];
    for (const bool runs_before_start : {false, true}) {
      LlamaTarget<__half> target(layers, {.sequences = 2, .nodes = 10, .slots = 160});
      EarlyExitDraft<__half> draft(target, 1, shape.width);
      SpeculationRound round(
          target, draft,
          {.sequences = 2, .tree = shape, .sampling = {.temperature = 0}, .slots = 160});
      for (int b = 0; b < 2; ++b) target.read(b, 0, read, round.stream());
      round.start(0, prompt.back(), length);
      if (runs_before_start) {
        const auto verdicts = round.run();
        CHECK(verdicts[0].emitted > 0);
        CHECK(verdicts[1].emitted == 0);
        CHECK(verdicts[1].kept == 0);
      }
      round.start(1, prompt.back(), length);
      std::vector<TokenId>& text = texts[runs_before_start ? 1 : 0];
      for (int i = 0; i < 3; ++i) {
        const auto verdicts = round.run();
        text.insert(text.end(), verdicts[1].tokens, verdicts[1].tokens + verdicts[1].emitted);
      }
    }
    CHECK(texts[0].size() >= 3);
    CHECK(texts[0] == texts[1]);
  });
}

TEST_CASE("SpeculationRound, parts without memory for it: names what is too much") {
  static_assert(!std::is_constructible_v<LlamaTarget<__half>, tooldecode::cuda::LlamaLayers<__half>,
                                         LlamaTargetOptions>);
  static_assert(!std::is_constructible_v<EarlyExitDraft<__half>, LlamaTarget<__half>, int, int>);
  test::on_device([] {
    const LlamaConfig config = test::config_of_three_layers();
    const tooldecode::cuda::LlamaLayers<__half> layers(config, test::calm_weights(config));
    LlamaTarget<__half> target(layers, {.sequences = 2, .nodes = 10, .slots = 160});
    EarlyExitDraft<__half> draft(target, 1, 3);
    const auto make = [&](SpeculationRoundOptions options) {
      SpeculationRound(target, draft, options);
    };
    const SpeculationRoundOptions fits{
        .sequences = 2, .tree = {.depth = 3, .width = 3, .children = 3, .budget = 9}, .slots = 160};
    CHECK_NOTHROW(make(fits));
    SpeculationRoundOptions options = fits;
    options.tree.budget             = 10;
    CHECK_THROWS_WITH(make(options), "budget 10: must be less than the LlamaTarget's nodes, 10");
    options            = fits;
    options.tree.width = 4;
    CHECK_THROWS_WITH(make(options), "width 4: must be at most the EarlyExitDraft's 3");
    options       = fits;
    options.slots = 161;
    CHECK_THROWS_WITH(make(options), "slots 161: must be at most the LlamaTarget's 160");
    options           = fits;
    options.sequences = 1;
    CHECK_THROWS_WITH(make(options), "sequences 1: must be the LlamaTarget's 2");
  });
}

TEST_CASE("LlamaTarget, EarlyExitDraft, wrong arguments: names them") {
  test::on_device([] {
    const LlamaConfig config = test::config_of_three_layers();
    const tooldecode::cuda::LlamaLayers<__half> layers(config, test::calm_weights(config));
    LlamaTarget<__half> target(layers, {.sequences = 1, .nodes = 4, .slots = 100});
    const Stream stream;
    CHECK_THROWS_WITH(target.read(1, 0, std::vector<TokenId>{1}, stream),
                      "sequence 1: must be from 0 to 0");
    CHECK_THROWS_WITH(target.read(0, 98, std::vector<TokenId>{1, 2, 3}, stream),
                      "tokens 101: must be at most the 100 slots");
    CHECK_THROWS_WITH(target.read(0, 0, std::vector<TokenId>{1, 61}, stream),
                      "token 61: must be one of the model's vocabulary, below 61");
    CHECK_THROWS_WITH(EarlyExitDraft<__half>(target, 4, 3),
                      "layers 4: must be from 1 to the model's 3");
    CHECK_THROWS_WITH(EarlyExitDraft<__half>(target, 1, 0), "width 0: must be from 1 to 64");
    CHECK_THROWS_WITH(EarlyExitDraft<__half>(target, 1, 3, {5, 61}),
                      "ranked 61: must be one of the model's vocabulary, below 61");
  });
}
