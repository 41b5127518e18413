#include <string>
#include <vector>

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_segmented_radix_sort.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <cub/version.cuh>

#include "data.cuh"
#include "peers.hpp"

namespace cuda_benchmark {

using tooldecode::cuda::check;

namespace {

DeviceBuffer<std::int32_t> row_offsets(int rows, int columns) {
  std::vector<std::int32_t> offsets;
  for (int row = 0; row <= rows; ++row) offsets.push_back(row * columns);
  return DeviceBuffer<std::int32_t>(offsets);
}

}  // namespace

std::string CubSort::version() {
  return std::to_string(CUB_MAJOR_VERSION) + "." + std::to_string(CUB_MINOR_VERSION) + "." +
         std::to_string(CUB_SUBMINOR_VERSION);
}

CubSort::CubSort(int rows, int columns)
    : rows_(rows),
      columns_(columns),
      sorted_(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns)),
      positions_(sorted_.size()),
      offsets_(row_offsets(rows, columns)) {
  std::vector<std::int32_t> indices(sorted_.size());
  for (std::size_t i = 0; i < indices.size(); ++i) {
    indices[i] = static_cast<std::int32_t>(i % static_cast<std::size_t>(columns));
  }
  indices_          = DeviceBuffer<std::int32_t>(indices);
  std::size_t bytes = 0;
  check(sort(nullptr, bytes, nullptr, nullptr));
  scratch_ = DeviceBuffer<std::byte>(bytes);
}

// A single row is sorted by the whole device; of several rows, one block sorts each.
cudaError_t CubSort::sort(void* scratch, std::size_t& bytes, const float* keys,
                          cudaStream_t stream) {
  constexpr int bits = 32;
  if (rows_ == 1) {
    return cub::DeviceRadixSort::SortPairsDescending(scratch, bytes, keys, sorted_.data(),
                                                     indices_.data(), positions_.data(), columns_,
                                                     0, bits, stream);
  }
  return cub::DeviceSegmentedRadixSort::SortPairsDescending(
      scratch, bytes, keys, sorted_.data(), indices_.data(), positions_.data(), rows_ * columns_,
      rows_, offsets_.data(), offsets_.data() + 1, 0, bits, stream);
}

void CubSort::operator()(const float* keys, cudaStream_t stream) {
  std::size_t bytes = scratch_.bytes();
  check(sort(scratch_.data(), bytes, keys, stream));
}

std::vector<std::int32_t> CubSort::best(int row, int k) const {
  return download(positions_.data() + static_cast<std::ptrdiff_t>(row) * columns_,
                  static_cast<std::size_t>(k));
}

struct CubArgMax::State {
  using Best = cub::KeyValuePair<int, float>;

  State(int rows_, int columns)
      : rows(rows_), offsets(row_offsets(rows_, columns)), best(static_cast<std::size_t>(rows_)) {
    std::size_t bytes = 0;
    check(run(nullptr, bytes, nullptr, nullptr));
    scratch = DeviceBuffer<std::byte>(bytes);
  }
  cudaError_t run(void* memory, std::size_t& bytes, const float* logits, cudaStream_t stream) {
    return cub::DeviceSegmentedReduce::ArgMax(memory, bytes, logits, best.data(), rows,
                                              offsets.data(), offsets.data() + 1, stream);
  }

  int rows;
  DeviceBuffer<std::int32_t> offsets;  // [rows + 1]
  DeviceBuffer<Best> best;             // [rows]
  DeviceBuffer<std::byte> scratch;
};

CubArgMax::CubArgMax(int rows, int columns) : state_(std::make_unique<State>(rows, columns)) {}
CubArgMax::~CubArgMax() = default;

void CubArgMax::operator()(const float* logits, cudaStream_t stream) {
  std::size_t bytes = state_->scratch.bytes();
  check(state_->run(state_->scratch.data(), bytes, logits, stream));
}

std::vector<std::int32_t> CubArgMax::columns() const {
  std::vector<std::int32_t> columns;
  for (const State::Best& best : state_->best.download()) columns.push_back(best.key);
  return columns;
}

}  // namespace cuda_benchmark
