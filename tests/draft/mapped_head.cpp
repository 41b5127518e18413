#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/draft/mapped_head.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/model/fixed_order.hpp>
#include <tooldecode/model/llama_config.hpp>
#include <tooldecode/model/row_weight.hpp>

#include <support/catch.hpp>
#include <support/make_safetensors.hpp>

namespace td = tooldecode;

namespace {

using Words = td::ConstMaskView;

}  // namespace

TEST_CASE("MappedHead has rows for the tokens of its offsets, and masks keep the allowed ones") {
  // Rows for tokens 2, 3 and 8 of ten.
  const td::MappedHead head(10, std::vector<std::int64_t>{2, 2, 6},
                            std::vector<float>{1, 0, 0, 1, 1, 1});
  CHECK(head.size() == 3);
  CHECK(head.hidden_size() == 2);
  CHECK(head.vocabulary_size() == 10);
  CHECK(head.token(2) == 8);
  const std::vector<float> hidden{5, 3, 1, 2};
  const auto tops = head.project_topk(hidden, 2);
  CHECK(tops[0].tokens == std::vector<td::draft::ScoredToken>{{8, 8.0F}, {2, 5.0F}});
  CHECK(tops[1].tokens == std::vector<td::draft::ScoredToken>{{8, 3.0F}, {3, 2.0F}});

  td::TokenMask few(10), foreign(10), many(10);
  few.insert(3);
  few.insert(7);
  foreign.insert(7);
  for (const td::TokenId token : {0, 2, 3, 7}) many.insert(token);
  const std::vector<float> three{5, 3, 5, 3, 5, 3};
  const auto masked =
      head.project_topk(three, 9, std::vector<Words>{few.words(), foreign.words(), many.words()});
  CHECK(masked[0].tokens == std::vector<td::draft::ScoredToken>{{3, 3.0F}});
  CHECK(masked[0].log_probability(0) == 0.0F);
  CHECK(masked[1].tokens.empty());
  CHECK(masked[1].log_sum_exp == -std::numeric_limits<double>::infinity());
  CHECK(masked[2].tokens == std::vector<td::draft::ScoredToken>{{2, 5.0F}, {3, 3.0F}});
  CHECK(head.project(std::span(three).first(2)).tokens == std::vector<td::TokenId>{2, 3, 8});
}

TEST_CASE("MappedHead::fill_logits multiplies its own rows") {
  std::mt19937 random{4};
  std::normal_distribution<float> normal;
  const std::size_t rows = 300, width = 41, n = 7;
  std::vector<float> weights(rows * width), hidden(n * width), logits(n * rows);
  for (float& x : weights) x = normal(random);
  for (float& x : hidden) x = normal(random);
  const td::MappedHead head(1000, std::vector<std::int64_t>(rows, 100), weights);
  head.fill_logits(hidden, logits);
  std::size_t wrong = 0;
  for (std::size_t t = 0; t < n; ++t) {
    for (std::size_t r = 0; r < rows; ++r) {
      if (logits[t * rows + r] != td::model::dot(std::span(hidden).subspan(t * width, width),
                                                 std::span(weights).subspan(r * width, width))) {
        ++wrong;
      }
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("MappedHead applies a last norm before it multiplies, and 8-bit rows are near") {
  std::mt19937 random{5};
  std::normal_distribution<float> normal;
  const std::size_t rows = 70, width = 41, n = 3;
  std::vector<float> weights(rows * width), hidden(n * width), norm(width), logits(n * rows);
  for (auto* numbers : {&weights, &hidden, &norm}) {
    for (float& x : *numbers) x = normal(random);
  }
  const std::vector<std::int64_t> d2t(rows, 4);
  const td::MappedHead head(100, d2t, weights, {.norm = norm, .norm_epsilon = 0.01F});
  const td::MappedHead bytes(
      100, d2t, weights,
      {.norm = norm, .norm_epsilon = 0.01F, .weights = td::WeightType::scaled_byte});
  head.fill_logits(hidden, logits);
  const auto tops  = head.project_topk(hidden, rows);
  const auto rough = bytes.project_topk(hidden, rows);
  for (std::size_t t = 0; t < n; ++t) {
    double squares = 0, error = 0;
    for (std::size_t i = 0; i < width; ++i) {
      squares += std::pow(static_cast<double>(hidden[t * width + i]), 2);
    }
    const double scale = 1 / std::sqrt(squares / static_cast<double>(width) + 0.01);
    const auto all     = head.project(std::span(hidden).subspan(t * width, width));
    std::vector<float> by_row(rows), near(rows);
    for (const auto& [token, logit] : tops[t].tokens) {
      by_row[static_cast<std::size_t>(token) - 4] = logit;
    }
    for (const auto& [token, logit] : rough[t].tokens) {
      near[static_cast<std::size_t>(token) - 4] = logit;
    }
    for (std::size_t r = 0; r < rows; ++r) {
      double sum = 0, steps = 0;
      for (std::size_t i = 0; i < width; ++i) {
        const double x =
            static_cast<double>(hidden[t * width + i]) * scale * static_cast<double>(norm[i]);
        sum += x * static_cast<double>(weights[r * width + i]);
        steps += std::abs(x);
      }
      error = std::max(error, std::abs(sum - static_cast<double>(logits[t * rows + r])));
      CHECK(by_row[r] == logits[t * rows + r]);
      CHECK(all.logits[r] == logits[t * rows + r]);
      // A weight of a row whose greatest is below 5 is off by 5 / 254 at most.
      CHECK(std::abs(static_cast<double>(near[r]) - sum) < steps * 5 / 254);
    }
    CHECK(error < 1e-4);
  }
  CHECK_THROWS_WITH((td::MappedHead{10,
                                    std::vector<std::int64_t>{1},
                                    std::vector<float>(4),
                                    {.norm = std::vector<float>(3)}}),
                    "norm.weight: 3 numbers: must be 4, as a row of lm_head.weight has");
}

TEST_CASE("MappedHead refuses offsets and weights that do not fit, with their place") {
  const auto build = [](std::vector<std::int64_t> d2t, std::size_t numbers) {
    try {
      td::MappedHead head(10, d2t, std::vector<float>(numbers));
    } catch (const td::Error& error) {
      return std::pair(error.code(), error.where());
    }
    return std::pair(td::Errc::malformed_json, std::string("nothing thrown"));
  };
  constexpr auto max = std::numeric_limits<std::int64_t>::max();
  CHECK_THROWS_WITH((td::MappedHead{10, std::vector<std::int64_t>{0, 0, 0}, std::vector<float>(7)}),
                    "lm_head.weight: 7 numbers: must be as many for each of the 3 rows of d2t");
  CHECK_THROWS_WITH((td::MappedHead{10, std::vector<std::int64_t>{0, 9}, std::vector<float>(4)}),
                    "d2t[1]: must map to one of the target's 10 tokens, and has 9");
  CHECK(build({0, 0, 0}, 7).first == td::Errc::shape_mismatch);
  CHECK(build({0, 0}, 0).first == td::Errc::shape_mismatch);
  CHECK(build({}, 4).first == td::Errc::shape_mismatch);
  for (const std::int64_t offset : {std::int64_t{9}, std::int64_t{-2}, max, -max}) {
    CHECK(build({0, offset}, 4) == std::pair(td::Errc::unknown_token, std::string("d2t[1]")));
  }
  CHECK(build({0, 8}, 4).second == "nothing thrown");
  CHECK(build({5, 0, 3}, 3) == std::pair(td::Errc::malformed_file, std::string("d2t[2]")));
}

TEST_CASE("MappedHead::read takes a checkpoint's offsets and rows from its tensors") {
  const auto file_of = [](const std::string& offsets_type, const std::string& norm = "") {
    const std::string header =
        R"({"d2t":{"dtype":")" + offsets_type + R"(","shape":[2],"data_offsets":[0,16]},)" + norm +
        R"("lm_head.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[16,40]}})";
    const std::array<std::int64_t, 2> offsets{4, 7};
    const std::array<float, 9> weights{1, 2, 3, -1, 0, 0.5F, 2, 2, -1};
    const std::uint64_t size = header.size();
    std::string bytes(8 + header.size() + (norm.empty() ? 40 : 52), '\0');
    std::memcpy(bytes.data(), &size, 8);
    std::copy(header.begin(), header.end(), bytes.begin() + 8);
    std::memcpy(bytes.data() + 8 + header.size(), offsets.data(), 16);
    std::memcpy(bytes.data() + 8 + header.size() + 16, weights.data(), norm.empty() ? 24 : 36);
    return td::SafeTensors::parse(bytes);
  };
  td::LlamaConfig target;
  target.vocabulary_size = 9;
  target.hidden_size     = 3;
  target.norm_epsilon    = 1;
  const auto head        = td::MappedHead::read(file_of("I64"), target);
  CHECK(head.size() == 2);
  CHECK(head.token(0) == 4);
  CHECK(head.token(1) == 8);
  std::vector<float> logits(2);
  head.fill_logits(std::vector<float>{1, 1, 2}, logits);
  CHECK(logits == std::vector<float>{9, 0});
  // After its norm, (1, 1, 2) is (2, 2, -2) / sqrt(3).
  const auto with_norm = td::MappedHead::read(
      file_of("I64", R"("norm.weight":{"dtype":"F32","shape":[3],"data_offsets":[40,52]},)"),
      target);
  with_norm.fill_logits(std::vector<float>{1, 1, 2}, logits);
  CHECK(std::abs(logits[0]) < 1e-6F);
  CHECK(std::abs(logits[1] + std::sqrt(3.0F)) < 1e-6F);
  const auto code_of = [&](const std::string& type, std::size_t vocabulary, std::size_t hidden) {
    try {
      target.vocabulary_size = vocabulary;
      target.hidden_size     = hidden;
      static_cast<void>(td::MappedHead::read(file_of(type), target));
    } catch (const td::Error& error) {
      return error.code();
    }
    return td::Errc::invalid_option;
  };
  CHECK(code_of("F64", 9, 3) == td::Errc::unknown_format);
  CHECK(code_of("I64", 9, 4) == td::Errc::shape_mismatch);
  CHECK(code_of("I64", 8, 3) == td::Errc::unknown_token);
  CHECK_THROWS_AS(td::MappedHead::read(td::test::make_safetensors({}), target), td::Error);
}
