#include <utility>
#include <vector>

#include <tooldecode/decode/decode_options.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;

TEST_CASE("DecodeOptions::logits passes every setting of the distribution to the pipeline") {
  const td::DecodeOptions options{.temperature        = 0.5F,
                                  .top_k              = 1,
                                  .top_p              = 0.2F,
                                  .min_p              = 0.3F,
                                  .repetition_penalty = 4.0F,
                                  .presence_penalty   = 5.0F,
                                  .frequency_penalty  = 6.0F,
                                  .bias               = {{7, 8.0F}}};
  const td::SamplingParameters distribution = options.logits();
  CHECK(distribution.temperature == 0.5F);
  CHECK(distribution.top_k == 1);
  CHECK(distribution.top_p == 0.2F);
  CHECK(distribution.min_p == 0.3F);
  CHECK(distribution.repetition_penalty == 4.0F);
  CHECK(distribution.presence_penalty == 5.0F);
  CHECK(distribution.frequency_penalty == 6.0F);
  CHECK(distribution.bias == std::vector<std::pair<td::TokenId, float>>{{7, 8.0F}});
}

TEST_CASE("DecodeOptions by default is greedy and changes no logit") {
  const td::DecodeOptions options;
  CHECK(options.temperature == 0);
  CHECK(options.max_tokens == 256);
  CHECK(options.skip_forced);
  std::vector<float> row{1.0F, 2.0F};
  td::LogitsPipeline{options.logits()}.apply(row, {});
  CHECK(row == std::vector{1.0F, 2.0F});
}
