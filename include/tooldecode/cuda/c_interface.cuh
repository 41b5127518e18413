/// \file
/// Defines the functions of tooldecode_cuda.h. Include it in exactly one file of a program or
/// library, usually that of the CMake target tooldecode::cuda_c.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <cuda_runtime.h>

#include <tooldecode/adapters/c_errors.hpp>
#include <tooldecode/adapters/tooldecode_cuda.h>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/cuda/compact_cache.cuh>
#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/key_values.cuh>
#include <tooldecode/cuda/logits_rows.cuh>
#include <tooldecode/cuda/masked_softmax.cuh>
#include <tooldecode/cuda/number.cuh>
#include <tooldecode/cuda/pruned_head.cuh>
#include <tooldecode/cuda/tree_attention.cuh>
#include <tooldecode/cuda/tree_verifier.cuh>

static_assert(std::is_same_v<tooldecode::TokenId, std::int32_t>);
static_assert(TD_CUDA_MAX_NODES == tooldecode::cuda::max_nodes);
static_assert(sizeof(td_cuda_verdict) == sizeof(tooldecode::cuda::TreeVerdict) &&
              offsetof(td_cuda_verdict, kept) == offsetof(tooldecode::cuda::TreeVerdict, kept) &&
              offsetof(td_cuda_verdict, emitted) ==
                  offsetof(tooldecode::cuda::TreeVerdict, emitted) &&
              offsetof(td_cuda_verdict, path) == offsetof(tooldecode::cuda::TreeVerdict, path) &&
              offsetof(td_cuda_verdict, tokens) == offsetof(tooldecode::cuda::TreeVerdict, tokens));

/// See tooldecode_cuda.h.
struct td_cuda_tree_attention {
  td_cuda_tree_attention_shape shape;
  tooldecode::cuda::TreeAttentionOptions options;
  int device;
  tooldecode::cuda::detail::AttentionPlan plan;  // if the shape is not empty
};

namespace tooldecode::c_interface {

/// The last error of this thread.
inline Failure& last_cuda_failure() noexcept {
  thread_local Failure failure{.code = TD_OK, .where = {}, .text = {}};
  return failure;
}

/// Runs the body and converts exceptions to a code.
template <class Body>
td_code call_cuda(const Body& body) noexcept {
  Failure& last = last_cuda_failure();
  try {
    try {
      body();
      return TD_OK;
    } catch (...) {
      last = current_failure();
    }
  } catch (...) {  // out of memory: no text
    last.code = TD_ERROR_OUT_OF_MEMORY;
    last.where.clear();
    last.text.clear();
  }
  return last.code;
}

/// Calls `body(std::type_identity<T>)` with the type of two bytes that a caller names.
template <class Body>
void with_half_type(std::int32_t dtype, const Body& body) {
  switch (dtype) {
    case TD_CUDA_F16:
      return body(std::type_identity<__half>{});
    case TD_CUDA_BF16:
      return body(std::type_identity<__nv_bfloat16>{});
    default:
      throw Error(Errc::invalid_option, "dtype", dtype, "must be TD_CUDA_F16 or TD_CUDA_BF16");
  }
}
/// The same with each type.
template <class Body>
void with_type(std::int32_t dtype, const Body& body) {
  switch (dtype) {
    case TD_CUDA_F32:
      return body(std::type_identity<float>{});
    case TD_CUDA_F16:
    case TD_CUDA_BF16:
      return with_half_type(dtype, body);
    default:
      throw Error(Errc::invalid_option, "dtype", dtype,
                  "must be TD_CUDA_F32, TD_CUDA_F16 or TD_CUDA_BF16");
  }
}

/// A caller's stream.
inline cudaStream_t stream_of(void* stream) noexcept {
  return static_cast<cudaStream_t>(stream);
}

/// Neighbouring rows that are sampled alike.
struct SamplingRun {
  int first, rows;
  cuda::SamplingOptions options;
  std::uint64_t seed;

  [[nodiscard]] bool is_like(const SamplingRun& other) const {
    return seed == other.seed && options.temperature == other.options.temperature &&
           options.top_k == other.options.top_k && options.top_p == other.options.top_p &&
           options.min_p == other.options.min_p;
  }
};

/// The runs of a batch, in order; all have been checked. What makes no difference is left out, so
/// that runs are long: seeds unless tokens are drawn, and with temperature 0 the cuts too, which
/// keep the best token.
inline std::vector<SamplingRun> sampling_runs(const td_cuda_logits& from, bool is_choice) {
  const td_cuda_sampling zeros{};
  const bool is_per_row = from.sampling != nullptr && from.sampling_count != 1;
  if (is_per_row && from.sampling_count != static_cast<std::size_t>(from.rows)) {
    throw Error(Errc::shape_mismatch, "sampling_count", from.sampling_count,
                "must be 1, or the " + std::to_string(from.rows) + " rows");
  }
  std::vector<SamplingRun> runs;
  const int rows_each = is_per_row ? 1 : from.rows;
  for (int row = 0; row < from.rows; row += rows_each) {
    const td_cuda_sampling& one = from.sampling == nullptr ? zeros : from.sampling[row];
    SamplingRun run{.first   = row,
                    .rows    = rows_each,
                    .options = {.temperature = one.temperature,
                                .top_k       = one.top_k,
                                .top_p       = one.top_p == 0 ? 1 : one.top_p,
                                .min_p       = one.min_p},
                    .seed    = is_choice ? one.seed : 0};
    run.options.require_valid();
    if (is_choice && one.temperature == 0) {
      run.options = {.temperature = 0};
      run.seed    = 0;
    }
    if (!runs.empty() && runs.back().is_like(run)) {
      ++runs.back().rows;
    } else {
      runs.push_back(run);
    }
  }
  return runs;
}

/// Calls `launch(rows, run)` with the rows of each run, after what can be checked for all of them.
template <cuda::Number T, class Launch>
void for_each_sampling_run(const td_cuda_logits& from, bool is_choice, const char* kernel,
                           const cuda::Workspace& workspace, const Launch& launch) {
  cuda::LogitsRows<T> all{.logits      = static_cast<const T*>(from.logits),
                          .rows        = from.rows,
                          .vocabulary  = from.vocabulary,
                          .stride      = from.stride,
                          .mask        = from.mask,
                          .mask_stride = from.mask_stride};
  all.require_shape(kernel);
  const std::vector<SamplingRun> runs = sampling_runs(from, is_choice);
  if (all.rows == 0) return;
  cuda::require_workspace(workspace, cuda::masked_softmax_workspace_bytes(all.rows, all.vocabulary),
                          kernel);
  if (all.stride == 0) all.stride = all.vocabulary;
  if (all.mask_stride == 0) all.mask_stride = cuda::divide_up(all.vocabulary, 32);
  for (const SamplingRun& run : runs) {
    cuda::LogitsRows<T> rows = all;
    rows.rows                = run.rows;
    if (rows.logits != nullptr) rows.logits += run.first * all.stride;
    if (rows.mask != nullptr) rows.mask += run.first * all.mask_stride;
    launch(rows, run);
  }
}

/// Both kinds of softmax.
template <bool is_log>
td_code fill_softmax(const td_cuda_logits* logits, float* out, std::int32_t* kept, void* workspace,
                     std::size_t workspace_bytes, void* stream) noexcept {
  return call_cuda([&] {
    const td_cuda_logits from  = fields_of(logits, "logits");
    const char* const kernel   = is_log ? "fill_masked_log_softmax" : "fill_masked_softmax";
    const cuda::Workspace room = {workspace, workspace_bytes};
    with_type(from.dtype, [&]<class T>(std::type_identity<T>) {
      for_each_sampling_run<T>(
          from, false, kernel, room, [&](const auto& rows, const SamplingRun& run) {
            const std::int64_t at = std::int64_t{run.first} * from.vocabulary;
            cuda::detail::fill_softmax<is_log>(
                rows, run.options, out == nullptr ? nullptr : out + at,
                kept == nullptr ? nullptr : kept + run.first, room, kernel, stream_of(stream));
          });
    });
  });
}

/// A caller's cache.
template <cuda::HalfNumber T>
cuda::KeyValues<T> cache_of(const td_cuda_cache* cache, const char* argument) {
  const td_cuda_cache from = fields_of(cache, argument);
  return {.keys        = static_cast<T*>(from.keys),
          .values      = static_cast<T*>(from.values),
          .slot_stride = from.slot_stride,
          .head_stride = from.head_stride,
          .page_stride = from.page_stride,
          .pages       = from.pages,
          .page_size   = from.page_size,
          .max_pages   = from.max_pages};
}

/// A caller's shape, checked, with its defaults. There is no plan yet.
inline td_cuda_tree_attention attention_of(const td_cuda_tree_attention_shape* shape) {
  td_cuda_tree_attention attention{
      .shape = fields_of(shape, "shape"), .options = {}, .device = -1, .plan = {}};
  td_cuda_tree_attention_shape& from = attention.shape;
  with_half_type(from.dtype, [](auto) {});
  attention.options = {.query_heads = from.query_heads,
                       .key_heads   = from.key_heads,
                       .head_size   = from.head_size,
                       .scale       = from.scale};
  cuda::detail::require_tree_attention(from.sequences, from.nodes, from.slots, from.max_length,
                                       attention.options);
  if (!std::isfinite(from.scale)) {
    throw Error(Errc::invalid_option, "tree_attention: scale", "must be finite");
  }
  if (from.scale == 0) {
    attention.options.scale = 1 / std::sqrt(static_cast<float>(from.head_size));
  }
  if (from.slots == 0) from.slots = from.nodes;
  return attention;
}

/// The number of the current device.
inline int current_device() {
  int device = 0;
  cuda::check(cudaGetDevice(&device));
  return device;
}

}  // namespace tooldecode::c_interface

extern "C" {

int32_t td_cuda_abi_version(void) {
  return TD_CUDA_ABI_VERSION;
}
const char* td_cuda_last_error(void) {
  return tooldecode::c_interface::last_cuda_failure().text.c_str();
}
const char* td_cuda_last_error_where(void) {
  return tooldecode::c_interface::last_cuda_failure().where.c_str();
}

td_code td_cuda_masked_softmax_workspace_bytes(int32_t rows, int32_t vocabulary, size_t* bytes) {
  using namespace tooldecode::c_interface;
  return call_cuda([&] {
    require(bytes, "bytes");
    const float any = 0;
    const tooldecode::cuda::LogitsRows<float> all{
        .logits = &any, .rows = rows, .vocabulary = vocabulary};
    all.require_shape("masked_softmax_workspace_bytes");
    *bytes = tooldecode::cuda::masked_softmax_workspace_bytes(rows, vocabulary);
  });
}
td_code td_cuda_fill_masked_softmax(const td_cuda_logits* logits, float* probabilities,
                                    int32_t* kept, void* workspace, size_t workspace_bytes,
                                    void* stream) {
  return tooldecode::c_interface::fill_softmax<false>(logits, probabilities, kept, workspace,
                                                      workspace_bytes, stream);
}
td_code td_cuda_fill_masked_log_softmax(const td_cuda_logits* logits, float* logs, int32_t* kept,
                                        void* workspace, size_t workspace_bytes, void* stream) {
  return tooldecode::c_interface::fill_softmax<true>(logits, logs, kept, workspace, workspace_bytes,
                                                     stream);
}
td_code td_cuda_find_tokens(const td_cuda_logits* logits, const int64_t* positions, int64_t shift,
                            int32_t* tokens, void* workspace, size_t workspace_bytes,
                            void* stream) {
  using namespace tooldecode::c_interface;
  return call_cuda([&] {
    const td_cuda_logits from                = fields_of(logits, "logits");
    const tooldecode::cuda::Workspace memory = {workspace, workspace_bytes};
    if (positions == nullptr) {  // before a run without noise is launched
      for (const SamplingRun& run : sampling_runs(from, true)) {
        if (run.options.temperature == 0) continue;
        throw tooldecode::Error(tooldecode::Errc::shape_mismatch, "find_tokens: positions",
                                "must not be null");
      }
    }
    with_type(from.dtype, [&]<class T>(std::type_identity<T>) {
      for_each_sampling_run<T>(
          from, true, "find_tokens", memory, [&](const auto& rows, const SamplingRun& run) {
            tooldecode::cuda::find_tokens(
                rows, run.options,
                {.seed      = run.seed,
                 .positions = positions == nullptr ? nullptr : positions + run.first,
                 .shift     = shift},
                tokens == nullptr ? nullptr : tokens + run.first, memory, stream_of(stream));
          });
    });
  });
}

td_code td_cuda_pruned_head_workspace_bytes(int32_t states, int32_t rows, int32_t k,
                                            int32_t mask_words, size_t* bytes) {
  using namespace tooldecode::c_interface;
  return call_cuda([&] {
    require(bytes, "bytes");
    *bytes = tooldecode::cuda::pruned_head_workspace_bytes(states, rows, k, mask_words);
  });
}
td_code td_cuda_project_topk(const td_cuda_head* head, const void* hidden, int32_t states,
                             const uint32_t* masks, int32_t mask_words, int32_t k, int32_t* tokens,
                             float* logits, float* log_sum_exp, void* workspace,
                             size_t workspace_bytes, void* stream) {
  using namespace tooldecode::c_interface;
  return call_cuda([&] {
    const td_cuda_head from = fields_of(head, "head");
    with_half_type(from.dtype, [&]<class T>(std::type_identity<T>) {
      const tooldecode::cuda::HeadRows<T> rows{.weights     = static_cast<const T*>(from.weights),
                                               .stride      = from.stride,
                                               .rows        = from.rows,
                                               .hidden_size = from.hidden_size,
                                               .tokens      = from.tokens,
                                               .vocabulary  = from.vocabulary};
      tooldecode::cuda::project_topk(
          rows, static_cast<const T*>(hidden), states, masks, mask_words, k,
          {.tokens = tokens, .logits = logits, .log_sum_exp = log_sum_exp},
          {workspace, workspace_bytes}, stream_of(stream));
    });
  });
}

td_code td_cuda_tree_attention_workspace_bytes(const td_cuda_tree_attention_shape* shape,
                                               size_t* bytes) {
  using namespace tooldecode::c_interface;
  return call_cuda([&] {
    const td_cuda_tree_attention all = attention_of(shape);
    require(bytes, "bytes");
    *bytes = tooldecode::cuda::tree_attention_workspace_bytes(all.shape.sequences, all.shape.nodes,
                                                              all.shape.max_length, all.options);
  });
}
td_code td_cuda_tree_attention_make(const td_cuda_tree_attention_shape* shape,
                                    td_cuda_tree_attention** out) {
  using namespace tooldecode::c_interface;
  if (out != nullptr) *out = nullptr;
  return call_cuda([&] {
    auto made = std::make_unique<td_cuda_tree_attention>(attention_of(shape));
    require(out, "out");
    made->device                             = current_device();
    const td_cuda_tree_attention_shape& from = made->shape;
    if (from.sequences > 0 && from.nodes > 0) {
      with_half_type(from.dtype, [&]<class T>(std::type_identity<T>) {
        made->plan = tooldecode::cuda::detail::plan_attention<T>(
            from.sequences, from.nodes, std::int64_t{from.max_length} + from.slots, made->options);
      });
    }
    *out = made.release();
  });
}
void td_cuda_tree_attention_free(td_cuda_tree_attention* attention) {
  delete attention;
}
td_code td_cuda_tree_attention_run(const td_cuda_tree_attention* attention, const void* queries,
                                   const uint64_t* ancestors, const int32_t* lengths,
                                   const td_cuda_cache* cache, void* out, void* workspace,
                                   size_t workspace_bytes, void* stream) {
  using namespace tooldecode::c_interface;
  return call_cuda([&] {
    require(attention, "attention");
    const td_cuda_tree_attention_shape& shape = attention->shape;
    with_half_type(shape.dtype, [&]<class T>(std::type_identity<T>) {
      const auto key_values = cache_of<T>(cache, "cache");
      if (current_device() != attention->device) {
        throw Refusal(TD_ERROR_INVALID_ARGUMENT, "attention",
                      "must have been made for the current device");
      }
      if (shape.sequences == 0 || shape.nodes == 0) return;
      tooldecode::cuda::detail::launch_attention<T>(
          {.queries    = static_cast<const T*>(queries),
           .ancestors  = ancestors,
           .lengths    = lengths,
           .sequences  = shape.sequences,
           .nodes      = shape.nodes,
           .max_length = shape.max_length,
           .slots      = shape.slots},
          key_values, attention->options, attention->plan, static_cast<T*>(out),
          {workspace, workspace_bytes}, stream_of(stream));
    });
  });
}

td_code td_cuda_verify_trees(const int32_t* tokens, const int32_t* parents,
                             const uint64_t* ancestors, const int32_t* sizes,
                             const int32_t* choices, td_cuda_verdict* verdicts, int32_t sequences,
                             void* stream) {
  using namespace tooldecode::c_interface;
  return call_cuda([&] {
    // The kernel reads its trees; others write to the same view.
    const tooldecode::cuda::DraftTreeView tree{.tokens    = const_cast<int32_t*>(tokens),
                                               .parents   = const_cast<int32_t*>(parents),
                                               .ancestors = const_cast<uint64_t*>(ancestors),
                                               .sizes     = const_cast<int32_t*>(sizes)};
    tooldecode::cuda::verify_trees(tree, choices,
                                   reinterpret_cast<tooldecode::cuda::TreeVerdict*>(verdicts),
                                   sequences, stream_of(stream));
  });
}

td_code td_cuda_compact_cache(const td_cuda_cache* layers, size_t layer_count, int32_t dtype,
                              int32_t sequences, int32_t key_heads, int32_t head_size,
                              const td_cuda_verdict* verdicts, const int32_t* lengths,
                              void* stream) {
  using namespace tooldecode::c_interface;
  return call_cuda([&] {
    require_array(layers, layer_count, "layers");
    with_half_type(dtype, [&]<class T>(std::type_identity<T>) {
      std::vector<tooldecode::cuda::KeyValues<T>> caches;
      caches.reserve(layer_count);
      for (std::size_t i = 0; i < layer_count; ++i) {
        caches.push_back(cache_of<T>(layers + i, ("layers/" + std::to_string(i)).c_str()));
      }
      tooldecode::cuda::compact_cache<T>(
          caches, {.sequences = sequences, .key_heads = key_heads, .head_size = head_size},
          reinterpret_cast<const tooldecode::cuda::TreeVerdict*>(verdicts), lengths,
          stream_of(stream));
    });
  });
}
td_code td_cuda_advance_lengths(const td_cuda_verdict* verdicts, int32_t* lengths,
                                int32_t sequences, void* stream) {
  using namespace tooldecode::c_interface;
  return call_cuda([&] {
    tooldecode::cuda::advance_lengths(
        reinterpret_cast<const tooldecode::cuda::TreeVerdict*>(verdicts), lengths, sequences,
        stream_of(stream));
  });
}

}  // extern "C"
