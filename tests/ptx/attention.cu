// The kernels of tree attention that the referee runs.
#include <tooldecode/cuda/tree_attention.cuh>

namespace tooldecode::cuda::detail {

template __global__ void attend_tree<__half, 96>(TreeAttentionTask<__half>, int);
template __global__ void attend_tree_by_warpgroups<__nv_bfloat16, 64>(
    TreeAttentionTask<__nv_bfloat16>);
template __global__ void attend_tree_by_warpgroups<__half, 128>(TreeAttentionTask<__half>);
template __global__ void merge_parts<__nv_bfloat16>(AttentionParts, __nv_bfloat16*);

}  // namespace tooldecode::cuda::detail
