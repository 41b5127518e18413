#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <thrust/execution_policy.h>

#include <tooldecode/cuda/frequency_ranks.cuh>
#include <tooldecode/cuda/pruned_head.cuh>

#include "data.cuh"
#include "peers.hpp"
#include "questions.hpp"

namespace cuda_benchmark {

namespace {

namespace cuda = tooldecode::cuda;
using tooldecode::TokenId;

constexpr int k = 10;
// Logits have a magnitude of about 1: sums of 4096 terms of about 1/64.
constexpr double tolerance = 5e-4;

// Twice the weights of a full head, so that each set reads from another place.
template <class T>
struct Heads {
  int vocabulary, width;
  DeviceBuffer<T> weights;       // [V] in random order
  DeviceBuffer<TokenId> tokens;  // [V] by rank; the tokens' counts are random

  explicit Heads(const Setup& setup)
      : vocabulary(setup.is_small ? 1000 : 131'072),
        width(setup.is_small ? 256 : 4096),
        weights(normal_numbers<T>(
            2 * static_cast<std::size_t>(vocabulary) * static_cast<std::size_t>(width),
            1 / std::sqrt(static_cast<float>(width)), 11)),
        tokens(static_cast<std::size_t>(vocabulary)) {
    std::vector<std::uint64_t> counts(static_cast<std::size_t>(vocabulary));
    std::generate(counts.begin(), counts.end(), std::mt19937(12));
    const DeviceBuffer<std::uint64_t> counted(counts), running(counts.size() + 1);
    const DeviceBuffer<std::uint32_t> ranks(counts.size());
    cuda::fill_frequency_ranks(
        thrust::device, counted.data(), nullptr, vocabulary,
        {.ids = tokens.data(), .ranks = ranks.data(), .running_counts = running.data()});
  }
  [[nodiscard]] int mask_words() const { return (vocabulary + 31) / 32; }
};

enum class Layout { gathered, indexed };

// K rows for n states, and the result buffers.
template <class T>
class Task {
 public:
  Task(const Heads<T>& heads, int states, int rows)
      : heads_(heads),
        states_(states),
        rows_(rows),
        hidden_(normal_numbers<T>(size(states) * size(heads.width), 1, 13)),
        mask_words_(random_words(size(states) * size(heads.mask_words()), 14)),
        masks_(mask_words_),
        logits_(size(states) * size(rows)),
        tokens_(size(states) * k),
        best_(size(states) * k),
        log_sum_exp_(size(states)),
        workspace_(cuda::pruned_head_workspace_bytes(states, rows, k, heads.mask_words())) {}

  [[nodiscard]] int sets(Layout layout) const {
    return std::max(1, (layout == Layout::gathered ? 2 : 1) * heads_.vocabulary / rows_);
  }
  [[nodiscard]] cuda::HeadRows<T> head(Layout layout, int set) const {
    const std::int64_t first = static_cast<std::int64_t>(set) * rows_;
    const bool gathered      = layout == Layout::gathered;
    const std::int64_t token = first % (heads_.vocabulary / rows_ * rows_);
    return {.weights     = heads_.weights.data() + (gathered ? first * heads_.width : 0),
            .rows        = rows_,
            .hidden_size = heads_.width,
            .tokens      = heads_.tokens.data() + token,
            .vocabulary  = gathered ? 0 : heads_.vocabulary};
  }
  [[nodiscard]] const T* hidden() const { return hidden_.data(); }
  [[nodiscard]] float* logits() const { return logits_.data(); }
  // Of the rows that some state may use, which are those of the first set.
  [[nodiscard]] double weight_bytes(bool masked) const {
    int used = rows_;
    if (masked) {
      const auto tokens = download(head(Layout::gathered, 0).tokens, size(rows_));
      used = static_cast<int>(std::count_if(tokens.begin(), tokens.end(), [&](TokenId token) {
        const std::size_t words = size(heads_.mask_words()), word = size(token) / 32;
        for (std::size_t s = 0; s < size(states_); ++s) {
          if ((mask_words_[s * words + word] >> token % 32 & 1) != 0) return true;
        }
        return false;
      }));
    }
    return static_cast<double>(sizeof(T)) * used * heads_.width;
  }
  [[nodiscard]] double hidden_bytes() const { return static_cast<double>(hidden_.bytes()); }
  [[nodiscard]] double logits_bytes() const { return static_cast<double>(logits_.bytes()); }
  [[nodiscard]] double mask_bytes() const { return static_cast<double>(masks_.bytes()); }

  void fill_logits(Layout layout, int set, cudaStream_t stream) const {
    cuda::fill_logits(head(layout, set), hidden_.data(), states_, logits_.data(), stream);
  }
  void project_topk(Layout layout, int set, bool masked, cudaStream_t stream) const {
    cuda::project_topk(
        head(layout, set), hidden_.data(), states_, masked ? masks_.data() : nullptr,
        heads_.mask_words(), k,
        {.tokens = tokens_.data(), .logits = best_.data(), .log_sum_exp = log_sum_exp_.data()},
        workspace_, stream);
  }

  // Compares what `fill` writes to `logits()` with float64: 61 rows of each state.
  template <class Fill>
  void verify_logits(Layout layout, Fill fill) const {
    poison(logits_);
    const int set = sets(layout) - 1;
    fill(set);
    cuda::check(cudaDeviceSynchronize());
    const auto got    = logits_.download();
    const auto hidden = hidden_.download();
    const auto view   = head(layout, set);
    const auto tokens = download(view.tokens, size(rows_));
    for (int r = 0; r < rows_;
         r     = r == rows_ - 1 ? rows_ : std::min(r + rows_ / 60 + 1, rows_ - 1)) {
      const int place = view.vocabulary == 0 ? r : tokens[size(r)];
      const auto row  = download(view.weights + static_cast<std::int64_t>(place) * heads_.width,
                                 size(heads_.width));
      for (int s = 0; s < states_; ++s) {
        double sum = 0;
        for (std::size_t i = 0; i < row.size(); ++i) {
          sum += static_cast<double>(cuda::to_float(row[i])) *
                 static_cast<double>(cuda::to_float(hidden[size(s) * row.size() + i]));
        }
        const auto logit = static_cast<double>(got[size(s) * size(rows_) + size(r)]);
        require(std::abs(logit - sum) <= tolerance,
                "logit " + std::to_string(r) + " of state " + std::to_string(s) + " is " +
                    std::to_string(logit) + ", not " + std::to_string(sum));
      }
    }
  }

  // Compares the top k with all logits, which are verified separately.
  void verify_top(Layout layout, bool masked) const {
    poison(tokens_);
    poison(best_);
    poison(log_sum_exp_);
    const int set = sets(layout) - 1;
    fill_logits(layout, set, nullptr);
    project_topk(layout, set, masked, nullptr);
    cuda::check(cudaDeviceSynchronize());
    const auto logits = logits_.download();
    const auto tokens = download(head(layout, set).tokens, size(rows_));
    const auto got    = tokens_.download();
    const auto best = best_.download(), log_sum_exp = log_sum_exp_.download();
    std::vector<double> logit_of(size(heads_.vocabulary));
    for (int s = 0; s < states_; ++s) {
      constexpr double none = -std::numeric_limits<double>::infinity();
      std::fill(logit_of.begin(), logit_of.end(), none);
      double sum = 0;
      for (std::size_t r = 0; r < tokens.size(); ++r) {
        const auto token         = static_cast<std::size_t>(tokens[r]);
        const std::uint32_t word = mask_words_[size(s) * size(heads_.mask_words()) + token / 32];
        if (masked && (word >> token % 32 & 1) == 0) continue;
        logit_of[token] = static_cast<double>(logits[size(s) * tokens.size() + r]);
        sum += std::exp(logit_of[token]);
      }
      std::vector<double> sorted = logit_of;
      std::partial_sort(sorted.begin(), sorted.begin() + k, sorted.end(), std::greater<>());
      for (std::size_t j = 0; j < k; ++j) {
        const auto token = got[size(s) * k + j];
        const auto logit = static_cast<double>(best[size(s) * k + j]);
        require(token >= 0 && token < heads_.vocabulary, "no token where there is one");
        require(std::abs(logit - logit_of[size(token)]) <= tolerance, "a best token's logit");
        require(std::abs(logit - sorted[j]) <= tolerance, "a best token is missing");
        for (std::size_t i = 0; i < j; ++i) {
          require(got[size(s) * k + i] != token, "a token is among the best twice");
        }
      }
      require(std::abs(static_cast<double>(log_sum_exp[size(s)]) - std::log(sum)) <= tolerance,
              "log-sum-exp");
    }
  }

 private:
  static std::size_t size(int count) { return static_cast<std::size_t>(count); }

  const Heads<T>& heads_;
  int states_, rows_;
  DeviceBuffer<T> hidden_;                 // [n, H]
  std::vector<std::uint32_t> mask_words_;  // [n, V / 32]
  DeviceBuffer<std::uint32_t> masks_;
  DeviceBuffer<float> logits_;       // [n, K]
  DeviceBuffer<TokenId> tokens_;     // [n, k]
  DeviceBuffer<float> best_;         // [n, k]
  DeviceBuffer<float> log_sum_exp_;  // [n]
  DeviceBuffer<std::byte> workspace_;
};

// One size: logits, then top k with and without masks, then rows by index.
template <class T>
void measure(const Setup& setup, const Heads<T>& heads, int states, int rows, Report& report) {
  const Task<T> task(heads, states, rows);
  const bool counts = !setup.is_small && std::is_same_v<T, __nv_bfloat16> && rows >= 32'768 &&
                      (states == 1 || states == 10);
  Result result{.numbers = std::is_same_v<T, __half> ? "F16" : "BF16",
                .size    = "K = " + std::to_string(rows) + ", n = " + std::to_string(states)};
  const auto add = [&](const char* kernel, Layout layout, double bytes, const Call& call,
                       std::vector<Peer> peers) {
    result.kernel = kernel;
    result.timing = time_calls(setup, task.sets(layout), call);
    result.floor  = bytes / setup.ceilings.copy_bandwidth;
    result.peers  = std::move(peers);
    result.requirement =
        counts && layout == Layout::gathered ? Requirement::pruned_head : Requirement::none;
    report.add(result);
  };

  std::vector<Peer> products, sorts;
  if (Cublas::is_available()) {
    Cublas cublas;
    CubSort sort(states, rows);
    const Call multiply = [&](int set, cudaStream_t stream) {
      cublas.multiply(task.head(Layout::gathered, set).weights, task.hidden(), task.logits(),
                      {states, rows, heads.width}, stream);
    };
    task.verify_logits(Layout::gathered, [&](int set) { multiply(set, nullptr); });
    const int sets = task.sets(Layout::gathered);
    products       = {{"cuBLAS", time_calls(setup, sets, multiply).microseconds}};
    sorts = {{"cuBLAS and CUB's sort", time_calls(setup, sets, [&](int set, cudaStream_t stream) {
                                         multiply(set, stream);
                                         sort(task.logits(), stream);
                                       }).microseconds}};
  }

  const auto read = [&](bool masked) {
    return task.weight_bytes(masked) + task.hidden_bytes() + (masked ? task.mask_bytes() : 0);
  };
  task.verify_logits(Layout::gathered,
                     [&](int set) { task.fill_logits(Layout::gathered, set, nullptr); });
  add(
      "pruned head, logits", Layout::gathered, read(false) + task.logits_bytes(),
      [&](int set, cudaStream_t stream) { task.fill_logits(Layout::gathered, set, stream); },
      products);
  struct Top {
    const char* kernel;
    Layout layout;
    bool masked;
  };
  for (const auto& [kernel, layout, masked] :
       {Top{"pruned head, top 10", Layout::gathered, false},
        Top{"pruned head, masked top 10", Layout::gathered, true},
        Top{"pruned head, rows by index, top 10", Layout::indexed, false},
        Top{"pruned head, rows by index, masked top 10", Layout::indexed, true}}) {
    // A mask that allows fewer tokens than K is answered with all that it allows, which are others.
    if (layout == Layout::indexed && masked && 4 * rows > heads.vocabulary) continue;
    if (layout == Layout::indexed) {
      task.verify_logits(layout, [&](int set) { task.fill_logits(Layout::indexed, set, nullptr); });
    }
    task.verify_top(layout, masked);
    add(
        kernel, layout, read(masked),
        [&](int set, cudaStream_t stream) { task.project_topk(layout, set, masked, stream); },
        sorts);
  }
}

template <class T>
void measure_all(const Setup& setup, std::vector<int> sizes, std::vector<int> counts,
                 Report& report) {
  const Heads<T> heads(setup);
  for (const int rows : sizes) {
    for (const int states : counts) {
      report.attempt("pruned head, K = " + std::to_string(rows) + ", n = " + std::to_string(states),
                     [&] { measure(setup, heads, states, rows, report); });
    }
  }
}

}  // namespace

void ask_pruned_head(const Setup& setup, Report& report) {
  report.attempt("pruned head", [&] {
    if (setup.is_small) {
      measure_all<__nv_bfloat16>(setup, {300}, {1, 10}, report);
    } else {
      measure_all<__nv_bfloat16>(setup, {8192, 32'768, 65'536, 131'072}, {1, 4, 10, 60}, report);
      measure_all<__half>(setup, {32'768}, {10}, report);
    }
  });
}

}  // namespace cuda_benchmark
