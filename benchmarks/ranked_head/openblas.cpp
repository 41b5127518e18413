#include <string>
#include <vector>

#include "contender.hpp"

#ifdef TOOLDECODE_HAS_OPENBLAS

// From its cblas.h, whose path differs between systems; its enumerators are ints.
extern "C" {
void openblas_set_num_threads(int);
char* openblas_get_config();
void cblas_sgemv(int order, int transposed, int rows, int columns, float alpha, const float* a,
                 int a_stride, const float* x, int x_step, float beta, float* y, int y_step);
void cblas_sgemm(int order, int a_transposed, int b_transposed, int m, int n, int k, float alpha,
                 const float* a, int a_stride, const float* b, int b_stride, float beta, float* c,
                 int c_stride);
}

namespace ranked_head {

// F32 only: distributions build it without BF16 products.
std::vector<Contender> openblas_contenders(const Task& task) {
  if (task.floats.empty()) return {};
  constexpr int row_major = 101, plain = 111, transposed = 112;
  openblas_set_num_threads(1);
  const auto rows   = static_cast<int>(task.rows());
  const auto width  = static_cast<int>(task.width());
  const auto states = static_cast<int>(task.states());
  return {{"OpenBLAS", 4, [=, &task](std::span<float> logits) {
             if (states == 1) {
               cblas_sgemv(row_major, plain, rows, width, 1, task.floats.data(), width,
                           task.hidden.data(), 1, 0, logits.data(), 1);
             } else {
               cblas_sgemm(row_major, plain, transposed, states, rows, width, 1, task.hidden.data(),
                           width, task.floats.data(), width, 0, logits.data(), rows);
             }
           }}};
}

std::string openblas_version() {
  return openblas_get_config();
}

}  // namespace ranked_head

#else

namespace ranked_head {

std::vector<Contender> openblas_contenders(const Task&) {
  return {};
}
std::string openblas_version() {
  return {};
}

}  // namespace ranked_head

#endif
