#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/draft_tree.cuh>
#include <tooldecode/cuda/eagle_draft.cuh>
#include <tooldecode/cuda/llama_layers.cuh>
#include <tooldecode/cuda/llama_round.cuh>
#include <tooldecode/cuda/number.cuh>
#include <tooldecode/cuda/speculation_round.cuh>
#include <tooldecode/cuda/state_table.cuh>
#include <tooldecode/logits/logits_pipeline.hpp>
#include <tooldecode/model/eagle_model.hpp>
#include <tooldecode/model/llama_config.hpp>
#include <tooldecode/model/llama_model.hpp>

#include <support/cases.hpp>
#include <support/catch.hpp>
#include <support/device.hpp>
#include <support/llama_rounds.hpp>
#include <support/random_eagle.hpp>
#include <support/random_llama.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

namespace {

constexpr unsigned seed = 7;

/// The host's EagleModel over a text, whose last token is a root.
class HostDraft {
 public:
  HostDraft(const LlamaConfig& config, const model::LlamaWeights& weights,
            const EagleWeights& eagle)
      : target_(config, weights), layer_(target_, eagle) {}

  /// The guess of the state after the root. Later calls continue the text.
  [[nodiscard]] std::vector<float> read(const std::vector<TokenId>& text) {
    cache_                  = layer_.make_cache();
    auto cache              = target_.make_cache();
    const std::size_t width = target_.hidden_size(), length = text.size() - 1;
    std::vector<float> states(length * width), guesses(length * width);
    target_.forward_hidden(cache, std::span(text).first(length), states);
    layer_.forward(cache_, std::span(text).subspan(1), states, guesses);
    return {guesses.end() - static_cast<std::ptrdiff_t>(width), guesses.end()};
  }
  [[nodiscard]] std::vector<float> run(const std::vector<TokenId>& tokens,
                                       const std::vector<std::uint64_t>& ancestors,
                                       const std::vector<float>& states) {
    std::vector<float> guesses(states.size());
    layer_.forward_nodes(cache_, tokens, states, ancestors, guesses);
    return guesses;
  }

 private:
  LlamaModel target_;
  EagleModel layer_;
  EagleModel::Cache cache_ = layer_.make_cache();
};

void check_close(std::span<const float> device, std::span<const float> host) {
  REQUIRE(device.size() == host.size());
  float greatest = 0, worst = 0;
  for (const float x : host) greatest = std::max(greatest, std::abs(x));
  for (std::size_t i = 0; i < host.size(); ++i) {
    worst = std::max(worst, std::abs(device[i] - host[i]));
  }
  INFO("greatest " << greatest << ", worst difference " << worst);
  CHECK(greatest > 0);
  CHECK(worst <= 0.01F * greatest);
}

std::vector<float> joined(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> both = a;
  both.insert(both.end(), b.begin(), b.end());
  return both;
}

/// A target, its draft layer, and the same on the host.
struct Drafting {
  static constexpr DraftTreeOptions tree{.depth = 3, .width = 5, .children = 5, .budget = 30};
  static constexpr int slots = 320;

  LlamaConfig config;
  model::LlamaWeights weights;
  EagleWeights eagle;
  tooldecode::cuda::LlamaLayers<__half> layers{config, weights};
  LlamaTarget<__half> target{layers, {.sequences = 2, .nodes = tree.budget + 1, .slots = slots}};
  EagleDraft<__half> draft;
  HostDraft host{config, weights, eagle};
  Stream stream;

  explicit Drafting(const LlamaConfig& of, const std::vector<TokenId>& ranked = {})
      : config(with_context(of)),
        weights(test::calm_weights(config)),
        eagle(test::random_eagle_weights(config, seed)),
        draft(target, config, eagle, tree, ranked) {}

  static SpeculationRoundOptions rounds(const SamplingOptions& sampling) {
    return {.sequences = 2, .tree = tree, .sampling = sampling, .seed = 4, .slots = slots};
  }
  static LlamaConfig with_context(LlamaConfig config) {
    config.context_length = slots;
    return config;
  }

  /// The states that a level writes, without padding: [B][rows, H].
  [[nodiscard]] std::vector<std::vector<float>> run(const DraftLevel& level,
                                                    DeviceBuffer<__half>& hidden) {
    draft.run_level(level, hidden.data(), stream.get());
    stream.wait();
    const auto numbers = hidden.download();
    const auto padded  = static_cast<std::size_t>(layers.hidden_size());
    const auto rows    = static_cast<std::size_t>(level.rows);
    std::vector<std::vector<float>> states(2);
    for (std::size_t row = 0; row < 2 * rows; ++row) {
      for (std::size_t i = 0; i < config.hidden_size; ++i) {
        states[row / rows].push_back(to_float(numbers[row * padded + i]));
      }
    }
    return states;
  }

  [[nodiscard]] DeviceBuffer<__half> make_hidden() const {
    return DeviceBuffer<__half>(2 * static_cast<std::size_t>(tree.width) *
                                static_cast<std::size_t>(layers.hidden_size()));
  }

  /// Whether the states after the roots of two texts are the host's; -1 as a root: no sequence.
  void check_roots(const std::vector<std::vector<TokenId>>& texts) {
    std::vector<TokenId> roots;
    std::vector<std::int32_t> lengths;
    for (const auto& text : texts) {
      roots.push_back(text.back());
      lengths.push_back(static_cast<std::int32_t>(text.size()) - 1);
    }
    const DeviceBuffer<TokenId> device_roots(roots);
    const DeviceBuffer<std::int32_t> device_lengths(lengths);
    auto hidden       = make_hidden();
    const auto states = run({.level      = 0,
                             .rows       = 1,
                             .sequences  = 2,
                             .roots      = device_roots.data(),
                             .lengths    = device_lengths.data(),
                             .max_length = slots},
                            hidden);
    for (std::size_t b = 0; b < 2; ++b) {
      INFO("sequence " << b);
      if (texts[b].back() >= 0) check_close(states[b], host.read(texts[b]));
    }
  }

  void read(const std::vector<std::vector<TokenId>>& texts) {
    for (int b = 0; b < 2; ++b) {
      const auto& text = texts[static_cast<std::size_t>(b)];
      draft.read(b, 0, std::span(text).first(text.size() - 1), stream);
    }
  }
};

std::vector<TokenId> text_of(int size, int step) {
  std::vector<TokenId> text;
  for (int i = 0; i < size; ++i) text.push_back((3 + i * step) % 61);
  return text;
}

LlamaConfig odd_config() {
  LlamaConfig config = test::random_llama_config();
  config.layers      = 3;
  return config;
}

}  // namespace

TEST_CASE("EagleDraft, the levels of a tree: their states are those of the host's EagleModel") {
  if (test::is_left_out()) return;
  test::on_device([] {
    for (const bool is_odd : {false, true}) {
      if (is_odd && test::is_sanitized) continue;
      INFO("sizes that need padding: " << is_odd);
      Drafting on(is_odd ? odd_config() : test::config_of_three_layers());
      const std::vector<std::vector<TokenId>> texts{text_of(6, 7), text_of(2, 5)};
      on.read(texts);

      const DeviceBuffer<TokenId> roots(std::vector{texts[0].back(), texts[1].back()});
      const DeviceBuffer<std::int32_t> lengths(std::vector<std::int32_t>{5, 1});
      auto hidden = on.make_hidden();
      DraftLevel level{.level      = 0,
                       .rows       = 1,
                       .sequences  = 2,
                       .roots      = roots.data(),
                       .lengths    = lengths.data(),
                       .max_length = Drafting::slots};
      const auto first = on.run(level, hidden);

      // Two children of the first root and one of the second; then a child of each of the two. Four
      // rows are what `multiply_few` takes.
      constexpr int width = 2;
      const std::vector<TokenId> tokens[2]{{4, 9, 4, -1}, {8, 2, -1, -1}};
      const std::vector<std::int32_t> parents[2]{{0, 0, 0, 0}, {1, 0, 0, 0}};
      const std::vector<std::uint64_t> ancestors[2]{{0b1, 0b10, 0b1, 0}, {0b110, 0b1001, 0, 0}};
      std::vector<std::vector<float>> levels[2];
      for (std::size_t l = 0; l < 2; ++l) {
        DeviceBuffer<TokenId> of_tokens(tokens[l]);
        DeviceBuffer<std::int32_t> of_parents(parents[l]);
        DeviceBuffer<std::uint64_t> of_ancestors(ancestors[l]);
        level.level    = static_cast<int>(l) + 1;
        level.rows     = width;
        level.frontier = {.tokens    = of_tokens.data(),
                          .parents   = of_parents.data(),
                          .ancestors = of_ancestors.data()};
        levels[l]      = on.run(level, hidden);
      }
      const std::size_t h = on.config.hidden_size;
      const auto part     = [&](const std::vector<float>& of, std::size_t row) {
        return std::vector<float>(of.begin() + static_cast<std::ptrdiff_t>(row * h),
                                  of.begin() + static_cast<std::ptrdiff_t>((row + 1) * h));
      };
      const auto root = on.host.read(texts[0]);
      check_close(first[0], root);
      const auto children = on.host.run({4, 9}, {1, 2}, joined(root, root));
      check_close(part(levels[0][0], 0), part(children, 0));
      check_close(part(levels[0][0], 1), part(children, 1));
      const auto deeper =
          on.host.run({8, 2}, {0b110, 0b1001}, joined(part(children, 1), part(children, 0)));
      check_close(part(levels[1][0], 0), part(deeper, 0));
      check_close(part(levels[1][0], 1), part(deeper, 1));
      const auto other = on.host.read(texts[1]);
      check_close(first[1], other);
      check_close(part(levels[0][1], 0), on.host.run({4}, {1}, other));
    }
  });
}

TEST_CASE(
    "EagleDraft, long prompts, in parts and at once: the state after the root is the host's") {
  if (test::is_left_out()) return;
  test::on_device([] {
    Drafting on(test::config_of_three_layers());
    // 257 tokens are two passes, and 65 two parts of one.
    const std::vector<std::vector<TokenId>> texts{text_of(test::is_sanitized ? 70 : 258, 7),
                                                  text_of(66, 5)};
    on.read(texts);
    on.check_roots(texts);

    auto longer = texts;
    for (const TokenId token : {11, 12, 13}) longer[1].push_back(token);
    on.draft.read(1, 65, std::span(longer[1]).subspan(65, 3), on.stream);
    on.check_roots(longer);

    // Nothing before the root: there is no state to continue.
    on.draft.read(0, 0, {}, on.stream);
    const std::vector<TokenId> alone{5};
    longer[0] = {-1};
    on.check_roots(longer);
    on.draft.read(0, 0, alone, on.stream);
    longer[0] = {5, 6};
    on.check_roots(longer);
  });
}

namespace {

/// Whether rounds emit what the host allows and chooses, and leave the draft layer the states of
/// what they emitted.
void check_rounds(const SamplingOptions& sampling, int rounds) {
  INFO("temperature " << sampling.temperature << ", weights " << test::calm_seed << ", " << seed);
  Drafting on(test::config_of_three_layers());
  const test::FewTokens constraint{.allowed = 0b100'1010'0001'0010};
  StateTable table(constraint, {.sequences = 2, .width = Drafting::tree.width});
  SpeculationRound round(on.target, on.draft, table, Drafting::rounds(sampling));
  std::vector<std::vector<TokenId>> texts{text_of(6, 7), text_of(test::is_watched() ? 9 : 67, 5)};
  const auto prompts = texts;
  on.read(texts);
  for (int b = 0; b < 2; ++b) {
    const auto& text = texts[static_cast<std::size_t>(b)];
    round.start(b, text.back(), static_cast<int>(text.size()) - 1);
    table.start(b, constraint.initial(), round.stream());
  }
  std::set<int> accepted;  // by each round
  for (int i = 0; i < rounds; ++i) {
    const auto verdicts = round.run();
    table.learn(verdicts, round.stream());
    for (std::size_t b = 0; b < 2; ++b) {
      texts[b].insert(texts[b].end(), verdicts[b].tokens, verdicts[b].tokens + verdicts[b].emitted);
      accepted.insert(verdicts[b].accepted);
    }
  }
  // The tree has all that the constraint allows of two levels, once their states are known.
  if (rounds > 1) CHECK(*accepted.rbegin() >= 2);
  test::HostJudge host{LlamaModel(on.config, on.weights),
                       LogitsPipeline({.temperature = sampling.temperature}),
                       Drafting::rounds(sampling).seed};
  for (std::size_t b = 0; b < 2; ++b) {
    host.judge(prompts[b],
               {texts[b].begin() + static_cast<std::ptrdiff_t>(prompts[b].size()), texts[b].end()},
               {constraint.allowed, 0});
  }
  CHECK(host.differ * 10 <= host.tokens);
  on.check_roots(texts);

  // More text, as the results of a call.
  for (int b = 0; b < 2; ++b) {
    auto& text       = texts[static_cast<std::size_t>(b)];
    const auto start = text.size() - 1;
    for (const TokenId token : {2, 4, 8}) text.push_back(token);
    round.stop(b);
    on.draft.read(b, static_cast<int>(start), std::span(text).subspan(start, 3), on.stream);
  }
  on.check_roots(texts);
}

}  // namespace

TEST_CASE("EagleDraft, rounds under a constraint: emit the host's tokens and keep their states") {
  test::on_device([] { check_rounds({.temperature = 0.8F}, test::is_watched() ? 1 : 4); });
}

TEST_CASE("EagleDraft, a sequence that is not there: stays as it was read") {
  if (test::is_left_out()) return;
  test::on_device([] {
    Drafting on(test::config_of_three_layers());
    const std::vector<std::vector<TokenId>> texts{text_of(6, 7), text_of(9, 5)};
    on.read(texts);
    SpeculationRound round(on.target, on.draft, Drafting::rounds({.temperature = 0}));
    round.start(0, texts[0].back(), 5);
    const auto verdicts = round.run();
    CHECK(verdicts[1].emitted == 0);
    on.check_roots({{-1}, texts[1]});
  });
}

TEST_CASE("EagleDraft, ranked tokens: only these are drafted") {
  if (test::is_left_out()) return;
  test::on_device([] {
    const std::vector<TokenId> ranked{3, 5, 8, 13, 21, 34, 55, 1, 2, 60, 44, 30};
    Drafting on(test::config_of_three_layers(), ranked);
    CHECK(on.draft.head().rows == 12);
    const std::vector<std::vector<TokenId>> texts{text_of(6, 7), text_of(9, 5)};
    on.read(texts);
    SpeculationRound round(on.target, on.draft, Drafting::rounds({.temperature = 0}));
    for (int b = 0; b < 2; ++b) {
      const auto& text = texts[static_cast<std::size_t>(b)];
      round.start(b, text.back(), static_cast<int>(text.size()) - 1);
    }
    static_cast<void>(round.run());
    std::vector<TokenId> tokens(2 * max_nodes);
    std::vector<std::int32_t> sizes(2);
    check(cudaMemcpy(tokens.data(), round.tree().tokens, tokens.size() * sizeof(TokenId),
                     cudaMemcpyDeviceToHost));
    check(cudaMemcpy(sizes.data(), round.tree().sizes, sizes.size() * sizeof(std::int32_t),
                     cudaMemcpyDeviceToHost));
    for (std::size_t b = 0; b < 2; ++b) {
      CHECK(sizes[b] == Drafting::tree.budget + 1);
      for (std::size_t node = 1; node < static_cast<std::size_t>(sizes[b]); ++node) {
        CHECK(std::ranges::count(ranked, tokens[b * max_nodes + node]) == 1);
      }
    }
  });
}

TEST_CASE("EagleDraft, wrong arguments: names them") {
  static_assert(!std::is_constructible_v<EagleDraft<__half>, LlamaTarget<__half>, LlamaConfig,
                                         EagleWeights, DraftTreeOptions>);
  test::on_device([] {
    Drafting on(test::config_of_three_layers());
    const auto make = [&](const DraftTreeOptions& tree) {
      EagleDraft<__half>(on.target, on.config, on.eagle, tree);
    };
    CHECK_THROWS_WITH(make({.depth = 0}), "depth 0: must be from 1 to 63");
    CHECK_THROWS_WITH(make({.depth = 64}), "depth 64: must be from 1 to 63");
    CHECK_THROWS_WITH(make({.width = 0}), "width 0: must be from 1 to 64");
    CHECK_THROWS_WITH(make({.width = 65}), "width 65: must be from 1 to 64");
    CHECK_THROWS_WITH(EagleDraft<__half>(on.target, on.config, on.eagle, {}, {5, 61}),
                      "ranked 61: must be one of the model's vocabulary, below 61");
    CHECK_THROWS_WITH(EagleDraft<__half>(on.target, on.config, on.eagle, {}, {5, 7, 5}),
                      "ranked 5: must be there once");
    CHECK_THROWS_WITH(EagleDraft<__half>(on.target, odd_config(), on.eagle, {}),
                      "config: must be the target's");
    EagleWeights wrong = on.eagle;
    wrong.projection.pop_back();
    CHECK_THROWS_WITH(
        EagleDraft<__half>(on.target, on.config, wrong, {}),
        "fc: 8191 numbers with a bias of 64: must be [H, 2 H] with a bias of [H] or none, where H is 64");
    wrong = on.eagle;
    wrong.layer.down.pop_back();
    CHECK_THROWS_AS(EagleDraft<__half>(on.target, on.config, wrong, {}), Error);

    CHECK_THROWS_WITH(on.draft.read(2, 0, std::vector<TokenId>{1}, on.stream),
                      "sequence 2: must be from 0 to 1");
    const auto rounds = [&](DraftTreeOptions tree, int sequences) {
      on.draft.require({.sequences = sequences, .tree = tree, .slots = Drafting::slots});
    };
    CHECK_NOTHROW(rounds(Drafting::tree, 2));
    CHECK_THROWS_WITH(rounds({.depth = 4, .width = 3}, 2),
                      "depth 4: must be at most the EagleDraft's 3");
    CHECK_THROWS_WITH(rounds({.depth = 3, .width = 6}, 2),
                      "width 6: must be at most the EagleDraft's 5");
    CHECK_THROWS_WITH(rounds(Drafting::tree, 1), "sequences 1: must be the LlamaTarget's 2");
  });
}
