// The kernels of masked softmax and of draws that the referee runs.
#include <tooldecode/cuda/masked_softmax.cuh>

namespace tooldecode::cuda::detail {

extern "C" {
__device__ unsigned long long cluster_shared_bytes = sizeof(SoftmaxClusterShape<false>::Shared);
__device__ unsigned long long aligned_shared_bytes =
    sizeof(AlignedSoftmaxShape<float, false>::Shared);
__device__ unsigned long long wide_shared_bytes =
    sizeof(AlignedSoftmaxShape<__nv_bfloat16, true>::Shared);
__device__ unsigned long long choice_shared_bytes = sizeof(ChoiceShared);
__device__ unsigned long long search_shared_bytes = cut_shared_bytes;
}

template __global__ void softmax_cluster_kernel<float, false, false>(LogitsRows<float>, float,
                                                                     const std::uint64_t*,
                                                                     SoftmaxClusterPlan, float*,
                                                                     std::int32_t*);
template __global__ void softmax_cluster_kernel<__nv_bfloat16, false, false>(
    LogitsRows<__nv_bfloat16>, float, const std::uint64_t*, SoftmaxClusterPlan, float*,
    std::int32_t*);
template __global__ void aligned_softmax_kernel<float, false>(LogitsRows<float>, float,
                                                              SoftmaxClusterPlan, int, float*,
                                                              std::int32_t*);
template __global__ void aligned_softmax_kernel<__nv_bfloat16, false>(LogitsRows<__nv_bfloat16>,
                                                                      float, SoftmaxClusterPlan,
                                                                      int, float*, std::int32_t*);
template __global__ void aligned_softmax_kernel<__nv_bfloat16, true>(LogitsRows<__nv_bfloat16>,
                                                                     float, SoftmaxClusterPlan, int,
                                                                     float*, std::int32_t*);
template __global__ void find_tokens_kernel<float, false>(LogitsRows<float>, float, NoiseRows,
                                                          NoiseKeys, SoftmaxParts, TokenId*);
template __global__ void cut_rows_kernel<float, true>(LogitsRows<float>, CutOptions, SearchPlan,
                                                      std::uint64_t*, NoiseRows, NoiseKeys,
                                                      TokenId*);

}  // namespace tooldecode::cuda::detail
