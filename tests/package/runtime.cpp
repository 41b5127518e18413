// tooldecode::cuda brings the toolkit's headers and its runtime.
#include <iostream>

#include <cuda_runtime_api.h>

#include <tooldecode/version.hpp>

int main() {
  int version = 0;
  if (cudaRuntimeGetVersion(&version) != cudaSuccess) return 1;
  std::cout << "tooldecode " << tooldecode::version << ", CUDA runtime " << version << '\n';
}
