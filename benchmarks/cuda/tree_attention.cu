#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <tooldecode/cuda/tree_attention.cuh>

#include "data.cuh"
#include "questions.hpp"

namespace cuda_benchmark {

namespace {

namespace cuda = tooldecode::cuda;
using Half     = __nv_bfloat16;

constexpr int nodes = 60, query_heads = 32, key_heads = 8, head_size = 128, page_size = 16;
constexpr int slot_size = key_heads * head_size;
constexpr cuda::TreeAttentionOptions options{.query_heads = query_heads,
                                             .key_heads   = key_heads,
                                             .head_size   = head_size,
                                             .scale       = 0.088388348F};  // 1 / sqrt(128)

enum class Storage { one_piece, pages };

// One sequence of a context's length followed by a tree, in several sets.
class Task {
 public:
  Task(const Setup& setup, int length, Storage storage)
      : length_(length),
        slots_((length + nodes + page_size - 1) / page_size * page_size),
        storage_(storage),
        sets_(setup.sets(static_cast<std::size_t>(kv_bytes()), 512)),
        keys_(normal_numbers<Half>(all_numbers(), 1, 41)),
        values_(normal_numbers<Half>(all_numbers(), 1, 42)),
        queries_(normal_numbers<Half>(nodes * query_heads * head_size, 1, 43)),
        out_(queries_.size()),
        lengths_(std::vector<std::int32_t>{length}) {
    std::mt19937 random(44);
    for (std::size_t i = 0; i < nodes; ++i) {
      masks_.push_back(std::uint64_t{1} << i | (i == 0 ? 0 : masks_[random() % i]));
    }
    ancestors_ = DeviceBuffer<std::uint64_t>(masks_);
    page_of_.resize(static_cast<std::size_t>(sets_) * pages());
    std::iota(page_of_.begin(), page_of_.end(), 0);
    for (auto from = page_of_.begin(); from != page_of_.end(); from += pages()) {
      std::shuffle(from, from + pages(), random);
    }
    pages_ = DeviceBuffer<std::int32_t>(page_of_);
    workspace_ =
        DeviceBuffer<std::byte>(cuda::tree_attention_workspace_bytes(1, nodes, length, options));
  }

  [[nodiscard]] int sets() const { return sets_; }
  [[nodiscard]] double bytes() const {
    const double kv = 4.0 * (length_ + nodes) * slot_size;
    return kv + static_cast<double>(queries_.bytes() + out_.bytes());
  }
  [[nodiscard]] double operations() const {
    return 4.0 * nodes * query_heads * head_size * (length_ + nodes);
  }

  void run(int set, cudaStream_t stream) const {
    cuda::tree_attention(queries(), view(set), options, out_.data(), workspace_, stream);
  }

  // Compares 16 pairs of a node and a head with float64.
  void verify() const {
    poison(out_);
    const int set = sets_ - 1;
    run(set, nullptr);
    cuda::check(cudaDeviceSynchronize());
    const auto out = out_.download(), all_queries = queries_.download();
    const auto first  = static_cast<std::ptrdiff_t>(set) * slots_ * slot_size;
    const auto count  = static_cast<std::size_t>(slots_) * slot_size;
    const auto keys   = download(keys_.data() + first, count);
    const auto values = download(values_.data() + first, count);
    std::vector<double> got, expected;
    for (const std::size_t node : {0U, 7U, 31U, 59U}) {
      for (const std::size_t head : {0U, 5U, 17U, 31U}) {
        const std::size_t query = (node * query_heads + head) * head_size;
        const std::size_t group = head / (query_heads / key_heads) * head_size;
        std::vector<double> sums(head_size);
        double total = 0;
        for (int slot = 0; slot < length_ + nodes; ++slot) {
          if (slot >= length_ && (masks_[node] >> (slot - length_) & 1) == 0) continue;
          const std::size_t row = place(set, slot) * slot_size + group;
          double score          = 0;
          for (std::size_t d = 0; d < head_size; ++d) {
            score += number(all_queries[query + d]) * number(keys[row + d]);
          }
          const double weight = std::exp(score * static_cast<double>(options.scale));
          total += weight;
          for (std::size_t d = 0; d < head_size; ++d) sums[d] += weight * number(values[row + d]);
        }
        for (std::size_t d = 0; d < head_size; ++d) {
          got.push_back(number(out[query + d]));
          expected.push_back(sums[d] / total);
        }
      }
    }
    require_close(got, expected, 1e-2, "attention");
  }

 private:
  static double number(Half x) { return static_cast<double>(cuda::to_float(x)); }

  [[nodiscard]] int pages() const { return slots_ / page_size; }
  [[nodiscard]] double kv_bytes() const { return 4.0 * slots_ * slot_size; }
  [[nodiscard]] std::size_t all_numbers() const {
    return static_cast<std::size_t>(sets_) * static_cast<std::size_t>(slots_) * slot_size;
  }
  [[nodiscard]] std::size_t place(int set, int slot) const {
    if (storage_ == Storage::one_piece) return static_cast<std::size_t>(slot);
    const int page = page_of_[static_cast<std::size_t>(set * pages() + slot / page_size)];
    return static_cast<std::size_t>((page - set * pages()) * page_size + slot % page_size);
  }
  [[nodiscard]] cuda::TreeQueries<Half> queries() const {
    return {.queries    = queries_.data(),
            .ancestors  = ancestors_.data(),
            .lengths    = lengths_.data(),
            .sequences  = 1,
            .nodes      = nodes,
            .max_length = length_};
  }
  [[nodiscard]] cuda::KeyValues<Half> view(int set) const {
    if (storage_ == Storage::pages) {
      return {.keys        = keys_.data(),
              .values      = values_.data(),
              .slot_stride = slot_size,
              .head_stride = head_size,
              .page_stride = page_size * slot_size,
              .pages       = pages_.data() + std::ptrdiff_t{set} * pages(),
              .page_size   = page_size,
              .max_pages   = pages()};
    }
    const auto first = std::ptrdiff_t{set} * slots_ * slot_size;
    return {.keys        = keys_.data() + first,
            .values      = values_.data() + first,
            .slot_stride = slot_size,
            .head_stride = head_size,
            .page_stride = std::int64_t{slots_} * slot_size};
  }

  int length_, slots_;
  Storage storage_;
  int sets_;
  DeviceBuffer<Half> keys_, values_;  // [sets, slots, heads, D]
  DeviceBuffer<Half> queries_, out_;  // [N, Hq, D]
  DeviceBuffer<std::int32_t> lengths_;
  DeviceBuffer<std::byte> workspace_;
  std::vector<std::uint64_t> masks_;  // [N]
  DeviceBuffer<std::uint64_t> ancestors_;
  std::vector<std::int32_t> page_of_;  // [sets, slots / page_size]
  DeviceBuffer<std::int32_t> pages_;
};

}  // namespace

void ask_tree_attention(const Setup& setup, Report& report) {
  struct Kind {
    const char* kernel;
    Storage storage;
  };
  const std::vector<int> lengths =
      setup.is_small ? std::vector{0, 333} : std::vector{1024, 2048, 4096, 8192, 16'384, 32'768};
  for (const auto& [kernel, storage] : {Kind{"tree attention", Storage::one_piece},
                                        Kind{"tree attention, pages of 16", Storage::pages}}) {
    for (const int length : lengths) {
      report.attempt(std::string(kernel) + ", " + std::to_string(length), [&] {
        const Task task(setup, length, storage);
        task.verify();
        const auto& c      = setup.ceilings;
        const double bytes = task.bytes() / c.copy_bandwidth;
        const double sums  = c.matmul_rate > 0 ? task.operations() / c.matmul_rate : 0;
        report.add({.kernel  = kernel,
                    .numbers = "BF16",
                    .size    = "L = " + std::to_string(length) + ", N = " + std::to_string(nodes),
                    .timing  = time_calls(setup, task.sets(),
                                          [&](int set, cudaStream_t s) { task.run(set, s); }),
                    .floor   = std::max(bytes, sums),
                    .requirement = !setup.is_small && length >= 8192 ? Requirement::tree_attention
                                                                     : Requirement::none});
      });
    }
  }
}

}  // namespace cuda_benchmark
