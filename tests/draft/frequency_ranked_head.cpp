#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <span>
#include <vector>

#include <Eigen/Core>

#include <tooldecode/core/error.hpp>
#include <tooldecode/draft/frequency_ranked_head.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/model/llama_model.hpp>
#include <tooldecode/model/row_weight.hpp>
#include <tooldecode/vocabulary/frequency_ranks.hpp>

#include <support/catch.hpp>
#include <support/data.hpp>

namespace td = tooldecode;

namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Words  = td::ConstMaskView;

/// Whole numbers so small that every sum of products is exact in float, so results are equal and
/// many logits tie.
float whole_number(std::mt19937& random) {
  return static_cast<float>(static_cast<int>(random() % 7)) - 3.0F;
}

td::FrequencyRanks random_ranks(std::size_t size, std::mt19937& random) {
  std::vector<std::uint64_t> counts(size);
  for (auto& count : counts) count = random() % 50;
  return td::FrequencyRanks(counts);
}

/// What the head must give, by a sort of exact logits of every token.
struct Expected {
  std::vector<td::draft::ScoredToken> tokens;  // all, the likeliest first
  double log_sum_exp = 0;
};

Expected expect(const Matrix& head, const std::vector<td::TokenId>& active,
                std::span<const float> hidden, const td::TokenMask* mask) {
  std::vector<td::TokenId> tokens = active;
  if (mask != nullptr) {
    if (mask->count() < active.size()) {
      tokens.resize(static_cast<std::size_t>(head.rows()));
      for (std::size_t t = 0; t < tokens.size(); ++t) tokens[t] = static_cast<td::TokenId>(t);
    }
    std::erase_if(tokens, [&](td::TokenId token) { return !mask->contains(token); });
  }
  Expected result;
  double sum = 0;
  for (const td::TokenId token : tokens) {
    double logit = 0;
    for (std::size_t i = 0; i < hidden.size(); ++i) {
      logit += static_cast<double>(hidden[i]) *
               static_cast<double>(head(token, static_cast<Eigen::Index>(i)));
    }
    sum += std::exp(logit);
    result.tokens.push_back({token, static_cast<float>(logit)});
  }
  std::sort(result.tokens.begin(), result.tokens.end(), [](const auto& a, const auto& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
  });
  result.log_sum_exp = std::log(sum);
  return result;
}

/// A mask of one of the kinds that matter: nothing, one token, all, the unranked alone, some.
td::TokenMask random_mask(std::size_t size, const std::vector<td::TokenId>& active,
                          std::mt19937& random) {
  td::TokenMask mask(size);
  const auto kind   = random() % 7;
  const auto chance = random() % 100;
  for (std::size_t t = 0; t < size; ++t) {
    const auto token     = static_cast<td::TokenId>(t);
    const bool is_active = std::find(active.begin(), active.end(), token) != active.end();
    if (kind == 2 || (kind == 3 && !is_active) || (kind > 3 && random() % 100 < chance)) {
      mask.insert(token);
    }
  }
  if (kind == 1) mask.insert(static_cast<td::TokenId>(random() % size));
  return mask;
}

template <class Head>
void check_head(const Head& head, const Matrix& matrix, const std::vector<td::TokenId>& active,
                std::size_t n, std::mt19937& random) {
  const std::size_t width = head.hidden_size();
  const std::size_t size  = head.vocabulary_size();
  REQUIRE(head.size() == active.size());
  for (std::size_t i = 0; i < active.size(); ++i) CHECK(head.token(i) == active[i]);

  std::vector<float> hidden(n * width);
  for (float& x : hidden) x = whole_number(random);
  std::vector<td::TokenMask> masks;
  std::vector<Words> words;
  for (std::size_t t = 0; t < n; ++t) masks.push_back(random_mask(size, active, random));
  for (const td::TokenMask& mask : masks) {
    words.push_back(random() % 4 == 0 ? Words{} : Words(mask.words()));
  }
  const bool is_masked = random() % 4 != 0;
  const std::size_t k  = 1 + random() % 12;
  const auto tops      = head.project_topk(hidden, k, is_masked ? words : std::vector<Words>{});
  REQUIRE(tops.size() == n);
  std::vector<float> logits(n * active.size());
  head.fill_logits(hidden, logits);

  for (std::size_t t = 0; t < n; ++t) {
    INFO("state " << t << " of " << n << ", width " << width << ", rows " << active.size());
    const std::span<const float> state(hidden.data() + t * width, width);
    const Words mask      = is_masked ? words[t] : Words{};
    const auto expected   = expect(matrix, active, state, mask.empty() ? nullptr : &masks[t]);
    const std::size_t max = std::min(k, expected.tokens.size());
    CHECK(tops[t].tokens ==
          std::vector(expected.tokens.begin(), expected.tokens.begin() + static_cast<int>(max)));
    if (expected.tokens.empty()) {
      CHECK(tops[t].log_sum_exp == -std::numeric_limits<double>::infinity());
    } else {
      CHECK(std::abs(tops[t].log_sum_exp - expected.log_sum_exp) < 1e-5);
    }

    const td::draft::TokenLogits distribution = head.project(state, mask);
    REQUIRE(distribution.tokens.size() == distribution.logits.size());
    std::vector<td::draft::ScoredToken> all;
    for (std::size_t i = 0; i < distribution.tokens.size(); ++i) {
      all.push_back({distribution.tokens[i], distribution.logits[i]});
    }
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
      return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
    });
    CHECK(all == expected.tokens);

    const auto unmasked = expect(matrix, active, state, nullptr);
    std::size_t wrong   = 0;
    for (const auto& [token, logit] : unmasked.tokens) {
      const auto row =
          static_cast<std::size_t>(std::find(active.begin(), active.end(), token) - active.begin());
      if (logits[t * active.size() + row] != logit) ++wrong;
    }
    CHECK(wrong == 0);
  }
}

}  // namespace

TEST_CASE("FrequencyRankedHead's top k, log-sum-exp and distribution equal brute force") {
  std::mt19937 random{1};
  for (std::size_t round = 0; round < 32; ++round) {
    INFO("seed 1, round " << round);
    const std::size_t n     = 1 + round % 16;
    const std::size_t width = 1 + random() % 60;
    const std::size_t size  = round % 3 == 0 ? 1 + random() % 9 : 257 + random() % 400;
    const std::size_t k     = round % 5 == 0 ? 1 : 1 + random() % size;
    Matrix matrix(static_cast<Eigen::Index>(size), static_cast<Eigen::Index>(width));
    for (auto& weight : matrix.reshaped()) weight = whole_number(random);
    const td::RankedTokens ranks = random_ranks(size, random).first(k);
    std::vector<td::TokenId> active(ranks.ranked().begin(), ranks.ranked().end());

    const td::FrequencyRankedHead gathered{matrix, ranks};
    const td::FrequencyRankedHead in_place{matrix, ranks, {.gather = false}};
    const td::FrequencyRankedHead halved{matrix, ranks, {.weights = td::WeightType::bfloat16}};
    check_head(gathered, matrix, active, n, random);
    check_head(in_place, matrix, active, n, random);
    check_head(halved, matrix, active, n, random);

    // Fewer ranked rows, then rows added to them, repeated and ranked ones among these.
    active.resize(random() % (k + 1));
    const std::size_t left = active.size();
    std::vector<td::TokenId> extra;
    for (int i = 0; i < 9; ++i) {
      extra.push_back(static_cast<td::TokenId>(random() % size));
      if (std::find(active.begin(), active.end(), extra.back()) == active.end()) {
        active.push_back(extra.back());
      }
    }
    check_head(gathered.first(left).with(extra), matrix, active, n, random);
    check_head(in_place.first(left).with(extra), matrix, active, n, random);
    check_head(halved.first(left).with(extra), matrix, active, n, random);
    // The ranking and the head add the same rows.
    const auto ranked_with = ranks.with(extra);
    const td::FrequencyRankedHead from_ranks{matrix, ranked_with};
    const auto from_head = gathered.with(extra);
    REQUIRE(from_ranks.size() == from_head.size());
    for (std::size_t i = 0; i < from_head.size(); ++i) {
      CHECK(from_ranks.token(i) == from_head.token(i));
    }
  }
}

TEST_CASE("FrequencyRankedHead gives a token one logit, whatever is computed beside it") {
  std::mt19937 random{2};
  const Matrix matrix = Matrix::Random(400, 37);
  const auto ranks    = random_ranks(400, random).first(300);
  const std::vector<float> hidden(matrix.data(), matrix.data() + 16 * 37);
  const td::FrequencyRankedHead gathered{matrix, ranks};
  const td::FrequencyRankedHead in_place{matrix, ranks, {.gather = false}};
  const auto together  = gathered.project_topk(hidden, 20);
  const auto elsewhere = in_place.project_topk(hidden, 20);
  for (std::size_t t = 0; t < 16; ++t) {
    const auto state = std::span(hidden).subspan(t * 37, 37);
    const auto alone = gathered.project_topk(state, 20);
    CHECK(alone[0].tokens == together[t].tokens);
    CHECK(alone[0].log_sum_exp == together[t].log_sum_exp);
    CHECK(elsewhere[t].tokens == together[t].tokens);
    CHECK(elsewhere[t].log_sum_exp == together[t].log_sum_exp);
    const auto distribution = gathered.project(state);
    for (const auto& [token, logit] : together[t].tokens) {
      const auto at = std::find(distribution.tokens.begin(), distribution.tokens.end(), token) -
                      distribution.tokens.begin();
      CHECK(distribution.logits[static_cast<std::size_t>(at)] == logit);
    }
  }
}

TEST_CASE(
    "FrequencyRankedHead in bfloat16 has the tiny model's weights and tokens in half the bytes") {
  const auto model       = td::LlamaModel::load(td::test::example_data("tiny"));
  const std::size_t size = model.vocabulary_size();
  const td::FrequencyRanks ranks{std::vector<std::uint64_t>(size)};
  const td::FrequencyRankedHead whole{model.lm_head(), ranks.first(size), {.gather = false}};
  const td::FrequencyRankedHead halved{
      model.lm_head(), ranks.first(size), {.weights = td::WeightType::bfloat16}};
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t j = 0; j < model.hidden_size(); ++j) {
      const auto narrow = static_cast<float>(static_cast<const td::BFloat16*>(halved.row(i))[j]);
      if (narrow != static_cast<const float*>(whole.row(i))[j]) ++wrong;
    }
  }
  CHECK(wrong == 0);

  std::vector<td::TokenId> tokens;
  for (std::size_t i = 0; i < 12; ++i) tokens.push_back(static_cast<td::TokenId>(i * 37 % size));
  auto cache = model.make_cache();
  std::vector<float> hidden(tokens.size() * model.hidden_size());
  model.forward_hidden(cache, tokens, hidden);
  std::vector<float> logits(tokens.size() * size);
  model.fill_logits(hidden, logits);
  const auto exact = whole.project_topk(hidden, 5);
  const auto close = halved.project_topk(hidden, 5);
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    for (std::size_t i = 0; i < 5; ++i) {
      const auto [token, logit] = exact[t].tokens[i];
      CHECK(logit == logits[t * size + static_cast<std::size_t>(token)]);
      CHECK(close[t].tokens[i].token == token);
      CHECK(std::abs(close[t].tokens[i].logit - logit) < 1e-4F);
    }
    CHECK(exact[t].tokens[0].logit ==
          *std::max_element(logits.begin() + static_cast<std::ptrdiff_t>(t * size),
                            logits.begin() + static_cast<std::ptrdiff_t>((t + 1) * size)));
    CHECK(std::abs(close[t].log_sum_exp - exact[t].log_sum_exp) < 1e-4);
  }
}

TEST_CASE("FrequencyRankedHead has each token once, whatever order `first` and `with` come in") {
  constexpr std::size_t size = 12, width = 4;
  std::vector<float> weights(size * width);
  std::mt19937 random{4};
  for (float& one : weights) one = static_cast<float>(random() % 100);
  const td::HeadView view{td::model::RowsView<const float>{weights.data(), size, width, width}};
  const td::FrequencyRanks ranks{std::vector<std::uint64_t>(size, 1)};
  for (const bool gather : {false, true}) {
    for (unsigned seed = 1; seed <= 200; ++seed) {
      CAPTURE(gather, seed);
      random.seed(seed);
      td::FrequencyRankedHead head{view, ranks.first(size), {.gather = gather}};
      std::set<td::TokenId> wanted;
      std::size_t k = size;
      for (int step = 0; step < 4; ++step) {
        if (random() % 2 == 0) {
          k    = random() % (size + 1);
          head = head.first(k);
        } else {
          const auto token = static_cast<td::TokenId>(random() % size);
          wanted.insert(token);  // a ranked one too: a smaller head may not have its row
          head = head.with(std::vector{token, token});
        }
      }
      std::set<td::TokenId> expected = wanted;
      for (std::size_t i = 0; i < k; ++i) expected.insert(head.token(i));
      REQUIRE(head.size() == expected.size());
      for (std::size_t i = 0; i < head.size(); ++i) {
        REQUIRE(expected.erase(head.token(i)) == 1);
        const auto* row = static_cast<const float*>(head.row(i));
        REQUIRE(std::equal(row, row + width,
                           &weights[static_cast<std::size_t>(head.token(i)) * width]));
      }
    }
  }
}

TEST_CASE("FrequencyRankedHead in 8 bits has near logits and the same likeliest tokens") {
  using Rounded          = td::model::ScaledByte;
  const auto model       = td::LlamaModel::load(td::test::example_data("tiny"));
  const std::size_t size = model.vocabulary_size(), width = model.hidden_size();
  const td::FrequencyRanks ranks{std::vector<std::uint64_t>(size)};
  const td::FrequencyRankedHead whole{model.lm_head(), ranks.first(size), {.gather = false}};
  const td::FrequencyRankedHead part{
      model.lm_head(), ranks.first(size / 2), {.weights = td::WeightType::scaled_byte}};
  const auto rounded = part.with(ranks.first(size).ranked());
  REQUIRE(rounded.size() == size);

  std::vector<td::TokenId> tokens;
  for (std::size_t i = 0; i < 48; ++i) tokens.push_back(static_cast<td::TokenId>(i * 37 % size));
  auto cache = model.make_cache();
  std::vector<float> hidden(tokens.size() * width);
  model.forward_hidden(cache, tokens, hidden);
  std::vector<float> exact(tokens.size() * size), close(tokens.size() * size);
  whole.fill_logits(hidden, exact);
  rounded.fill_logits(hidden, close);
  const auto top    = whole.project_topk(hidden, 1);
  const auto near   = rounded.project_topk(hidden, 4);
  std::size_t wrong = 0, same = 0;
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    float sum = 0;
    for (std::size_t i = 0; i < width; ++i) sum += std::abs(hidden[t * width + i]);
    for (std::size_t r = 0; r < size; ++r) {
      const float bound =
          0.51F * td::model::scale_of(static_cast<const Rounded*>(rounded.row(r)), width) * sum;
      const auto token = static_cast<std::size_t>(rounded.token(r));
      if (std::abs(close[t * size + r] - exact[t * size + token]) > bound) ++wrong;
    }
    const td::TokenId best = top[t].tokens[0].token;
    if (near[t].tokens[0].token == best) ++same;
    CHECK(std::any_of(near[t].tokens.begin(), near[t].tokens.end(),
                      [&](const auto& one) { return one.token == best; }));
  }
  CHECK(wrong == 0);
  CHECK(same >= tokens.size() * 9 / 10);

  // Under a narrow mask, the tokens' logits are products with the head's rows.
  td::TokenMask mask(size);
  for (const td::TokenId token : {3, 70, 500}) mask.insert(token);
  const auto few = rounded.project(std::span(hidden).first(width), mask.words());
  REQUIRE(few.tokens.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto token = static_cast<std::size_t>(few.tokens[i]);
    const auto row =
        static_cast<std::size_t>(std::find(ranks.first(size).ranked().begin(),
                                           ranks.first(size).ranked().end(), few.tokens[i]) -
                                 ranks.first(size).ranked().begin());
    CHECK(few.logits[i] == exact[row]);
    CHECK(token < size);
  }
}

TEST_CASE("FrequencyRankedHead refuses a head or token that does not fit, with the matching code") {
  std::mt19937 random{3};
  const auto ranks   = random_ranks(20, random).first(10);
  const auto code_of = [](auto&& build) {
    try {
      build();
    } catch (const td::Error& error) {
      return error.code();
    }
    return td::Errc::malformed_json;  // none of those expected
  };
  const Matrix small = Matrix::Random(19, 4), none = Matrix(20, 0), good = Matrix::Random(24, 4);
  CHECK(code_of([&] { td::FrequencyRankedHead{small, ranks}; }) == td::Errc::shape_mismatch);
  CHECK(code_of([&] { td::FrequencyRankedHead{none, ranks}; }) == td::Errc::shape_mismatch);
  CHECK(code_of([&] {
          td::FrequencyRankedHead{
              good, ranks, {.gather = false, .weights = td::WeightType::bfloat16}};
        }) == td::Errc::invalid_option);
  const td::FrequencyRankedHead head{good, ranks};
  CHECK_THROWS_WITH(head.first(11), "k = 11: must be at most the rows that there are, 10");
  CHECK_THROWS_WITH(head.with(std::vector{24}), "token 24: must be one of the head's 24");
  CHECK_THROWS_WITH((td::FrequencyRankedHead{small, ranks}),
                    "head: [19, 4]: must have columns, and a row for each of the 20 tokens that "
                    "are ranked");
  CHECK_THROWS_WITH((td::FrequencyRankedHead{
                        good, ranks, {.gather = false, .weights = td::WeightType::bfloat16}}),
                    "gather false: must be true where the weights are of another type than the "
                    "head's");
  CHECK(code_of([&] { (void)head.first(11); }) == td::Errc::invalid_option);
  for (const td::TokenId token : {-1, 24}) {
    CHECK(code_of([&] { (void)head.with(std::vector{token}); }) == td::Errc::unknown_token);
  }
  CHECK(head.with(std::vector<td::TokenId>{23}).size() == 11);  // past the ranks, in the head
}
