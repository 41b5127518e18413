#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <numeric>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include <tooldecode/model/llama_model.hpp>

#include <nlohmann/json.hpp>
#include <support/cache.hpp>
#include <support/catch.hpp>
#include <support/data.hpp>
#include <support/make_gguf.hpp>
#include <support/numbered_gguf.hpp>
#include <support/random_llama.hpp>
#include <support/slow_layer.hpp>

namespace td = tooldecode;
using td::test::random_llama;
using td::test::random_tokens;
using Tokens = std::vector<td::TokenId>;
using Vector = std::vector<double>;

namespace {

/// Reference in float64: the logits after the last token, from all positions layer by layer.
Vector slow_logits(const td::LlamaConfig& config, const td::model::LlamaWeights& weights,
                   const Tokens& tokens) {
  std::vector<td::test::SlowRow> rows;
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    const auto begin =
        weights.embedding.begin() + tokens[t] * static_cast<std::ptrdiff_t>(config.hidden_size);
    std::vector<std::size_t> sees(t + 1);
    std::iota(sees.begin(), sees.end(), std::size_t{0});
    rows.push_back({{begin, begin + static_cast<std::ptrdiff_t>(config.hidden_size)}, t, sees});
  }
  for (const auto& layer : weights.layers) {
    const auto states = td::test::slow_layer(config, layer, rows);
    for (std::size_t t = 0; t < rows.size(); ++t) rows[t].state = states[t];
  }
  return td::test::times(
      config.tied_head ? weights.embedding : weights.head,
      td::test::normed(rows.back().state, weights.final_norm, config.norm_epsilon));
}

std::vector<float> logits_after(const td::LlamaModel& model, td::model::KvCache& cache,
                                std::span<const td::TokenId> tokens) {
  std::vector<float> logits(model.vocabulary_size());
  model.forward(cache, tokens, logits);
  return logits;
}

/// Row t holds the logits after tokens 0, ..., t, each token run alone.
std::vector<std::vector<float>> one_by_one(const td::LlamaModel& model, const Tokens& tokens) {
  auto cache = model.make_cache();
  std::vector<std::vector<float>> rows;
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    rows.push_back(logits_after(model, cache, std::span(tokens).subspan(t, 1)));
  }
  return rows;
}

/// A tree of draft nodes: parents before children, node 0 the root.
struct Tree {
  Tokens tokens;
  std::vector<std::uint64_t> ancestors;
  std::vector<std::vector<std::size_t>> paths;
};

Tree random_tree(std::size_t size, std::mt19937& random) {
  Tree tree{random_tokens(size, random), {1}, {{0}}};
  for (std::size_t i = 1; i < size; ++i) {
    const std::size_t parent =
        random() % 3 == 0 ? random() % i : i - 1 - random() % std::min<std::size_t>(i, 4);
    tree.ancestors.push_back(tree.ancestors[parent] | std::uint64_t{1} << i);
    tree.paths.push_back(tree.paths[parent]);
    tree.paths.back().push_back(i);
  }
  return tree;
}

}  // namespace

TEST_CASE("LlamaModel::forward equals a float64 reference") {
  std::mt19937 random{7};
  for (const bool tied : {false, true}) {
    auto config             = td::test::random_llama_config();
    config.tied_head        = tied;
    config.attention_biases = tied;
    config.rope_theta       = 500.0F;
    if (tied) config.rope_factors = {1.0F, 1.0F, 1.7F, 4.0F, 8.0F};
    auto weights = td::test::random_llama_weights(config, 7);
    const td::LlamaModel model{config, weights};
    for (const std::size_t length : {1U, 2U, 33U, 70U}) {
      const Tokens tokens = random_tokens(length, random);
      const auto expected = slow_logits(config, weights, tokens);
      auto cache          = model.make_cache();
      const auto actual   = logits_after(model, cache, tokens);
      double magnitude    = 0;
      for (const double x : expected) magnitude = std::max(magnitude, std::abs(x));
      for (std::size_t t = 0; t < expected.size(); ++t) {
        CHECK(std::abs(static_cast<double>(actual[t]) - expected[t]) <= 2e-5 * magnitude);
      }
    }
  }
}

TEST_CASE("LlamaModel of the embedded model equals PyTorch in logits and greedy tokens") {
  const auto directory = td::test::example_data("tiny");
  if (!std::filesystem::exists(directory / "reference_logits.json")) {
    std::cerr << "SKIPPED: no " << (directory / "reference_logits.json").string() << '\n';
    return;
  }
  const auto model = td::LlamaModel::load(directory);
  const auto reference =
      nlohmann::json::parse(td::test::read_text(directory / "reference_logits.json"));
#ifdef __OPTIMIZE__
  const std::size_t cases = reference["cases"].size();
#else
  const std::size_t cases = 1;  // the others take minutes with sanitizers
#endif
  for (std::size_t index = 0; index < cases; ++index) {
    const auto& row = reference["cases"][index];
    INFO(row["id"]);
    auto cache       = model.make_cache();
    auto logits      = logits_after(model, cache, row["tokens"].get<Tokens>());
    double magnitude = 0;
    double worst     = 0;
    for (std::size_t i = 0; i < reference["probe_tokens"].size(); ++i) {
      const auto expected = row["logits"][i].get<double>();
      const auto actual   = logits[reference["probe_tokens"][i].get<std::size_t>()];
      magnitude           = std::max(magnitude, std::abs(expected));
      worst               = std::max(worst, std::abs(static_cast<double>(actual) - expected));
    }
    CHECK(worst <= 1e-3 * magnitude);
    for (const auto& expected : row["greedy"]) {
      const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
      REQUIRE(best == expected.get<std::ptrdiff_t>());
      logits = logits_after(model, cache, Tokens{static_cast<td::TokenId>(best)});
    }
  }
}

// Expected values are from llama.cpp (llama-cpp-python 0.3.36). With Q4_1 weights it rounds
// activations to eight bits, so the logits are those of a file with the weights converted to F32;
// the tokens are equal for both files.
TEST_CASE("LlamaModel of SmolLM2 equals llama.cpp in logits and greedy tokens", "[published]") {
  const char* file = "SmolLM2-135M-Instruct.Q4_1.gguf";
  const auto path  = td::test::cached_model(file);
  if (!path) return td::test::report_skipped(file);
  const auto model    = td::LlamaModel::load(*path);
  const Tokens prompt = {1,   4093, 198,  14413, 2240, 314, 260, 3575, 282, 4649, 28,   284, 638,
                         800, 701,  2330, 281,   357,  47,  2,   198,  1,   520,  9531, 198};
  auto cache          = model.make_cache();
  auto logits         = logits_after(model, cache, prompt);
  const std::pair<std::size_t, float> expected[] = {
      {504, 27.3331F}, {38634, 26.8678F}, {7026, 25.8747F}, {60, 25.8048F},  {0, 9.3945F},
      {2, 7.5006F},    {1000, 10.3084F},  {20000, 3.5046F}, {49151, 1.6516F}};
  for (const auto& [token, logit] : expected) CHECK(std::abs(logits[token] - logit) < 1e-3F);
  for (const td::TokenId token :
       {504, 3575, 282, 4649, 314,  7042, 30, 2,    198,  2,   1,    9690,
        198, 2,    198, 1,    4093, 198,  57, 5248, 3946, 288, 7198, 253}) {
    const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
    REQUIRE(best == token);
    logits = logits_after(model, cache, Tokens{token});
  }
}

TEST_CASE("LlamaModel::forward has the same bits for any split of the prefill") {
  const auto model = random_llama(8);
  std::mt19937 random{8};
  const Tokens tokens = random_tokens(150, random);
  const auto expected = one_by_one(model, tokens);

  auto cache = model.make_cache();
  std::vector<float> hidden(tokens.size() * model.hidden_size());
  model.forward_hidden(cache, tokens, hidden);
  std::vector<float> all(tokens.size() * model.vocabulary_size());
  model.fill_logits(hidden, all);
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    const auto row = all.begin() + static_cast<std::ptrdiff_t>(t * model.vocabulary_size());
    CHECK(std::equal(expected[t].begin(), expected[t].end(), row));
  }
  for (int round = 0; round < 6; ++round) {
    INFO("seed 8, round " << round);
    auto chunked = model.make_cache();
    for (std::size_t begin = 0; begin < tokens.size();) {
      const std::size_t count = std::min<std::size_t>(1 + random() % 90, tokens.size() - begin);
      const auto logits = logits_after(model, chunked, std::span(tokens).subspan(begin, count));
      begin += count;
      CHECK(logits == expected[begin - 1]);
      CHECK(model.length(chunked) == begin);
    }
  }
}

TEST_CASE("LlamaModel::forward_tree has the bits of each path and commit keeps the chosen path") {
  const auto model = random_llama(9);
  std::mt19937 random{9};
  for (int round = 0; round < 8; ++round) {
    INFO("seed 9, round " << round);
    const Tokens prompt = random_tokens(1 + random() % 70, random);
    auto cache          = model.make_cache();
    static_cast<void>(logits_after(model, cache, prompt));
    auto linear     = model.fork(cache);
    Tokens sequence = prompt;
    for (int step = 0; step < 2; ++step) {
      const std::size_t size = step == 0 && round == 0 ? 64 : 1 + random() % 30;
      const Tree tree        = random_tree(size, random);
      std::vector<float> logits(size * model.vocabulary_size());
      model.forward_tree(cache, tree.tokens, tree.ancestors, logits);
      CHECK(model.length(cache) == sequence.size());
      for (std::size_t node = 0; node < size; ++node) {
        Tokens path;
        for (const std::size_t i : tree.paths[node]) path.push_back(tree.tokens[i]);
        auto alone          = model.fork(linear);
        const auto expected = logits_after(model, alone, path);
        const auto row =
            logits.begin() + static_cast<std::ptrdiff_t>(node * model.vocabulary_size());
        CHECK(std::equal(expected.begin(), expected.end(), row));
      }
      const auto& kept = tree.paths[random() % size];
      model.commit(cache, kept);
      for (const std::size_t i : kept) {
        static_cast<void>(logits_after(model, linear, std::span(tree.tokens).subspan(i, 1)));
        sequence.push_back(tree.tokens[i]);
      }
      CHECK(model.length(cache) == sequence.size());
    }
    const Tokens more = random_tokens(40, random);
    const auto actual = logits_after(model, cache, more);
    sequence.insert(sequence.end(), more.begin(), more.end());
    auto fresh = model.make_cache();
    CHECK(actual == logits_after(model, fresh, sequence));
  }
}

TEST_CASE("LlamaModel drops nodes of a tree that are not committed") {
  const auto model = random_llama(10);
  std::mt19937 random{10};
  const Tokens prompt = random_tokens(40, random);
  const Tree tree     = random_tree(20, random);
  std::vector<float> logits(20 * model.vocabulary_size());
  auto cache = model.make_cache();
  static_cast<void>(logits_after(model, cache, prompt));
  auto untouched = model.fork(cache);
  model.forward_tree(cache, tree.tokens, tree.ancestors, logits);
  const Tokens more = random_tokens(3, random);
  CHECK(logits_after(model, cache, more) == logits_after(model, untouched, more));
}

TEST_CASE("LlamaModel::fork and truncate have the bits of a new cache") {
  const auto model = random_llama(11);
  std::mt19937 random{11};
  const Tokens tokens = random_tokens(110, random);
  const auto expected = one_by_one(model, tokens);
  auto cache          = model.make_cache();
  static_cast<void>(logits_after(model, cache, tokens));
  for (const std::size_t length : {100U, 97U, 96U, 64U, 63U, 33U, 1U}) {
    auto fork = model.fork(cache);
    model.truncate(fork, length);
    const auto rest = std::span(tokens).subspan(length);
    CHECK(logits_after(model, fork, rest.first(1)) == expected[length]);
    CHECK(logits_after(model, fork, random_tokens(5, random)) != expected[length]);
    auto other = model.fork(cache);
    model.truncate(other, length);
    CHECK(logits_after(model, other, rest) == expected.back());
  }
  model.truncate(cache, 0);
  CHECK(logits_after(model, cache, tokens) == expected.back());
}

TEST_CASE("LlamaModel::forward_batch has the bits of each sequence alone") {
  const auto model = random_llama(12);
  std::mt19937 random{12};
  constexpr std::size_t count = 70;
  std::vector<td::model::KvCache> caches, alone;
  std::vector<td::model::KvCache*> pointers;
  for (std::size_t i = 0; i < count; ++i) {
    caches.push_back(model.make_cache());
    if (i % 3 != 0)
      static_cast<void>(logits_after(model, caches.back(), random_tokens(1 + i, random)));
    alone.push_back(model.fork(caches.back()));
  }
  for (auto& cache : caches) pointers.push_back(&cache);
  for (int step = 0; step < 4; ++step) {
    std::vector<Tokens> tokens;
    for (std::size_t i = 0; i < count; ++i) {
      tokens.push_back(random_tokens(step == 0 ? 1 : 1 + random() % (i == 7 ? 80 : 5), random));
    }
    const std::vector<std::span<const td::TokenId>> views(tokens.begin(), tokens.end());
    std::vector<float> logits(count * model.vocabulary_size());
    model.forward_batch(pointers, views, logits);
    for (std::size_t i = 0; i < count; ++i) {
      const auto expected = logits_after(model, alone[i], tokens[i]);
      const auto row = logits.begin() + static_cast<std::ptrdiff_t>(i * model.vocabulary_size());
      CHECK(std::equal(expected.begin(), expected.end(), row));
      CHECK(model.length(caches[i]) == model.length(alone[i]));
    }
  }
}

TEST_CASE("LlamaModel::lm_head times a hidden state gives the logits") {
  const auto model    = random_llama(13);
  const Tokens tokens = {5, 17, 3};
  auto cache          = model.make_cache();
  std::vector<float> hidden(3 * model.hidden_size());
  model.forward_hidden(cache, tokens, hidden);
  const auto head = model.lm_head();
  CHECK(head.rows() == 61);
  CHECK(head.cols() == 36);
  auto fresh        = model.make_cache();
  const auto logits = logits_after(model, fresh, tokens);
  for (std::size_t t = 0; t < 61; ++t) {
    double sum = 0;
    for (std::size_t i = 0; i < 36; ++i) {
      sum +=
          static_cast<double>(head.as<float>().row(t)[i]) * static_cast<double>(hidden[2 * 36 + i]);
    }
    CHECK(std::abs(sum - static_cast<double>(logits[t])) < 1e-4);
  }
}

TEST_CASE("LlamaModel::forward throws for invalid tokens and lengths and keeps the cache") {
  const auto model = random_llama(14);
  auto cache       = model.make_cache();
  std::vector<float> logits(model.vocabulary_size());
  model.forward(cache, Tokens(199, 1), logits);
  CHECK_THROWS_WITH(model.forward(cache, Tokens{1, 2}, logits),
                    "context: 201 tokens: must be at most 200");
  CHECK_THROWS_WITH(model.forward(cache, Tokens{61}, logits),
                    "token 61: must be one of the model's vocabulary, below 61");
  CHECK_THROWS_WITH(model.forward(cache, Tokens{-1}, logits),
                    "token -1: must be one of the model's vocabulary, below 61");
  std::vector<float> rows(3 * model.vocabulary_size());
  CHECK_THROWS_AS(
      model.forward_tree(cache, Tokens{1, 2, 3}, std::vector<std::uint64_t>{1, 3, 5}, rows),
      td::Error);
  CHECK(model.length(cache) == 199);
  // The depth of the tree counts, not its number of nodes.
  model.truncate(cache, 198);
  CHECK_NOTHROW(
      model.forward_tree(cache, Tokens{1, 2, 3}, std::vector<std::uint64_t>{1, 3, 5}, rows));
  model.forward(cache, Tokens{1, 2}, logits);
  CHECK(model.length(cache) == 200);
}

TEST_CASE("LlamaModel::load of a missing directory names the file") {
  CHECK_THROWS_WITH(td::LlamaModel::load("/nowhere"),
                    "/nowhere/config.json: is not a file that can be read");
}

TEST_CASE("LlamaModel::load reads a GGUF file and its errors name the file") {
  const auto config   = td::test::random_llama_config();
  const auto weights  = td::test::random_llama_weights(config, 15);
  const auto path     = std::filesystem::temp_directory_path() / "tooldecode_llama_model.gguf";
  const Tokens tokens = {5, 17, 3, 60};
  const td::LlamaModel model{config, weights};
  auto cache          = model.make_cache();
  const auto expected = logits_after(model, cache, tokens);
  for (const char* architecture : {"llama", "qwen2"}) {
    std::ofstream(path, std::ios::binary) << td::test::make_gguf(config, weights, architecture);
    const auto loaded = td::LlamaModel::load(path);
    auto fresh        = loaded.make_cache();
    CHECK(logits_after(loaded, fresh, tokens) == expected);
  }
  std::ofstream(path, std::ios::binary) << "GGML";
  CHECK_THROWS_WITH(td::LlamaModel::load(path), path.string() + ": byte 0: must be \"GGUF\"");
  std::filesystem::remove(path);
}

TEST_CASE("LlamaModel::load_ends reads the embedding and the head of a GGUF file and no layer") {
  for (const bool tied : {true, false}) {
    INFO("tied " << tied);
    auto config        = td::test::random_llama_config();
    config.tied_head   = tied;
    const auto weights = td::test::random_llama_weights(config, 16);
    const td::test::TemporaryFile file("tooldecode_llama_ends.gguf",
                                       td::test::make_gguf(config, weights, "llama"));
    const auto whole = td::LlamaModel::load(file.path());
    const auto ends  = td::LlamaModel::load_ends(file.path());
    CHECK(ends.config().layers == 0);
    CHECK(ends.config().heads == config.heads);
    CHECK(ends.weights().layers.empty());
    REQUIRE(ends.vocabulary_size() == config.vocabulary_size);
    for (td::TokenId token = 0; token < 61; ++token) {
      const auto row  = static_cast<std::size_t>(token);
      const auto head = whole.lm_head().as<float>().row(row);
      REQUIRE(std::ranges::equal(ends.embedding(token), whole.embedding(token)));
      REQUIRE(std::equal(head, head + config.hidden_size, ends.lm_head().as<float>().row(row)));
    }
  }
  CHECK_THROWS_AS(td::LlamaModel::load_ends("/nowhere/model.gguf"), td::Error);
}
