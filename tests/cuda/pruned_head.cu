#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include <Eigen/Core>

#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/pruned_head.cuh>
#include <tooldecode/draft/frequency_ranked_head.hpp>
#include <tooldecode/draft/top_k.hpp>
#include <tooldecode/logits/log_sum_exp.hpp>
#include <tooldecode/vocabulary/frequency_ranks.hpp>

#include <support/catch.hpp>
#include <support/device.hpp>
#include <support/device_head.hpp>
#include <support/device_scratch.hpp>

using namespace tooldecode;
using namespace tooldecode::draft;
using namespace tooldecode::cuda;
using namespace tooldecode::test;

namespace {

struct Sizes {
  int rows, hidden, states, k;
};

struct Results {
  std::vector<TokenId> tokens;
  std::vector<float> logits;
  std::vector<float> log_sum_exp;
};

template <class T>
Results ranked(const HeadRows<T>& rows, const DeviceBuffer<T>& hidden, int states, int k,
               const std::vector<std::uint32_t>* masks = nullptr) {
  const auto size = static_cast<std::size_t>(states * k);
  const DeviceBuffer<TokenId> tokens(size);
  const DeviceBuffer<float> logits(size), sums(static_cast<std::size_t>(states));
  const DeviceBuffer<std::uint32_t> bits(masks == nullptr ? std::vector<std::uint32_t>{} : *masks);
  const int words = states == 0 ? 0 : static_cast<int>(bits.size()) / states;
  const Scratch workspace(pruned_head_workspace_bytes(states, rows.rows, k, words));
  project_topk(rows, hidden.data(), states, bits.data(), words, k,
               {tokens.data(), logits.data(), sums.data()}, workspace, nullptr);
  return {tokens.download(), logits.download(), sums.download()};
}

/// Compares with the host's TopK of the kernel's own logits.
void check_ranking(const Results& results, const std::vector<float>& logits,
                   const std::vector<TokenId>& tokens, int states, int k,
                   const std::vector<std::uint32_t>* masks = nullptr) {
  const std::size_t words = masks == nullptr ? 0 : masks->size() / static_cast<std::size_t>(states);
  for (std::size_t s = 0; s < static_cast<std::size_t>(states); ++s) {
    INFO("state " << s);
    TopK expected(static_cast<std::size_t>(k));
    double sum = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const auto token = static_cast<std::size_t>(tokens[i]);
      const float one  = logits[s * tokens.size() + i];
      if (masks != nullptr &&
          (token / 32 >= words || ((*masks)[s * words + token / 32] >> (token % 32) & 1) == 0)) {
        continue;
      }
      if (std::isnan(one)) continue;
      expected.add({&tokens[i], 1}, {&one, 1});
      sum += std::exp(static_cast<double>(one));
    }
    const TopTokens top = std::move(expected).take();
    for (std::size_t i = 0; i < static_cast<std::size_t>(k); ++i) {
      const bool is_there = i < top.tokens.size();
      CHECK(results.tokens[s * static_cast<std::size_t>(k) + i] ==
            (is_there ? top.tokens[i].token : -1));
      CHECK(results.logits[s * static_cast<std::size_t>(k) + i] ==
            (is_there ? top.tokens[i].logit : -std::numeric_limits<float>::infinity()));
    }
    if (sum == 0) {
      CHECK(results.log_sum_exp[s] == -std::numeric_limits<float>::infinity());
    } else {
      CHECK(std::abs(results.log_sum_exp[s] - std::log(sum)) <
            2e-6 * (1 + std::abs(std::log(sum))));
    }
  }
}

template <class T>
void check_sizes(const Sizes& sizes, unsigned seed) {
  INFO("K " << sizes.rows << ", H " << sizes.hidden << ", n " << sizes.states << ", k " << sizes.k
            << ", seed " << seed);
  RandomHead<T> head = random_head<T>(sizes.rows, sizes.hidden, seed);
  std::mt19937 random(seed + 1);
  const auto states =
      normal_numbers<T>(static_cast<std::size_t>(sizes.states * sizes.hidden), random);
  const DeviceBuffer<T> hidden(states);
  const std::vector<float> logits = logits_of(head.copied(), hidden, sizes.states);
  const Results results           = ranked(head.in_place(), hidden, sizes.states, sizes.k);
  check_ranking(results, logits, head.tokens, sizes.states, sizes.k);
}

}  // namespace

TEST_CASE("project_topk on CUDA cores equals the host's ranking and log-sum-exp") {
  on_device([] {
    unsigned seed = 1;
    for (const Sizes& sizes :
         {Sizes{1, 8, 1, 1}, Sizes{15, 24, 1, 10}, Sizes{257, 264, 1, 32}, Sizes{65, 1032, 1, 5},
          Sizes{16, 72, 2, 3}, Sizes{130, 520, 3, 10}, Sizes{17, 256, 4, 32}}) {
      if (seed % 2 == 0) check_sizes<__half>(sizes, seed);
      if (seed % 2 != 0) check_sizes<__nv_bfloat16>(sizes, seed);
      ++seed;
    }
  });
}

TEST_CASE("project_topk on tensor cores equals the host's ranking and log-sum-exp") {
  on_device([] {
    unsigned seed = 1;
    for (const Sizes& sizes :
         {Sizes{1, 8, 5, 1}, Sizes{17, 24, 8, 32}, Sizes{33, 72, 9, 10}, Sizes{15, 128, 16, 3},
          Sizes{16, 1032, 6, 10}, Sizes{18, 72, 49, 10}, Sizes{20, 40, 70, 10}}) {
      if (seed % 2 == 0) check_sizes<__half>(sizes, seed);
      if (seed % 2 != 0) check_sizes<__nv_bfloat16>(sizes, seed);
      ++seed;
    }
  });
}

TEST_CASE("project_topk applies each state's own mask") {
  on_device([] {
    for (const int states : {4, 6}) {
      INFO("states " << states);
      const RandomHead<__half> head = random_head<__half>(70, 40, 3);
      std::mt19937 random(4);
      const DeviceBuffer<__half> hidden(
          normal_numbers<__half>(static_cast<std::size_t>(states) * 40, random));
      const auto size      = static_cast<std::size_t>(head.vocabulary);
      const auto words     = (size + 31) / 32;
      const auto last_word = words - 1;  // tokens past the mask are forbidden
      std::vector<std::uint32_t> masks;
      for (const auto& mask :
           {std::vector<std::uint32_t>(words, ~0U), random_mask(size, 0.2, random),
            std::vector<std::uint32_t>(words, 0), random_mask(size, 0.9, random),
            random_mask(size, 0.5, random), std::vector<std::uint32_t>(words, ~0U)}) {
        if (masks.size() == static_cast<std::size_t>(states) * last_word) break;
        masks.insert(masks.end(), mask.begin(), mask.end() - 1);
      }
      const auto token = static_cast<std::size_t>(
          *std::find_if(head.tokens.begin(), head.tokens.end(),
                        [&](TokenId one) { return one < static_cast<TokenId>(32 * last_word); }));
      std::fill_n(masks.begin() + static_cast<std::ptrdiff_t>(3 * last_word), last_word, 0);
      masks[3 * last_word + token / 32] = 1U << (token % 32);

      const std::vector<float> logits = logits_of(head.copied(), hidden, states);
      const Results results           = ranked(head.copied(), hidden, states, 20, &masks);
      check_ranking(results, logits, head.tokens, states, 20, &masks);
      CHECK(results.tokens[2 * 20] == -1);
      CHECK(results.tokens[3 * 20] == static_cast<TokenId>(token));
      CHECK(results.tokens[3 * 20 + 1] == -1);
    }
  });
}

TEST_CASE("project_topk equals the host's FrequencyRankedHead, under wide and narrow masks") {
  on_device([] {
    // Products of small integers are exact in any order, and there are ties.
    std::mt19937 random(5);
    const int vocabulary = 90, rows = 41, width = 16, k = 12;
    std::uniform_int_distribution<int> whole(-3, 3);
    Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> matrix(vocabulary, width);
    for (auto& weight : matrix.reshaped()) weight = static_cast<float>(whole(random));
    std::vector<std::uint64_t> counts(vocabulary);
    for (auto& count : counts) count = random() % 1000;
    const RankedTokens ranks = FrequencyRanks(counts).first(rows);
    const FrequencyRankedHead host{matrix, ranks};

    std::vector<__half> weights(static_cast<std::size_t>(vocabulary * width));
    std::transform(matrix.data(), matrix.data() + matrix.size(), weights.begin(),
                   [](float x) { return from_float<__half>(x); });
    const DeviceBuffer<__half> device_weights(weights);
    const DeviceBuffer<TokenId> tokens({ranks.ranked().begin(), ranks.ranked().end()});
    const HeadRows<__half> head{.weights     = device_weights.data(),
                                .rows        = rows,
                                .hidden_size = width,
                                .tokens      = tokens.data(),
                                .vocabulary  = vocabulary};
    // Shares of the tokens that masks allow: K and more, a few, none, all.
    for (const std::vector<double>& shares :
         {std::vector{0.7}, {0.04}, {0.0}, {1.0}, {0.04, 0.7, 0.0, 1.0, 0.3}}) {
      for (const int states : {1, 3, 9, 70}) {
        INFO("states " << states << ", first share " << shares[0]);
        std::vector<float> hidden(static_cast<std::size_t>(states * width));
        for (float& x : hidden) x = static_cast<float>(whole(random));
        std::vector<__half> inputs(hidden.size());
        std::transform(hidden.begin(), hidden.end(), inputs.begin(),
                       [](float x) { return from_float<__half>(x); });
        std::vector<std::uint32_t> masks, host_masks;
        for (std::size_t s = 0; s < static_cast<std::size_t>(states); ++s) {
          const auto mask = random_mask(vocabulary, shares[s % shares.size()], random);
          masks.insert(masks.end(), mask.begin(), mask.end());
          host_masks.insert(host_masks.end(), mask.begin(), mask.end());
          host_masks.back() &= (1U << (vocabulary % 32)) - 1;
        }
        std::vector<ConstMaskView> of_states;
        for (std::size_t s = 0; s < static_cast<std::size_t>(states); ++s) {
          of_states.push_back(std::span(host_masks).subspan(3 * s, 3));
        }
        const auto expected = host.project_topk(hidden, k, of_states);
        const Results got   = ranked(head, DeviceBuffer<__half>(inputs), states, k, &masks);
        for (std::size_t s = 0; s < expected.size(); ++s) {
          const auto& best = expected[s].tokens;
          REQUIRE(best.size() ==
                  std::min<std::size_t>(k, static_cast<std::size_t>(of_states[s].count())));
          for (std::size_t i = 0; i < k; ++i) {
            REQUIRE(got.tokens[s * k + i] == (i < best.size() ? best[i].token : -1));
            if (i < best.size()) REQUIRE(got.logits[s * k + i] == best[i].logit);
          }
          if (best.empty()) {
            CHECK(got.log_sum_exp[s] == -INFINITY);
          } else {
            CHECK(std::abs(got.log_sum_exp[s] - expected[s].log_sum_exp) < 1e-5);
          }
        }
      }
    }
  });
}

#if defined(TOOLDECODE_SIMT)
TEST_CASE("project_topk returns the same ranking for any number of blocks") {
  on_device([] {
    const RandomHead<__half> head = random_head<__half>(150, 24, 6);
    std::mt19937 random(7);
    const DeviceBuffer<__half> hidden(normal_numbers<__half>(std::size_t{6} * 24, random));
    for (const int states : {1, 6}) {
      INFO("states " << states);
      const std::vector<float> logits = logits_of(head.copied(), hidden, states);
      const Results results           = ranked(head.copied(), hidden, states, 10);
      for (const int multiprocessors : {1, 132}) {
        const Setting setting(simt::multiprocessors, multiprocessors);
        const Results others = ranked(head.copied(), hidden, states, 10);
        CHECK(others.tokens == results.tokens);
        CHECK(others.logits == results.logits);
        check_ranking(others, logits, head.tokens, states, 10);
      }
    }
  });
}

TEST_CASE("project_topk is right for many blocks, states in parts and no tensor cores") {
  on_device([] {
    {
      const Setting limit(simt::options.shared_limit, std::size_t{31} * 1024);
      check_sizes<__nv_bfloat16>({140, 264, 12, 7}, 8);
    }
    {
      const Setting many(simt::multiprocessors, 132);  // more lists than are loaded at a time
      check_sizes<__half>({2100, 8, 5, 10}, 9);
    }
    const Setting older(simt::compute_capability, 75);
    check_sizes<__half>({33, 40, 9, 10}, 10);
  });
}
#endif

TEST_CASE("project_topk never returns a token whose logit is NaN or -infinity") {
  on_device([] {
    for (const int states : {2, 5}) {
      std::mt19937 random(11);
      auto weights = normal_numbers<__half>(std::size_t{40} * 16, random);
      for (std::size_t c = 0; c < 16; ++c) weights[3 * 16 + c] = from_float<__half>(NAN);
      for (std::size_t c = 0; c < 16; ++c) weights[17 * 16 + c] = from_float<__half>(-INFINITY);
      const DeviceBuffer<__half> device_weights(weights);
      const DeviceBuffer<__half> hidden(
          std::vector<__half>(static_cast<std::size_t>(states) * 16, from_float<__half>(1)));
      const HeadRows<__half> rows{.weights = device_weights.data(), .rows = 40, .hidden_size = 16};
      const std::vector<float> logits = logits_of(rows, hidden, states);
      CHECK(std::isnan(logits[3]));
      CHECK(logits[17] == -INFINITY);
      std::vector<TokenId> tokens(40);
      for (std::size_t i = 0; i < 40; ++i) tokens[i] = static_cast<TokenId>(i);
      const Results results = ranked(rows, hidden, states, 32);
      check_ranking(results, logits, tokens, states, 32);
      CHECK(std::count(results.tokens.begin(), results.tokens.end(), 3) == 0);
      CHECK(std::isfinite(results.log_sum_exp[0]));
    }
  });
}

TEST_CASE("project_topk accepts zero rows and zero states") {
  on_device([] {
    const DeviceBuffer<__half> hidden(16);
    HeadRows<__half> rows{.weights = nullptr, .rows = 0, .hidden_size = 8};
    const Results none = ranked(rows, hidden, 2, 3);
    CHECK(none.tokens == std::vector<TokenId>(6, -1));
    CHECK(none.logits == std::vector<float>(6, -INFINITY));
    CHECK(none.log_sum_exp == std::vector<float>(2, -INFINITY));
    fill_logits(rows, hidden.data(), 2, static_cast<float*>(nullptr), nullptr);
    CHECK(ranked(rows, hidden, 0, 3).tokens.empty());
  });
}

TEST_CASE("project_topk in a captured graph reads the states at each replay") {
  on_device([] {
    const int states = 5, k = 4;
    const RandomHead<__half> head = random_head<__half>(40, 24, 12);
    std::mt19937 random(13);
    DeviceBuffer<__half> hidden(std::size_t{states} * 24);
    const DeviceBuffer<TokenId> tokens(states * k);
    const DeviceBuffer<float> logits(states * k), sums(states);
    const Scratch workspace(pruned_head_workspace_bytes(states, 40, k));
    cudaStream_t stream        = nullptr;
    cudaGraph_t graph          = nullptr;
    cudaGraphExec_t executable = nullptr;
    check(cudaStreamCreate(&stream));
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    project_topk(head.copied(), hidden.data(), states, nullptr, 0, k,
                 {tokens.data(), logits.data(), sums.data()}, workspace.on(stream), stream);
    check(cudaStreamEndCapture(stream, &graph));
    check(cudaGraphInstantiate(&executable, graph, 0));
    for (int round = 0; round < 2; ++round) {
      hidden.upload(normal_numbers<__half>(hidden.size(), random));
      check(cudaGraphLaunch(executable, stream));
      check(cudaStreamSynchronize(stream));
      check_ranking({tokens.download(), logits.download(), sums.download()},
                    logits_of(head.copied(), hidden, states), head.tokens, states, k);
    }
    check(cudaGraphExecDestroy(executable));
    check(cudaGraphDestroy(graph));
    check(cudaStreamDestroy(stream));
  });
}

TEST_CASE("project_topk throws an error that names the argument it does not support") {
  on_device([] {
    const DeviceBuffer<__half> weights(64), hidden(64);
    const DeviceBuffer<float> logits(64);
    const HeadRows<__half> good{
        .weights = weights.data(), .rows = 4, .hidden_size = 8, .vocabulary = 4};
    const DeviceBuffer<TokenId> tokens(2 * 33);
    const auto code_of_k = [&](int k, std::size_t missing) {
      const DeviceBuffer<std::byte> memory(pruned_head_workspace_bytes(2, 4, 32) - missing);
      try {
        project_topk(good, hidden.data(), 2, nullptr, 0, k,
                     {tokens.data(), logits.data(), logits.data()}, memory, nullptr);
      } catch (const Error& error) {
        return std::optional(error.code());
      }
      return std::optional<Errc>();
    };
    CHECK_THROWS_WITH(project_topk(good, hidden.data(), 2, nullptr, 0, 33,
                                   {tokens.data(), logits.data(), logits.data()}, {}, nullptr),
                      "k = 33: must be from 1 to 32");
    CHECK_THROWS_WITH(project_topk(good, hidden.data(), 2, nullptr, -1, 3,
                                   {tokens.data(), logits.data(), logits.data()}, {}, nullptr),
                      "mask_words -1: must be 0 or more");
    CHECK_THROWS_WITH(project_topk(good, hidden.data(), 2, nullptr, 0, 3, {}, {}, nullptr),
                      "to: must have no null pointer");
    CHECK(code_of_k(0, 0) == Errc::invalid_option);
    CHECK(code_of_k(33, 0) == Errc::invalid_option);
    CHECK(code_of_k(32, 1) == Errc::shape_mismatch);
    CHECK_THROWS_WITH(pruned_head_workspace_bytes(-1, 4, 3),
                      "head: states -1: must be from 0 to 65535");
    CHECK_THROWS_WITH(pruned_head_workspace_bytes(2, -4, 3), "head: rows -4: must be 0 or more");
    CHECK_THROWS_WITH(pruned_head_workspace_bytes(2, 4, 33), "k = 33: must be from 1 to 32");
    CHECK_THROWS_WITH(pruned_head_workspace_bytes(2, 4, 3, -1), "mask_words -1: must be 0 or more");
  });
}
