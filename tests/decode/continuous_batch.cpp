#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/decode/continuous_batch.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/decode/tree_speculation.hpp>
#include <tooldecode/draft/drafter_group.hpp>
#include <tooldecode/draft/eagle_drafter.hpp>
#include <tooldecode/draft/frequency_ranked_head.hpp>
#include <tooldecode/draft/jump_forward_drafter.hpp>
#include <tooldecode/draft/medusa_drafter.hpp>
#include <tooldecode/draft/model_drafter.hpp>
#include <tooldecode/draft/sized_drafter.hpp>
#include <tooldecode/draft/suffix_drafter.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/model/eagle_model.hpp>
#include <tooldecode/model/feature_model.hpp>
#include <tooldecode/model/head_view.hpp>
#include <tooldecode/vocabulary/frequency_ranks.hpp>

#include <support/cases.hpp>
#include <support/catch.hpp>
#include <support/crowded_model.hpp>
#include <support/one_by_one.hpp>
#include <support/random_drafters.hpp>
#include <support/random_eagle.hpp>
#include <support/random_llama.hpp>
#include <support/random_model.hpp>
#include <support/random_rounds.hpp>
#include <support/random_table.hpp>
#include <support/random_tools.hpp>
#include <support/states_beside_logits.hpp>

namespace td = tooldecode;

namespace {

using Tokens = std::vector<td::TokenId>;
using td::test::CrowdedModel;

/// Notes how many sequences each pass reads.
struct CountingModel : td::test::RandomModel {
  explicit CountingModel(std::vector<std::size_t>& counts) : RandomModel(50), rows(&counts) {}

  std::vector<std::size_t>* rows;

  void forward_batch(std::span<Cache* const> caches,
                     std::span<const std::span<const td::TokenId>> tokens,
                     std::span<float> logits) const {
    rows->push_back(caches.size());
    RandomModel::forward_batch(caches, tokens, logits);
  }
};

/// A model that forgets all of a sequence or nothing, as recurrent ones.
struct Unforgetting : td::test::RandomModel {
  using RandomModel::RandomModel;
  void truncate(Cache& cache, std::size_t to) const {
    if (to != 0 && to < length(cache)) {
      throw td::Error(td::Errc::limit_exceeded, "model", "cannot forget a part");
    }
    RandomModel::truncate(cache, to);
  }
};

/// What one sequence must do, and what it did.
struct Script {
  Tokens prompt;
  td::DecodeOptions options;
  std::vector<Tokens> more;  ///< read after each answer but the last
  std::vector<bool> waits;   ///< whether it waits and is continued later
  std::vector<td::Output> outputs = {};
  Tokens heard                    = {};
};

Script random_script(std::mt19937& random, std::size_t vocabulary_size) {
  const auto tokens = [&](std::size_t min) {
    Tokens some(min + random() % 5);
    for (auto& token : some) token = static_cast<td::TokenId>(random() % vocabulary_size);
    return some;
  };
  Script script{.prompt  = tokens(1),
                .options = {.max_tokens  = random() % 12,
                            .temperature = random() % 2 == 0 ? 0.0F : 1.0F,
                            .seed        = static_cast<std::uint64_t>(random())},
                .more    = {},
                .waits   = {}};
  if (random() % 3 == 0) script.options.repetition_penalty = 1.3F;
  for (auto turns = random() % 3; turns > 0; --turns) {
    script.more.push_back(tokens(1));
    script.waits.push_back(random() % 2 == 0);
  }
  return script;
}

/// Makes some of a script's texts so long that a small `max_prefill` reads them in parts.
void make_some_long(Script& script, std::mt19937& random, std::size_t vocabulary_size) {
  const auto lengthen = [&](Tokens& tokens) {
    if (random() % 2 == 0) return;
    for (auto more = 20 + random() % 40; more > 0; --more) {
      tokens.push_back(static_cast<td::TokenId>(random() % vocabulary_size));
    }
  };
  lengthen(script.prompt);
  for (Tokens& more : script.more) lengthen(more);
}

/// Runs scripts in one batch, each of which joins at a random step.
template <class M, class C, class D>
td::BatchCounts run(const M& model, const C& constraint, const D& drafter, td::BatchOptions options,
                    std::vector<Script>& scripts, std::mt19937& random) {
  td::ContinuousBatch<M, C, D> batch{model, options};
  std::map<std::uint64_t, const Tokens*> waiting;
  std::size_t joined = 0;
  while (true) {
    while (joined < scripts.size() && random() % 2 == 0) {
      Script& script        = scripts[joined++];
      td::DecodeOptions own = script.options;
      own.on_token          = [&script](const td::TokenEvent& event) {
        script.heard.push_back(event.token);
      };
      const auto id    = std::make_shared<std::uint64_t>();
      const auto ended = [&script, &waiting, id](const td::Output& output) -> td::AfterTurn {
        const std::size_t turn = script.outputs.size();
        script.outputs.push_back(output);
        if (turn == script.more.size()) return td::Leave{};
        if (!script.waits[turn]) return td::GoOn{script.more[turn]};
        waiting[*id] = &script.more[turn];
        return td::Wait{};
      };
      *id = batch.add({.prompt     = script.prompt,
                       .constraint = constraint,
                       .options    = own,
                       .drafter    = drafter,
                       .on_end     = ended,
                       .origin     = {.client  = std::to_string(joined % 2),
                                      .request = std::to_string(joined % 3)}});
    }
    const bool moved = batch.step();
    if (!waiting.empty() && random() % 2 == 0) {
      const auto [id, more] = *waiting.begin();
      waiting.erase(waiting.begin());
      batch.resume(id, *more);
    } else if (!moved && joined == scripts.size() && waiting.empty()) {
      break;
    }
  }
  CHECK(batch.present() == 0);
  CHECK(batch.arrived() == 0);
  std::size_t reused = 0;
  for (const Script& script : scripts) {
    REQUIRE(script.outputs[0].reused_tokens < script.prompt.size());
    for (const td::Output& output : script.outputs) reused += output.reused_tokens;
  }
  CHECK(reused == batch.counts().reused_tokens);
  return batch.counts();
}

/// Requires each answer to be a Decoder's.
template <class M, class C>
void require_as_alone(const M& model, const C& constraint, const std::vector<Script>& scripts) {
  for (const Script& script : scripts) {
    Tokens before = script.prompt;
    Tokens heard;
    REQUIRE(script.outputs.size() == script.more.size() + 1);
    for (std::size_t turn = 0; turn < script.outputs.size(); ++turn) {
      const td::Output& output = script.outputs[turn];
      const td::Output alone   = td::Decoder{model, constraint}(before, script.options);
      REQUIRE(output.tokens == alone.tokens);
      REQUIRE(output.log_probabilities == alone.log_probabilities);
      REQUIRE(output.finish == alone.finish);
      REQUIRE(output.forced_tokens == alone.forced_tokens);
      heard.insert(heard.end(), alone.tokens.begin(), alone.tokens.end());
      before.insert(before.end(), alone.tokens.begin(), alone.tokens.end());
      if (turn < script.more.size()) {
        before.insert(before.end(), script.more[turn].begin(), script.more[turn].end());
      }
    }
    REQUIRE(script.heard == heard);
  }
}

}  // namespace

TEST_CASE("ContinuousBatch gives each sequence the answer of a decoder alone") {
  constexpr std::size_t size = 50;
  for (unsigned seed = 0; seed < 120; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    const td::test::RandomModel model{size, {.seed = seed}};
    const td::test::RandomTable table{size, seed};
    std::vector<Script> scripts;
    for (auto count = 1 + random() % 8; count > 0; --count) {
      scripts.push_back(random_script(random, size));
    }
    for (Script& script : scripts) make_some_long(script, random, size);
    const td::BatchOptions options{.max_batch    = 1 + random() % 4,
                                   .prefix_cache = random() % 2 == 0 ? 0U : 200U,
                                   .max_prefill  = 1 + random() % 50,
                                   .max_shared   = seed % 4 == 0 ? 100U : seed % 4};
    if (seed % 3 == 0) {
      const td::test::OneByOne one{model};
      run(one, table, td::DrafterGroup<>{}, options, scripts, random);
    } else {
      run(model, table, td::DrafterGroup<>{}, options, scripts, random);
    }
    require_as_alone(model, table, scripts);
  }
}

TEST_CASE(
    "ContinuousBatch with drafts and a prefix cache gives each sequence the answer it has alone") {
  const td::Vocabulary vocabulary = td::test::call_vocabulary();
  const td::VocabularyIndex masks{vocabulary};
  auto config            = td::test::random_llama_config();
  config.vocabulary_size = vocabulary.size();
  std::size_t accepted   = 0;
  for (unsigned seed = 0; seed < 12; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    const td::LlamaModel model{config, td::test::random_llama_weights(config, seed)};
    const td::ToolCallFSM calls{masks,
                                td::test::random_tools(random),
                                td::PythonCall{},
                                {.choice = td::ToolChoice::required}};
    std::vector<Script> scripts;
    for (int i = 0; i < 5; ++i) scripts.push_back(random_script(random, vocabulary.size()));
    for (Script& script : scripts) script.options.max_tokens += 20;
    const td::BatchOptions options{.max_batch = 3, .prefix_cache = 300, .max_shared = 1 + seed};
    const td::LlamaModel smaller{config, td::test::random_llama_weights(config, seed + 1)};
    const auto counts = seed % 2 == 0
                            ? run(model, calls, td::SuffixDrafter{masks}, options, scripts, random)
                            : run(model, calls, td::ModelDrafter{smaller, vocabulary, vocabulary},
                                  options, scripts, random);
    require_as_alone(model, calls, scripts);
    accepted += counts.accepted_tokens;
  }
  CHECK(accepted > 0);
}

TEST_CASE("ContinuousBatch with drafters that read hidden states drafts and answers as alone") {
  const td::Vocabulary vocabulary = td::test::call_vocabulary();
  const td::VocabularyIndex masks{vocabulary};
  std::array<std::size_t, 4> found = {};  // accepted, by drafter
  std::size_t reused = 0, preempted = 0, beside_logits = 0;
  for (unsigned seed = 0; seed < td::test::cases(8); ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    const td::test::RandomDrafters given{vocabulary, seed, random};
    const auto& model  = given.model;
    const auto& eagle  = given.eagle;
    const auto& medusa = given.medusa;
    const td::DrafterGroup group{eagle, td::SuffixDrafter{masks},
                                 td::JumpForwardDrafter{masks.trie()}};
    const td::SizedDrafter sized{
        group, td::TreeCosts(std::vector<std::pair<std::size_t, double>>{{1, 1.0}, {64, 2.0}})};
    std::vector<Script> fresh;
    for (int i = 0; i < 5; ++i) {
      fresh.push_back(random_script(random, vocabulary.size()));
      fresh.back().options.max_tokens += 20;
    }
    // Some prompts begin with those of others.
    for (int i = 0; i < 2; ++i) {
      fresh.push_back(fresh[random() % 5]);
      fresh.back().prompt.push_back(static_cast<td::TokenId>(random() % vocabulary.size()));
    }
    const td::BatchOptions options{.max_batch    = 3,
                                   .prefix_cache = seed % 3 == 0 ? 0U : 400U,
                                   .max_prefill  = seed % 2 == 0 ? 256U : 20U};
    const auto check = [&](const auto& constraint, const auto& drafter, std::size_t which) {
      std::vector<Script> scripts = fresh;
      const auto counts           = run(model, constraint, drafter, options, scripts, random);
      require_as_alone(model, constraint, scripts);
      found.at(which) += counts.accepted_tokens;
      reused += counts.reused_tokens;
      // Without a prefix cache, a first answer also has the drafts of a sequence alone.
      const td::Decoder alone{model, constraint, td::TreeSpeculation{drafter}};
      for (std::size_t i = 0; which < 3 && options.prefix_cache == 0 && i < scripts.size(); ++i) {
        const auto expected = alone(scripts[i].prompt, scripts[i].options);
        REQUIRE(scripts[i].outputs[0].drafts.nodes == expected.drafts.nodes);
        REQUIRE(scripts[i].outputs[0].drafts.accepted == expected.drafts.accepted);
        REQUIRE(scripts[i].outputs[0].passes == expected.passes);
      }
      // With too little room for all.
      scripts = fresh;
      const CrowdedModel crowded{model, 150 + random() % 50, 4};
      preempted += run(crowded, constraint, drafter, options, scripts, random).preempted;
      require_as_alone(model, constraint, scripts);
      // Over a model that computes its logits itself: with too little room, and with the same drafts.
      scripts = fresh;
      const CrowdedModel full{model, 150 + random() % 50, 4};
      const td::test::StatesBesideLogits beside{full};
      beside_logits += run(beside, constraint, drafter, options, scripts, random).accepted_tokens;
      require_as_alone(model, constraint, scripts);
      const auto drafts_over = [&](const auto& any_model) {
        scripts = fresh;
        beside_logits +=
            run(any_model, constraint, drafter, options, scripts, random).accepted_tokens;
        require_as_alone(model, constraint, scripts);
        std::vector<std::size_t> counts;
        for (const Script& script : scripts) {
          const auto& drafts = script.outputs[0].drafts;
          counts.push_back(drafts.nodes);
          counts.insert(counts.end(), drafts.accepted.begin(), drafts.accepted.end());
        }
        return counts;
      };
      const auto drafted = drafts_over(td::test::BatchStatesBesideLogits{model});
      if (which < 3 && options.prefix_cache == 0) REQUIRE(drafted == drafts_over(model));
    };
    const auto check_all = [&](const auto& constraint) {
      check(constraint, eagle, 0);
      check(constraint, medusa, 1);
      check(constraint, group, 2);
      check(constraint, sized, 3);
    };
    if (seed % 2 == 0) {
      check_all(td::ToolCallFSM{masks,
                                td::test::random_tools(random),
                                td::PythonCall{},
                                {.choice = td::ToolChoice::required}});
    } else {
      check_all(td::Unconstrained{vocabulary.size()});
    }
  }
  for (const std::size_t accepted : found) CHECK(accepted > td::test::cases(20));
  CHECK(reused > td::test::cases(30));
  CHECK(preempted > td::test::cases(20));
  CHECK(beside_logits > td::test::cases(150));
}

TEST_CASE(
    "ContinuousBatch with EAGLE-3 over earlier layers' states gives the answers without drafts") {
  auto config          = td::test::random_llama_config();
  config.layers        = 7;
  std::size_t accepted = 0;
  for (unsigned seed = 0; seed < (td::test::is_sanitized ? 2 : 4); ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    const td::LlamaModel model{config, td::test::random_llama_weights(config, seed)};
    const auto features = td::FeatureModel::for_eagle3(model);
    const td::Eagle3Model layer{model, td::test::random_eagle3_weights(config, seed)};
    const td::EagleDrafter drafter{layer,
                                   td::test::random_mapped_head(config, 2, seed),
                                   {.depth = 3, .min_probability = 0.001}};
    const td::Unconstrained any{config.vocabulary_size};
    std::vector<Script> scripts;
    for (int i = 0; i < 6; ++i) {
      scripts.push_back(random_script(random, config.vocabulary_size));
      scripts.back().options.max_tokens += 20;
    }
    for (Script& script : scripts) make_some_long(script, random, config.vocabulary_size);
    accepted += run(features, any, drafter,
                    {.max_batch    = 3,
                     .prefix_cache = seed % 2 * 400U,
                     .max_prefill  = seed % 2 == 0 ? 256U : 20U},
                    scripts, random)
                    .accepted_tokens;
    require_as_alone(model, any, scripts);
  }
  CHECK(accepted > td::test::cases(20));
}

TEST_CASE("ContinuousBatch after a cached prefix drafts like a request that has read all of it") {
  const td::LlamaModel model = td::test::random_llama(5);
  const auto& config         = model.config();
  const td::EagleModel layer{model, td::test::random_eagle_weights(config, 6)};
  std::mt19937 random{7};
  const td::FrequencyRankedHead head{
      model.lm_head(), td::test::random_ranks(config.vocabulary_size, random).first(50)};
  const td::EagleDrafter eagle{layer, head, {.min_probability = 0.0001}};
  const td::Unconstrained any{config.vocabulary_size};
  const Tokens prompt{1, 2, 3, 4, 5, 6, 7};
  for (const std::size_t kept : {3U, 6U}) {
    td::CachedPrefix read{td::ModelRef::Cache(model.make_cache())};
    read.states.resize(kept * config.hidden_size);
    model.forward_hidden(read.cache.as<td::LlamaModel::Cache>(), std::span(prompt).first(kept),
                         read.states);
    auto request                                      = eagle.begin(prompt);
    const td::DraftContext<td::Unconstrained> context = {.constraint = any,
                                                         .state      = any.initial(),
                                                         .prompt     = prompt,
                                                         .generated  = {},
                                                         .unread     = prompt.size() - kept,
                                                         .hidden     = read.states,
                                                         .max_depth  = 9,
                                                         .max_nodes  = 64 - (6 - kept)};
    const td::DraftTree expected                      = td::draft_tree(eagle, request, context);

    td::PrefixCache prefixes{model, 100};
    prefixes.insert(std::span(prompt).first(kept),
                    {td::ModelRef(model).fork(read.cache), read.states});
    const td::DecodeOptions options{.max_tokens = 10};
    const td::LogitsPipeline pipeline{options.logits()};
    const td::decode::Run run{any, prompt, pipeline, options};
    const td::TreeVerifier verifier{td::GumbelCoupling{}};
    td::decode::SpeculativeSequence sequence{model, run, eagle, verifier,
                                             prefixes.find(prompt).value()};
    REQUIRE_FALSE(sequence.take_forced());
    REQUIRE(sequence.can_draft());
    const td::DraftTree tree = sequence.draft();
    CHECK(tree.size() > 5);
    CHECK(std::ranges::equal(tree.tokens(), expected.tokens()));
    CHECK(std::ranges::equal(tree.ancestors(), expected.ancestors()));
  }
}

TEST_CASE("ContinuousBatch without a drafter gives the answers of a Decoder") {
  const td::test::RandomModel model{td::test::call_vocabulary().size()};
  const td::ToolCallFSM calls{td::test::call_vocabulary(),
                              td::ToolSet::parse(R"([{"name": "now"}])"),
                              td::PythonCall{},
                              {.choice = td::ToolChoice::required}};
  const std::vector<Tokens> prompts{{1, 2, 3}, {4, 5}};
  std::vector<Tokens> answers;
  //! [continuous]
  td::ContinuousBatch<td::test::RandomModel, td::ToolCallFSM> batch{model};
  for (const Tokens& prompt : prompts) {
    batch.add({.prompt     = prompt,
               .constraint = calls,
               .options    = {.max_tokens = 64},
               .on_end     = [&](const td::Output& output) -> td::AfterTurn {
                 answers.push_back(output.tokens);
                 return td::Leave{};  // or stay, and resume with what a tool returned
               }});
  }
  while (batch.step()) continue;  // others may join between two steps
  //! [continuous]
  std::vector<Tokens> expected;
  for (const Tokens& prompt : prompts) {
    expected.push_back(td::Decoder{model, calls}(prompt, {.max_tokens = 64}).tokens);
  }
  CHECK(std::ranges::is_permutation(answers, expected));
}

TEST_CASE("ContinuousBatch with a prefix cache does not read again what a sequence has left") {
  const td::test::RandomModel model{50};
  const td::Unconstrained any{50};
  using Batch = td::ContinuousBatch<td::test::RandomModel, td::Unconstrained, td::DrafterGroup<>>;
  for (const std::size_t room : {0U, 1000U}) {
    Batch batch{model, {.prefix_cache = room}};
    Tokens prompt(100, 3);
    std::size_t reused = 0;
    const auto ask     = [&] {
      batch.add({.prompt     = prompt,
                     .constraint = any,
                     .options    = {.max_tokens = 10},
                     .drafter    = td::DrafterGroup<>{},
                     .on_end     = [&](const td::Output& output) -> td::AfterTurn {
                   reused = output.reused_tokens;
                   prompt.insert(prompt.end(), output.tokens.begin(), output.tokens.end());
                   prompt.push_back(1);
                   return td::Leave{};
                 }});
      while (batch.step()) {}
    };
    ask();
    CHECK(batch.counts().passes == 10);
    CHECK(reused == 0);
    ask();
    CHECK(batch.counts().prompt_tokens == 100 + 111);
    CHECK(batch.counts().reused_tokens == (room == 0 ? 0 : 109));  // the last token was not read
    CHECK(reused == batch.counts().reused_tokens);
    CHECK(batch.counts().generated_tokens == 20);
  }
}

TEST_CASE("ContinuousBatch reads what prompts share once, while one of them is present") {
  const td::test::RandomModel model{50};
  const td::Unconstrained any{50};
  using Batch = td::ContinuousBatch<td::test::RandomModel, td::Unconstrained, td::DrafterGroup<>>;
  constexpr std::size_t count = 6, answer = 12;
  std::mt19937 random{5};
  Tokens shared(500);
  for (auto& token : shared) token = static_cast<td::TokenId>(random() % 50);
  std::vector<Tokens> prompts(count, shared);
  for (std::size_t i = 2; i < count; ++i) prompts[i].push_back(static_cast<td::TokenId>(i));
  for (const bool late : {false, true}) {  // whether the others come while the first one writes
    Batch batch{model, {.prefix_cache = 2000, .max_prefill = 100}};
    std::vector<td::Output> outputs(count);
    const auto options = [&](std::size_t i) {
      return td::DecodeOptions{.max_tokens = answer, .temperature = 1, .seed = i};
    };
    const auto add = [&](std::size_t i) {
      batch.add({.prompt     = prompts[i],
                 .constraint = any,
                 .options    = options(i),
                 .drafter    = td::DrafterGroup<>{},
                 .on_end     = [&outputs, i](const td::Output& output) -> td::AfterTurn {
                   outputs[i] = output;
                   return td::Leave{};
                 }});
    };
    for (std::size_t i = 0; i < count; ++i) {
      for (int pass = 0; late && i == 1 && pass < 8; ++pass) batch.step();
      add(i);
    }
    while (batch.step()) {}
    for (std::size_t i = 0; i < count; ++i) {
      CHECK(outputs[i].tokens == td::Decoder{model, any}(prompts[i], options(i)).tokens);
    }
    const auto& counts = batch.counts();
    CHECK(counts.prompt_tokens == count * 500 + 4);
    CHECK(counts.reused_tokens == 499 + 4 * 500);
    // Each token of a prompt once, and of the others' prompts the last, whose logits are needed.
    CHECK(counts.read_tokens <= 500 + (count - 1) + count * answer);
  }
}

TEST_CASE("ContinuousBatch over a model that cannot forget a part answers prompts that share one") {
  const Unforgetting model{50};
  const td::Unconstrained any{50};
  using Batch = td::ContinuousBatch<Unforgetting, td::Unconstrained, td::DrafterGroup<>>;
  Batch batch{model, {.prefix_cache = 1000}};
  std::size_t answers = 0;
  for (td::TokenId i = 0; i < 4; ++i) {
    Tokens prompt(20, 3);
    prompt.push_back(i);
    batch.add({.prompt     = prompt,
               .constraint = any,
               .options    = {.max_tokens = 10},
               .drafter    = td::DrafterGroup<>{},
               .on_end     = [&](const td::Output&) -> td::AfterTurn {
                 ++answers;
                 return td::Wait{};
               }});
    batch.step();
  }
  CHECK(batch.arrived() == 0);  // each has joined beside those before it
  while (batch.step()) {}
  CHECK(answers == 4);
}

TEST_CASE("ContinuousBatch goes on after a sequence that cannot begin") {
  const td::test::RandomModel model{50};
  const td::Unconstrained any{50};
  using Batch = td::ContinuousBatch<td::test::RandomModel, td::Unconstrained, td::DrafterGroup<>>;
  Batch batch{model, {}};
  std::size_t answers = 0, errors = 0;
  for (int i = 0; i < 3; ++i) {
    Batch::Request request{.prompt     = Tokens(40, 3),
                           .constraint = any,
                           .options    = {.max_tokens = 4},
                           .drafter    = td::DrafterGroup<>{},
                           .on_end     = [&](const td::Output&) -> td::AfterTurn {
                             ++answers;
                             return td::Leave{};
                           },
                           .on_error = [&](const td::Error&) { ++errors; }};
    if (i == 0) {
      request.sequences = [](const td::Unconstrained&) -> td::decode::MakeSequence {
        return [](auto&&...) -> std::unique_ptr<td::decode::BatchSequence> {
          throw td::Error(td::Errc::invalid_option, "test", "cannot begin");
        };
      };
    }
    batch.add(std::move(request));
  }
  while (batch.step()) {}
  CHECK(errors == 1);
  CHECK(answers == 2);
}

TEST_CASE("ContinuousBatch without a prefix cache has each sequence read its prompt") {
  const td::test::RandomModel model{50};
  const td::Unconstrained any{50};
  using Batch = td::ContinuousBatch<td::test::RandomModel, td::Unconstrained, td::DrafterGroup<>>;
  Batch batch{model, {.prefix_cache = 0}};
  for (int i = 0; i < 3; ++i) {
    batch.add({.prompt     = Tokens(200, 3),
               .constraint = any,
               .options    = {.max_tokens = 2},
               .drafter    = td::DrafterGroup<>{}});
  }
  while (batch.step()) {}
  CHECK(batch.counts().reused_tokens == 0);
  CHECK(batch.counts().read_tokens >= 600);
}

TEST_CASE("ContinuousBatch reads a long prompt in parts while another sequence writes") {
  const td::test::RandomModel model{50};
  const td::Unconstrained any{50};
  using Batch = td::ContinuousBatch<td::test::RandomModel, td::Unconstrained, td::DrafterGroup<>>;
  const Tokens prompt(100, 7);
  const td::Decoder alone{model, any};
  for (const std::size_t parts : {1U, 4U, 10U}) {
    CAPTURE(parts);
    Batch batch{model, {.max_prefill = 100 / parts}};
    std::vector<std::string> order;
    td::Output answer;
    const auto add = [&](const char* name, const Tokens& text, std::size_t tokens) {
      (void)batch.add(
          {.prompt     = text,
           .constraint = any,
           .options    = {.max_tokens = tokens,
                          .on_token   = [&order,
                                    name](const td::TokenEvent&) { order.emplace_back(name); }},
           .drafter    = td::DrafterGroup<>{},
           .on_end     = [&answer](const td::Output& output) -> td::AfterTurn {
             answer = output;
             return td::Leave{};
           }});
    };
    add("short", {1}, 9);
    CHECK(batch.step());
    add("long", prompt, 30);
    while (batch.step()) {}
    const auto first_of_long = std::find(order.begin(), order.end(), "long");
    const auto before        = static_cast<std::size_t>(first_of_long - order.begin());
    CHECK(before == std::min<std::size_t>(9, 1 + parts));
    CHECK(answer.tokens == alone(prompt, {.max_tokens = 30}).tokens);
    CHECK(answer.passes == 30);
  }
  CHECK_THROWS_AS((Batch{model, {.max_prefill = 0}}), td::Error);
}

TEST_CASE("ContinuousBatch reads a short prompt beside the long one that came before it") {
  const td::test::RandomModel model{50};
  const td::Unconstrained any{50};
  using Batch = td::ContinuousBatch<td::test::RandomModel, td::Unconstrained, td::DrafterGroup<>>;
  Batch batch{model, {.max_prefill = 64}};
  std::vector<std::size_t> lengths;  // in the order of their ends
  for (const std::size_t length : {1000U, 30U, 400U}) {
    (void)batch.add({.prompt     = Tokens(length, 3),
                     .constraint = any,
                     .options    = {.max_tokens = 2},
                     .drafter    = td::DrafterGroup<>{},
                     .on_end     = [&lengths, length](const td::Output&) -> td::AfterTurn {
                       lengths.push_back(length);
                       return td::Leave{};
                     }});
  }
  std::size_t steps = 0, of_short = 0;
  while (batch.step()) {
    ++steps;
    if (of_short == 0 && !lengths.empty()) of_short = steps;
  }
  CHECK(of_short <= 3);
  CHECK(lengths == std::vector<std::size_t>{30, 400, 1000});
  CHECK(steps < 30);  // 1430 tokens, 64 at a time
}

TEST_CASE("ContinuousBatch reads an answer beside many of another request in small passes") {
  std::vector<std::size_t> rows;
  const CountingModel model{rows};
  const td::Unconstrained any{50};
  using Batch = td::ContinuousBatch<CountingModel, td::Unconstrained, td::DrafterGroup<>>;
  const td::Decoder alone{model, any};
  const Tokens prompt{1, 2, 3};
  for (const std::string client : {"a", "b"}) {  // the small one's
    for (const std::size_t most : {1U, 4U, 8U, 1000U}) {
      CAPTURE(client, most);
      Batch batch{model, {.max_shared = most}};
      std::size_t ended = 0, small_ended = 0;
      const auto add = [&](const td::RequestOrigin& origin, std::size_t tokens, auto& ends) {
        batch.add({.prompt     = prompt,
                   .constraint = any,
                   .options    = {.max_tokens = tokens, .seed = 1 + tokens},
                   .drafter    = td::DrafterGroup<>{},
                   .on_end     = [&, tokens](const td::Output& output) -> td::AfterTurn {
                     ++ends;
                     CHECK(output.tokens ==
                               alone(prompt, {.max_tokens = tokens, .seed = 1 + tokens}).tokens);
                     return td::Leave{};
                   },
                   .origin = origin});
      };
      for (std::size_t i = 0; i < 24; ++i) add({"a", std::to_string(i / 8)}, 40, ended);
      rows.clear();
      batch.step();
      CHECK(rows == std::vector<std::size_t>{24});  // requests of the same size, one client
      rows.clear();
      add({client, "small"}, 6, small_ended);
      std::size_t steps = 0;
      for (; small_ended == 0 && steps < 100; ++steps) batch.step();
      CHECK(steps == 6);
      const std::size_t level = client == "a" ? 4 : 2;  // one for each request or client
      // The first pass reads the small one's prompt.
      for (std::size_t i = 1; i < rows.size(); ++i) {
        CHECK(rows[i] == std::min<std::size_t>(25, std::max(level, most)));
      }
      batch.step();
      CHECK(rows.back() == 24);
      while (batch.step()) {}
      CHECK(ended == 24);
    }
  }
}

TEST_CASE("ContinuousBatch::leave removes a sequence without further reports and frees its place") {
  const td::test::RandomModel model{50};
  const td::Unconstrained any{50};
  using Batch = td::ContinuousBatch<td::test::RandomModel, td::Unconstrained, td::DrafterGroup<>>;
  Batch batch{model, {.max_batch = 1}};
  std::size_t ended = 0;
  const auto add    = [&] {
    return batch.add({.prompt     = {1},
                         .constraint = any,
                         .options    = {.max_tokens = 5},
                         .drafter    = td::DrafterGroup<>{},
                         .on_end     = [&](const td::Output&) -> td::AfterTurn {
                        ++ended;
                        return td::Wait{};
                      }});
  };
  const auto first = add(), second = add(), third = add();
  CHECK(batch.step());
  CHECK(batch.present() == 1);
  CHECK(batch.arrived() == 2);
  batch.leave(second);
  batch.leave(first);
  CHECK(batch.present() == 0);
  CHECK(batch.arrived() == 1);
  while (batch.step()) {}
  CHECK(ended == 1);
  CHECK(batch.present() == 1);  // the third waits, and keeps its place
  batch.leave(third);
  CHECK(batch.present() == 0);
}

TEST_CASE("ContinuousBatch over caches that share too little room changes the passes only") {
  constexpr std::size_t size = 50;
  std::size_t preempted = 0, refused = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    const td::test::RandomModel whole{size, {.seed = seed}};
    const td::test::RandomTable table{size, seed};
    std::vector<Script> scripts;
    std::size_t longest = 0;
    for (auto count = 2 + random() % 8; count > 0; --count) {
      scripts.push_back(random_script(random, size));
      std::size_t length = scripts.back().prompt.size();
      for (std::size_t turn = 0; turn <= scripts.back().more.size(); ++turn) {
        length += scripts.back().options.max_tokens;
        if (turn < scripts.back().more.size()) length += scripts.back().more[turn].size();
      }
      longest = std::max(longest, length);
    }
    const CrowdedModel model{whole, longest + random() % 20, 2 + random() % 5};
    const td::BatchOptions options{.max_batch    = 2 + random() % 4,
                                   .prefix_cache = random() % 2 == 0 ? 0U : 200U,
                                   .max_shared   = seed % 4 == 0 ? 100U : seed % 4};
    preempted += run(model, table, td::DrafterGroup<>{}, options, scripts, random).preempted;
    refused += *model.refused;
    require_as_alone(whole, table, scripts);
  }
  CHECK(preempted > 100);
  CHECK(refused > preempted);
}

TEST_CASE("ContinuousBatch throws where a sequence alone needs more room than there is") {
  const td::test::RandomModel whole{20, {}};
  const td::test::RandomTable table{20, 1};
  const CrowdedModel model{whole, 3, 4};
  td::ContinuousBatch<CrowdedModel<td::test::RandomModel>, td::test::RandomTable,
                      td::DrafterGroup<>>
      batch{model};
  batch.add({.prompt = {1, 2, 3, 4}, .constraint = table, .drafter = td::DrafterGroup<>{}});
  CHECK_THROWS_AS(batch.step(), td::Error);
}

namespace {

/// A table whose masks throw from some number of tokens on, as masks beyond their limits do.
struct FailingTable {
  td::test::RandomTable table;
  std::size_t fails_at = 1000;

  struct State {
    td::test::RandomTable::State at{};
    std::uint32_t tokens                               = 0;
    friend bool operator==(const State&, const State&) = default;
  };
  std::size_t vocabulary_size() const { return table.vocabulary_size(); }
  State initial() const { return {table.initial(), 0}; }
  std::optional<State> advance(State state, td::TokenId token) const {
    const auto next = table.advance(state.at, token);
    return next ? std::optional(State{*next, state.tokens + 1}) : std::nullopt;
  }
  void fill_mask(State state, td::MaskView words) const {
    if (state.tokens >= fails_at) {
      throw td::Error(td::Errc::limit_exceeded, "", "this mask takes too long");
    }
    table.fill_mask(state.at, words);
  }
  bool is_accepting(State state) const { return table.is_accepting(state.at); }
  bool is_finished(State state) const { return table.is_finished(state.at); }
  std::string jump_forward(State state) const { return table.jump_forward(state.at); }
};
static_assert(td::ConstraintPolicy<FailingTable>);

}  // namespace

TEST_CASE("ContinuousBatch ends a sequence whose constraint throws, and continues the others") {
  constexpr std::size_t size = 40;
  std::size_t failed = 0, thrown = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    const td::test::RandomModel model{size, {.seed = seed}};
    const td::test::RandomTable table{size, seed};
    const bool tells = seed % 2 == 0;
    std::vector<Tokens> answers(4);
    std::size_t ended = 0, errors = 0;
    using Batch = td::ContinuousBatch<td::test::RandomModel, FailingTable, td::DrafterGroup<>>;
    Batch batch{model, {.max_batch = 3}};
    const td::DecodeOptions options{.max_tokens = 12, .seed = seed};
    for (std::size_t i = 0; i < answers.size(); ++i) {
      Batch::Request request{.prompt     = {1, 2, static_cast<td::TokenId>(i)},
                             .constraint = {table, i == 1 ? random() % 6 : 1000},
                             .options    = options,
                             .drafter    = td::DrafterGroup<>{}};
      request.on_end = [&, i](const td::Output& output) -> td::AfterTurn {
        answers[i] = output.tokens;
        ++ended;
        return td::Leave{};
      };
      if (tells) {
        request.on_error = [&](const td::Error& error) {
          CHECK(error.code() == td::Errc::limit_exceeded);
          ++errors;
        };
      }
      batch.add(std::move(request));
    }
    for (bool moved = true; moved;) {
      try {
        moved = batch.step();
      } catch (const td::Error& error) {
        CHECK_FALSE(tells);
        ++errors;
      }
    }
    REQUIRE(ended + errors == answers.size());
    failed += errors;
    thrown += tells ? 0 : errors;
    CHECK(batch.present() == 0);
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (i == 1 && errors > 0) continue;
      const Tokens prompt{1, 2, static_cast<td::TokenId>(i)};
      CHECK(answers[i] == td::Decoder{model, table}(prompt, options).tokens);
    }
  }
  CHECK(failed > 20);
  CHECK(thrown > 5);
}

TEST_CASE("ContinuousBatch refuses an invalid request before it joins") {
  const td::test::RandomModel model{50};
  const td::Unconstrained any{50};
  td::ContinuousBatch<td::test::RandomModel, td::Unconstrained, td::DrafterGroup<>> batch{model};
  const auto add = [&](Tokens prompt, td::DecodeOptions options) {
    batch.add({.prompt     = std::move(prompt),
               .constraint = any,
               .options    = std::move(options),
               .drafter    = td::DrafterGroup<>{}});
  };
  CHECK_THROWS_AS(add({}, {}), td::Error);
  CHECK_THROWS_AS(add({50}, {}), td::Error);
  CHECK_THROWS_AS(add({1}, {.temperature = -1}), td::Error);
  CHECK(batch.arrived() == 0);
}

namespace {

/// Drafts the answer that it was given.
struct Oracle {
  static constexpr bool reads_hidden = false;
  struct Request {};
  Tokens answer;

  [[nodiscard]] std::size_t budget() const { return 4; }
  [[nodiscard]] double min_probability() const { return 0; }
  [[nodiscard]] Request begin(std::span<const td::TokenId>) const { return {}; }
  template <td::ConstraintPolicy C>
  void propose(Request&, const td::DraftContext<C>& context,
               td::DraftCandidates<C>& candidates) const {
    const std::size_t first         = context.generated.size();
    std::optional<std::size_t> node = 0;
    for (std::size_t i = first; node && i < std::min(answer.size(), first + 4); ++i) {
      node = candidates.add(*node, answer[i], -0.1F);
    }
  }
};

}  // namespace

TEST_CASE("ContinuousBatch continues the others after a draft's constraint or a callback threw") {
  constexpr std::size_t size = 40;
  std::size_t thrown         = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    INFO("seed " << seed);
    const td::test::RandomModel model{size, {.seed = seed}};
    const td::test::RandomTable table{size, seed};
    const bool by_callback = seed % 2 == 0;
    std::vector<Tokens> expected, found(3);
    const auto options_of = [&](std::size_t i) {
      td::DecodeOptions options{.max_tokens = 12, .seed = seed};
      if (by_callback && i == 0) {
        options.on_token = [](const td::TokenEvent& event) {
          if (event.index == 4) throw std::runtime_error("the user's");
        };
      }
      return options;
    };
    for (std::size_t i = 0; i < found.size(); ++i) {
      const Tokens prompt{1, 2, static_cast<td::TokenId>(i)};
      expected.push_back(td::Decoder{model, table}(prompt, options_of(1)).tokens);
    }
    td::ContinuousBatch<td::test::RandomModel, FailingTable, Oracle> batch{model};
    for (std::size_t i = 0; i < found.size(); ++i) {
      batch.add({.prompt     = {1, 2, static_cast<td::TokenId>(i)},
                 .constraint = {table, i == 0 && !by_callback ? std::size_t{4} : 1000},
                 .options    = options_of(i),
                 .drafter    = {i == 1 ? Tokens() : expected[i]},
                 .on_end     = [&, i](const td::Output& output) -> td::AfterTurn {
                   found[i] = output.tokens;
                   return td::Leave{};
                 }});
    }
    for (bool moved = true; moved;) {
      try {
        moved = batch.step();
      } catch (const std::exception&) {
        ++thrown;
      }
    }
    REQUIRE(found[1] == expected[1]);
    REQUIRE(found[2] == expected[2]);
    CHECK(batch.present() == 0);
  }
  CHECK(thrown > 20);
}

TEST_CASE(
    "ContinuousBatch with EAGLE goes on after a pass failed between a draft and its reading") {
  const td::LlamaModel llama = td::test::random_llama(3);
  const td::EagleModel layer{llama, td::test::random_eagle_weights(llama.config(), 3)};
  const td::FrequencyRanks ranks(std::vector<std::uint64_t>(llama.vocabulary_size()),
                                 td::test::word_vocabulary(llama.vocabulary_size()), "id");
  const td::FrequencyRankedHead head{llama.lm_head(), ranks.first(llama.vocabulary_size())};
  struct Unsteady {
    using Cache = td::LlamaModel::Cache;
    const td::LlamaModel* llama;
    std::size_t* fails;

    [[nodiscard]] std::size_t vocabulary_size() const { return llama->vocabulary_size(); }
    [[nodiscard]] std::size_t hidden_size() const { return llama->hidden_size(); }
    [[nodiscard]] td::HeadView lm_head() const { return llama->lm_head(); }
    [[nodiscard]] Cache make_cache() const { return llama->make_cache(); }
    [[nodiscard]] std::size_t length(const Cache& cache) const { return llama->length(cache); }
    [[nodiscard]] Cache fork(const Cache& cache) const { return llama->fork(cache); }
    void truncate(Cache& cache, std::size_t length) const { llama->truncate(cache, length); }
    void commit(Cache& cache, std::span<const std::size_t> path) const {
      llama->commit(cache, path);
    }
    void forward(Cache& cache, std::span<const td::TokenId> tokens, std::span<float> row) const {
      llama->forward(cache, tokens, row);
    }
    void forward_tree(Cache& cache, std::span<const td::TokenId> tokens,
                      std::span<const std::uint64_t> ancestors, std::span<float> rows) const {
      llama->forward_tree(cache, tokens, ancestors, rows);
    }
    void forward_hidden(Cache& cache, std::span<const td::TokenId> tokens,
                        std::span<float> hidden) const {
      may_fail();
      llama->forward_hidden(cache, tokens, hidden);
    }
    void forward_tree_hidden(Cache& cache, std::span<const td::TokenId> tokens,
                             std::span<const std::uint64_t> ancestors,
                             std::span<float> hidden) const {
      may_fail();
      llama->forward_tree_hidden(cache, tokens, ancestors, hidden);
    }
    void may_fail() const {
      if (++*fails % 3 != 0) return;
      if (*fails % 2 == 0) throw std::runtime_error("failed");  // a user's model may throw any
      throw td::Error(td::Errc::device_failure, "pass", "failed");
    }
  };
  std::size_t fails = 0, thrown = 0;
  const Unsteady model{&llama, &fails};
  const td::Unconstrained any{llama.vocabulary_size()};
  const td::EagleDrafter eagle{layer, head, {.depth = 3, .width = 2}};
  const td::DecodeOptions options{.max_tokens = 20};
  const Tokens prompt{1, 2, 3};
  Tokens found;
  td::ContinuousBatch<Unsteady, td::Unconstrained, std::remove_cvref_t<decltype(eagle)>> batch{
      model};
  batch.add({.prompt     = prompt,
             .constraint = any,
             .options    = options,
             .drafter    = eagle,
             .on_end     = [&](const td::Output& output) -> td::AfterTurn {
               found = output.tokens;
               return td::Leave{};
             }});
  for (bool moved = true; moved;) {
    try {
      moved = batch.step();
    } catch (const std::exception&) {
      ++thrown;
    }
  }
  CHECK(thrown > 2);
  CHECK(found == td::Decoder{llama, any}(prompt, options).tokens);
}

TEST_CASE("ContinuousBatch ends a sequence whose next turn cannot be read, with the error") {
  const td::test::RandomModel model{50};
  const td::Unconstrained any{50, {3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}};
  using Batch = td::ContinuousBatch<td::test::RandomModel, td::Unconstrained, td::DrafterGroup<>>;
  const auto run = [&](const Tokens& more, bool waits) {
    Batch batch{model};
    std::vector<td::Errc> errors;
    std::size_t turns = 0, other = 0;
    const auto id =
        batch.add({.prompt     = {1, 2},
                   .constraint = any,
                   .options    = {.max_tokens = 200},
                   .drafter    = td::DrafterGroup<>{},
                   .on_end     = [&](const td::Output&) -> td::AfterTurn {
                     if (turns++ > 0) return td::Leave{};
                     return waits ? td::AfterTurn(td::Wait{}) : td::AfterTurn(td::GoOn{more});
                   },
                   .on_error = [&](const td::Error& error) { errors.push_back(error.code()); }});
    batch.add({.prompt     = {1, 3},
               .constraint = td::Unconstrained{50},
               .options    = {.max_tokens = 10},
               .drafter    = td::DrafterGroup<>{},
               .on_end     = [&](const td::Output& output) -> td::AfterTurn {
                 other = output.tokens.size();
                 return td::Leave{};
               }});
    while (batch.step()) {}
    if (waits) batch.resume(id, more);
    while (batch.step()) {}
    CHECK(other == 10);
    CHECK(batch.present() == 0);
    return errors;
  };
  for (const bool waits : {false, true}) {
    INFO(waits);
    CHECK(run({99'999}, waits) == std::vector{td::Errc::unknown_token});
    CHECK(run({-1}, waits) == std::vector{td::Errc::unknown_token});
    CHECK(run({4, 5}, waits).empty());
  }
}

TEST_CASE("ContinuousBatch tells a sequence that alone needs more room than there is") {
  const td::test::RandomModel whole{20, {}};
  const td::test::RandomTable table{20, 1};
  const CrowdedModel model{whole, 3, 4};
  td::ContinuousBatch<CrowdedModel<td::test::RandomModel>, td::test::RandomTable,
                      td::DrafterGroup<>>
      batch{model};
  std::size_t errors = 0;
  batch.add({.prompt     = {1, 2, 3, 4},
             .constraint = table,
             .drafter    = td::DrafterGroup<>{},
             .on_error   = [&](const td::Error& error) {
               CHECK(error.code() == td::Errc::limit_exceeded);
               ++errors;
             }});
  while (batch.step()) {}
  CHECK(errors == 1);
  CHECK(batch.present() == 0);
}
