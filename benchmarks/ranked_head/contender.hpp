// The input of every contender, and the parts of the table.
#pragma once

#include <cstddef>
#include <ctime>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <Eigen/Core>

#include <tooldecode/draft/frequency_ranked_head.hpp>
#include <tooldecode/model/eigen_views.hpp>
#include <tooldecode/model/row_weight.hpp>

namespace ranked_head {

using Half = Eigen::bfloat16;
template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using MapOf = Eigen::Map<const Matrix<T>>;

// K gathered rows of a head: in BF16, rounded to 8 bits, and in F32 if it is small enough.
struct Task {
  const tooldecode::FrequencyRankedHead& ranked;    // contiguous
  const tooldecode::FrequencyRankedHead& in_place;  // the same rows scattered over [V, H]
  const tooldecode::FrequencyRankedHead& rounded;
  std::span<const float> floats;  // [K, H] or empty
  std::span<const float> hidden;  // [n, H]

  [[nodiscard]] std::size_t rows() const { return ranked.size(); }
  [[nodiscard]] std::size_t width() const { return ranked.hidden_size(); }
  [[nodiscard]] std::size_t states() const { return hidden.size() / width(); }
};

// One way to compute the logits [n, K].
struct Contender {
  std::string name;
  std::size_t bytes_per_weight;
  std::function<void(std::span<float> logits)> run;
};

// Each returns its contenders for a task; none if it cannot do the task.
std::vector<Contender> tooldecode_contenders(const Task& task);
std::vector<Contender> eigen_contenders(const Task& task);
std::vector<Contender> openblas_contenders(const Task& task);
// OpenBLAS's description of itself; empty if it was not found.
std::string openblas_version();

// Seconds of processor time, which other processes affect little.
template <class Run>
double seconds_of(Run run) {
  const std::clock_t start = std::clock();
  run();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

// Seconds that the fastest of several loops takes to read some memory: the floor.
double seconds_to_read(std::span<const std::byte> memory);

}  // namespace ranked_head
