#include <cstddef>
#include <random>
#include <type_traits>
#include <utility>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/decode/tree_speculation.hpp>
#include <tooldecode/decode/unconstrained.hpp>
#include <tooldecode/draft/any_drafter.hpp>
#include <tooldecode/draft/drafter_group.hpp>
#include <tooldecode/draft/jump_forward_drafter.hpp>
#include <tooldecode/draft/sized_drafter.hpp>
#include <tooldecode/draft/suffix_drafter.hpp>
#include <tooldecode/draft/tree_costs.hpp>
#include <tooldecode/formats/python_call.hpp>

#include <support/catch.hpp>
#include <support/random_drafters.hpp>
#include <support/random_tools.hpp>

namespace td = tooldecode;
using Tokens = std::vector<td::TokenId>;

namespace {

using Text   = td::AnyDrafter<td::ToolCallFSM>;
using Hidden = td::AnyDrafter<td::ToolCallFSM, true>;
using Eagle  = decltype(td::test::RandomDrafters::eagle);

static_assert(td::CandidateDrafter<Text, td::ToolCallFSM>);
static_assert(!Text::reads_hidden && Hidden::reads_hidden);
static_assert(std::is_constructible_v<Text, td::SuffixDrafter>);
static_assert(std::is_constructible_v<Hidden, td::SuffixDrafter>);
static_assert(std::is_constructible_v<Hidden, Eagle>);
static_assert(!std::is_constructible_v<Text, Eagle>, "nobody would give it the states");

}  // namespace

TEST_CASE("AnyDrafter drafts as the drafter that it holds") {
  const td::Vocabulary vocabulary = td::test::call_vocabulary();
  const td::VocabularyIndex masks{vocabulary};
  std::size_t accepted = 0, texts = 0;
  for (unsigned seed = 0; seed < 6; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random{seed};
    const td::test::RandomDrafters given{vocabulary, seed, random};
    const td::ToolCallFSM calls{masks,
                                td::test::random_tools(random),
                                td::PythonCall{},
                                {.choice = td::ToolChoice::required}};
    const td::DecodeOptions options{
        .max_tokens = 60, .temperature = seed % 2 == 0 ? 0.0F : 1.0F, .seed = seed};
    const Tokens prompt{1, 2, 3, 4};
    const auto check = [&](const auto& any, const auto& own) {
      CHECK(any.budget() == own.budget());
      CHECK(any.min_probability() == own.min_probability());
      const auto decode = [&](const auto& drafter) {
        return td::Decoder{given.model, calls, td::TreeSpeculation{drafter}}(prompt, options);
      };
      const td::Output held = decode(any), alone = decode(own);
      REQUIRE(held.tokens == alone.tokens);
      REQUIRE(held.passes == alone.passes);
      REQUIRE(held.drafts.nodes == alone.drafts.nodes);
      REQUIRE(held.drafts.accepted == alone.drafts.accepted);
      for (const std::size_t count : held.drafts.accepted) accepted += count;
    };
    const td::SuffixDrafter lookup{masks};
    const td::DrafterGroup text{lookup, td::JumpForwardDrafter{masks.trie()}};
    const td::DrafterGroup group{given.eagle, lookup};
    check(Text(text), text);
    check(Hidden(text), text);
    texts = accepted;
    check(Hidden(given.eagle), given.eagle);
    check(Hidden(given.medusa), given.medusa);
    check(Hidden(group), group);
    // A drafter that chooses its tree by what it has learnt.
    const auto sized = [&] {
      return td::SizedDrafter{
          group, td::TreeCosts(std::vector<std::pair<std::size_t, double>>{{1, 1.0}, {64, 2.0}})};
    };
    const auto held   = sized();
    const auto drafts = td::TreeSpeculation{Hidden(held)};
    const auto output = td::Decoder{given.model, calls, drafts}(prompt, options);
    CHECK(output.tokens == td::Decoder{given.model, calls}(prompt, options).tokens);
    CHECK(held.acceptance().of_level(1) != sized().acceptance().of_level(1));
  }
  CHECK(texts > 20);
  CHECK(accepted > texts);
}

TEST_CASE("AnyDrafter copies share the drafter, and requests do not affect one another") {
  const td::Vocabulary vocabulary = td::test::call_vocabulary();
  const td::VocabularyIndex masks{vocabulary};
  std::mt19937 random{3};
  const td::test::RandomDrafters given{vocabulary, 3, random};
  const td::AnyDrafter<td::Unconstrained, true> any(given.eagle);
  const td::AnyDrafter<td::Unconstrained, true> copy = any;
  const td::Unconstrained free{vocabulary.size()};
  const auto decode = [&](const auto& drafter, Tokens prompt) {
    return td::Decoder{given.model, free, td::TreeSpeculation{drafter}}(prompt, {.max_tokens = 30});
  };
  const auto first = decode(any, {1, 2, 3});
  static_cast<void>(decode(copy, {9, 8, 7, 6}));
  const auto second = decode(copy, {1, 2, 3});
  CHECK(first.drafts.accepted == second.drafts.accepted);
  CHECK(first.tokens == second.tokens);
}
