// Libraries that compute the same results, or parts of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <tooldecode/cuda/device_buffer.cuh>

namespace cuda_benchmark {

// cuBLAS, if it was found at build time.
class Cublas {
 public:
  static bool is_available();
  static std::string version();

  Cublas();
  Cublas(const Cublas&)            = delete;
  Cublas& operator=(const Cublas&) = delete;
  ~Cublas();

  // logits [states, rows] = hidden [states, width] weights [rows, width]^T, F32 sums.
  struct Product {
    int states, rows, width;
  };
  template <class T>
  void multiply(const T* weights, const T* hidden, float* logits, Product size,
                cudaStream_t stream);

  // c = a b, all [size, size] in BF16.
  void multiply_square(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int size,
                       cudaStream_t stream);

 private:
  void use(cudaStream_t stream);

  void* handle_ = nullptr;
  tooldecode::cuda::DeviceBuffer<std::byte> workspace_;
};

// CUB's sort of rows, keys descending with their indices: the first k of a row are its top k.
class CubSort {
 public:
  static std::string version();

  CubSort(int rows, int columns);

  void operator()(const float* keys, cudaStream_t stream);
  // The columns of a row's k greatest keys.
  [[nodiscard]] std::vector<std::int32_t> best(int row, int k) const;

 private:
  cudaError_t sort(void* scratch, std::size_t& bytes, const float* keys, cudaStream_t stream);

  int rows_, columns_;
  tooldecode::cuda::DeviceBuffer<float> sorted_;                      // [rows, columns]
  tooldecode::cuda::DeviceBuffer<std::int32_t> indices_, positions_;  // [rows, columns]
  tooldecode::cuda::DeviceBuffer<std::int32_t> offsets_;              // [rows + 1]
  tooldecode::cuda::DeviceBuffer<std::byte> scratch_;
};

class CubArgMax {
 public:
  struct State;

  CubArgMax(int rows, int columns);
  ~CubArgMax();

  void operator()(const float* logits, cudaStream_t stream);
  // [rows] the column of the greatest value
  [[nodiscard]] std::vector<std::int32_t> columns() const;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace cuda_benchmark
