#include <stdexcept>
#include <string>
#include <type_traits>

#include "peers.hpp"

#ifdef TOOLDECODE_HAS_CUBLAS

#include <cublas_v2.h>

namespace cuda_benchmark {

namespace {

void check_cublas(cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw std::runtime_error("cuBLAS: status " + std::to_string(static_cast<int>(status)));
}

constexpr std::size_t workspace_bytes = std::size_t{32} << 20;  // as cuBLAS chooses here

}  // namespace

bool Cublas::is_available() {
  return true;
}
std::string Cublas::version() {
  std::string text;
  for (const auto part : {MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL}) {
    int number = 0;
    check_cublas(cublasGetProperty(part, &number));
    if (!text.empty()) text += '.';
    text += std::to_string(number);
  }
  return text;
}

Cublas::Cublas() : workspace_(workspace_bytes) {
  cublasHandle_t handle = nullptr;
  check_cublas(cublasCreate(&handle));
  handle_ = handle;
}
Cublas::~Cublas() {
  cublasDestroy(static_cast<cublasHandle_t>(handle_));
}

// Replays of a graph must not share the memory that cuBLAS allocates itself.
void Cublas::use(cudaStream_t stream) {
  const auto handle = static_cast<cublasHandle_t>(handle_);
  check_cublas(cublasSetStream(handle, stream));
  check_cublas(cublasSetWorkspace(handle, workspace_.data(), workspace_.bytes()));
}

template <class T>
void Cublas::multiply(const T* weights, const T* hidden, float* logits, Product size,
                      cudaStream_t stream) {
  constexpr auto type = std::is_same_v<T, __half> ? CUDA_R_16F : CUDA_R_16BF;
  const float one = 1, zero = 0;
  use(stream);
  check_cublas(cublasGemmEx(static_cast<cublasHandle_t>(handle_), CUBLAS_OP_T, CUBLAS_OP_N,
                            size.rows, size.states, size.width, &one, weights, type, size.width,
                            hidden, type, size.width, &zero, logits, CUDA_R_32F, size.rows,
                            CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
}
template void Cublas::multiply(const __half*, const __half*, float*, Product, cudaStream_t);
template void Cublas::multiply(const __nv_bfloat16*, const __nv_bfloat16*, float*, Product,
                               cudaStream_t);

void Cublas::multiply_square(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c,
                             int size, cudaStream_t stream) {
  const float one = 1, zero = 0;
  use(stream);
  check_cublas(cublasGemmEx(static_cast<cublasHandle_t>(handle_), CUBLAS_OP_N, CUBLAS_OP_N, size,
                            size, size, &one, a, CUDA_R_16BF, size, b, CUDA_R_16BF, size, &zero, c,
                            CUDA_R_16BF, size, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
}

}  // namespace cuda_benchmark

#else

namespace cuda_benchmark {

bool Cublas::is_available() {
  return false;
}
std::string Cublas::version() {
  return "none";
}
Cublas::Cublas() {
  throw std::runtime_error("cuBLAS was not found when this was built");
}
Cublas::~Cublas() = default;
template <class T>
void Cublas::multiply(const T*, const T*, float*, Product, cudaStream_t) {}
template void Cublas::multiply(const __half*, const __half*, float*, Product, cudaStream_t);
template void Cublas::multiply(const __nv_bfloat16*, const __nv_bfloat16*, float*, Product,
                               cudaStream_t);
void Cublas::multiply_square(const __nv_bfloat16*, const __nv_bfloat16*, __nv_bfloat16*, int,
                             cudaStream_t) {}

}  // namespace cuda_benchmark

#endif
