// The kernels of the pruned head that the referee runs.
#include <tooldecode/cuda/pruned_head.cuh>

namespace tooldecode::cuda::detail {

extern "C" {
__device__ unsigned long long rows_shared_bytes  = sizeof(BlockTopK<head_warps>::Storage);
__device__ unsigned long long lists_shared_bytes = sizeof(MergeListsShared);
__device__ unsigned long long counts_shared_bytes =
    sizeof(BlockFold<int, allowed_threads>::Storage);
}

template __global__ void multiply_rows<__half, 4>(HeadList<__half>, const __half*, int, HeadOutput);
template __global__ void multiply_tiles<__nv_bfloat16, 2>(HeadList<__nv_bfloat16>,
                                                          const __nv_bfloat16*, int, HeadOutput,
                                                          HeadTiling);
template __global__ void note_ranked_rows<__nv_bfloat16>(HeadList<__nv_bfloat16>, GivenMasks,
                                                         AllowedRows);
template __global__ void unite_allowed<allowed_threads>(GivenMasks, AllowedRows);
template __global__ void list_allowed<allowed_threads>(AllowedRows);
template __global__ void note_used_rows<__nv_bfloat16>(HeadList<__nv_bfloat16>, GivenMasks, int,
                                                       std::uint32_t*);
template __global__ void merge_head_lists<merge_lists_threads>(HeadOutput, TopTokensView);

}  // namespace tooldecode::cuda::detail
