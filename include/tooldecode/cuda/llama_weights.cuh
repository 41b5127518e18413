/// \file
/// LlamaWeights: the matrices of a Llama model in device memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <cuda_runtime.h>

#include <tooldecode/core/error.hpp>
#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/head_rows.cuh>
#include <tooldecode/cuda/number.cuh>
#include <tooldecode/model/llama_config.hpp>
#include <tooldecode/model/llama_weights.hpp>

namespace tooldecode::cuda {

/// Rounds to T; what is past the greatest number of T becomes that number.
template <Number T>
[[nodiscard]] __host__ __device__ inline T narrow(float x) {
  if constexpr (std::is_same_v<T, __half>) {
    constexpr float greatest = 65'504;
    return from_float<T>(x > greatest ? greatest : (x < -greatest ? -greatest : x));
  } else {
    return from_float<T>(x);
  }
}

/// Rows or columns in groups, each padded with zeros to a size that kernels multiply.
struct PaddedGroups {
  int size   = 0;  ///< of a group
  int padded = 0;
  int groups = 1;

  [[nodiscard]] __host__ __device__ int total() const { return groups * size; }
  [[nodiscard]] __host__ __device__ int padded_total() const { return groups * padded; }
  /// The index without padding, or -1 for padding.
  [[nodiscard]] __host__ __device__ int source_of(int index) const {
    return index % padded < size ? index / padded * size + index % padded : -1;
  }
};

/// The sizes of a model, and those with padding: widths are multiples of 8, and heads have a size
/// of `tree_attention`.
///
/// \par Errors      Error{invalid_option} for heads of more than 256 numbers
struct LlamaShape {
  int vocabulary = 0, layers = 0, heads = 0, key_heads = 0;
  PaddedGroups hidden, inner, head;

  explicit LlamaShape(const LlamaConfig& config)
      : vocabulary(static_cast<int>(config.vocabulary_size)),
        layers(static_cast<int>(config.layers)),
        heads(static_cast<int>(config.heads)),
        key_heads(static_cast<int>(config.key_value_heads)),
        hidden(padded_to_eight(config.hidden_size)),
        inner(padded_to_eight(config.intermediate_size)),
        head{.size = static_cast<int>(config.head_size)} {
    for (const int size : {256, 128, 96, 64}) {
      if (head.size <= size) head.padded = size;
    }
    if (head.padded == 0) {
      throw Error(Errc::invalid_option, "head_size", head.size, "must be at most 256");
    }
  }

  [[nodiscard]] PaddedGroups of_heads(int count) const { return {head.size, head.padded, count}; }
  [[nodiscard]] __host__ __device__ int query_width() const { return heads * head.padded; }
  [[nodiscard]] __host__ __device__ int key_width() const { return key_heads * head.padded; }
  /// Of the rows of the query's, the key's and the value's matrix.
  [[nodiscard]] __host__ __device__ int joint_width() const {
    return query_width() + 2 * key_width();
  }

 private:
  static PaddedGroups padded_to_eight(std::size_t size) {
    return {.size = static_cast<int>(size), .padded = static_cast<int>((size + 7) / 8 * 8)};
  }
};

namespace detail {

inline constexpr int convert_threads = 256;

/// One thread per number.
template <Number T>
__global__ void __launch_bounds__(convert_threads)
    convert_weights(const float* from, PaddedGroups rows, PaddedGroups columns, T* to) {
  const std::int64_t at = std::int64_t{blockIdx.x} * convert_threads + threadIdx.x;
  if (at >= std::int64_t{rows.padded_total()} * columns.padded_total()) return;
  const int row    = rows.source_of(static_cast<int>(at / columns.padded_total()));
  const int column = columns.source_of(static_cast<int>(at % columns.padded_total()));
  const bool is_in = row >= 0 && column >= 0;
  to[at]           = narrow<T>(is_in ? from[std::int64_t{row} * columns.total() + column] : 0.0F);
}

}  // namespace detail

/// Rounds a matrix to N and pads it; waits for the device.
///
/// \param from  without padding, in device memory
template <Number N>
void pad_weights(const DeviceBuffer<float>& from, PaddedGroups rows, PaddedGroups columns, N* to) {
  const std::int64_t numbers = std::int64_t{rows.padded_total()} * columns.padded_total();
  launch(detail::convert_weights<N>,
         {.grid  = grid_size(divide_up(numbers, detail::convert_threads)),
          .block = detail::convert_threads},
         nullptr, from.data(), rows, columns, to);
  check(cudaStreamSynchronize(nullptr));
}

/// All weights of a model in row-major order, one row per output; matrices of the same input are
/// one matrix.
///
/// \par Shapes      with padding: embedding and head [V, H]; query_key_value [A + 2 G, H]; output
///                  [H, A]; gate_up [2 F, H]; down [H, F]; norms [H]; bias [A + 2 G] or empty
/// \par Complexity  2 bytes per weight; 4 for those of norms and biases; construction waits for the
///                  device, and needs 4 bytes per weight of one matrix there
/// \par Errors      Error{device_failure}; as LlamaShape
template <HalfNumber T>
struct LlamaWeights {
  struct Layer {
    DeviceBuffer<float> attention_norm, feed_forward_norm, bias;
    DeviceBuffer<T> query_key_value, output, gate_up, down;
  };

  DeviceBuffer<T> embedding, own_head;  ///< `own_head` is empty if it is tied to the embedding
  std::vector<Layer> layers;
  DeviceBuffer<float> final_norm;

  LlamaWeights(const LlamaConfig& config, const model::LlamaWeights& weights) {
    const LlamaShape shape(config);
    const PaddedGroups vocabulary{shape.vocabulary, shape.vocabulary};
    const PaddedGroups hidden = shape.hidden;

    embedding = room<T>(vocabulary.total(), hidden.padded);
    convert(weights.embedding, vocabulary, hidden, embedding.data());
    if (!config.tied_head) {
      own_head = room<T>(vocabulary.total(), hidden.padded);
      convert(weights.head, vocabulary, hidden, own_head.data());
    }
    final_norm = norm(weights.final_norm, hidden);
    for (const model::LlamaWeights::Layer& from : weights.layers) {
      add(from, shape).attention_norm = norm(from.attention_norm, hidden);
    }
    staging_ = {};
  }
  /// One layer of a draft model: neither embedding nor final norm, and an attention norm if it has
  /// one.
  LlamaWeights(const LlamaConfig& config, const model::LlamaWeights::Layer& layer) {
    const LlamaShape shape(config);
    Layer& added = add(layer, shape);
    if (!layer.attention_norm.empty()) {
      added.attention_norm = norm(layer.attention_norm, shape.hidden);
    }
    staging_ = {};
  }

  [[nodiscard]] const T* head() const {
    return own_head.size() == 0 ? embedding.data() : own_head.data();
  }

 private:
  static constexpr PaddedGroups one{1, 1};

  template <class N>
  static DeviceBuffer<N> room(int rows, int columns) {
    return DeviceBuffer<N>(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns));
  }

  // A layer without its attention norm.
  Layer& add(const model::LlamaWeights::Layer& from, const LlamaShape& shape) {
    const PaddedGroups queries = shape.of_heads(shape.heads);
    const PaddedGroups keys    = shape.of_heads(shape.key_heads);
    const PaddedGroups hidden = shape.hidden, inner = shape.inner;
    Layer& to                     = layers.emplace_back();
    to.feed_forward_norm          = norm(from.feed_forward_norm, hidden);
    to.query_key_value            = room<T>(shape.joint_width(), hidden.padded);
    const std::int64_t key_rows   = std::int64_t{shape.query_width()} * hidden.padded;
    const std::int64_t value_rows = key_rows + std::int64_t{shape.key_width()} * hidden.padded;
    convert(from.query, queries, hidden, to.query_key_value.data());
    convert(from.key, keys, hidden, to.query_key_value.data() + key_rows);
    convert(from.value, keys, hidden, to.query_key_value.data() + value_rows);
    if (!from.query_bias.empty()) {
      to.bias = room<float>(1, shape.joint_width());
      convert(from.query_bias, one, queries, to.bias.data());
      convert(from.key_bias, one, keys, to.bias.data() + shape.query_width());
      convert(from.value_bias, one, keys, to.bias.data() + shape.query_width() + shape.key_width());
    }
    to.output = room<T>(hidden.padded, shape.query_width());
    convert(from.output, hidden, queries, to.output.data());
    to.gate_up = room<T>(2 * inner.padded, hidden.padded);
    convert(from.gate, inner, hidden, to.gate_up.data());
    convert(from.up, inner, hidden, to.gate_up.data() + std::int64_t{inner.padded} * hidden.padded);
    to.down = room<T>(hidden.padded, inner.padded);
    convert(from.down, hidden, inner, to.down.data());
    return to;
  }
  DeviceBuffer<float> norm(const std::vector<float>& from, PaddedGroups hidden) {
    DeviceBuffer<float> to = room<float>(1, hidden.padded);
    convert(from, one, hidden, to.data());
    return to;
  }

  template <Number N>
  void convert(const std::vector<float>& from, PaddedGroups rows, PaddedGroups columns, N* to) {
    const std::size_t size =
        static_cast<std::size_t>(rows.total()) * static_cast<std::size_t>(columns.total());
    if (from.size() != size) {
      throw Error(Errc::shape_mismatch, "weights", static_cast<std::int64_t>(from.size()),
                  "must be " + std::to_string(size) + " numbers, as the config says");
    }
    if (staging_.size() < size) {
      staging_ = {};  // before the allocation, so that there is room for it
      staging_ = DeviceBuffer<float>(size);
    }
    staging_.upload(from);
    pad_weights(staging_, rows, columns, to);
  }

  DeviceBuffer<float> staging_;
};

}  // namespace tooldecode::cuda
