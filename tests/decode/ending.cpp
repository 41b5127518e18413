#include <cstddef>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <tooldecode/constraint/constraint.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/decode/continuous_batch.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/decode/ending.hpp>
#include <tooldecode/decode/tree_speculation.hpp>
#include <tooldecode/draft/drafter_group.hpp>
#include <tooldecode/draft/jump_forward_drafter.hpp>
#include <tooldecode/draft/suffix_drafter.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/mask/token_trie.hpp>
#include <tooldecode/research/beam_search.hpp>
#include <tooldecode/research/self_consistency.hpp>
#include <tooldecode/research/tool_dec.hpp>

#include <support/byte_vocabulary.hpp>
#include <support/catch.hpp>
#include <support/random_model.hpp>
#include <support/random_tools.hpp>

namespace td = tooldecode;
using td::test::RandomModel;

namespace {

using Tokens = std::vector<td::TokenId>;

const Tokens prompt{1, 2, 3};

const td::VocabularyIndex& call_tokens() {
  static const td::VocabularyIndex cache{td::test::call_vocabulary()};
  return cache;
}

struct ShortContext : RandomModel {
  using RandomModel::RandomModel;
  std::size_t context_length() const { return 8; }
};

/// Random tools and a model; budgets are what the shortest answer has, and a few tokens more.
struct ToolCase {
  explicit ToolCase(unsigned seed)
      : random(seed),
        calls(call_tokens(), td::test::random_tools(random), td::PythonCall{},
              {.choice = random() % 4 == 0 ? td::ToolChoice::automatic : td::ToolChoice::required,
               .whitespace = random() % 2 == 0 ? 0U : 40U}),
        model(call_tokens().vocabulary().size(), {.seed = seed, .spread = 3, .peak = 4}) {
    const std::size_t least = *td::Completions{calls.constraint()}.shortest(calls.initial(), 1000);
    options                 = {.max_tokens           = least + random() % 12,
                               .temperature          = random() % 2 == 0 ? 0.0F : 1.0F,
                               .seed                 = seed,
                               .skip_forced          = random() % 4 != 0,
                               .always_ends          = true,
                               .max_completion_steps = 20'000};
    if (random() % 4 == 0) options.repetition_penalty = 1.3F;
    if (random() % 4 == 0) options.top_k = 5;
  }

  void require_whole(const td::Output& out) const {
    REQUIRE(out.finish == td::Finish::end);
    REQUIRE(out.tokens.size() + 1 <= options.max_tokens);
    REQUIRE_FALSE(calls.find_refusal(calls.vocabulary().decode(out.tokens)));
  }

  std::mt19937 random;
  td::ToolCallFSM calls;
  RandomModel model;
  td::DecodeOptions options;
};

}  // namespace

TEST_CASE("Ending refuses a max_tokens below the shortest answer and names both") {
  const td::VocabularyIndex cache{td::test::byte_vocabulary()};
  const td::Constraint texts{cache, td::Grammar::choice({"abcdef", "abcdefgh"})};
  const RandomModel model{257};
  const td::Decoder decode{model, texts};
  const auto failure = [](const auto& decoder, const td::DecodeOptions& options) {
    try {
      static_cast<void>(decoder(prompt, options));
    } catch (const td::Error& error) {
      return std::string(name(error.code())) + " " + error.what();
    }
    return std::string("none");
  };
  CHECK(failure(decode, {.max_tokens = 3, .always_ends = true}) ==
        "invalid_option max_tokens 3: must be at least 7, which the shortest answer has");
  CHECK(failure(decode, {.max_tokens = 3}) == "none");
  CHECK(failure(decode, {.max_tokens = 7, .always_ends = true}) == "none");
  CHECK(failure(decode,
                {.bias = {{'f', -std::numeric_limits<float>::infinity()}}, .always_ends = true}) ==
        "invalid_option max_tokens 256: must be more, or unlimited: no answer that ends was found");

  const ShortContext narrow{257};
  CHECK(failure(td::Decoder{narrow, texts}, {.always_ends = true}) ==
        "limit_exceeded prompt: tokens left in the model's context 6: must be at least 7, which "
        "the shortest answer has");

  const td::TokenTrie trie{cache.vocabulary(), std::vector<Tokens>{{'a', 'b'}}};
  CHECK(
      failure(td::Decoder{model, trie}, {.always_ends = true}) ==
      "invalid_option always_ends true: must be false under a constraint that is not of a grammar");

  const td::ToolCallFSM calls{cache,
                              td::ToolSet::parse(R"([{"name": "f"}])"),
                              td::PythonCall{},
                              {.choice = td::ToolChoice::required}};
  const td::Decoder modes{model, calls, td::ToolDec{}};
  CHECK(failure(modes, {.max_tokens = 5, .always_ends = true}) ==
        "invalid_option max_tokens 5: must be at least 6, which the shortest answer has");
  CHECK(failure(modes, {.max_tokens = 6, .always_ends = true}) == "none");
  CHECK(failure(td::Decoder{narrow, calls, td::ToolDec{}}, {.always_ends = true}) == "none");
}

TEST_CASE("Ending with always_ends finishes answers that are otherwise cut") {
  std::size_t cut = 0, same = 0;
  for (unsigned seed = 0; seed < 150; ++seed) {
    INFO("seed " << seed);
    const ToolCase c(seed);
    const td::Decoder decode{c.model, c.calls};
    const td::Output out = decode(prompt, c.options);
    c.require_whole(out);
    td::DecodeOptions plain = c.options;
    plain.always_ends       = false;
    cut += decode(prompt, plain).finish == td::Finish::length;
    // Far from the limit, the limit changes nothing.
    plain.max_tokens           = 400;
    const td::Output free      = decode(prompt, plain);
    td::DecodeOptions far      = plain;
    far.always_ends            = true;
    const td::Output unbounded = decode(prompt, far);
    if (free.finish != td::Finish::end || free.tokens.size() > 100) continue;
    ++same;
    REQUIRE(unbounded.tokens == free.tokens);
    REQUIRE(unbounded.log_probabilities == free.log_probabilities);
  }
  CHECK(cut > 80);
  CHECK(same > 20);
}

TEST_CASE("Ending with drafts gives the answer without drafts") {
  for (unsigned seed = 0; seed < 100; ++seed) {
    INFO("seed " << seed);
    const ToolCase c(seed);
    const td::Output plain = td::Decoder{c.model, c.calls}(prompt, c.options);
    const td::DrafterGroup drafters{td::JumpForwardDrafter{call_tokens().trie()},
                                    td::SuffixDrafter{call_tokens()}};
    const td::Output drafted =
        td::Decoder{c.model, c.calls, td::TreeSpeculation{drafters}}(prompt, c.options);
    c.require_whole(drafted);
    REQUIRE(drafted.tokens == plain.tokens);
    REQUIRE(drafted.log_probabilities == plain.log_probabilities);
    REQUIRE(drafted.forced_tokens == plain.forced_tokens);
    REQUIRE(drafted.passes <= plain.passes);
  }
}

TEST_CASE("Ending makes the best beam and every sample end within max_tokens") {
  for (unsigned seed = 0; seed < 60; ++seed) {
    INFO("seed " << seed);
    ToolCase c(seed);
    c.options.temperature = 1;
    c.require_whole(
        td::Decoder{c.model, c.calls, td::SelfConsistency{.samples = 4}}(prompt, c.options));
    c.options.temperature = 0;
    const td::Decoder beams{c.model, c.calls, td::BeamSearch{.width = 3}};
    c.require_whole(beams(prompt, c.options));
    const td::Decoder one{c.model, c.calls, td::BeamSearch{.width = 1}};
    REQUIRE(one(prompt, c.options).tokens ==
            td::Decoder{c.model, c.calls}(prompt, c.options).tokens);
  }
}

TEST_CASE("Ending in a batch makes each answer end within its own max_tokens") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    INFO("seed " << seed);
    const ToolCase c(seed);
    using Batch = td::ContinuousBatch<RandomModel, td::ToolCallFSM, td::SuffixDrafter>;
    Batch batch{c.model};
    std::vector<td::Output> outputs(4);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      td::DecodeOptions options = c.options;
      options.seed += i;
      options.max_tokens += i;
      batch.add({.prompt     = prompt,
                 .constraint = c.calls,
                 .options    = options,
                 .drafter    = td::SuffixDrafter{call_tokens()},
                 .on_end     = [&outputs, i](const td::Output& out) -> td::AfterTurn {
                   outputs[i] = out;
                   return td::Leave{};
                 }});
    }
    td::DecodeOptions small = c.options;
    small.max_tokens        = 1;
    if (!c.calls.is_accepting(c.calls.initial())) {
      CHECK_THROWS_AS(batch.add({.prompt     = prompt,
                                 .constraint = c.calls,
                                 .options    = small,
                                 .drafter    = td::SuffixDrafter{call_tokens()}}),
                      td::Error);
    }
    while (batch.step()) {}
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      td::DecodeOptions options = c.options;
      options.seed += i;
      options.max_tokens += i;
      REQUIRE(outputs[i].finish == td::Finish::end);
      REQUIRE(outputs[i].tokens == td::Decoder{c.model, c.calls}(prompt, options).tokens);
    }
  }
}

TEST_CASE("Ending without a constraint makes the last token an end token") {
  const RandomModel model{40, {.seed = 3}};
  const td::Unconstrained any{40, {7}};
  const td::Decoder decode{model, any};
  for (std::size_t budget = 1; budget < 20; ++budget) {
    const auto out = decode(prompt, {.max_tokens = budget, .always_ends = true});
    CHECK(out.finish == td::Finish::end);
    CHECK(out.tokens.size() < budget);
    const auto plain = decode(prompt, {.max_tokens = budget - 1});
    CHECK(out.tokens == plain.tokens);
  }
}

TEST_CASE("Ending allows an end token of the options where the text may end") {
  const td::VocabularyIndex cache{td::test::byte_vocabulary()};
  const td::Constraint texts{cache, td::Grammar::choice({"a", "ab"})};
  const RandomModel model{257};
  td::DecodeOptions options{
      .max_tokens = 2, .bias = {{'b', 100.0F}}, .end_tokens = {'b'}, .always_ends = true};
  const auto out = td::Decoder{model, texts}(prompt, options);
  CHECK(out.finish == td::Finish::end);
  CHECK(out.tokens == Tokens{'a'});
  td::decode::Ending ending{texts, td::LogitsPipeline{}, options};
  td::TokenMask mask{257};
  const auto state = *texts.advance(texts.initial(), 'a');
  texts.fill_mask(state, mask.words());
  ending.narrow(td::ConstraintRef::State(state), 1, mask.words());
  CHECK(mask.contains('b'));
  CHECK(mask.contains(256));
  CHECK(mask.count() == 2);
}
