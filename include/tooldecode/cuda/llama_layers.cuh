/// \file
/// LlamaLayers: runs tokens through the layers of a Llama model on the device.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <cuda_runtime.h>

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/cuda/block.cuh>
#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/few_products.cuh>
#include <tooldecode/cuda/head_products.cuh>
#include <tooldecode/cuda/head_rows.cuh>
#include <tooldecode/cuda/key_values.cuh>
#include <tooldecode/cuda/llama_weights.cuh>
#include <tooldecode/cuda/number.cuh>
#include <tooldecode/cuda/shared_memory.cuh>
#include <tooldecode/cuda/tree_attention.cuh>
#include <tooldecode/cuda/tree_pass.cuh>
#include <tooldecode/model/llama_config.hpp>
#include <tooldecode/model/llama_weights.hpp>

namespace tooldecode::cuda {

namespace detail {

inline constexpr int llama_threads = 256;

/// One block per row: the token's embedding, the cosines and then the sines of its position's
/// angles, and its ancestors, without the stride. Padding is a row of zeros.
template <HalfNumber T>
__global__ void __launch_bounds__(llama_threads)
    embed_tokens(TreePass pass, const T* embedding, int width, int vocabulary,
                 const float* frequencies, int half, float* states, float* turns,
                 std::uint64_t* ancestors) {
  const int row = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  const std::uint64_t seen = pass.ancestors[pass.place(row)];
  const TokenId token      = seen == 0 ? -1 : pass.tokens[pass.place(row)];
  const bool is_token      = token >= 0 && token < vocabulary;
  if (thread == 0) ancestors[row] = is_token ? seen : 0;
  for (int i = thread; i < width; i += llama_threads) {
    states[std::int64_t{row} * width + i] =
        is_token ? to_float(embedding[std::int64_t{token} * width + i]) : 0.0F;
  }
  const int position = pass.lengths[row / pass.nodes] + __popcll(seen) - 1;
  for (int i = thread; i < half; i += llama_threads) {
    const float angle                              = static_cast<float>(position) * frequencies[i];
    turns[std::int64_t{row} * 2 * half + i]        = is_token ? cosf(angle) : 0.0F;
    turns[std::int64_t{row} * 2 * half + half + i] = is_token ? sinf(angle) : 0.0F;
  }
}

__device__ inline float sum_of_squares(const float4& x) {
  return x.x * x.x + x.y * x.y + x.z * x.z + x.w * x.w;
}
template <HalfNumber T>
__device__ inline void write_normed(T* to, const float4& x, float scale, const float4& factor) {
  to[0] = narrow<T>(x.x * scale * factor.x);
  to[1] = narrow<T>(x.y * scale * factor.y);
  to[2] = narrow<T>(x.z * scale * factor.z);
  to[3] = narrow<T>(x.w * scale * factor.w);
}

/// The factors of a norm that is not there.
__device__ inline float4 factors_of(const float* weight, int pack) {
  return weight == nullptr ? make_float4(1, 1, 1, 1)
                           : reinterpret_cast<const float4*>(weight)[pack];
}

/// One block per row: adds to the state, if there is something to add, and normalises the sum.
///
/// \param weight  null: the sum stays as it is
/// \param rows    the rows to read, whose states then stay as they are; null: all, in place
template <HalfNumber T>
__global__ void __launch_bounds__(llama_threads)
    normalise_rows(float* states, const float* added, const float* weight, PaddedGroups hidden,
                   float epsilon, const std::int32_t* rows, T* out) {
  const int row         = rows == nullptr ? static_cast<int>(blockIdx.x) : rows[blockIdx.x];
  const int thread      = static_cast<int>(threadIdx.x);
  const int packs       = hidden.padded / 4;
  const std::int64_t at = std::int64_t{row} * packs;
  float4* const state   = reinterpret_cast<float4*>(states) + at;
  const auto sum_at     = [&](int pack) {
    float4 sum = state[pack];
    if (added != nullptr) {
      const float4 more = reinterpret_cast<const float4*>(added)[at + pack];
      sum = make_float4(sum.x + more.x, sum.y + more.y, sum.z + more.z, sum.w + more.w);
    }
    return sum;
  };
  float scale = 1;
  if (weight != nullptr) {
    float squares = 0;
    for (int pack = thread; pack < packs; pack += llama_threads) {
      const float4 sum = sum_at(pack);
      squares += sum_of_squares(sum);
    }
    using Fold = BlockFold<float, llama_threads>;
    squares    = Fold::sum(shared<typename Fold::Storage>(), squares);
    scale      = 1.0F / sqrtf(squares / static_cast<float>(hidden.size) + epsilon);
  }
  for (int pack = thread; pack < packs; pack += llama_threads) {
    const float4 sum    = sum_at(pack);
    const float4 factor = factors_of(weight, pack);
    T* const to         = out + (std::int64_t{blockIdx.x} * packs + pack) * 4;
    if (rows == nullptr && added != nullptr) state[pack] = sum;
    write_normed(to, sum, scale, factor);
  }
}

/// One block per row of queries, keys and values: adds the bias, rotates the pairs (i, i + half) of
/// queries and keys, and writes keys and values to the row's slot.
template <HalfNumber T>
__global__ void __launch_bounds__(llama_threads)
    rotate_heads(TreePass pass, LlamaShape shape, const float* joint, const float* bias,
                 const float* turns, const std::uint64_t* ancestors, T* queries,
                 KeyValues<T> cache) {
  const int row = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  const int size = shape.head.padded, half = shape.head.size / 2;
  const bool is_token     = ancestors[row] != 0;
  const int sequence      = row / pass.nodes;
  const int slot          = pass.lengths[sequence] + pass.first_slot + row % pass.nodes;
  const float* const from = joint + std::int64_t{row} * shape.joint_width();
  const float* const turn = turns + std::int64_t{row} * 2 * half;
  const auto number       = [&](int at) { return from[at] + (bias == nullptr ? 0.0F : bias[at]); };
  const int rotated       = shape.heads + shape.key_heads;
  for (int at = thread; at < shape.joint_width(); at += llama_threads) {
    const int head = at / size, i = at % size;
    float x = number(at);
    if (head < rotated && i < half) {
      x = x * turn[i] - number(at + half) * turn[half + i];
    } else if (head < rotated && i < 2 * half) {
      x = x * turn[i - half] + number(at - half) * turn[i];
    }
    if (head < shape.heads) {
      queries[std::int64_t{row} * shape.query_width() + at] = narrow<T>(is_token ? x : 0.0F);
    } else if (is_token) {
      const bool is_key                             = head < rotated;
      T* const numbers                              = is_key ? cache.keys : cache.values;
      const int of                                  = head - (is_key ? shape.heads : rotated);
      numbers[cache.offset(sequence, slot, of) + i] = narrow<T>(x);
    }
  }
}

/// One thread per number: the gated activation of a row's two halves.
template <HalfNumber T>
__global__ void __launch_bounds__(llama_threads)
    activate_rows(const float* gate_up, std::int64_t count, int inner, T* out) {
  const std::int64_t at = std::int64_t{blockIdx.x} * llama_threads + threadIdx.x;
  if (at >= count) return;
  const float* const row = gate_up + at / inner * 2 * inner;
  const float gate       = row[at % inner];
  out[at]                = narrow<T>(gate / (1.0F + expf(-gate)) * row[inner + at % inner]);
}

/// A state, normalised unless the weight is null, as the vector of `multiply_few`.
template <HalfNumber T>
struct NormedStates {
  const float* states;  // [rows, H]
  const float* weight;  // [H], or null
  PaddedGroups hidden;
  float epsilon;

  __device__ void fill(T* to, int rows, FewFold::Storage& fold) const {
    const int packs = hidden.padded / 4, thread = static_cast<int>(threadIdx.x);
    for (int row = 0; row < rows; ++row) {
      const float4* const state = reinterpret_cast<const float4*>(states) + row * packs;
      float scale               = 1;
      if (weight != nullptr) {
        float squares = 0;
        for (int pack = thread; pack < packs; pack += few_threads) {
          const float4 x = __ldcg(state + pack);
          squares += sum_of_squares(x);
        }
        squares = FewFold::sum(fold, squares);
        scale   = 1.0F / sqrtf(squares / static_cast<float>(hidden.size) + epsilon);
      }
      for (int pack = thread; pack < packs; pack += few_threads) {
        const float4 x      = __ldcg(state + pack);
        const float4 factor = factors_of(weight, pack);
        write_normed(to + (row * packs + pack) * 4, x, scale, factor);
      }
    }
  }
};

/// What `rotate_heads` does, with the products of a pair's two rows.
template <HalfNumber T>
struct RotatedHeads {
  TreePass pass;
  LlamaShape shape;
  const float* bias;
  const float* turns;
  const std::uint64_t* ancestors;
  T* queries;
  KeyValues<T> cache;

  // Pairs that are rotated, and then pairs of padding.
  [[nodiscard]] __device__ int first(int pair) const {
    const int size = shape.head.padded, half = shape.head.size / 2, i = pair % (size / 2);
    return pair / (size / 2) * size + (i < half ? i : i + half);
  }
  [[nodiscard]] __device__ int second(int pair) const {
    const int size = shape.head.padded, half = shape.head.size / 2, i = pair % (size / 2);
    return first(pair) + (i < half ? half : size / 2 - half);
  }
  __device__ void take(int row, int pair, float a, float b) const {
    const int size = shape.head.padded, half = shape.head.size / 2;
    const int at_a = first(pair), at_b = second(pair), head = at_a / size, i = at_a % size;
    const bool is_token = ancestors[row] != 0;
    const int rotated   = shape.heads + shape.key_heads;
    if (bias != nullptr) {
      a += bias[at_a];
      b += bias[at_b];
    }
    if (head < rotated && i < half) {
      const float* const turn = turns + std::int64_t{row} * 2 * half;
      const float turned      = a * turn[i] - b * turn[half + i];
      b                       = b * turn[i] + a * turn[half + i];
      a                       = turned;
    }
    if (head < shape.heads) {
      T* const to = queries + std::int64_t{row} * shape.query_width();
      to[at_a]    = narrow<T>(is_token ? a : 0.0F);
      to[at_b]    = narrow<T>(is_token ? b : 0.0F);
    } else if (is_token) {
      const int sequence        = row / pass.nodes;
      const int slot            = pass.lengths[sequence] + pass.first_slot + row % pass.nodes;
      const bool is_key         = head < rotated;
      const int of              = head - (is_key ? shape.heads : rotated);
      const std::int64_t at     = cache.offset(sequence, slot, of);
      T* const numbers          = is_key ? cache.keys : cache.values;
      numbers[at + i]           = narrow<T>(a);
      numbers[at + at_b % size] = narrow<T>(b);
    }
  }
};

/// The gated activation: a pair has a row of the gate's matrix and the same one of the other.
template <HalfNumber T>
struct GatedProducts {
  T* out;  // [rows, F]
  int inner;

  [[nodiscard]] __device__ int first(int pair) const { return pair; }
  [[nodiscard]] __device__ int second(int pair) const { return inner + pair; }
  __device__ void take(int row, int pair, float gate, float up) const {
    out[std::int64_t{row} * inner + pair] = narrow<T>(gate / (1.0F + expf(-gate)) * up);
  }
};

}  // namespace detail

/// The layers of a model, its embedding, final norm and head.
///
/// States between layers are F32; what is multiplied is rounded to T. A row of a pass has the same
/// bits whatever the other rows are, as long as their number is the same: the kernels of products
/// and the split of attention depend on it.
///
/// \par Shapes      see `run`
/// \par Complexity  reads the weights once per 64 rows; about ten launches per layer, five or six for
///                  up to four rows
/// \par Threads     immutable; does not wait for the device; may be captured into a graph; one
///                  workspace per overlapping call
/// \par Errors      construction: as LlamaWeights. Error{shape_mismatch} for a workspace too small
/// \par Source      as the host's LlamaModel
template <HalfNumber T>
class LlamaLayers {
 public:
  LlamaLayers(const LlamaConfig& config, const model::LlamaWeights& weights)
      : LlamaLayers(config, LlamaWeights<T>(config, weights), nullptr) {}
  /// One layer of a draft model, which has no final norm and no head.
  ///
  /// \param config     with the layer's `intermediate_size`
  /// \param embedding  the target's, [V, H] in device memory; must outlive this
  LlamaLayers(const LlamaConfig& config, const model::LlamaWeights::Layer& layer,
              const T* embedding)
      : LlamaLayers(config, LlamaWeights<T>(config, layer), embedding) {}

  [[nodiscard]] const LlamaShape& shape() const noexcept { return shape_; }
  /// [V, H]
  [[nodiscard]] const T* embedding() const noexcept { return embedding_; }
  /// All rows of the head, for `fill_logits` and `project_topk`.
  [[nodiscard]] HeadRows<T> head() const {
    return {
        .weights = weights_.head(), .rows = shape_.vocabulary, .hidden_size = shape_.hidden.padded};
  }
  /// Numbers of a hidden state, with padding.
  [[nodiscard]] int hidden_size() const { return shape_.hidden.padded; }

  /// Bytes of workspace for `run`.
  [[nodiscard]] std::size_t workspace_bytes(int sequences, int nodes, int max_length) const {
    return Memory(nullptr, *this, sequences, nodes, max_length).bytes;
  }

  /// Runs tokens through the first layers and the final norm, and writes their keys and values to
  /// their slots.
  ///
  /// \param caches  one for each layer that is run, in host memory
  /// \param wanted  [count] the rows whose states are written; null: all, and `count` is ignored
  /// \param hidden  [count, H]
  void run(const TreePass& pass, std::span<const KeyValues<T>> caches, const std::int32_t* wanted,
           int count, T* hidden, const Workspace& workspace, cudaStream_t stream) const {
    run(pass, caches, wanted, count, hidden, workspace, stream, [](float*) {});
  }
  /// The same, from other states than the embeddings of the tokens.
  ///
  /// \param begin  begin(states): changes the embeddings, [rows, H] in device memory, on the stream;
  ///               those of padding are zeros
  template <class Begin>
  void run(const TreePass& pass, std::span<const KeyValues<T>> caches, const std::int32_t* wanted,
           int count, T* hidden, const Workspace& workspace, cudaStream_t stream,
           const Begin& begin) const {
    require(pass, caches.size());
    const int rows = pass.rows();
    if (rows == 0) return;
    const Memory memory(workspace.data, *this, pass.sequences, pass.nodes, pass.max_length);
    require_workspace(workspace, memory.bytes, "LlamaLayers");
    const unsigned blocks = static_cast<unsigned>(rows);
    const LaunchShape each_row{.grid = blocks, .block = detail::llama_threads};
    launch(detail::embed_tokens<T>, each_row, stream, pass, embedding_, shape_.hidden.padded,
           shape_.vocabulary, frequencies_.data(), shape_.head.size / 2, memory.states,
           memory.turns, memory.ancestors);
    begin(memory.states);
    const float* added   = nullptr;
    const auto normalise = [&](const DeviceBuffer<float>& weight, const std::int32_t* of, int n,
                               T* to) {
      if (n == 0) return;
      launch(detail::normalise_rows<T>,
             {.grid         = static_cast<unsigned>(n),
              .block        = detail::llama_threads,
              .shared_bytes = sizeof(typename BlockFold<float, detail::llama_threads>::Storage)},
             stream, memory.states, added, weight.data(), shape_.hidden, epsilon_, of, to);
    };
    const auto multiply = [&](const DeviceBuffer<T>& weights, int outputs, int inputs, const T* x,
                              float* y) {
      fill_logits(HeadRows<T>{.weights = weights.data(), .rows = outputs, .hidden_size = inputs}, x,
                  rows, y, stream);
    };
    const TreeAttentionOptions attention = attention_options();
    const TreeQueries<T> trees{.queries    = memory.queries,
                               .ancestors  = memory.ancestors,
                               .lengths    = pass.lengths,
                               .sequences  = pass.sequences,
                               .nodes      = pass.nodes,
                               .max_length = pass.max_length,
                               .slots      = pass.slots};
    const std::int64_t activations = std::int64_t{rows} * shape_.inner.padded;
    const DeviceTraits device      = device_traits();
    const int widest  = std::max({shape_.hidden.padded, shape_.query_width(), shape_.inner.padded});
    const bool is_few = can_multiply_few<T>(rows, widest, device);
    for (std::size_t l = 0; l < caches.size(); ++l) {
      const auto& layer = weights_.layers[l];
      if (is_few) {
        run_few(layer, pass, trees, caches[l], memory, device, stream);
        continue;
      }
      normalise(layer.attention_norm, nullptr, rows, memory.normed);
      multiply(layer.query_key_value, shape_.joint_width(), shape_.hidden.padded, memory.normed,
               memory.joint);
      launch(detail::rotate_heads<T>, each_row, stream, pass, shape_, memory.joint,
             layer.bias.data(), memory.turns, memory.ancestors, memory.queries, caches[l]);
      tree_attention(trees, caches[l], attention, memory.attended, memory.attention, stream);
      multiply(layer.output, shape_.hidden.padded, shape_.query_width(), memory.attended,
               memory.product);
      added = memory.product;
      normalise(layer.feed_forward_norm, nullptr, rows, memory.normed);
      multiply(layer.gate_up, 2 * shape_.inner.padded, shape_.hidden.padded, memory.normed,
               memory.gate_up);
      launch(detail::activate_rows<T>,
             {.grid  = grid_size(divide_up(activations, detail::llama_threads)),
              .block = detail::llama_threads},
             stream, memory.gate_up, activations, shape_.inner.padded, memory.active);
      multiply(layer.down, shape_.hidden.padded, shape_.inner.padded, memory.active,
               memory.product);
    }
    normalise(weights_.final_norm, wanted, wanted == nullptr ? rows : count, hidden);
  }

 private:
  LlamaLayers(const LlamaConfig& config, LlamaWeights<T> weights, const T* embedding)
      : shape_(config),
        epsilon_(config.norm_epsilon),
        weights_(std::move(weights)),
        embedding_(embedding == nullptr ? weights_.embedding.data() : embedding) {
    std::vector<float> frequencies;
    const std::size_t half = config.head_size / 2;
    for (std::size_t i = 0; i < half; ++i) {
      const float factor = config.rope_factors.empty() ? 1.0F : config.rope_factors[i];
      frequencies.push_back(
          std::pow(config.rope_theta, -static_cast<float>(i) / static_cast<float>(half)) / factor);
    }
    frequencies_ = DeviceBuffer<float>(frequencies);
  }

  // The parts of a workspace for n rows.
  struct Memory {
    float* states;             // [n, H]
    float* turns;              // [n, head_size]
    std::uint64_t* ancestors;  // [n]
    T* normed;                 // [n, H]
    float* joint;              // [n, A + 2 G]
    T* queries;                // [n, A]
    T* attended;               // [n, A]
    float* product;            // [n, H]
    float* gate_up;            // [n, 2 F]
    T* active;                 // [n, F]
    Workspace attention;
    std::size_t bytes = 0;

    Memory(void* data, const LlamaLayers& layers, int sequences, int nodes, int max_length) {
      const LlamaShape& shape = layers.shape_;
      const auto size         = [rows = static_cast<std::size_t>(sequences) *
                                static_cast<std::size_t>(nodes)](int width) {
        return rows * static_cast<std::size_t>(width);
      };
      WorkspaceLayout layout(data);
      states    = layout.take<float>(size(shape.hidden.padded));
      turns     = layout.take<float>(size(shape.head.size));
      ancestors = layout.take<std::uint64_t>(size(1));
      normed    = layout.take<T>(size(shape.hidden.padded));
      joint     = layout.take<float>(size(shape.joint_width()));
      queries   = layout.take<T>(size(shape.query_width()));
      attended  = layout.take<T>(size(shape.query_width()));
      product   = layout.take<float>(size(shape.hidden.padded));
      gate_up   = layout.take<float>(size(2 * shape.inner.padded));
      active    = layout.take<T>(size(shape.inner.padded));
      const std::size_t needed =
          tree_attention_workspace_bytes(sequences, nodes, max_length, layers.attention_options());
      attention = {layout.take<std::byte>(needed), needed};
      bytes     = layout.bytes();
    }
  };

  // One layer for few rows: what precedes and follows products is done in their launches.
  void run_few(const typename LlamaWeights<T>::Layer& layer, const TreePass& pass,
               const TreeQueries<T>& trees, const KeyValues<T>& cache, const Memory& memory,
               const DeviceTraits& device, cudaStream_t stream) const {
    const int rows = pass.rows(), hidden = shape_.hidden.padded, inner = shape_.inner.padded;
    const auto normed = [&](const DeviceBuffer<float>& weight) {
      return detail::NormedStates<T>{memory.states, weight.data(), shape_.hidden, epsilon_};
    };
    multiply_few(PairedRows<T>{layer.query_key_value.data(), shape_.joint_width() / 2, hidden},
                 rows, normed(layer.attention_norm),
                 detail::RotatedHeads<T>{pass, shape_, layer.bias.data(), memory.turns,
                                         memory.ancestors, memory.queries, cache},
                 device, stream);
    tree_attention(trees, cache, attention_options(), memory.attended, memory.attention, stream);
    multiply_few(PairedRows<T>{layer.output.data(), hidden / 2, shape_.query_width()}, rows,
                 PlainVectors<T>{memory.attended, shape_.query_width()},
                 AddedProducts{memory.states, hidden}, device, stream);
    multiply_few(PairedRows<T>{layer.gate_up.data(), inner, hidden}, rows,
                 normed(layer.feed_forward_norm), detail::GatedProducts<T>{memory.active, inner},
                 device, stream);
    multiply_few(PairedRows<T>{layer.down.data(), hidden / 2, inner}, rows,
                 PlainVectors<T>{memory.active, inner}, AddedProducts{memory.states, hidden},
                 device, stream);
  }

  [[nodiscard]] TreeAttentionOptions attention_options() const {
    return {.query_heads = shape_.heads,
            .key_heads   = shape_.key_heads,
            .head_size   = shape_.head.padded,
            .scale       = 1.0F / std::sqrt(static_cast<float>(shape_.head.size))};
  }

  void require(const TreePass& pass, std::size_t layers) const {
    if (pass.rows() > detail::max_head_states) {
      throw Error(Errc::invalid_option, "TreePass: rows", pass.rows(), "must be at most 65535");
    }
    if (layers > weights_.layers.size()) {
      throw Error(Errc::shape_mismatch, "LlamaLayers: caches", static_cast<std::int64_t>(layers),
                  "must be at most the " + std::to_string(weights_.layers.size()) + " layers");
    }
    if (pass.rows() > 0 && (pass.tokens == nullptr || pass.ancestors == nullptr)) {
      throw Error(Errc::shape_mismatch, "TreePass", "must have no null pointer");
    }
  }

  LlamaShape shape_;
  float epsilon_;
  LlamaWeights<T> weights_;
  const T* embedding_;
  DeviceBuffer<float> frequencies_;
};

}  // namespace tooldecode::cuda
