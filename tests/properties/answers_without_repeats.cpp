// In every kind of decoding, WithoutRepeats makes no call twice in a row, ends answers in time, and
// gives the same answer with drafts as without.
#include <cstddef>
#include <string>
#include <vector>

#include <tooldecode/constraint/without_repeats.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/decode/tree_speculation.hpp>
#include <tooldecode/draft/jump_forward_drafter.hpp>
#include <tooldecode/draft/suffix_drafter.hpp>
#include <tooldecode/formats/named_format.hpp>
#include <tooldecode/research/beam_search.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/tools/call_key.hpp>
#include <tooldecode/verify/acceptance_rule.hpp>
#include <tooldecode/verify/tree_verifier.hpp>

#include <support/catch.hpp>
#include <support/random_model.hpp>
#include <support/random_tools.hpp>

using namespace tooldecode;
using Json = tooldecode::JsonValue;

namespace {

// Tools of which one, two and any number of different calls can be made.
ToolSet some_tools(unsigned seed) {
  const Json parameters[] = {
      Json::object(),
      {{"type", "object"},
       {"properties", {{"a", {{"enum", {"red", "blue"}}}}}},
       {"required", {"a"}},
       {"additionalProperties", false}},
      {{"type", "object"},
       {"properties", {{"a", {{"type", "string"}, {"maxLength", 2}}}, {"b", {{"const", true}}}}},
       {"required", {"b"}},
       {"additionalProperties", false}},
  };
  Json none = {{"type", "object"}, {"properties", Json::object()}, {"additionalProperties", false}};
  Json set  = Json::array();
  set.push_back({{"name", "f0"}, {"parameters", seed % 3 == 0 ? none : parameters[seed % 3]}});
  if (seed % 2 == 0) set.push_back({{"name", "f1"}, {"parameters", parameters[1 + seed / 2 % 2]}});
  return ToolSet::from_json(set);
}

struct Judge {
  const ToolCallFSM& calls;
  std::size_t answers = 0, several = 0;

  void operator()(const Output& out, const DecodeOptions& options) {
    const std::string text = calls.vocabulary().decode(out.tokens);
    INFO("answer " << text);
    REQUIRE(out.finish == Finish::end);
    REQUIRE(out.tokens.size() < options.max_tokens);
    REQUIRE(!calls.find_refusal(text));
    const auto made = calls.parse(text);
    for (std::size_t i = 1; i < made.size(); ++i) {
      const Tool* tool = &calls.tools()[*calls.tools().find(made[i].name)];
      REQUIRE((made[i].name != made[i - 1].name ||
               call_key(made[i], tool) != call_key(made[i - 1], tool)));
    }
    ++answers;
    several += made.size() > 1;
  }
};

}  // namespace

TEST_CASE(
    "WithoutRepeats in any decoding repeats no call, ends in time, and is equal with drafts") {
  const VocabularyIndex cache(test::call_vocabulary());
  std::size_t answers = 0, several = 0;
  for (unsigned seed = 1; seed <= 18; ++seed) {
    const auto& formats       = named_formats();
    const NamedFormat& format = formats[seed % 3 == 0 ? 0 : seed % formats.size()];
    INFO("seed " << seed << ", " << format.name);
    const ToolCallFSM calls(cache, some_tools(seed), format.format,
                            {.choice = ToolChoice::required, .max_calls = 1 + seed % 5});
    const WithoutRepeats constraint(calls);
    const auto least = RepeatCompletions(constraint).shortest(constraint.initial(), 1'000);
    REQUIRE(least);
    Judge judge{calls};
    const test::RandomModel model{calls.vocabulary_size(),
                                  {.seed = seed, .spread = 6, .peak = seed % 4 == 0 ? 6.0F : 0.0F}};
    const std::vector<TokenId> prompt{static_cast<TokenId>(seed)};
    for (const std::size_t more : {0U, 1U, 3U, 20U, 60U}) {
      const DecodeOptions options{.max_tokens  = *least + more,
                                  .temperature = seed % 2 == 0 ? 1.0F : 0.0F,
                                  .seed        = seed,
                                  .always_ends = true};
      INFO(options.max_tokens << " tokens");
      const Output plain = Decoder{model, constraint}(prompt, options);
      judge(plain, options);
      DecodeOptions greedy = options;
      greedy.temperature   = 0;
      judge(Decoder{model, constraint, BeamSearch{.width = 3}}(prompt, greedy), greedy);
      const JumpForwardDrafter forced{cache.trie()};
      const SuffixDrafter lookup{cache};
      const TreeVerifier verifier{GumbelCoupling{}};
      REQUIRE(
          Decoder{model, constraint, TreeSpeculation{forced, verifier}}(prompt, options).tokens ==
          plain.tokens);
      REQUIRE(
          Decoder{model, constraint, TreeSpeculation{lookup, verifier}}(prompt, options).tokens ==
          plain.tokens);
    }
    answers += judge.answers, several += judge.several;
  }
  CAPTURE(answers, several);
  CHECK(several > 5);
}
