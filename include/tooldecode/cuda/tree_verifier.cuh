/// \file
/// verify_trees: which path of each draft tree is accepted, decided on the device.
#pragma once

#include <cstdint>
#include <type_traits>

#include <cuda_runtime.h>

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/draft_tree.cuh>
#include <tooldecode/cuda/warp.cuh>

namespace tooldecode::cuda {

/// The verification result of one draft tree; one copy brings those of a batch to the host.
struct TreeVerdict {
  std::int32_t accepted;         ///< nodes of the path
  std::int32_t kept;             ///< slots of the cache that stay: the root's and the path's
  std::int32_t emitted;          ///< tokens: the path's and the one after it
  std::int32_t path[max_nodes];  ///< accepted nodes, ascending, without the root; then -1
  TokenId tokens[max_nodes];     ///< tokens[accepted] is -1 if nothing is allowed; then -1
};
static_assert(std::is_trivially_copyable_v<TreeVerdict>);

namespace detail {

/// One warp per tree, two nodes per lane.
template <int lanes>
__global__ void verify_trees_kernel(DraftTreeView tree, const TokenId* choices,
                                    TreeVerdict* verdicts) {
  const int sequence         = static_cast<int>(blockIdx.x);
  const std::int64_t from    = std::int64_t{sequence} * max_nodes;
  const int lane             = lane_index();
  const int size             = tree.sizes[sequence];
  TreeVerdict& verdict       = verdicts[sequence];
  const TokenId* const drawn = choices + from;

  std::uint64_t ancestors[2] = {};
  TokenId tokens[2]          = {-1, -1};
  std::uint64_t correct      = 0;
  for (int half = 0; half < 2; ++half) {
    const int node = half * lanes + lane;
    bool is_so     = false;
    if (node < size) {
      ancestors[half] = tree.ancestors[from + node];
      tokens[half]    = tree.tokens[from + node];
      is_so           = node == 0 || tokens[half] == drawn[tree.parents[from + node]];
    }
    correct |= std::uint64_t{__ballot_sync(whole_warp, is_so ? 1 : 0)} << half * lanes;
  }
  // Siblings differ, so at most one of them is correct: the accepted nodes form a path.
  std::uint64_t path = 0;
  for (int half = 0; half < 2; ++half) {
    const int node   = half * lanes + lane;
    const bool is_so = node < size && (correct & ancestors[half]) == ancestors[half];
    path |= std::uint64_t{__ballot_sync(whole_warp, is_so ? 1 : 0)} << half * lanes;
  }

  const int kept     = __popcll(path);
  const int accepted = kept == 0 ? 0 : kept - 1;
  const TokenId next = kept == 0 ? -1 : drawn[63 - __clzll(static_cast<long long>(path))];
  for (int half = 0; half < 2; ++half) {
    const int node = half * lanes + lane;
    if (node > 0 && (path >> node & 1) != 0) {
      const int place       = __popcll(path & ((std::uint64_t{1} << node) - 1)) - 1;
      verdict.path[place]   = node;
      verdict.tokens[place] = tokens[half];
    }
    if (node >= accepted) {
      verdict.path[node]   = -1;
      verdict.tokens[node] = node == accepted ? next : -1;
    }
  }
  if (lane == 0) {
    verdict.accepted = accepted;
    verdict.kept     = kept;
    verdict.emitted  = accepted + (next >= 0 ? 1 : 0);
  }
}

}  // namespace detail

/// Follows, in each tree, the tokens drawn after its nodes as long as a child holds them: the
/// host's `TreeVerifier<GumbelCoupling>`.
///
/// \param choices  the token drawn after each node, at the node's position + 1; -1 if nothing is
///         allowed; not read past a tree's size
/// \par Shapes      choices [B, 64]; verdicts [B]
/// \par Complexity  one launch of a warp per tree; O(1)
/// \par Threads     may run concurrently
/// \par Errors      Error{shape_mismatch} for null pointers, {invalid_option} for a negative number
///                  of sequences
/// \par Source      the masks are those of Zhao et al., FR-Spec, arXiv:2502.14856
inline void verify_trees(const DraftTreeView& tree, const TokenId* choices, TreeVerdict* verdicts,
                         int sequences, cudaStream_t stream) {
  if (sequences < 0) throw Error(Errc::invalid_option, "sequences", sequences, "must be 0 or more");
  if (sequences == 0) return;
  if (tree.tokens == nullptr || tree.parents == nullptr || tree.ancestors == nullptr ||
      tree.sizes == nullptr) {
    throw Error(Errc::shape_mismatch, "tree", "must not be null");
  }
  if (choices == nullptr) throw Error(Errc::shape_mismatch, "choices", "must not be null");
  if (verdicts == nullptr) throw Error(Errc::shape_mismatch, "verdicts", "must not be null");
  launch(detail::verify_trees_kernel<warp_size>,
         {.grid = static_cast<unsigned>(sequences), .block = warp_size}, stream, tree, choices,
         verdicts);
}

}  // namespace tooldecode::cuda
