// The product of a draft's head alone, by number of rows: SmolLM2's head, and one of Gemma 3 270M's
// shape.
#include <algorithm>
#include <array>
#include <ctime>
#include <limits>
#include <numeric>
#include <random>

#include "report.hpp"

namespace fr_spec {

Json measure_products() {
  struct Shape {
    const char* of;
    std::size_t vocabulary, hidden;
  };
  constexpr int rounds = 9;
  constexpr std::array divisors{1U, 2U, 4U, 8U, 16U};
  Json rows = Json::array();
  std::mt19937 random{1};
  for (const Shape& shape :
       {Shape{"SmolLM2-135M", 49'152, 576}, Shape{"Gemma 3 270M", 262'144, 640}}) {
    // The values do not affect the time.
    std::vector<float> weights(shape.vocabulary * shape.hidden);
    for (float& x : weights) x = static_cast<float>(random() >> 8) * 0x1p-24F - 0.5F;
    const td::model::RowsView<const float> matrix{weights.data(), shape.vocabulary, shape.hidden,
                                                  shape.hidden};
    std::vector<std::uint64_t> counts(shape.vocabulary);
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = random();
    const td::FrequencyRanks ranks(counts);
    const Bench::Head head = Bench::rounded_head(matrix, ranks.first(shape.vocabulary));
    for (const std::size_t states : {1U, 6U}) {
      const std::vector<float> hidden(states * shape.hidden, 0.5F);
      std::array<double, divisors.size()> least;
      least.fill(std::numeric_limits<double>::infinity());
      for (int round = 0; round < rounds; ++round) {  // sizes take turns
        for (std::size_t i = 0; i < divisors.size(); ++i) {
          const Bench::Head part = head.first(shape.vocabulary / divisors[i]);
          // Processor time, which other processes affect little.
          const std::clock_t start = std::clock();
          static_cast<void>(part.project_topk(hidden, 10));
          const double took = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
          least[i]          = std::min(least[i], took);
        }
      }
      for (std::size_t i = 0; i < divisors.size(); ++i) {
        rows.push_back({{"shape_of", shape.of},
                        {"vocabulary_size", shape.vocabulary},
                        {"hidden_size", shape.hidden},
                        {"states", states},
                        {"k", shape.vocabulary / divisors[i]},
                        {"ms", 1000 * least[i]},
                        {"times_faster", least[0] / least[i]}});
      }
    }
  }
  return rows;
}

}  // namespace fr_spec
