/// \file
/// FrequencyRanksView, and building ranks on the device from token counts.
#pragma once

#include <cstdint>

#include <cuda_runtime.h>
#include <thrust/execution_policy.h>
#include <thrust/fill.h>
#include <thrust/functional.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/permutation_iterator.h>
#include <thrust/scan.h>
#include <thrust/scatter.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/transform.h>

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>

namespace tooldecode::cuda {

/// A vocabulary sorted by token frequency: the contents of the host's FrequencyRanks.
///
/// The first K ids are the `tokens` of a HeadRows of K rows.
///
/// \par Shapes      as below
struct FrequencyRanksView {
  TokenId* ids                  = nullptr;  ///< [V] by rank
  std::uint32_t* ranks          = nullptr;  ///< [V] by token
  std::uint64_t* running_counts = nullptr;  ///< [V + 1] occurrences of the first k tokens
};

namespace detail {

/// The sort key of ranks, greatest first. The sort is stable, so ids ascend among equal keys.
struct RankKey {
  const std::uint64_t* counts;
  const std::uint8_t* always;

  [[nodiscard]] __host__ __device__ std::uint64_t operator()(TokenId token) const {
    return always != nullptr && always[token] != 0 ? ~std::uint64_t{0} : counts[token];
  }
};

}  // namespace detail

/// Ranks all tokens: first those of `always` by id, then the others by count, and equal counts by
/// id.
///
/// \param policy  Thrust's, such as thrust::cuda::par.on(stream); it says in which memory the
///         arrays lie
/// \param counts  occurrences by token; their sum is below 2^64 - 1
/// \param always  not 0 for tokens that rank first whatever their count; may be null
/// \par Shapes      counts [V]; always [V]; ranks as its members say
/// \par Complexity  O(V), plus the temporary memory of Thrust's sort
/// \par Threads     as the policy; it may wait for the device
/// \par Errors      Error{invalid_option} for a negative number of tokens, {shape_mismatch} for
///                  null pointers; what Thrust throws
/// \par Source      Zhao et al., FR-Spec, arXiv:2502.14856, section 3
template <class Policy>
void fill_frequency_ranks(const Policy& policy, const std::uint64_t* counts,
                          const std::uint8_t* always, int vocabulary,
                          const FrequencyRanksView& ranks) {
  if (vocabulary < 0)
    throw Error(Errc::invalid_option, "vocabulary", vocabulary, "must be 0 or more");
  if (ranks.running_counts == nullptr || (vocabulary > 0 && ranks.ids == nullptr) ||
      (vocabulary > 0 && ranks.ranks == nullptr)) {
    throw Error(Errc::shape_mismatch, "ranks", "must not be null");
  }
  if (vocabulary > 0 && counts == nullptr) {
    throw Error(Errc::shape_mismatch, "counts", "must not be null");
  }
  TokenId* const end = ranks.ids + vocabulary;
  thrust::sequence(policy, ranks.ids, end);
  std::uint64_t* const keys = ranks.running_counts;  // scratch until the counts are written
  thrust::transform(policy, ranks.ids, end, keys, detail::RankKey{counts, always});
  thrust::stable_sort_by_key(policy, keys, keys + vocabulary, ranks.ids,
                             thrust::greater<std::uint64_t>());
  const thrust::counting_iterator<std::uint32_t> rank(0);
  thrust::scatter(policy, rank, rank + vocabulary, ranks.ids, ranks.ranks);
  const auto by_rank = thrust::make_permutation_iterator(counts, ranks.ids);
  thrust::fill_n(policy, ranks.running_counts, 1, std::uint64_t{0});
  thrust::inclusive_scan(policy, by_rank, by_rank + vocabulary, ranks.running_counts + 1);
}

}  // namespace tooldecode::cuda
