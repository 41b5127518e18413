#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/cuda/masked_softmax.cuh>
#include <tooldecode/logits/logits_pipeline.hpp>
#include <tooldecode/logits/selection.hpp>

#include "data.cuh"
#include "peers.hpp"
#include "questions.hpp"

namespace cuda_benchmark {

namespace {

namespace cuda = tooldecode::cuda;
using tooldecode::TokenId;

constexpr std::uint64_t seed = 21;

// Rows of logits with masks that allow three tokens of four, in several sets.
template <class T>
class Batch {
 public:
  Batch(const Setup& setup, int rows, int vocabulary)
      : rows_(rows),
        vocabulary_(vocabulary),
        words_((vocabulary + 31) / 32),
        sets_(setup.sets(count() * sizeof(T), max_bytes / (count() * sizeof(T)))),
        logits_(normal_numbers<T>(static_cast<std::size_t>(sets_) * count(), 4, 22)),
        mask_words_(
            random_words(static_cast<std::size_t>(rows) * static_cast<std::size_t>(words_), 23)),
        masks_(mask_words_),
        probabilities_(static_cast<std::size_t>(sets_) * count()),
        tokens_(static_cast<std::size_t>(rows)),
        workspace_(cuda::masked_softmax_workspace_bytes(rows, vocabulary)) {
    std::vector<std::int64_t> positions;
    for (int row = 0; row < rows; ++row) positions.push_back(1000 + 7 * row);
    positions_ = DeviceBuffer<std::int64_t>(positions);
  }

  [[nodiscard]] int sets() const { return sets_; }
  [[nodiscard]] const T* logits(int set) const {
    return logits_.data() + static_cast<std::ptrdiff_t>(set) * rows_ * vocabulary_;
  }
  [[nodiscard]] double read_bytes() const {
    return static_cast<double>(count() * sizeof(T) + masks_.bytes());
  }
  [[nodiscard]] double written_bytes() const { return static_cast<double>(4 * count()); }

  void fill_softmax(int set, cudaStream_t stream) const {
    cuda::fill_masked_softmax(view(set), {}, probabilities(set), nullptr, workspace_, stream);
  }
  void find_tokens(int set, const cuda::SamplingOptions& options, cudaStream_t stream) const {
    cuda::find_tokens(view(set), options, {.seed = seed, .positions = positions_.data()},
                      tokens_.data(), workspace_, stream);
  }

  // Compares up to four rows with float64.
  void verify_softmax() const {
    poison(probabilities_);
    const int set = sets_ - 1;
    fill_softmax(set, nullptr);
    cuda::check(cudaDeviceSynchronize());
    for (const int row : sample()) {
      const auto floats       = download(probabilities(set) + std::ptrdiff_t{row} * vocabulary_,
                                         static_cast<std::size_t>(vocabulary_));
      const auto distribution = distribution_of(set, row, {});
      std::vector<double> expected;
      double sum = 0;
      for (const float logit : distribution) {
        expected.push_back(std::exp(static_cast<double>(logit)));
        sum += expected.back();
      }
      for (double& x : expected) x /= sum;
      require_close(std::vector<double>(floats.begin(), floats.end()), expected, 1e-5,
                    "softmax of row " + std::to_string(row));
    }
  }

  // The tokens of these rows must be those that the host draws.
  void verify_tokens(const cuda::SamplingOptions& options) const {
    poison(tokens_);
    const int set = sets_ - 1;
    find_tokens(set, options, nullptr);
    cuda::check(cudaDeviceSynchronize());
    const auto tokens    = tokens_.download();
    const auto positions = positions_.download();
    for (const int row : sample()) {
      const auto r        = static_cast<std::size_t>(row);
      const auto expected = tooldecode::find_token(
          distribution_of(set, row, options), options.temperature,
          {.seed = seed, .position = static_cast<std::uint64_t>(positions[r])});
      require(tokens[r] == expected.value_or(-1), "row " + std::to_string(row) + ": token " +
                                                      std::to_string(tokens[r]) + ", not " +
                                                      std::to_string(expected.value_or(-1)));
    }
  }

  [[nodiscard]] std::vector<int> sample() const {
    std::vector<int> rows{0, rows_ / 3, 2 * rows_ / 3, rows_ - 1};
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    return rows;
  }
  [[nodiscard]] std::vector<float> row(int set, int row) const {
    std::vector<float> floats;
    for (const T x : download(logits(set) + std::ptrdiff_t{row} * vocabulary_,
                              static_cast<std::size_t>(vocabulary_))) {
      floats.push_back(cuda::to_float(x));
    }
    return floats;
  }

 private:
  static constexpr std::size_t max_bytes = std::size_t{1} << 30;

  [[nodiscard]] std::size_t count() const {
    return static_cast<std::size_t>(rows_) * static_cast<std::size_t>(vocabulary_);
  }
  [[nodiscard]] float* probabilities(int set) const {
    return probabilities_.data() + static_cast<std::ptrdiff_t>(set) * rows_ * vocabulary_;
  }
  [[nodiscard]] cuda::LogitsRows<T> view(int set) const {
    return {.logits      = logits(set),
            .rows        = rows_,
            .vocabulary  = vocabulary_,
            .mask        = masks_.data(),
            .mask_stride = words_};
  }
  [[nodiscard]] std::vector<float> distribution_of(int set, int row_index,
                                                   const cuda::SamplingOptions& options) const {
    auto distribution = row(set, row_index);
    const auto* words = mask_words_.data() + std::ptrdiff_t{row_index} * words_;
    const tooldecode::LogitsPipeline pipeline({.temperature = options.temperature,
                                               .top_k = static_cast<std::size_t>(options.top_k),
                                               .top_p = options.top_p,
                                               .min_p = options.min_p});
    pipeline.apply(distribution, std::span(words, static_cast<std::size_t>(words_)));
    return distribution;
  }

  int rows_, vocabulary_, words_, sets_;
  DeviceBuffer<T> logits_;                 // [sets, B, V]
  std::vector<std::uint32_t> mask_words_;  // [B, V / 32]
  DeviceBuffer<std::uint32_t> masks_;
  DeviceBuffer<float> probabilities_;     // [sets, B, V]
  DeviceBuffer<TokenId> tokens_;          // [B]
  DeviceBuffer<std::int64_t> positions_;  // [B]
  DeviceBuffer<std::byte> workspace_;
};

Peer measure_argmax(const Setup& setup, const Batch<float>& batch, int rows, int vocabulary) {
  CubArgMax argmax(rows, vocabulary);
  argmax(batch.logits(0), nullptr);
  cuda::check(cudaDeviceSynchronize());
  const auto columns = argmax.columns();
  for (const int row : batch.sample()) {
    const auto logits = batch.row(0, row);
    require(columns[static_cast<std::size_t>(row)] ==
                std::max_element(logits.begin(), logits.end()) - logits.begin(),
            "CUB's arg-max");
  }
  const Call call = [&](int set, cudaStream_t stream) { argmax(batch.logits(set), stream); };
  return {"CUB's arg-max, no mask", time_calls(setup, batch.sets(), call).microseconds};
}

Peer measure_sort(const Setup& setup, const Batch<float>& batch, int rows, int vocabulary) {
  CubSort sort(rows, vocabulary);
  sort(batch.logits(0), nullptr);
  cuda::check(cudaDeviceSynchronize());
  for (const int row : batch.sample()) {
    const auto logits = batch.row(0, row);
    require(sort.best(row, 1).front() ==
                std::max_element(logits.begin(), logits.end()) - logits.begin(),
            "CUB's sort");
  }
  const Call call = [&](int set, cudaStream_t stream) { sort(batch.logits(set), stream); };
  return {"CUB's sort of rows, no mask", time_calls(setup, batch.sets(), call).microseconds};
}

template <class T>
void measure(const Setup& setup, int rows, int vocabulary, Report& report) {
  constexpr bool is_float = std::is_same_v<T, float>;
  const Batch<T> batch(setup, rows, vocabulary);
  Result result{.numbers = is_float ? "F32" : "BF16",
                .size    = "V = " + std::to_string(vocabulary) + ", B = " + std::to_string(rows)};
  const auto add = [&](const char* kernel, double bytes, const Call& call) {
    result.kernel = kernel;
    result.timing = time_calls(setup, batch.sets(), call);
    result.floor  = bytes / setup.ceilings.copy_bandwidth;
    report.add(result);
    result.peers.clear();
    result.requirement = Requirement::none;
  };

  batch.verify_softmax();
  if (!setup.is_small && rows >= 64) result.requirement = Requirement::masked_softmax;
  add("masked softmax", batch.read_bytes() + batch.written_bytes(),
      [&](int set, cudaStream_t stream) { batch.fill_softmax(set, stream); });

  struct Draw {
    const char* kernel;
    cuda::SamplingOptions options;
  };
  for (const Draw& draw :
       {Draw{"masked arg-max", {.temperature = 0}},
        Draw{"masked draw, by Gumbel noise", {.temperature = 0.8F}},
        Draw{"masked draw, top k = 50", {.temperature = 0.8F, .top_k = 50}},
        Draw{"masked draw, top p = 0.9", {.temperature = 0.8F, .top_p = 0.9F}}}) {
    batch.verify_tokens(draw.options);
    if constexpr (is_float) {
      if (draw.options.temperature == 0) {
        result.peers = {measure_argmax(setup, batch, rows, vocabulary)};
      }
      if (draw.options.top_k > 0) {
        result.peers = {measure_sort(setup, batch, rows, vocabulary)};
      }
    }
    add(draw.kernel, batch.read_bytes(),
        [&](int set, cudaStream_t stream) { batch.find_tokens(set, draw.options, stream); });
  }
}

}  // namespace

void ask_masked_softmax(const Setup& setup, Report& report) {
  const int vocabulary = setup.is_small ? 1003 : 128'256;
  for (const int rows : setup.is_small ? std::vector{1, 3} : std::vector{1, 64, 256}) {
    const std::string size = ", B = " + std::to_string(rows);
    report.attempt("masked softmax, F32" + size,
                   [&] { measure<float>(setup, rows, vocabulary, report); });
    report.attempt("masked softmax, BF16" + size,
                   [&] { measure<__nv_bfloat16>(setup, rows, vocabulary, report); });
  }
}

}  // namespace cuda_benchmark
