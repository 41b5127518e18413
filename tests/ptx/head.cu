// The kernels of the pruned head that the referee runs.
#include <tooldecode/cuda/pruned_head.cuh>

namespace tooldecode::cuda::detail {

extern "C" {
__device__ unsigned long long rows_shared_bytes  = sizeof(BlockTopK<head_warps>::Storage);
__device__ unsigned long long lists_shared_bytes = sizeof(MergeListsShared);
}

template __global__ void multiply_rows<__half, 4>(HeadList<__half>, const __half*, int, HeadOutput);
template __global__ void multiply_tiles<__nv_bfloat16, 2>(HeadList<__nv_bfloat16>,
                                                          const __nv_bfloat16*, int, HeadOutput,
                                                          HeadTiling);
template __global__ void merge_head_lists<merge_lists_threads>(HeadOutput, TopTokensView);

}  // namespace tooldecode::cuda::detail
