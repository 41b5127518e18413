#include <cstddef>
#include <vector>

#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/run_to_end.hpp>
#include <tooldecode/decode/sequential.hpp>
#include <tooldecode/decode/unconstrained.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>

#include <support/catch.hpp>
#include <support/random_model.hpp>

namespace td = tooldecode;
using td::test::RandomModel;

namespace {

using Tokens               = std::vector<td::TokenId>;
constexpr std::size_t size = 40;

}  // namespace

TEST_CASE(
    "run_to_end over a cache that has read a part of the prompt writes what Sequential writes") {
  const td::Unconstrained any{size, {7}};
  const td::DecodeOptions options{.max_tokens = 20};
  const td::LogitsPipeline pipeline{options.logits()};
  const Tokens prompt{1, 2, 3, 4};
  for (unsigned seed = 0; seed < 20; ++seed) {
    INFO("seed " << seed);
    const RandomModel model{size, {.seed = seed}};
    const td::ModelRef ref{model};
    const td::decode::Run run{any, prompt, pipeline, options};
    td::decode::Sequence sequence{run, options.seed};
    auto cache = ref.make_cache();
    std::vector<float> row(size);
    ref.forward(cache, std::span(prompt).first(2), row);
    sequence.mark_read(2);
    td::decode::run_to_end(ref, cache, sequence);
    const auto expected = td::Sequential{}(model, any, prompt, pipeline, options);
    CHECK(sequence.output().tokens == expected.tokens);
    CHECK(sequence.output().passes == expected.passes);
  }
}

TEST_CASE("run_to_end writes only what is left of each mask") {
  const td::Unconstrained any{size};
  const td::DecodeOptions options{.max_tokens = 20};
  const td::LogitsPipeline pipeline{options.logits()};
  const Tokens prompt{1};
  const RandomModel model{size, {.seed = 1}};
  const td::ModelRef ref{model};
  const td::decode::Run run{any, prompt, pipeline, options};
  td::decode::Sequence sequence{run, options.seed};
  auto cache        = ref.make_cache();
  std::size_t asked = 0;
  td::decode::run_to_end(ref, cache, sequence, [&]() -> td::decode::Sequence::Narrow {
    if (asked++ % 2 == 0) return {};
    return [](td::MaskView mask) {
      mask.clear();
      mask.insert(9);
    };
  });
  const Tokens& tokens = sequence.output().tokens;
  REQUIRE(tokens.size() == options.max_tokens);
  for (std::size_t i = 1; i < tokens.size(); i += 2) CHECK(tokens[i] == 9);
  CHECK(sequence.output().passes == tokens.size() / 2);  // a single token needs none
}
