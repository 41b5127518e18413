// Measures K x H products of a draft's head against the time to read the weights, Eigen and
// OpenBLAS; all on one thread and interleaved in one run. Results are verified before they are
// timed.
//
//   benchmark_ranked_head [--json FILE] [--width H] [--rows K...]
//
// benchmarks/results/ranked_head.json is what `--json` writes.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/text/json_value.hpp>
#include <tooldecode/vocabulary/frequency_ranks.hpp>

#include "contender.hpp"
#include <program/run_record.hpp>

namespace {

using namespace ranked_head;
using Json = tooldecode::JsonValue;

constexpr std::size_t vocabulary     = 131'072;
constexpr std::size_t max_f32_rows   = 32'768;  // 512 MiB at H = 4096
constexpr std::size_t target_rows    = 32'768;
constexpr double target_share        = 0.85;
constexpr double target_ratio_of_ten = 2.5;

// Compares every logit of a sample of rows with float64.
void verify(const Task& task, const Contender& contender) {
  std::vector<float> logits(task.states() * task.rows(), std::nanf(""));
  contender.run(logits);
  if (contender.name.find("top") != std::string::npos) return;  // its logits are those above
  for (std::size_t t = 0; t < task.states(); ++t) {
    for (std::size_t r = 0; r < task.rows(); r += task.rows() / 61 + 1) {
      double sum = 0, magnitude = 0;
      for (std::size_t i = 0; i < task.width(); ++i) {
        const float weight =
            contender.bytes_per_weight == 1
                ? tooldecode::model::weight_at(
                      static_cast<const tooldecode::model::ScaledByte*>(task.rounded.row(r)),
                      task.width(), i)
                : static_cast<float>(static_cast<const Half*>(task.ranked.row(r))[i]);
        const double term =
            static_cast<double>(task.hidden[t * task.width() + i]) * static_cast<double>(weight);
        sum += term;
        magnitude += std::abs(term);
      }
      const auto logit = static_cast<double>(logits[t * task.rows() + r]);
      if (!(std::abs(logit - sum) <= 1e-6 * magnitude)) {
        std::fprintf(stderr, "%s: row %zu of state %zu is %g, not %g\n", contender.name.c_str(), r,
                     t, logit, sum);
        std::exit(1);
      }
    }
  }
}

Json versions_of_peers() {
  const auto part = [](int number) { return std::to_string(number); };
  Json versions{{"eigen", part(EIGEN_WORLD_VERSION) + '.' + part(EIGEN_MAJOR_VERSION) + '.' +
                              part(EIGEN_MINOR_VERSION)}};
  if (const std::string openblas = openblas_version(); !openblas.empty()) {
    versions["openblas"] = openblas;
  }
  return versions;
}

struct Options {
  std::string json;
  std::size_t width = 4096;
  std::vector<std::size_t> rows{8'192, 16'384, 32'768, 65'536, 131'072};
};

Options parse(int count, char** arguments) {
  Options options;
  std::string_view flag;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = arguments[i];
    if (word.starts_with("--")) {
      flag = word;
      if (flag == "--rows") options.rows.clear();
    } else if (flag == "--json") {
      options.json = word;
    } else if (flag == "--width") {
      options.width = std::strtoul(arguments[i], nullptr, 10);
    } else if (flag == "--rows") {
      options.rows.push_back(
          std::clamp<std::size_t>(std::strtoul(arguments[i], nullptr, 10), 8, vocabulary));
    } else {
      std::fprintf(stderr,
                   "usage: benchmark_ranked_head [--json FILE] [--width H] [--rows K...]\n");
      std::exit(2);
    }
  }
  return options;
}

}  // namespace

int main(int count, char** arguments) {
  const Options options = parse(count, arguments);
  std::mt19937 random{1};
  Matrix<Half> head(static_cast<Eigen::Index>(vocabulary),
                    static_cast<Eigen::Index>(options.width));
  for (Half* at = head.data(); at != head.data() + head.size(); ++at) {
    *at = static_cast<Half>(static_cast<float>(random() >> 8) * 0x1p-24F - 0.5F);
  }
  std::vector<std::uint64_t> counts(vocabulary);
  std::iota(counts.begin(), counts.end(), 0);
  std::shuffle(counts.begin(), counts.end(), random);
  const tooldecode::FrequencyRanks ranks(counts);

  Json results = Json::array();
  double one = 0, ten = 0, min_share = 1e9;
  bool has_openblas = false;
  std::printf("H = %zu, one thread; floor: the fastest of six loops that read the weights\n",
              options.width);
  for (const std::size_t rows : options.rows) {
    const auto tokens = ranks.first(rows);
    const tooldecode::FrequencyRankedHead ranked{head, tokens};
    const tooldecode::FrequencyRankedHead in_place{head, tokens, {.gather = false}};
    const tooldecode::FrequencyRankedHead rounded{
        head, tokens, {.weights = tooldecode::WeightType::scaled_byte}};
    std::vector<float> floats;
    if (rows <= max_f32_rows) {
      const auto* halves = static_cast<const Half*>(ranked.row(0));
      floats.assign(halves, halves + rows * options.width);
    }
    for (const std::size_t states : {1U, 4U, 10U, 16U}) {
      if (rows != target_rows && states != 1 && states != 10) continue;
      std::vector<float> hidden(states * options.width);
      for (float& x : hidden) x = static_cast<float>(random() >> 8) * 0x1p-24F - 0.5F;
      const Task task{ranked, in_place, rounded, floats, hidden};
      std::vector<Contender> contenders = tooldecode_contenders(task);
      for (auto& one_more : eigen_contenders(task)) contenders.push_back(std::move(one_more));
      for (auto& one_more : openblas_contenders(task)) {
        contenders.push_back(std::move(one_more));
        has_openblas = true;
      }
      for (const Contender& contender : contenders) verify(task, contender);

      // Interleaved, so that other load affects all alike. Takes the best of several rounds; each
      // begins with the weights where the previous round of the same work left them.
      constexpr int rounds = 9;
      constexpr double any = std::numeric_limits<double>::infinity();
      // How many bytes each type of weights reads, and how long that takes.
      const auto halves = std::span(static_cast<const std::byte*>(ranked.row(0)),
                                    rows * options.width * sizeof(Half));
      const auto bytes =
          std::span(static_cast<const std::byte*>(rounded.row(0)),
                    rows * tooldecode::model::stored_bytes(rounded.row_type(), options.width));
      std::vector<float> logits(states * rows);
      double half_floor = any, float_floor = any, byte_floor = any;
      std::vector<double> times(contenders.size(), any);
      for (int round = 0; round < rounds; ++round) {
        half_floor = std::min(half_floor, seconds_to_read(halves));
        byte_floor = std::min(byte_floor, seconds_to_read(bytes));
        if (!floats.empty()) {
          float_floor = std::min(float_floor, seconds_to_read(std::as_bytes(std::span(floats))));
        }
        for (std::size_t c = 0; c < contenders.size(); ++c) {
          contenders[c].run(logits);
          times[c] = std::min(times[c], seconds_of([&] { contenders[c].run(logits); }));
        }
      }

      std::printf("\nK = %zu, %zu state%s: reading takes %.2f ms in BF16 (%.1f GB/s)", rows, states,
                  states == 1 ? "" : "s", 1e3 * half_floor,
                  static_cast<double>(2 * rows * options.width) / half_floor / 1e9);
      std::printf(", %.2f ms in 8 bits", 1e3 * byte_floor);
      if (!floats.empty()) std::printf(", %.2f ms in F32", 1e3 * float_floor);
      std::printf("\n%-38s %5s %9s %9s %9s\n", "", "type", "ms", "of floor", "to ours");
      for (std::size_t c = 0; c < contenders.size(); ++c) {
        const Contender& contender = contenders[c];
        const std::size_t width    = contender.bytes_per_weight;
        const char* const type     = width == 1 ? "8 bit" : width == 2 ? "BF16" : "F32";
        const double floor   = width == 1 ? byte_floor : width == 2 ? half_floor : float_floor;
        const double seconds = times[c];
        const double share   = floor / seconds;
        const double ratio   = seconds / times[0];
        std::printf("%-38s %5s %9.2f %8.0f%% %8.2fx\n", contender.name.c_str(), type, 1e3 * seconds,
                    100 * share, ratio);
        results.push_back({{"rows", rows},
                           {"states", states},
                           {"contender", contender.name},
                           {"weights", type},
                           {"milliseconds", std::round(1e5 * seconds) / 1e2},
                           {"share_of_read_bandwidth", std::round(1e3 * share) / 1e3},
                           {"time_to_ours_in_bf16", std::round(1e3 * ratio) / 1e3}});
        if (c != 0) continue;
        if (states == 1) min_share = std::min(min_share, share);
        if (rows == target_rows && states == 1) one = seconds;
        if (rows == target_rows && states == 10) ten = seconds;
      }
    }
  }
  if (!has_openblas) {
    std::printf("\nSKIPPED: OpenBLAS, which was not found when this was configured\n");
  }
  std::printf("\none state in BF16: at least %.0f%% of the read bandwidth (target %.0f%%)\n",
              100 * min_share, 100 * target_share);
  if (one > 0 && ten > 0) {
    std::printf("ten states at K = %zu: %.2f times one state (target %.1f)\n", target_rows,
                ten / one, target_ratio_of_ten);
  }
  if (!options.json.empty()) {
    std::ofstream(options.json) << Json{{"question", "K x H products of a draft's head"},
                                        {"made_by", program::run_record(versions_of_peers())},
                                        {"times",
                                         "processor time, the best of 9 interleaved rounds"},
                                        {"hidden_size", options.width},
                                        {"openblas", has_openblas},
                                        {"one_state_least_share", min_share},
                                        {"ten_states_to_one", one > 0 ? ten / one : 0.0},
                                        {"results", results}}
                                       .text({.indent = 1})
                                << '\n';
  }
}
