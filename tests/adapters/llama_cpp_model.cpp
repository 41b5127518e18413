// Against LlamaModel, which has the same weights in the same file's form.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <tooldecode/adapters/llama_cpp_model.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/decode/continuous_batch.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/decode/tree_speculation.hpp>
#include <tooldecode/decode/unconstrained.hpp>
#include <tooldecode/draft/eagle_drafter.hpp>
#include <tooldecode/draft/frequency_ranked_head.hpp>
#include <tooldecode/draft/medusa_drafter.hpp>
#include <tooldecode/draft/suffix_drafter.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>
#include <tooldecode/model/eagle_model.hpp>
#include <tooldecode/model/feature_model.hpp>
#include <tooldecode/model/llama_model.hpp>
#include <tooldecode/model/medusa_model.hpp>

#include <support/catch.hpp>
#include <support/code_of.hpp>
#include <support/numbered_gguf.hpp>
#include <support/quiet_llama_cpp.hpp>
#include <support/random_eagle.hpp>
#include <support/random_llama.hpp>
#include <support/random_rounds.hpp>
#include <support/random_table.hpp>

namespace td = tooldecode;

namespace {

using Tokens = std::vector<td::TokenId>;
using td::test::code_of;

td::LlamaConfig config_for_llama_cpp() {
  td::LlamaConfig config = td::test::random_llama_config();
  config.hidden_size     = 32;
  config.head_size       = 8;
  config.heads           = 4;
  return config;
}

std::string file_of(unsigned seed) {
  const auto config = config_for_llama_cpp();
  return td::test::numbered_gguf(config, td::test::random_llama_weights(config, seed));
}

td::LlamaCppModel load(unsigned seed, td::LlamaCppOptions options = {}) {
  const td::test::TemporaryFile file("tooldecode_llama_cpp.gguf", file_of(seed));
  options.cache_type      = GGML_TYPE_F32;
  options.flash_attention = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  return td::LlamaCppModel::load(file.path(), options);
}

Tokens random_tokens(std::mt19937& random, std::size_t count) {
  Tokens tokens(count);
  for (auto& token : tokens) token = static_cast<td::TokenId>(random() % 61);
  return tokens;
}

std::vector<float> logits_after(const auto& model, auto& cache, const Tokens& tokens) {
  std::vector<float> logits(model.vocabulary_size());
  model.forward(cache, tokens, logits);
  return logits;
}

// Sums depend on the shape of a batch, but far less than logits differ.
void check_near(std::span<const float> a, std::span<const float> b) {
  REQUIRE(a.size() == b.size());
  float difference = 0, scale = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference = std::max(difference, std::abs(a[i] - b[i]));
    scale      = std::max(scale, std::abs(b[i]));
  }
  CAPTURE(difference, scale);
  CHECK(difference <= 1e-4F * scale);
}

struct RandomTree {
  Tokens tokens;
  std::vector<std::uint64_t> ancestors;
  std::vector<std::optional<std::size_t>> parents;

  RandomTree(std::mt19937& random, std::size_t count) : tokens(random_tokens(random, count)) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t parent = random() % (i + 1);  // i: a root
      ancestors.push_back((parent == i ? 0 : ancestors[parent]) | std::uint64_t{1} << i);
      parents.push_back(parent == i ? std::nullopt : std::optional(parent));
    }
  }
  [[nodiscard]] std::vector<std::size_t> path(std::size_t node) const {
    std::vector<std::size_t> nodes;
    for (std::size_t i = 0; i <= node; ++i) {
      if ((ancestors[node] >> i & 1) != 0) nodes.push_back(i);
    }
    return nodes;
  }
  [[nodiscard]] Tokens texts(const std::vector<std::size_t>& nodes) const {
    Tokens result;
    for (const std::size_t node : nodes) result.push_back(tokens[node]);
    return result;
  }
};

}  // namespace

TEST_CASE("LlamaCppModel gives LlamaModel's logits and hidden states") {
  for (unsigned seed = 1; seed <= 4; ++seed) {
    CAPTURE(seed);
    std::mt19937 random{seed};
    const auto config = config_for_llama_cpp();
    const td::LlamaModel reference{config, td::test::random_llama_weights(config, seed)};
    const auto model = load(seed);
    CHECK(model.vocabulary_size() == 61);
    CHECK(model.hidden_size() == 32);
    CHECK(model.context_length() == 200);
    auto cache = model.make_cache();
    auto other = reference.make_cache();
    for (const std::size_t count : {1U, 7U, 2U, 60U}) {
      const Tokens tokens = random_tokens(random, count);
      check_near(logits_after(model, cache, tokens), logits_after(reference, other, tokens));
    }
    CHECK(model.length(cache) == 70);
    model.truncate(cache, 5);
    reference.truncate(other, 5);
    const Tokens tokens = random_tokens(random, 3);
    std::vector<float> hidden(3 * 32), expected(3 * 32), logits(61), expected_logits(61);
    model.forward_states(cache, tokens, logits, hidden);
    reference.forward_hidden(other, tokens, expected);
    reference.fill_logits(std::span(expected).last(32), expected_logits);
    check_near(hidden, expected);
    check_near(logits, expected_logits);
  }
}

TEST_CASE(
    "LlamaCppModel::forward_state stops before the head and leaves the cache as forward does") {
  for (unsigned seed = 1; seed <= 4; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    const auto model      = load(seed, {.cells = 1024, .batch = 64});
    const auto with_input = model.with_features({1});
    auto plain = model.make_cache(), stopped = model.make_cache(), beside = model.make_cache();
    for (const std::size_t count : {1U, 7U, 150U, 2U}) {  // 150: three batches
      const Tokens tokens = random_tokens(random, count);
      std::vector<float> state(32), all(count * 32), logits(61), wide(64);
      model.forward_state(stopped, tokens, state);
      model.forward_states(plain, tokens, logits, all);
      check_near(state, std::span(all).last(32));
      with_input.forward_state(beside, tokens, wide);
      check_near(std::span(wide).last(32), state);
      CHECK(model.length(stopped) == model.length(plain));
    }
    // What stopped before its head can go on with it.
    const Tokens tokens = random_tokens(random, 3);
    check_near(logits_after(model, stopped, tokens), logits_after(model, plain, tokens));
    const td::ModelRef any(model);
    REQUIRE(any.abilities().headless);
    auto cache = any.make_cache();
    std::vector<float> state(32), expected(32);
    any.forward_state(cache, tokens, state);
    auto fresh = model.make_cache();
    model.forward_state(fresh, tokens, expected);
    check_near(state, expected);
  }
}

TEST_CASE("LlamaCppModel::with_features gives FeatureModel's states, in lines and in trees") {
  auto config        = config_for_llama_cpp();
  config.layers      = 7;
  const auto weights = td::test::random_llama_weights(config, 5);
  const td::LlamaModel own{config, weights};
  const auto reference = td::FeatureModel::for_eagle3(own);
  const td::test::TemporaryFile file("tooldecode_llama_cpp.gguf",
                                     td::test::numbered_gguf(config, weights));
  // Prompts take several passes.
  const auto plain =
      td::LlamaCppModel::load(file.path(), {.batch           = 64,
                                            .cache_type      = GGML_TYPE_F32,
                                            .flash_attention = LLAMA_FLASH_ATTN_TYPE_DISABLED});
  REQUIRE(plain.layer_count() == 7);
  const auto model = plain.with_features(td::eagle3_layers(7));
  REQUIRE(model.hidden_size() == reference.hidden_size());
  CHECK(plain.hidden_size() == 32);
  auto cache = model.make_cache();
  auto other = reference.make_cache();
  std::mt19937 random{6};
  std::vector<float> logits(61), expected_logits(61);
  for (const std::size_t count : {20U, 1U, 100U}) {
    CAPTURE(count);
    const Tokens tokens = random_tokens(random, count);
    std::vector<float> states(count * model.hidden_size()), expected(states.size());
    model.forward_states(cache, tokens, logits, states);
    reference.forward_hidden(other, tokens, expected);
    check_near(states, expected);
    reference.fill_logits(std::span(expected).last(reference.hidden_size()), expected_logits);
    check_near(logits, expected_logits);
  }
  const RandomTree tree(random, 17);
  std::vector<float> states(17 * model.hidden_size()), expected(states.size());
  std::vector<float> rows(17 * 61), expected_rows(17 * 61);
  model.forward_tree_states(cache, tree.tokens, tree.ancestors, rows, states);
  reference.forward_tree_hidden(other, tree.tokens, tree.ancestors, expected);
  check_near(states, expected);
  reference.fill_logits(expected, expected_rows);
  check_near(rows, expected_rows);
  // The first model shares the context and has no features.
  std::vector<float> last(32);
  plain.forward_states(cache, Tokens{3}, logits, last);
  std::vector<float> of_reference(reference.hidden_size());
  reference.forward_hidden(other, Tokens{3}, of_reference);
  check_near(last, std::span(of_reference).last(32));
  for (const std::vector<std::size_t>& wrong : {std::vector<std::size_t>{0}, {7}, {3, 3}, {4, 2}}) {
    CHECK(code_of([&] { static_cast<void>(plain.with_features(wrong)); }) ==
          td::Errc::invalid_option);
  }
}

TEST_CASE("EAGLE, EAGLE-3 and Medusa over LlamaCppModel draft as over LlamaModel") {
  auto config         = config_for_llama_cpp();
  config.layers       = 7;
  std::size_t drafted = 0, compared = 0, equal = 0;
  for (unsigned seed = 1; seed <= 8; ++seed) {
    CAPTURE(seed);
    std::mt19937 random{seed};
    const auto weights = td::test::random_llama_weights(config, seed);
    const td::LlamaModel own{config, weights};
    const auto features = td::FeatureModel::for_eagle3(own);
    const td::test::TemporaryFile file("tooldecode_llama_cpp.gguf",
                                       td::test::numbered_gguf(config, weights));
    const auto plain = td::LlamaCppModel::load(
        file.path(),
        {.cache_type = GGML_TYPE_F32, .flash_attention = LLAMA_FLASH_ATTN_TYPE_DISABLED});
    const auto model = plain.with_features(td::eagle3_layers(7));
    const auto ends  = td::LlamaModel::load_ends(file.path());
    const td::EagleModel eagle{ends, td::test::random_eagle_weights(config, seed)};
    const td::Eagle3Model eagle3{ends, td::test::random_eagle3_weights(config, seed)};
    const td::MedusaModel medusa{config.hidden_size,
                                 td::test::random_medusa_heads(config.hidden_size, 3, seed)};
    const td::FrequencyRankedHead head{ends.lm_head(),
                                       td::test::random_ranks(61, random).first(40)};
    const Tokens prompt = random_tokens(random, 12);
    const td::Unconstrained any{61};
    const td::DecodeOptions options{.max_tokens = 30, .temperature = 0.8F, .seed = seed};
    const auto expected = td::Decoder{plain, any}(prompt, options);
    const auto check    = [&](const auto& drafter) {
      const td::TreeSpeculation drafts{drafter, td::TreeVerifier{td::GumbelCoupling{}}};
      const auto output = td::Decoder{model, any, drafts}(prompt, options);
      CHECK(output.tokens == expected.tokens);
      // Sums differ in their last bits, so a guess or a token may too where two are nearly equal.
      const auto by_llama = td::Decoder{features, any, drafts}(prompt, options);
      ++compared;
      equal += output.drafts.nodes == by_llama.drafts.nodes &&
               output.drafts.accepted == by_llama.drafts.accepted;
      drafted += output.drafts.nodes;
    };
    check(td::EagleDrafter{eagle, head, {.depth = 3, .width = 3, .min_probability = 0.001}});
    check(td::MedusaDrafter{medusa, head});
    check(td::EagleDrafter{eagle3,
                           td::test::random_mapped_head(config, 2, seed),
                           {.depth = 3, .min_probability = 0.001}});
  }
  CHECK(drafted > 200);
  CHECK(equal >= compared - 2);
}

TEST_CASE("LlamaCppModel's pass may be longer than its batch") {
  std::mt19937 random{5};
  const Tokens tokens = random_tokens(random, 150);
  const auto model    = load(5, {.batch = 64});
  const auto whole    = load(5);
  auto cache          = model.make_cache();
  auto other          = whole.make_cache();
  check_near(logits_after(model, cache, tokens), logits_after(whole, other, tokens));
}

TEST_CASE("LlamaCppModel::forward_tree gives each node the logits of its sequence") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    std::mt19937 random{seed};
    const auto model    = load(seed);
    auto cache          = model.make_cache();
    const Tokens prompt = random_tokens(random, 1 + random() % 20);
    static_cast<void>(logits_after(model, cache, prompt));
    const RandomTree tree(random, 1 + random() % 24);
    std::vector<float> rows(tree.tokens.size() * 61), hidden(tree.tokens.size() * 32);
    model.forward_tree(cache, tree.tokens, tree.ancestors, rows);
    CHECK(model.length(cache) == prompt.size());
    for (std::size_t node = 0; node < tree.tokens.size(); ++node) {
      auto line = model.make_cache();
      static_cast<void>(logits_after(model, line, prompt));
      check_near(std::span(rows).subspan(node * 61, 61),
                 logits_after(model, line, tree.texts(tree.path(node))));
    }
    std::vector<float> again(rows.size());
    model.forward_tree_states(cache, tree.tokens, tree.ancestors, again, hidden);
    check_near(again, rows);
    model.forward_tree(cache, tree.tokens, tree.ancestors, rows);
    auto chosen = tree.path(random() % tree.tokens.size());
    chosen.resize(random() % (chosen.size() + 1));
    model.commit(cache, chosen);
    CHECK(model.length(cache) == prompt.size() + chosen.size());
    const Tokens next = random_tokens(random, 2);
    Tokens whole      = prompt;
    for (const auto token : tree.texts(chosen)) whole.push_back(token);
    for (const auto token : next) whole.push_back(token);
    auto line = model.make_cache();
    check_near(logits_after(model, cache, next), logits_after(model, line, whole));
  }
}

TEST_CASE("LlamaCppModel's forks and batches do not affect one another") {
  std::mt19937 random{7};
  const auto model = load(7);
  struct Line {
    td::LlamaCppModel::Cache cache;
    Tokens tokens;
  };
  std::vector<Line> lines;
  lines.push_back({model.make_cache(), {}});
  for (int step = 0; step < 60; ++step) {
    CAPTURE(step);
    const std::size_t at = random() % lines.size();
    switch (random() % 4) {
      case 0:
        if (lines.size() < 8) lines.push_back({model.fork(lines[at].cache), lines[at].tokens});
        break;
      case 1: {
        const std::size_t length = random() % (lines[at].tokens.size() + 1);
        model.truncate(lines[at].cache, length);
        lines[at].tokens.resize(length);
        break;
      }
      case 2:
        if (lines.size() > 1) lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      default: {
        std::vector<td::LlamaCppModel::Cache*> caches;
        std::vector<Tokens> more;
        for (auto& line : lines) {
          more.push_back(random_tokens(random, 1 + random() % 5));
          line.tokens.insert(line.tokens.end(), more.back().begin(), more.back().end());
          caches.push_back(&line.cache);
        }
        const std::vector<std::span<const td::TokenId>> tokens(more.begin(), more.end());
        std::vector<float> rows(lines.size() * 61);
        model.forward_batch(caches, tokens, rows);
        for (std::size_t i = 0; i < lines.size(); ++i) {
          auto fresh = model.make_cache();
          check_near(std::span(rows).subspan(i * 61, 61),
                     logits_after(model, fresh, lines[i].tokens));
          if (lines[i].tokens.size() > 60) {
            model.truncate(lines[i].cache, 3);
            lines[i].tokens.resize(3);
          }
        }
      }
    }
  }
}

TEST_CASE("LlamaCppModel::forward_batch_states gives trees and lines what passes of each give") {
  for (unsigned seed = 1; seed <= 8; ++seed) {
    CAPTURE(seed);
    std::mt19937 random{seed};
    const auto plain = load(seed, {.cells = 2000, .sequences = 100, .batch = 64});
    const auto model = seed % 2 == 0 ? plain : plain.with_features({1});
    const bool keeps = seed % 3 != 0;
    std::vector<td::LlamaCppModel::Cache> caches, alone;
    std::vector<td::LlamaCppModel::Cache*> pointers;
    std::vector<RandomTree> trees;
    std::vector<bool> is_tree;
    std::size_t count = 0, rows = 0;
    for (int i = 0; i < 7; ++i) {
      caches.push_back(model.make_cache());
      alone.push_back(model.make_cache());
      const Tokens prompt = random_tokens(random, 1 + random() % 20);
      static_cast<void>(logits_after(model, caches.back(), prompt));
      static_cast<void>(logits_after(model, alone.back(), prompt));
      trees.emplace_back(random, 1 + random() % 24);
      is_tree.push_back(random() % 3 != 0);
      count += trees.back().tokens.size();
      rows += is_tree.back() ? trees.back().tokens.size() : 1;
    }
    for (auto& cache : caches) pointers.push_back(&cache);
    std::vector<std::span<const td::TokenId>> tokens;
    std::vector<std::span<const std::uint64_t>> ancestors;
    for (std::size_t i = 0; i < trees.size(); ++i) {
      tokens.emplace_back(trees[i].tokens);
      ancestors.emplace_back();
      if (is_tree[i]) ancestors.back() = trees[i].ancestors;
    }
    const std::size_t width = model.hidden_size();
    std::vector<float> logits(rows * 61), hidden(keeps ? count * width : 0);
    model.forward_batch_states(pointers, tokens, ancestors, logits, hidden);
    std::span<const float> left = logits, states = hidden;
    for (std::size_t i = 0; i < trees.size(); ++i) {
      const std::size_t size = trees[i].tokens.size();
      std::vector<float> expected((is_tree[i] ? size : 1) * 61), expected_states(size * width);
      if (is_tree[i]) {
        model.forward_tree_states(alone[i], tokens[i], ancestors[i], expected, expected_states);
      } else {
        model.forward_states(alone[i], tokens[i], expected, expected_states);
      }
      check_near(left.first(expected.size()), expected);
      left = left.subspan(expected.size());
      if (keeps) {
        check_near(states.first(expected_states.size()), expected_states);
        states = states.subspan(expected_states.size());
      }
      if (is_tree[i]) {
        const auto path = trees[i].path(random() % size);
        model.commit(caches[i], path);
        model.commit(alone[i], path);
      }
      REQUIRE(model.length(caches[i]) == model.length(alone[i]));
    }
    for (std::size_t i = 0; i < trees.size(); ++i) {
      check_near(logits_after(model, caches[i], Tokens{5}),
                 logits_after(model, alone[i], Tokens{5}));
    }
  }
}

TEST_CASE("LlamaCppModel verifies the drafts of a batch in one pass") {
  const td::VocabularyIndex vocabulary{td::test::word_vocabulary(61)};
  std::size_t accepted = 0;
  for (unsigned seed = 1; seed <= 6; ++seed) {
    CAPTURE(seed);
    std::mt19937 random{seed};
    const auto model = load(seed, {.sequences = 200});
    const td::test::RandomTable constraint(61, seed);
    CHECK(td::ModelRef(model).abilities().batch_state_tree);
    td::ContinuousBatch<td::LlamaCppModel, td::test::RandomTable, td::SuffixDrafter> batch{
        model, {.max_batch = 4, .prefix_cache = 0}};
    std::vector<td::Output> expected, outputs(4);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      Tokens prompt = random_tokens(random, 12);
      prompt.insert(prompt.end(), prompt.begin(), prompt.begin() + 6);
      const td::DecodeOptions options{.max_tokens = 40, .temperature = 0.8F, .seed = seed + i};
      expected.push_back(td::Decoder{model, constraint}(prompt, options));
      batch.add({.prompt     = prompt,
                 .constraint = constraint,
                 .options    = options,
                 .drafter    = td::SuffixDrafter{vocabulary},
                 .on_end     = [&outputs, i](const td::Output& output) -> td::AfterTurn {
                   outputs[i] = output;
                   return td::Leave{};
                 }});
    }
    std::size_t steps = 0;
    while (batch.step()) ++steps;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      CHECK(outputs[i].tokens == expected[i].tokens);
    }
    CHECK(batch.counts().passes <= steps);
    accepted += batch.counts().accepted_tokens;
  }
  CHECK(accepted > 10);
}

TEST_CASE("LlamaCppModel with drafts decodes as without") {
  const td::VocabularyIndex vocabulary{td::test::word_vocabulary(61)};
  std::size_t drafted = 0;
  for (unsigned seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    std::mt19937 random{seed};
    const auto model = load(seed);
    const td::test::RandomTable constraint(61, seed);
    Tokens prompt = random_tokens(random, 12);
    prompt.insert(prompt.end(), prompt.begin(), prompt.begin() + 6);
    const td::DecodeOptions options{.max_tokens = 40, .temperature = 0.8F, .seed = seed};
    const td::Decoder plain{model, constraint};
    const td::Decoder speculative{
        model, constraint,
        td::TreeSpeculation{td::SuffixDrafter{vocabulary}, td::TreeVerifier{td::GumbelCoupling{}}}};
    const td::Output expected = plain(prompt, options);
    const td::Output output   = speculative(prompt, options);
    CHECK(output.tokens == expected.tokens);
    drafted += output.drafts.nodes;
  }
  CHECK(drafted > 20);
}

TEST_CASE("LlamaCppModel frees cells and sequences for later requests") {
  std::mt19937 random{3};
  const auto model    = load(3, {.cells = 256, .sequences = 8});
  const Tokens prompt = random_tokens(random, 20);
  const Tokens tree{1, 2, 3};
  const std::vector<std::uint64_t> ancestors{1, 3, 5};
  std::vector<float> rows(3 * 61);
  std::vector<float> first;
  for (int request = 0; request < 1000; ++request) {
    auto cache  = model.make_cache();
    auto logits = logits_after(model, cache, prompt);
    if (first.empty()) first = logits;
    check_near(logits, first);
    auto fork = model.fork(cache);
    model.forward_tree(fork, tree, ancestors, rows);
    if (request % 3 != 0) model.commit(fork, std::vector<std::size_t>{0, 2});
  }
}

TEST_CASE("LlamaCppModel throws a named error for what its context cannot hold") {
  std::mt19937 random{3};
  const auto model = load(3, {.cells = 256, .sequences = 3});
  auto cache       = model.make_cache();
  static_cast<void>(logits_after(model, cache, random_tokens(random, 190)));
  std::vector<float> rows(3 * 61);
  SECTION("the context") {
    CHECK(code_of([&] { logits_after(model, cache, random_tokens(random, 11)); }) ==
          td::Errc::limit_exceeded);
    CHECK(model.length(cache) == 190);
    static_cast<void>(logits_after(model, cache, random_tokens(random, 10)));
  }
  SECTION("cells") {
    auto other = model.make_cache();
    CHECK(code_of([&] { logits_after(model, other, random_tokens(random, 100)); }) ==
          td::Errc::limit_exceeded);
    CHECK(model.length(other) == 0);
    const Tokens few = random_tokens(random, 20);
    auto fresh       = load(3).make_cache();
    check_near(logits_after(model, other, few), logits_after(load(3), fresh, few));
  }
  SECTION("sequences") {
    const auto second = model.make_cache();
    const auto third  = model.fork(cache);
    CHECK(code_of([&] { static_cast<void>(model.make_cache()); }) == td::Errc::limit_exceeded);
    CHECK(code_of([&] {
            model.forward_tree(cache, Tokens{1, 2, 3}, std::vector<std::uint64_t>{1, 3, 5}, rows);
          }) == td::Errc::limit_exceeded);
    CHECK(model.length(cache) == 190);
  }
  SECTION("tokens") {
    CHECK(code_of([&] { logits_after(model, cache, {5, 61}); }) == td::Errc::unknown_token);
    CHECK(code_of([&] { logits_after(model, cache, {-1}); }) == td::Errc::unknown_token);
    CHECK(model.length(cache) == 190);
  }
}

TEST_CASE("LlamaCppModel::load refuses malformed files and invalid options") {
  const std::string whole = file_of(1);
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{3}, whole.size() / 2, whole.size() - 64}) {
    CAPTURE(size);
    const td::test::TemporaryFile file("tooldecode_truncated.gguf", whole.substr(0, size));
    CHECK(code_of([&] { static_cast<void>(td::LlamaCppModel::load(file.path())); }) ==
          td::Errc::malformed_file);
  }
  CHECK(code_of([] { static_cast<void>(td::LlamaCppModel::load("/nothing/here.gguf")); }) ==
        td::Errc::file_unreadable);
  CHECK(code_of([] { load(1, {.sequences = 257}); }) == td::Errc::invalid_option);
}

TEST_CASE("LlamaCppModel with a constraint over more tokens than it has throws shape_mismatch") {
  const auto model = load(1);
  const td::test::RandomTable constraint(62, 1);
  CHECK(code_of([&] {
          static_cast<void>(td::Decoder{model, constraint});
        }) == td::Errc::shape_mismatch);
}
