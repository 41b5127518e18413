#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/decode/tree_speculation.hpp>
#include <tooldecode/decode/unconstrained.hpp>
#include <tooldecode/draft/any_drafter.hpp>
#include <tooldecode/draft/drafter_group.hpp>
#include <tooldecode/draft/frequency_ranked_head.hpp>
#include <tooldecode/draft/jump_forward_drafter.hpp>
#include <tooldecode/draft/model_drafter.hpp>
#include <tooldecode/draft/sized_drafter.hpp>
#include <tooldecode/draft/suffix_drafter.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/vocabulary/frequency_ranks.hpp>

#include <support/catch.hpp>
#include <support/random_llama.hpp>
#include <support/random_model.hpp>
#include <support/random_rounds.hpp>
#include <support/random_table.hpp>
#include <support/random_tools.hpp>

namespace td = tooldecode;
using td::test::RandomModel;
using td::test::RandomTable;
using td::test::word_vocabulary;
using Tokens = std::vector<td::TokenId>;

namespace {

constexpr std::size_t size = 61;

/// A model that counts how many tokens its passes read, and may refuse.
struct CountingModel {
  using Cache = RandomModel::Cache;

  RandomModel model;
  std::size_t* tokens = nullptr;
  std::size_t most    = 1'000'000;  // tokens of a cache
  td::Errc refusal    = td::Errc::limit_exceeded;

  [[nodiscard]] std::size_t vocabulary_size() const { return model.vocabulary_size(); }
  [[nodiscard]] Cache make_cache() const { return model.make_cache(); }
  [[nodiscard]] std::size_t length(const Cache& cache) const { return model.length(cache); }
  [[nodiscard]] Cache fork(const Cache& cache) const { return model.fork(cache); }
  void truncate(Cache& cache, std::size_t length) const { model.truncate(cache, length); }
  void forward(Cache& cache, std::span<const td::TokenId> read, std::span<float> logits) const {
    if (model.length(cache) + read.size() > most) throw td::Error(refusal, "cells", "no more");
    *tokens += read.size();
    model.forward(cache, read, logits);
  }
};
static_assert(td::Model<CountingModel> && !td::BatchModel<CountingModel>);
static_assert(td::BatchModel<RandomModel>);

template <class C>
td::DraftContext<C> context_of(const C& constraint, std::span<const td::TokenId> prompt,
                               std::span<const td::TokenId> generated) {
  return {.constraint = constraint,
          .state      = constraint.initial(),
          .prompt     = prompt,
          .generated  = generated,
          .hidden     = {},
          .max_depth  = 60,
          .max_nodes  = 64};
}

using Paths = std::map<Tokens, double>;

/// A slow reference: the log-probability of each path that is drafted; a fresh cache for each node.
///
/// \param rows  the tokens of a pruned head, which count where at least as many are allowed; empty:
///              all
template <class M, class C>
Paths slow_paths(const M& model, const C& constraint, const Tokens& text,
                 const td::ModelDrafterOptions& options, const Tokens& rows = {}) {
  struct Node {
    Tokens path;
    typename C::State state;
    double score;
  };
  Paths paths{{{}, 0.0}};
  std::vector<Node> level{{{}, constraint.initial(), 0}};
  for (std::size_t d = 0; d < options.depth; ++d) {
    std::vector<Node> next;
    for (const Node& node : level) {
      Tokens all = text;
      all.insert(all.end(), node.path.begin(), node.path.end());
      auto cache = model.make_cache();
      std::vector<float> logits(model.vocabulary_size());
      model.forward(cache, all, logits);
      td::TokenMask mask(constraint.vocabulary_size());
      constraint.fill_mask(node.state, mask.words());
      Tokens allowed;
      double sum        = 0;
      const bool prunes = !rows.empty() && std::as_const(mask).words().count() >= rows.size();
      for (std::size_t t = 0; t < logits.size(); ++t) {
        if (!mask.contains(static_cast<td::TokenId>(t))) continue;
        if (prunes && std::ranges::find(rows, static_cast<td::TokenId>(t)) == rows.end()) continue;
        allowed.push_back(static_cast<td::TokenId>(t));
        sum += std::exp(static_cast<double>(logits[t]));
      }
      std::ranges::stable_sort(allowed, [&](td::TokenId a, td::TokenId b) {
        return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
      });
      if (allowed.size() > options.width) allowed.resize(options.width);
      for (const td::TokenId token : allowed) {
        const auto state = constraint.advance(node.state, token);
        if (!state || constraint.is_finished(*state)) continue;
        Tokens path = node.path;
        path.push_back(token);
        const double score = node.score +
                             static_cast<double>(logits[static_cast<std::size_t>(token)]) -
                             std::log(sum);
        paths[path] = score;
        next.push_back({path, *state, score});
      }
    }
    std::ranges::stable_sort(next, std::ranges::greater{}, &Node::score);
    if (next.size() > options.width) next.resize(options.width);
    std::erase_if(next,
                  [&](const Node& one) { return std::exp(one.score) < options.min_probability; });
    level = std::move(next);
  }
  return paths;
}

template <class C>
Paths paths_of(const td::DraftCandidates<C>& candidates) {
  Paths paths;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    Tokens path;
    for (std::size_t node = i; node != 0; node = candidates.parent(node)) {
      path.insert(path.begin(), candidates.token(node));
    }
    paths[path] = static_cast<double>(candidates.score(i));
  }
  return paths;
}

}  // namespace

static_assert(!std::is_constructible_v<td::ModelDrafter<RandomModel>, const RandomModel&&,
                                       td::Vocabulary, td::Vocabulary>);

TEST_CASE("ModelDrafter drafts the paths that a search with a fresh cache for each node finds") {
  const td::Vocabulary vocabulary = word_vocabulary(size);
  std::size_t nodes               = 0;
  for (unsigned seed = 0; seed < 80; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    const RandomModel model{size, {.seed = seed}};
    std::size_t read = 0;
    const CountingModel one_by_one{model, &read};
    const RandomTable table{size, seed};
    const td::ModelDrafterOptions options{.depth           = 1 + random() % 5,
                                          .width           = 1 + random() % 4,
                                          .budget          = 63,
                                          .min_probability = random() % 2 == 0 ? 0.0 : 0.02};
    Tokens text(2 + random() % 9);
    for (td::TokenId& token : text) token = static_cast<td::TokenId>(random() % size);
    const auto check = [&](const auto& constraint) {
      const Paths expected = slow_paths(model, constraint, text, options);
      const auto compare   = [&](const auto& of) {
        const td::ModelDrafter drafter{of, vocabulary, vocabulary, options};
        auto request = drafter.begin(text);
        td::DraftCandidates candidates(constraint, constraint.initial(), text.back(), 60);
        drafter.propose(request, context_of(constraint, text, {}), candidates);
        const Paths found = paths_of(candidates);
        REQUIRE(found.size() == expected.size());
        for (const auto& [path, score] : expected) {
          REQUIRE(found.contains(path));
          REQUIRE(found.at(path) == Approx(score).margin(1e-4));
        }
        const auto tree =
            td::select_tree(drafter, request, context_of(constraint, text, {}), candidates);
        for (std::size_t i = 0; i < tree.size(); ++i) {
          REQUIRE(std::exp(static_cast<double>(tree.score(i))) >=
                    options.min_probability * (1 - 1e-6));
        }
      };
      compare(model);
      compare(one_by_one);
      compare(td::ModelRef(one_by_one));
      nodes += expected.size() - 1;
    };
    check(td::Unconstrained{size});
    check(table);
  }
  CHECK(nodes > 1000);
}

TEST_CASE("ModelDrafter with a pruned head drafts what a search over the head's rows finds") {
  const td::Vocabulary vocabulary = word_vocabulary(size);
  std::size_t nodes = 0, rare = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    const td::LlamaModel model = td::test::random_llama(seed);
    std::vector<std::uint64_t> counts(size);
    for (auto& count : counts) count = random() % 1000;
    const td::FrequencyRanks ranks(counts, vocabulary, "random");
    const td::RankedTokens frequent = ranks.first(2 + random() % size);
    const td::FrequencyRankedHead head{model.lm_head(), frequent};
    const auto rows = frequent.ranked();
    const td::ModelDrafterOptions options{
        .depth = 1 + random() % 4, .width = 1 + random() % 3, .budget = 63, .min_probability = 0};
    Tokens text(2 + random() % 9);
    for (td::TokenId& token : text) token = static_cast<td::TokenId>(random() % size);
    const auto check = [&](const auto& constraint) {
      const Paths expected =
          slow_paths(model, constraint, text, options, Tokens(rows.begin(), rows.end()));
      const auto compare = [&](const auto& of) {
        const td::ModelDrafter drafter{of, vocabulary, vocabulary, head, options};
        auto request = drafter.begin(text);
        td::DraftCandidates candidates(constraint, constraint.initial(), text.back(), 60);
        drafter.propose(request, context_of(constraint, text, {}), candidates);
        const Paths found = paths_of(candidates);
        REQUIRE(found.size() == expected.size());
        for (const auto& [path, score] : expected) {
          REQUIRE(found.contains(path));
          REQUIRE(found.at(path) == Approx(score).margin(1e-3));
        }
      };
      compare(model);
      compare(td::ModelRef(model));
      nodes += expected.size() - 1;
      for (const auto& [path, score] : expected) {
        rare += !path.empty() && !frequent.contains(path.back());
      }
    };
    check(td::Unconstrained{size});
    check(RandomTable{size, seed});
  }
  CHECK(nodes > 500);
  CHECK(rare > 20);  // of narrow masks
}

TEST_CASE("ModelDrafter refuses a head of longer states than the model's") {
  const td::Vocabulary vocabulary = word_vocabulary(size);
  auto config                     = td::test::random_llama_config();
  config.hidden_size              = 40;
  const td::LlamaModel longer{config, td::test::random_llama_weights(config, 1)};
  const td::LlamaModel model = td::test::random_llama(1);
  const td::FrequencyRanks ranks(std::vector<std::uint64_t>(size), vocabulary, "nothing");
  const td::FrequencyRankedHead head{longer.lm_head(), ranks.first(size)};
  CHECK_THROWS_WITH((td::ModelDrafter{model, vocabulary, vocabulary, head}),
                    "draft model's head: reads states of 40 numbers: the model's have 36");
}

TEST_CASE("ModelDrafter continues a path that the drafters before it are sure of") {
  const td::Vocabulary vocabulary = word_vocabulary(size);
  const td::Unconstrained any{size};
  for (unsigned seed = 0; seed < 20; ++seed) {
    INFO("seed " << seed);
    const RandomModel model{size, {.seed = seed}};
    std::size_t read = 0;
    const CountingModel counted{model, &read};
    const td::ModelDrafterOptions options{.depth = 3, .width = 2, .min_probability = 0};
    const td::ModelDrafter drafter{counted, vocabulary, vocabulary, options};
    const Tokens text{1, 2, 3};
    auto request = drafter.begin(text);
    td::DraftCandidates candidates(any, any.initial(), text.back(), 60);
    const auto sure = [](double p) { return static_cast<float>(std::log(p)); };
    static_cast<void>(candidates.add(0, 9, sure(0.05)));
    const std::size_t four = *candidates.add(0, 4, sure(0.95));
    const std::size_t five = *candidates.add(four, 5, sure(0.92));
    const std::size_t six  = *candidates.add(five, 6, sure(1e-9));
    drafter.propose(request, context_of(any, text, {}), candidates);
    const Paths found = paths_of(candidates);
    Paths expected{{{9}, std::log(0.05)}, {{4}, std::log(0.95)}};
    for (const auto& [path, score] : slow_paths(model, any, {1, 2, 3, 4, 5}, options)) {
      Tokens whole{4, 5};
      whole.insert(whole.end(), path.begin(), path.end());
      expected[whole] = score + std::log(0.95 * 0.92);
    }
    expected.try_emplace({4, 5, 6}, std::log(0.95 * 0.92 * 1e-9));  // the model may like it more
    REQUIRE(found.size() == expected.size() + 1);                   // and the root
    for (const auto& [path, score] : expected) {
      REQUIRE(found.contains(path));
      REQUIRE(found.at(path) == Approx(score).margin(1e-4));
    }
    REQUIRE(candidates.depth(six) == 3);
    REQUIRE(read >= 5);
    // What was read and is not what followed is read no more.
    const Tokens other{4, 8};
    td::DraftCandidates next(any, any.initial(), other.back(), 60);
    drafter.propose(request, context_of(any, text, other), next);
    const Paths after = slow_paths(model, any, {1, 2, 3, 4, 8}, options);
    REQUIRE(paths_of(next).size() == after.size());
    for (const auto& [path, score] : after) {
      REQUIRE(paths_of(next).at(path) == Approx(score).margin(1e-4));
    }
  }
}

TEST_CASE("ModelDrafter behind a path longer than its depth reads and drafts nothing") {
  const td::Vocabulary vocabulary = word_vocabulary(size);
  const td::Unconstrained any{size};
  const RandomModel model{size, {.seed = 1}};
  std::size_t read = 0;
  const CountingModel counted{model, &read};
  const td::ModelDrafter drafter{counted, vocabulary, vocabulary, {.min_probability = 0}};
  const Tokens text{1, 2, 3};
  auto request = drafter.begin(text);
  td::DraftCandidates candidates(any, any.initial(), text.back(), 60);
  std::size_t node = 0;
  for (const td::TokenId token : {4, 5, 6}) node = *candidates.add(node, token, 0);
  const Tokens none;
  auto context      = context_of(any, text, none);
  context.max_depth = 2;  // as SizedDrafter gives where drafting does not pay
  drafter.propose(request, context, candidates);
  CHECK(candidates.size() == 4);
  context.max_depth  = 60;
  context.max_passes = 0;
  drafter.propose(request, context, candidates);
  CHECK(candidates.size() == 4);
  CHECK(read == 0);
}

TEST_CASE("ModelDrafter's request drafts the same in rounds as one that starts anew") {
  const auto target               = td::test::random_llama(3);
  const auto model                = td::test::random_llama(4);
  const td::Vocabulary vocabulary = word_vocabulary(size);
  for (unsigned seed = 0; seed < 6; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    const td::ModelDrafter drafter{
        model,
        vocabulary,
        vocabulary,
        {.depth = 4, .width = 1 + seed % 3, .budget = 40, .min_probability = 0.001}};
    td::test::Rounds{target, random}.require_memoryless(drafter, td::Unconstrained{size});
    td::test::Rounds{target, random}.require_memoryless(drafter, RandomTable{size, seed});
  }
}

TEST_CASE(
    "ModelDrafter reads each emitted token once, and what was drafted and emitted not again") {
  const td::Vocabulary vocabulary = word_vocabulary(size);
  const RandomModel model{size, {.seed = 5, .peak = 9}};
  std::size_t read = 0;
  const CountingModel counted{model, &read};
  const td::Unconstrained any{size};
  const td::ModelDrafter drafter{
      counted, vocabulary, vocabulary, {.depth = 4, .min_probability = 0}};
  // The target is the same model, so all four guesses of a round are right.
  const td::Decoder decode{model, any, td::TreeSpeculation{drafter}};
  const td::Output output = decode(Tokens{1, 2, 3, 4, 5}, {.max_tokens = 21});
  CHECK(output.tokens == td::Decoder{model, any}(Tokens{1, 2, 3, 4, 5}, {.max_tokens = 21}).tokens);
  CHECK(output.passes == 5);
  CHECK(output.drafts.accepted == std::vector<std::size_t>{4, 4, 4, 4});
  // The prompt and the first token; each round three guesses, then the last guess and the target's
  // own token.
  CHECK(read == 6 + 4 * 3 + 3 * 2);
}

TEST_CASE("ModelDrafter with a flatter model that likes the same tokens saves passes") {
  const td::Vocabulary vocabulary = word_vocabulary(size), draft_vocabulary = vocabulary;
  const RandomModel model{size, {.seed = 5}}, draft_model{size, {.seed = 5, .spread = 3}};
  const td::Unconstrained constraint{size};
  const Tokens prompt{1, 2, 3};
  //! [model]
  const td::ModelDrafter drafter{draft_model, draft_vocabulary, vocabulary, {.depth = 6}};
  const td::Decoder decode{model, constraint, td::TreeSpeculation{drafter}};
  const td::Output output = decode(prompt);
  //! [model]
  const td::Output plain = td::Decoder{model, constraint}(prompt);
  CHECK(output.tokens == plain.tokens);
  CHECK(output.passes < plain.passes);
}

TEST_CASE("ModelDrafter with the target's own weights and few rows saves passes") {
  const td::Vocabulary vocabulary = word_vocabulary(size), draft_vocabulary = vocabulary;
  const td::LlamaModel model = td::test::random_llama(7), draft_model = td::test::random_llama(7);
  const td::Unconstrained constraint{size};
  const Tokens prompt{1, 2, 3};
  const td::Output plain = td::Decoder{model, constraint}(prompt);
  std::vector<std::uint64_t> counts(size);
  for (const td::TokenId token : plain.tokens) ++counts[static_cast<std::size_t>(token)];
  const td::FrequencyRanks ranks(counts, vocabulary, "the answer");
  const std::size_t k = size / 2;
  //! [pruned]
  const td::FrequencyRankedHead head{draft_model.lm_head(), ranks.first(k)};
  const td::ModelDrafter drafter{draft_model, draft_vocabulary, vocabulary, head};
  //! [pruned]
  const td::Output output = td::Decoder{model, constraint, td::TreeSpeculation{drafter}}(prompt);
  CHECK(output.tokens == plain.tokens);
  CHECK(output.passes < plain.passes);
}

TEST_CASE("ModelDrafter does not change what is decoded, in any composition") {
  const td::Vocabulary vocabulary = td::test::call_vocabulary();
  const td::VocabularyIndex masks{vocabulary};
  auto config            = td::test::random_llama_config();
  config.vocabulary_size = vocabulary.size();
  std::size_t accepted = 0, fewer = 0, cases = 0;
  for (unsigned seed = 0; seed < 10; ++seed) {
    std::mt19937 random{seed};
    const td::LlamaModel target{config, td::test::random_llama_weights(config, seed)};
    const td::LlamaModel other{config, td::test::random_llama_weights(config, seed + 50)};
    const td::FrequencyRanks ranks(std::vector<std::uint64_t>(vocabulary.size()), vocabulary, "id");
    const td::FrequencyRankedHead head{other.lm_head(), ranks.first(vocabulary.size() / 3)};
    const RandomModel hash{vocabulary.size(), {.seed = seed}};
    const Tokens prompt =
        td::constraint::JumpForwardText(masks.trie()).encode("f0(a=10, b='re') f1(c=True) [");
    const auto compare = [&](const auto& constraint) {
      using C = std::remove_cvref_t<decltype(constraint)>;
      for (const float temperature : {0.0F, 0.7F, 1.0F}) {
        INFO("seed " << seed << ", temperature " << temperature);
        const td::DecodeOptions options{.max_tokens = 24, .temperature = temperature, .seed = seed};
        const td::Output plain = td::Decoder{target, constraint}(prompt, options);
        const auto check       = [&](const auto& drafter) {
          const td::Decoder decode{target, constraint, td::TreeSpeculation{drafter}};
          const td::Output drafted = decode(prompt, options);
          REQUIRE(drafted.tokens == plain.tokens);
          REQUIRE(drafted.log_probabilities == plain.log_probabilities);
          REQUIRE(drafted.finish == plain.finish);
          REQUIRE(drafted.passes <= plain.passes);
          fewer += drafted.passes < plain.passes;
          ++cases;
          for (const std::size_t count : drafted.drafts.accepted) accepted += count;
        };
        const td::ModelDrafterOptions tree{.depth = 3, .width = 3, .min_probability = 0.001};
        const td::ModelDrafter same{target, vocabulary, vocabulary};
        check(same);
        check(td::ModelDrafter{other, vocabulary, vocabulary, tree});
        check(td::ModelDrafter{hash, vocabulary, vocabulary, tree});
        check(td::ModelDrafter{other, vocabulary, vocabulary, head, tree});
        check(td::AnyDrafter<C>(same));
        check(td::DrafterGroup{td::ModelDrafter{other, vocabulary, vocabulary, tree},
                               td::SuffixDrafter{masks}, td::JumpForwardDrafter{masks.trie()}});
        check(td::DrafterGroup{td::JumpForwardDrafter{masks.trie()},
                               td::ModelDrafter{other, vocabulary, vocabulary},
                               td::JumpForwardDrafter{masks.trie()}});
        check(td::SizedDrafter{same, td::TreeCosts::flat()});
      }
    };
    const td::ToolSet tools = td::test::random_tools(random);
    const td::ChoiceOptions choice{.choice = td::ToolChoice::required};
    switch (seed % 3) {
      case 0:
        compare(td::Unconstrained{vocabulary.size()});
        break;
      case 1:
        compare(td::ToolCallFSM{masks, tools, td::PythonCall{}, choice});
        break;
      default:
        compare(td::ToolCallFSM{masks, tools, td::JsonCall::hermes(), choice});
    }
  }
  CHECK(accepted > 1000);
  CHECK(fewer > cases / 3);
}

TEST_CASE("ModelDrafter refuses a model of another vocabulary, and says which token differs") {
  using Entry = td::Vocabulary::Entry;
  const RandomModel model{4};
  const std::vector<Entry> three{{"a", td::TokenType::normal},
                                 {"b", td::TokenType::normal},
                                 {"<end>", td::TokenType::control}};
  const auto refusal = [&](const std::vector<Entry>& draft, const std::vector<Entry>& target,
                           std::size_t logits = 4) {
    try {
      const RandomModel with{logits};
      const td::ModelDrafter drafter{with, td::Vocabulary(draft, {}), td::Vocabulary(target, {})};
    } catch (const td::Error& error) {
      return std::string(td::name(error.code())) + ' ' + error.what();
    }
    return std::string("none");
  };
  CHECK(refusal(three, three) == "none");
  auto other     = three;
  other[1].bytes = "c";
  CHECK_THAT(refusal(other, three), Catch::Contains("invalid_option") &&
                                        Catch::Contains("draft model's token 1") &&
                                        Catch::Contains("writes \"c\" and the target's \"b\""));
  CHECK_THAT(refusal({three[0], three[1]}, three),
             Catch::Contains("token 2") && Catch::Contains("nothing"));
  CHECK_THAT(refusal(three, {three[0], three[1]}), Catch::Contains("token 2"));
  // Padding is no token.
  auto padded = three;
  padded.push_back({"[PAD3]", td::TokenType::unused});
  CHECK(refusal(padded, three) == "none");
  CHECK(refusal(three, padded) == "none");
  CHECK_THAT(refusal(three, three, 2),
             Catch::Contains("shape_mismatch") && Catch::Contains("2 logits"));
}

TEST_CASE("ModelDrafter with fewer logits than the target's padded vocabulary drafts its tokens") {
  const td::Vocabulary vocabulary = word_vocabulary(size);
  const RandomModel model{size, {.seed = 2}};
  const td::Unconstrained padded{size + 70};
  const td::ModelDrafter drafter{model, vocabulary, vocabulary.with_size(size + 70)};
  const Tokens text{1, 2, 3};
  auto request = drafter.begin(text);
  CHECK(td::draft_tree(drafter, request, context_of(padded, text, {})).size() > 1);
}

TEST_CASE("ModelDrafter without room drafts no further, and the answer stays the same") {
  const td::Vocabulary vocabulary = word_vocabulary(size);
  const RandomModel model{size, {.seed = 5, .peak = 9}};
  const td::Unconstrained any{size};
  const Tokens prompt{1, 2, 3, 4, 5};
  const td::Output plain = td::Decoder{model, any}(prompt, {.max_tokens = 30});
  std::size_t read       = 0;
  CountingModel few{model, &read, 16};
  const auto decode = [&] {
    const td::ModelDrafter drafter{few, vocabulary, vocabulary, {.depth = 4}};
    return td::Decoder{model, any, td::TreeSpeculation{drafter}}(prompt, {.max_tokens = 30});
  };
  const td::Output some = decode();
  CHECK(some.tokens == plain.tokens);
  CHECK(some.drafts.rounds >= 2);
  CHECK(some.passes < plain.passes);
  CHECK(some.passes > 15);
  CHECK(read < 30);  // a request that ran out of room is not tried again
  few.most = 0;
  CHECK(decode().tokens == plain.tokens);
  CHECK(decode().drafts.rounds == 0);
  few.refusal = td::Errc::device_failure;
  CHECK_THROWS_AS(decode(), td::Error);
}

TEST_CASE("ModelDrafter with a short context drafts only what fits into it") {
  auto config           = td::test::random_llama_config();
  config.context_length = 12;
  const td::LlamaModel brief{config, td::test::random_llama_weights(config, 3)};
  const td::LlamaModel target     = td::test::random_llama(3);
  const td::Vocabulary vocabulary = word_vocabulary(size);
  const td::Unconstrained any{size};
  const td::ModelDrafter drafter{brief, vocabulary, vocabulary, {.min_probability = 0}};
  const td::Output out =
      td::Decoder{target, any, td::TreeSpeculation{drafter}}(Tokens{1, 2, 3}, {.max_tokens = 40});
  CHECK(out.tokens == td::Decoder{target, any}(Tokens{1, 2, 3}, {.max_tokens = 40}).tokens);
  CHECK(out.drafts.rounds == 2);  // six levels, then the two that are left
}
