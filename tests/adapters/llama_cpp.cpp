// A real model's calls on llama.cpp. Without the model in the cache the tests report a skip.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tooldecode/adapters/llama_cpp.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/decode/tree_speculation.hpp>
#include <tooldecode/draft/drafter_group.hpp>
#include <tooldecode/draft/jump_forward_drafter.hpp>
#include <tooldecode/draft/suffix_drafter.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/vocabulary/load_vocabulary.hpp>

#include <program/prefilled_model.hpp>
#include <support/cache.hpp>
#include <support/catch.hpp>
#include <support/data.hpp>
#include <support/quiet_llama_cpp.hpp>

namespace td = tooldecode;

namespace {

// What the tests of this file share: a model is read once.
struct World {
  explicit World(const std::filesystem::path& file)
      : model(td::LlamaCppModel::load(file, {.cells = 2048})),
        tokenizer(td::load_tokenizer(file)),
        masks(tokenizer.vocabulary()),
        tools(td::ToolSet::parse(td::test::read_text(td::test::example_data("tools.json")))) {}

  [[nodiscard]] std::vector<td::TokenId> prompt(const std::string& question) const {
    return tokenizer.encode(
        "<|im_start|>system\nAnswer with one function call.\n<|im_end|>\n<|im_start|>user\n" +
            question + "<|im_end|>\n<|im_start|>assistant\n",
        {.parse_special = true});
  }

  td::LlamaCppModel model;
  td::Tokenizer tokenizer;
  td::VocabularyIndex masks;
  td::ToolSet tools;
};

const World* world() {
  static const std::optional<World> one = []() -> std::optional<World> {
    const auto file = td::test::cached_model("SmolLM2-135M-Instruct.Q4_1.gguf");
    return file ? std::optional<World>(std::in_place, *file) : std::nullopt;
  }();
  return one ? &*one : nullptr;
}

}  // namespace

TEST_CASE(
    "LlamaCppModel with SmolLM2 gives 200 sampled calls that end and conform to their documents") {
  if (world() == nullptr) return td::test::report_skipped("SmolLM2, see examples/models.sh");
  const auto& [model, tokenizer, masks, tools] = *world();
  std::size_t at_the_limit                     = 0;
  for (const char* question : {"Book a table at Luigi's for four people, outdoors.",
                               "What is the weather in Oslo tomorrow?"}) {
    const auto prompt = world()->prompt(question);
    const program::PrefilledModel read{model, prompt};
    for (const bool json : {false, true}) {
      const td::ChoiceOptions choice{.choice = td::ToolChoice::required};
      const td::ToolCallFSM calls =
          json ? td::ToolCallFSM(masks, tools, td::JsonCall::hermes(), choice)
               : td::ToolCallFSM(masks, tools, td::PythonCall{}, choice);
      const td::Decoder decode{read, calls};
      for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        const auto output = decode(
            prompt, {.max_tokens = 30, .temperature = 1.0F, .seed = seed, .always_ends = true});
        const std::string text = tokenizer.vocabulary().decode(output.tokens);
        CAPTURE(question, json, seed, text);
        CHECK(output.finish == td::Finish::end);
        CHECK(!calls.find_refusal(text));
        CHECK(!calls.parse(text).empty());
        at_the_limit += output.tokens.size() >= 28 ? 1 : 0;
      }
    }
  }
  CHECK(at_the_limit > 20);  // answers that the limit would have cut
}

TEST_CASE("LlamaCppModel with SmolLM2 gives the same calls speculatively, except for near-ties") {
  if (world() == nullptr) return td::test::report_skipped("SmolLM2, see examples/models.sh");
  const auto& [model, tokenizer, masks, tools] = *world();
  std::size_t same = 0, near_ties = 0, passes = 0, plain_passes = 0;
  for (const char* question :
       {"Book a table at Luigi's for four people, outdoors.", "Mail Ann that I am late.",
        "What is the weather in Oslo tomorrow?"}) {
    const auto prompt = world()->prompt(question);
    const td::ToolCallFSM calls(masks, tools, td::PythonCall{},
                                td::ChoiceOptions{.choice = td::ToolChoice::required});
    const td::DecodeOptions options{.max_tokens = 48};
    const td::Decoder plain{model, calls};
    const td::DrafterGroup drafters{td::SuffixDrafter{masks},
                                    td::JumpForwardDrafter{[](std::string_view text) {
                                      return world()->tokenizer.encode(text);
                                    }}};
    const td::Decoder speculative{
        model, calls, td::TreeSpeculation{drafters, td::TreeVerifier{td::GumbelCoupling{}}}};
    const auto expected = plain(prompt, options);
    const auto output   = speculative(prompt, options);
    passes += output.passes;
    plain_passes += expected.passes;
    const auto at = std::ranges::mismatch(output.tokens, expected.tokens);
    if (at.in1 == output.tokens.end() && at.in2 == expected.tokens.end()) {
      ++same;
      continue;
    }
    // Where they differ, the two tokens' logits are within the error of sums of different shapes.
    REQUIRE(at.in1 != output.tokens.end());
    REQUIRE(at.in2 != expected.tokens.end());
    std::vector<td::TokenId> before = prompt;
    before.insert(before.end(), expected.tokens.begin(), at.in2);
    auto cache = model.make_cache();
    std::vector<float> logits(model.vocabulary_size());
    model.forward(cache, before, logits);
    const float gap = std::abs(logits[static_cast<std::size_t>(*at.in1)] -
                               logits[static_cast<std::size_t>(*at.in2)]);
    CAPTURE(question, gap);
    CHECK(gap < 0.2F);
    ++near_ties;
  }
  CAPTURE(same, near_ties, passes, plain_passes);
  CHECK(same >= 2);
  CHECK(passes < plain_passes);
}

TEST_CASE("make_sampler in a llama.cpp chain writes what Decoder writes") {
  if (world() == nullptr) return td::test::report_skipped("SmolLM2, see examples/models.sh");
  const auto& [model, tokenizer, masks, tools] = *world();
  const auto calls                             = std::make_shared<const td::ToolCallFSM>(
      masks, tools, td::PythonCall{}, td::ChoiceOptions{.choice = td::ToolChoice::required});
  const auto prompt = world()->prompt("Book a table at Luigi's for four people, outdoors.");
  const td::Decoder decode{model, *calls};
  const auto expected = decode(prompt, {.max_tokens = 40, .skip_forced = false});

  //! [chain]
  llama_sampler* chain = llama_sampler_chain_init(llama_sampler_chain_default_params());
  llama_sampler_chain_add(chain, td::llama_cpp::make_sampler(calls));
  llama_sampler_chain_add(chain, llama_sampler_init_greedy());
  //! [chain]
  auto cache = model.make_cache();
  std::vector<float> logits(model.vocabulary_size());
  std::vector<td::TokenId> tokens;
  std::vector<td::TokenId> next = prompt;
  while (tokens.size() < 40) {
    model.forward(cache, next, logits);
    std::vector<llama_token_data> data;
    for (std::size_t i = 0; i < logits.size(); ++i)
      data.push_back({static_cast<llama_token>(i), logits[i], 0.0F});
    llama_token_data_array candidates{data.data(), data.size(), -1, false};
    llama_sampler_apply(chain, &candidates);
    const auto token = candidates.data[candidates.selected].id;
    if (llama_vocab_is_eog(model.vocab(), token)) break;
    llama_sampler_accept(chain, token);
    tokens.push_back(token);
    next = {token};
  }
  llama_sampler_free(chain);
  CHECK(tokens == expected.tokens);
}
