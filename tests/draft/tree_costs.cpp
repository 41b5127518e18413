#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/draft/tree_costs.hpp>

#include <support/catch.hpp>
#include <support/random_model.hpp>

namespace td = tooldecode;
using Known  = std::vector<std::pair<std::size_t, double>>;

namespace {

// Notes the sizes of passes, each of which must be a chain after the text.
struct ChainModel : td::test::RandomModel {
  ChainModel(std::vector<td::TokenId> before, std::multiset<std::size_t>& read)
      : RandomModel(50), text(std::move(before)), sizes(&read) {}

  std::vector<td::TokenId> text;
  std::multiset<std::size_t>* sizes;

  void forward_tree(Cache& cache, std::span<const td::TokenId> tokens,
                    std::span<const std::uint64_t> ancestors, std::span<float> logits) const {
    CHECK(cache.tokens == text);
    for (std::size_t n = 0; n < tokens.size(); ++n) {
      CHECK(ancestors[n] == (n == 63 ? ~std::uint64_t{0} : (std::uint64_t{1} << (n + 1)) - 1));
    }
    sizes->insert(tokens.size());
    RandomModel::forward_tree(cache, tokens, ancestors, logits);
  }
};

}  // namespace

TEST_CASE("TreeCosts::pass interpolates between known times and is constant outside them") {
  const td::TreeCosts costs(Known{{2, 1.0}, {4, 3.0}, {10, 6.0}});
  CHECK(costs.pass(0) == 1.0);
  CHECK(costs.pass(1) == 1.0);
  CHECK(costs.pass(2) == 1.0);
  CHECK(costs.pass(3) == 2.0);
  CHECK(costs.pass(4) == 3.0);
  CHECK(costs.pass(8) == Approx(5.0));
  CHECK(costs.pass(64) == 6.0);
  CHECK(costs.pass(1000) == 6.0);
}

TEST_CASE(
    "TreeCosts::most_tokens is the largest size within the factor, whatever smaller ones take") {
  const td::TreeCosts costs(Known{{1, 1.0}, {2, 9.0}, {4, 1.0}, {8, 2.0}, {64, 30.0}});
  CHECK(costs.most_tokens(1.0) == 4);
  CHECK(costs.most_tokens(1.5) == 6);
  CHECK(costs.most_tokens(2.0) == 8);
  CHECK(costs.most_tokens(30.0) == 64);
  CHECK(td::TreeCosts(Known{{1, 1.0}, {2, 2.0}}).most_tokens(1.5) == 1);
  CHECK(td::TreeCosts::flat().most_tokens(1.0) == 64);
}

TEST_CASE("TreeCosts::best_size and best_depth are those of trying every size and depth") {
  std::mt19937 random{1};
  std::uniform_real_distribution<double> part(0.0, 1.0);
  for (int round = 0; round < 300; ++round) {
    INFO("seed 1, round " << round);
    Known known;
    double time = 0.01 + part(random);
    for (std::size_t n = 1; n <= 64; ++n)
      known.emplace_back(n, time += part(random) * part(random));
    const td::TreeCosts costs(known);
    const std::size_t lead = 1 + random() % 5;
    const double spent = part(random), level = part(random);
    std::vector<double> acceptance(random() % 40);
    for (double& one : acceptance) one = part(random);
    double tokens = 1, path = 1;
    std::vector<double> deep{1 / costs.pass(lead)};
    for (std::size_t d = 1; d <= acceptance.size(); ++d) {
      tokens += path *= acceptance[d - 1];
      deep.push_back(tokens / (costs.pass(lead + d) + static_cast<double>(d) * level));
    }
    const auto fastest           = std::max_element(deep.begin(), deep.end());
    const td::TreeCosts::Chain d = costs.best_depth(acceptance, lead, level);
    CHECK(d.levels == static_cast<std::size_t>(fastest - deep.begin()));
    CHECK(d.rate == Approx(*fastest));
    std::sort(acceptance.rbegin(), acceptance.rend());
    std::vector<double> wide;
    for (std::size_t n = 0; n <= acceptance.size(); ++n) {
      double sum = 1;
      for (std::size_t i = 0; i < n; ++i) sum += acceptance[i];
      wide.push_back(sum / (spent + costs.pass(lead + n)));
    }
    CHECK(costs.best_size(acceptance, lead, spent) ==
          static_cast<std::size_t>(std::max_element(wide.begin(), wide.end()) - wide.begin()));
  }
}

TEST_CASE(
    "TreeCosts::best_size takes all nodes where tokens are free, and only sure ones where not") {
  const td::TreeCosts flat(Known{{1, 1.0}});
  CHECK(flat.best_size(std::vector<double>(40, 0.01), 1, 0) == 40);
  CHECK(flat.best_depth(std::vector<double>(6, 0.5), 1, 0.0).levels == 6);
  const td::TreeCosts steep(Known{{1, 1.0}, {64, 64.0}});
  CHECK(steep.best_size(std::vector<double>(40, 0.99), 1, 0) == 0);
  CHECK(steep.best_depth(std::vector<double>(6, 0.99), 1, 0.0).levels == 0);
  // Time already spent makes it worth verifying more.
  CHECK(steep.best_size(std::vector<double>{0.9, 0.1}, 1, 1) == 1);
}

TEST_CASE("TreeCosts::least_path is the probability above which one more level pays") {
  std::mt19937 random{2};
  std::uniform_real_distribution<double> part(0.1, 1.0);
  for (int round = 0; round < 200; ++round) {
    INFO("seed 2, round " << round);
    const double first = part(random), each = 0.1 * part(random), level = 0.1 * part(random);
    const td::TreeCosts costs(Known{{1, first}, {64, first + 63 * each}});
    const std::size_t lead = 1 + random() % 3;
    const std::vector<double> acceptance(12, part(random));
    const auto chain   = costs.best_depth(acceptance, lead, level);
    const double least = costs.least_path(chain, acceptance[0], lead, level);
    // On straight costs the marginal token decides: with it the rate is higher or lower.
    for (const double path : {0.9 * least, 1.1 * least}) {
      const double took =
          static_cast<double>(chain.levels) * level + costs.pass(lead + chain.levels);
      const double tokens = chain.rate * took;
      const double after  = (tokens + path * acceptance[0]) / (took + level + each);
      CHECK((after > chain.rate) == (path > least));
    }
  }
  // A level without cost always pays.
  const td::TreeCosts flat(Known{{1, 1.0}});
  CHECK(flat.least_path(flat.best_depth(std::vector<double>{0.5}, 1, 0), 0.5, 1, 0) == 0);
}

TEST_CASE("TreeCosts::measure gives positive times, linear between the sizes that it measured") {
  const std::vector<td::TokenId> text{1, 2, 3};
  std::multiset<std::size_t> sizes;
  const auto costs = td::TreeCosts::measure(ChainModel(text, sizes), text);
  // Short passes three times, longer ones once.
  CHECK(sizes == std::multiset<std::size_t>{1, 1, 1, 2, 2, 2,  3,  3,  3,  4,  4,  4, 5,
                                            5, 5, 8, 8, 8, 10, 10, 10, 16, 24, 40, 64});
  for (auto low = sizes.begin(), high = sizes.upper_bound(*low); high != sizes.end();
       low = high, high = sizes.upper_bound(*low)) {
    for (std::size_t n = *low; n <= *high; ++n) {
      INFO(n << " tokens");
      const double part = static_cast<double>(n - *low) / static_cast<double>(*high - *low);
      CHECK(costs.pass(n) > 0);
      CHECK(std::isfinite(costs.pass(n)));
      CHECK(costs.pass(n) == Approx((1 - part) * costs.pass(*low) + part * costs.pass(*high)));
    }
  }
}

TEST_CASE("TreeCosts refuses invalid times with their place") {
  CHECK_THROWS_WITH(td::TreeCosts(Known{}), "known: must have a time");
  CHECK_THROWS_WITH(td::TreeCosts(Known{{1, 1.0}, {1, 2.0}}),
                    Catch::Contains("known[1]") && Catch::Contains("of more tokens"));
  CHECK_THROWS_WITH(td::TreeCosts(Known{{0, 1.0}}), Catch::Contains("known[0]"));
  CHECK_THROWS_WITH(td::TreeCosts(Known{{1, 1.0}, {2, -1.0}}), Catch::Contains("known[1]"));
  CHECK_THROWS_WITH(td::TreeCosts(Known{{1, std::nan("")}}), Catch::Contains("known[0]"));
  CHECK_THROWS_WITH(td::draft::require_times(Known{{2, 1.0}, {2, 2.0}}, "rows"),
                    Catch::Contains("known[1]") && Catch::Contains("of more rows"));
  CHECK_NOTHROW(td::draft::require_times(Known{{1, 1.0}, {2, 0.5}}, "rows"));
}

TEST_CASE("interpolate is linear between two times, through both") {
  CHECK(td::draft::interpolate({2, 1.0}, {6, 3.0}, 2) == 1.0);
  CHECK(td::draft::interpolate({2, 1.0}, {6, 3.0}, 3) == 1.5);
  CHECK(td::draft::interpolate({2, 1.0}, {6, 3.0}, 6) == 3.0);
}
