#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/logits/log_sum_exp.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;

namespace {

constexpr float none         = -std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

std::vector<float> applied(const td::SamplingParameters& options, std::vector<float> logits,
                           const std::vector<std::uint32_t>& mask = {},
                           const td::TokenPath& path              = {}) {
  const std::size_t remaining = td::LogitsPipeline{options}.apply(logits, mask, path);
  CHECK(remaining == static_cast<std::size_t>(std::count_if(
                         logits.begin(), logits.end(), [](float logit) { return logit != none; })));
  return logits;
}

std::set<int> kept(const td::SamplingParameters& options, const std::vector<float>& logits,
                   const std::vector<std::uint32_t>& mask = {}) {
  std::set<int> tokens;
  const auto distribution = applied(options, logits, mask);
  for (std::size_t t = 0; t < distribution.size(); ++t) {
    if (distribution[t] != none) tokens.insert(static_cast<int>(t));
  }
  return tokens;
}

/// Reference in double: sorts the whole row and drops from its end, one stage after another.
std::map<int, double> slow_distribution(const td::SamplingParameters& options,
                                        const std::vector<float>& logits,
                                        const std::vector<std::uint32_t>& mask) {
  std::vector<std::pair<double, int>> ranked;  // by (-logit, id)
  const double scale = options.temperature == 0 ? 1.0 : static_cast<double>(options.temperature);
  for (std::size_t t = 0; t < logits.size(); ++t) {
    if (mask[t / 32] >> (t % 32) & 1U) {
      ranked.emplace_back(-static_cast<double>(logits[t]) / scale, static_cast<int>(t));
    }
  }
  std::sort(ranked.begin(), ranked.end());
  const auto normalised = [&ranked] {
    std::vector<double> p;
    double sum = 0;
    for (const auto& entry : ranked) p.push_back(std::exp(ranked[0].first - entry.first));
    for (const double x : p) sum += x;
    for (double& x : p) x /= sum;
    return p;
  };
  if (options.top_k != 0 && options.top_k < ranked.size()) ranked.resize(options.top_k);
  if (options.top_p < 1 && !ranked.empty()) {
    const auto p    = normalised();
    double held     = 0;
    std::size_t end = 0;
    while (end < p.size() && (end == 0 || held < static_cast<double>(options.top_p)))
      held += p[end++];
    ranked.resize(end);
  }
  if (options.min_p > 0 && !ranked.empty()) {
    const auto p    = normalised();
    std::size_t end = 0;
    while (end < p.size() && p[end] >= static_cast<double>(options.min_p) * p[0]) ++end;
    ranked.resize(end);
  }
  std::map<int, double> distribution;
  const auto p = normalised();
  for (std::size_t i = 0; i < ranked.size(); ++i) distribution[ranked[i].second] = p[i];
  return distribution;
}

}  // namespace

TEST_CASE("LogitsPipeline with default options leaves a row unchanged") {
  const std::vector<float> row{1.0F, -2.5F, 3.0F};
  CHECK(applied({}, row) == row);
  CHECK(applied({.temperature = 0}, row) == row);
}

TEST_CASE("LogitsPipeline applies top-k, top-p and min-p after the mask as counted by hand") {
  const std::vector<float> row{std::log(0.1F), std::log(0.4F), std::log(0.2F), std::log(0.3F)};
  CHECK(kept({.top_k = 2}, row) == std::set{1, 3});
  CHECK(kept({.top_k = 9}, row) == std::set{0, 1, 2, 3});
  CHECK(kept({.top_p = 0.39F}, row) == std::set{1});
  CHECK(kept({.top_p = 0.41F}, row) == std::set{1, 3});
  CHECK(kept({.top_p = 0.89F}, row) == std::set{1, 2, 3});
  CHECK(kept({.top_p = 1e-6F}, row) == std::set{1});
  CHECK(kept({.min_p = 0.49F}, row) == std::set{1, 2, 3});
  CHECK(kept({.min_p = 0.51F}, row) == std::set{1, 3});
  // Of the two that top-k leaves, 4/7 and 3/7, the first alone holds half.
  CHECK(kept({.top_k = 2, .top_p = 0.5F}, row) == std::set{1});
  // The mask comes first: of 0.1, 0.2 and 0.3, the last holds half.
  CHECK(kept({.top_p = 0.49F}, row, {0b1101U}) == std::set{3});
}

TEST_CASE("LogitsPipeline keeps the lower ids of tokens that tie at a cut") {
  const std::vector<float> row{1.0F, 2.0F, 1.0F, 2.0F, 1.0F};
  CHECK(kept({.top_k = 1}, row) == std::set{1});
  CHECK(kept({.top_k = 3}, row) == std::set{0, 1, 3});
  CHECK(kept({.top_k = 4}, row) == std::set{0, 1, 2, 3});
  CHECK(kept({.top_p = 0.5F}, std::vector<float>(8, 0.0F)) == std::set{0, 1, 2, 3});
  CHECK(kept({.min_p = 1.0F}, row) == std::set{1, 3});
}

TEST_CASE("LogitsPipeline cuts equal a slow enumeration on random rows with ties") {
  std::mt19937 random{3};
  for (int round = 0; round < 2000; ++round) {
    INFO("seed 3, round " << round);
    const std::size_t size = 1 + random() % (round % 10 == 0 ? 700 : 40);
    std::vector<float> row(size);
    // Multiples of 1/8 make ties. Temperatures are powers of two, so that float and double rank
    // alike and no cumulative sum is within rounding error of a cut.
    for (float& logit : row) logit = static_cast<float>(random() % 64) / 8.0F;
    std::vector<std::uint32_t> mask((size + 31) / 32, 0xffffffffU);
    if (round % 3 == 0) {
      for (auto& word : mask) word = static_cast<std::uint32_t>(random());
    }
    const td::SamplingParameters options{
        .temperature = std::ldexp(1.0F, static_cast<int>(random() % 5) - 2),
        .top_k       = random() % 2 == 0 ? 0 : random() % 50,
        .top_p =
            random() % 2 == 0 ? 1.0F : 0.01F + 0.98F * static_cast<float>(random() % 1000) / 1e3F,
        .min_p = random() % 2 == 0 ? 0.0F : static_cast<float>(random() % 1000) / 1e3F};
    const auto distribution = applied(options, row, mask);
    const auto expected     = slow_distribution(options, row, mask);
    const double total      = td::log_sum_exp(distribution);
    for (std::size_t t = 0; t < size; ++t) {
      const auto found = expected.find(static_cast<int>(t));
      if (found == expected.end()) {
        CHECK(distribution[t] == none);
      } else {
        CHECK(std::abs(std::exp(static_cast<double>(distribution[t]) - total) - found->second) <=
              1e-5 * found->second);
      }
    }
  }
}

TEST_CASE("LogitsPipeline adds bias and bans tokens with a bias of minus infinity") {
  CHECK(applied({.bias = {{1, 2.0F}, {0, -1.0F}, {9, 1.0F}}}, {1.0F, 1.0F, 1.0F}) ==
        std::vector{0.0F, 3.0F, 1.0F});
  CHECK(applied({.bias = {{1, none}}}, {1.0F, 1.0F, 1.0F}) == std::vector{1.0F, none, 1.0F});
  const td::LogitsPipeline pipeline{{.bias = {{1, none}, {2, -5.0F}}}};
  CHECK(pipeline.is_banned(1));
  CHECK_FALSE(pipeline.is_banned(2));
}

TEST_CASE("LogitsPipeline applies each penalty to its part of the path before the temperature") {
  const std::vector<td::TokenId> prompt{0, 1, 1};
  const std::vector<td::TokenId> generated{2, 2, 3};
  const std::vector<td::TokenId> branch{3, 4, 99, -1};
  const td::TokenPath path{prompt, generated, branch};
  const std::vector<float> row{4.0F, -4.0F, 4.0F, -4.0F, 4.0F, 4.0F};
  CHECK(applied({.repetition_penalty = 2.0F}, row, {}, path) ==
        std::vector{2.0F, -8.0F, 2.0F, -8.0F, 2.0F, 4.0F});
  CHECK(applied({.presence_penalty = 1.0F}, row, {}, path) ==
        std::vector{4.0F, -4.0F, 3.0F, -5.0F, 3.0F, 4.0F});
  CHECK(applied({.frequency_penalty = 0.5F}, row, {}, path) ==
        std::vector{4.0F, -4.0F, 3.0F, -5.0F, 3.5F, 4.0F});
  // Penalties come before the temperature.
  CHECK(applied({.temperature = 0.5F, .presence_penalty = 1.0F}, row, {}, path) ==
        std::vector{8.0F, -8.0F, 6.0F, -10.0F, 6.0F, 8.0F});
}

TEST_CASE(
    "LogitsPipeline::apply returns 0 and fills a row without allowed tokens with minus infinity") {
  std::vector<float> row{1.0F, 2.0F};
  CHECK(td::LogitsPipeline{}.apply(row, std::vector{0U}) == 0);
  CHECK(row == std::vector{none, none});
  row = {1.0F, 2.0F};
  CHECK(td::LogitsPipeline{{.top_k = 1, .top_p = 0.5F, .min_p = 0.5F, .bias = {{1, none}}}}.apply(
            row, std::vector{2U}) == 0);
  CHECK(row == std::vector{none, none});
}

TEST_CASE("LogitsPipeline keeps an allowed token finite for NaN and infinite logits") {
  const float inf = std::numeric_limits<float>::infinity();
  for (const float temperature : {0.0F, 1e-6F, 1.0F, 1e6F}) {
    for (const auto& row :
         {std::vector{not_a_number, not_a_number, not_a_number}, std::vector{none, none, none},
          std::vector{inf, inf, not_a_number}, std::vector{none, inf, 0.0F}}) {
      auto distribution = applied({.temperature = temperature, .min_p = 0.1F}, row, {0b001U});
      CHECK(std::isfinite(distribution[0]));
      CHECK(distribution[1] == none);
      distribution =
          applied({.temperature = temperature, .top_p = 0.9F, .repetition_penalty = 1e6F}, row);
      for (const float logit : distribution) CHECK((std::isfinite(logit) || logit == none));
    }
  }
}

TEST_CASE("LogitsPipeline errors name the option that is out of range") {
  const auto text = [](const td::SamplingParameters& options) -> std::string {
    try {
      const td::LogitsPipeline pipeline{options};
    } catch (const td::Error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(text({.temperature = -1}) == "temperature -1: must be 0, or from 1e-6 to 1e6");
  CHECK(text({.temperature = not_a_number}) == "temperature nan: must be 0, or from 1e-6 to 1e6");
  CHECK(text({.top_p = 1.5F}) == "top_p 1.5: must be above 0 and at most 1");
  CHECK(text({.min_p = -0.5F}) == "min_p -0.5: must be from 0 to 1");
  CHECK(text({.repetition_penalty = 0}) == "repetition_penalty 0: must be above 0 and at most 1e6");
  CHECK(text({.presence_penalty = 2e6F}) == "presence_penalty 2e+06: must be from -1e6 to 1e6");
  CHECK(text({.frequency_penalty = -2e6F}) == "frequency_penalty -2e+06: must be from -1e6 to 1e6");
  CHECK(text({.bias = {{-1, 0.0F}}}) == "bias -1: must name a token: 0 or more");
  CHECK(text({.bias = {{1, 2e6F}}}) == "bias 2e+06: must be from -1e6 to 1e6, or -infinity");
  const auto place = [](const td::SamplingParameters& options) -> std::string {
    try {
      const td::LogitsPipeline pipeline{options};
    } catch (const td::Error& error) {
      CHECK(error.code() == td::Errc::invalid_option);
      return error.where();
    }
    return "";
  };
  CHECK(place({.temperature = -1}) == "temperature");
  CHECK(place({.temperature = not_a_number}) == "temperature");
  CHECK(place({.temperature = 1e-9F}) == "temperature");
  CHECK(place({.top_p = 0}) == "top_p");
  CHECK(place({.top_p = not_a_number}) == "top_p");
  CHECK(place({.min_p = 1.5F}) == "min_p");
  CHECK(place({.repetition_penalty = 0}) == "repetition_penalty");
  CHECK(place({.presence_penalty = not_a_number}) == "presence_penalty");
  CHECK(place({.frequency_penalty = none}) == "frequency_penalty");
  CHECK(place({.bias = {{-1, 0.0F}}}) == "bias");
  CHECK(place({.bias = {{1, not_a_number}}}) == "bias");
  CHECK(place({.temperature = 0, .top_k = 3, .top_p = 1, .bias = {{1, none}}}).empty());
}
