// The kernels as a library of C functions on raw pointers and a stream, for peers.py. Each returns
// 0, or prints what went wrong and returns 1.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>

#include <tooldecode/cuda/masked_softmax.cuh>
#include <tooldecode/cuda/pruned_head.cuh>
#include <tooldecode/cuda/tree_attention.cuh>

namespace cuda_benchmark {

namespace {

namespace cuda = tooldecode::cuda;
using Half     = __nv_bfloat16;
using tooldecode::TokenId;

template <class Work>
int guarded(Work work) {
  try {
    work();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

cuda::SamplingOptions sampling(float temperature, int top_k, float top_p) {
  return {.temperature = temperature, .top_k = top_k, .top_p = top_p};
}

cuda::TreeAttentionOptions attention_options(int query_heads, int key_heads, int head_size,
                                             float scale) {
  return {
      .query_heads = query_heads, .key_heads = key_heads, .head_size = head_size, .scale = scale};
}

cuda::TreeQueries<Half> tree_queries(const Half* queries, const std::uint64_t* ancestors,
                                     const std::int32_t* lengths, int nodes, int max_length) {
  return {.queries    = queries,
          .ancestors  = ancestors,
          .lengths    = lengths,
          .sequences  = 1,
          .nodes      = nodes,
          .max_length = max_length};
}

}  // namespace

extern "C" {

// ---- pruned head, BF16: weights [rows, width], hidden [states, width]

int td_fill_logits(const Half* weights, int rows, int width, const Half* hidden, int states,
                   float* logits, cudaStream_t stream) {
  return guarded([&] {
    cuda::fill_logits<Half>({.weights = weights, .rows = rows, .hidden_size = width}, hidden,
                            states, logits, stream);
  });
}

std::size_t td_project_topk_bytes(int states, int rows, int k) {
  return cuda::pruned_head_workspace_bytes(states, rows, k);
}

int td_project_topk(const Half* weights, int rows, int width, const Half* hidden, int states, int k,
                    TokenId* tokens, float* logits, float* log_sum_exp, void* workspace,
                    std::size_t bytes, cudaStream_t stream) {
  return guarded([&] {
    cuda::project_topk<Half>({.weights = weights, .rows = rows, .hidden_size = width}, hidden,
                             states, nullptr, 0, k, {tokens, logits, log_sum_exp},
                             {workspace, bytes}, stream);
  });
}

// ---- masked softmax: logits [rows, vocabulary], mask [rows, ceil(vocabulary / 32)]

std::size_t td_masked_softmax_bytes(int rows, int vocabulary) {
  return cuda::masked_softmax_workspace_bytes(rows, vocabulary);
}

int td_masked_softmax_f32(const float* logits, const std::uint32_t* mask, int rows, int vocabulary,
                          float* probabilities, void* workspace, std::size_t bytes,
                          cudaStream_t stream) {
  return guarded([&] {
    cuda::fill_masked_softmax<float>(
        {.logits = logits, .rows = rows, .vocabulary = vocabulary, .mask = mask}, {}, probabilities,
        nullptr, {workspace, bytes}, stream);
  });
}

int td_masked_softmax_bf16(const Half* logits, const std::uint32_t* mask, int rows, int vocabulary,
                           float* probabilities, void* workspace, std::size_t bytes,
                           cudaStream_t stream) {
  return guarded([&] {
    cuda::fill_masked_softmax<Half>(
        {.logits = logits, .rows = rows, .vocabulary = vocabulary, .mask = mask}, {}, probabilities,
        nullptr, {workspace, bytes}, stream);
  });
}

// positions [rows] may be null at temperature 0
int td_find_tokens_f32(const float* logits, const std::uint32_t* mask, int rows, int vocabulary,
                       float temperature, int top_k, float top_p, std::uint64_t seed,
                       const std::int64_t* positions, TokenId* tokens, void* workspace,
                       std::size_t bytes, cudaStream_t stream) {
  return guarded([&] {
    cuda::find_tokens<float>(
        {.logits = logits, .rows = rows, .vocabulary = vocabulary, .mask = mask},
        sampling(temperature, top_k, top_p), {.seed = seed, .positions = positions}, tokens,
        {workspace, bytes}, stream);
  });
}

// ---- tree attention, BF16, one sequence: queries [nodes, query_heads, head_size], keys and values
// [slots, key_heads, head_size]

std::size_t td_tree_attention_bytes(int nodes, int max_length, int query_heads, int key_heads,
                                    int head_size) {
  return cuda::tree_attention_workspace_bytes(
      1, nodes, max_length, attention_options(query_heads, key_heads, head_size, 1));
}

int td_tree_attention(const Half* queries, const std::uint64_t* ancestors,
                      const std::int32_t* lengths, int nodes, int max_length, Half* keys,
                      Half* values, int query_heads, int key_heads, int head_size, float scale,
                      Half* out, void* workspace, std::size_t bytes, cudaStream_t stream) {
  return guarded([&] {
    const cuda::KeyValues<Half> cache{.keys        = keys,
                                      .values      = values,
                                      .slot_stride = std::int64_t{key_heads} * head_size,
                                      .head_stride = head_size};
    cuda::tree_attention<Half>(tree_queries(queries, ancestors, lengths, nodes, max_length), cache,
                               attention_options(query_heads, key_heads, head_size, scale), out,
                               {workspace, bytes}, stream);
  });
}

}  // extern "C"

}  // namespace cuda_benchmark
