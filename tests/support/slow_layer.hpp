/// \file
/// A decoder layer in float64, by the definition of the architecture.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <tooldecode/model/llama_config.hpp>
#include <tooldecode/model/llama_weights.hpp>

namespace tooldecode::test {

using Vector = std::vector<double>;

inline Vector times(const std::vector<float>& matrix, const Vector& x) {
  Vector y(matrix.size() / x.size(), 0);
  for (std::size_t row = 0; row < y.size(); ++row) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      y[row] += static_cast<double>(matrix[row * x.size() + i]) * x[i];
    }
  }
  return y;
}

/// A matrix of floats times a vector, plus a bias if there is one.
inline Vector times(const std::vector<float>& matrix, const std::vector<float>& bias,
                    const Vector& x) {
  Vector y = times(matrix, x);
  for (std::size_t i = 0; i < bias.size(); ++i) y[i] += static_cast<double>(bias[i]);
  return y;
}

/// x / rms(x) weight.
inline Vector normed(const Vector& x, const std::vector<float>& weight, float epsilon) {
  double squares = 0;
  for (const double v : x) squares += v * v;
  Vector y(x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    y[i] *= static_cast<double>(weight[i]) /
            std::sqrt(squares / static_cast<double>(x.size()) + static_cast<double>(epsilon));
  }
  return y;
}

/// A token at the layer's input, the rows that it attends to (itself included), and what the
/// attention reads if that is not the state.
struct SlowRow {
  Vector state;
  std::size_t position = 0;
  std::vector<std::size_t> sees;
  Vector attended = {};
};

/// The layer's output for each row, one head at a time.
inline std::vector<Vector> slow_layer(const LlamaConfig& config,
                                      const model::LlamaWeights::Layer& layer,
                                      const std::vector<SlowRow>& rows) {
  const std::size_t size = config.head_size;
  const auto rotated     = [&](Vector heads, std::size_t position) {
    for (std::size_t h = 0; h < heads.size(); h += size) {
      for (std::size_t i = 0; i < size / 2; ++i) {
        const double factor =
            config.rope_factors.empty() ? 1 : static_cast<double>(config.rope_factors[i]);
        const double angle = static_cast<double>(position) / factor *
                             std::pow(static_cast<double>(config.rope_theta),
                                          -2.0 * static_cast<double>(i) / static_cast<double>(size));
        const double a          = heads[h + i];
        const double b          = heads[h + i + size / 2];
        heads[h + i]            = a * std::cos(angle) - b * std::sin(angle);
        heads[h + i + size / 2] = b * std::cos(angle) + a * std::sin(angle);
      }
    }
    return heads;
  };
  std::vector<Vector> queries, keys, values, outputs;
  for (const SlowRow& row : rows) {
    const Vector x = !row.attended.empty() ? row.attended
                     : layer.attention_norm.empty()
                         ? row.state
                         : normed(row.state, layer.attention_norm, config.norm_epsilon);
    queries.push_back(rotated(times(layer.query, layer.query_bias, x), row.position));
    keys.push_back(rotated(times(layer.key, layer.key_bias, x), row.position));
    values.push_back(times(layer.value, layer.value_bias, x));
  }
  for (std::size_t t = 0; t < rows.size(); ++t) {
    Vector mixed(config.heads * size, 0);
    for (std::size_t h = 0; h < config.heads; ++h) {
      const std::size_t k = h / (config.heads / config.key_value_heads);
      Vector weights;
      double sum = 0;
      for (const std::size_t s : rows[t].sees) {
        double score = 0;
        for (std::size_t i = 0; i < size; ++i) {
          score += queries[t][h * size + i] * keys[s][k * size + i];
        }
        weights.push_back(std::exp(score / std::sqrt(static_cast<double>(size))));
        sum += weights.back();
      }
      for (std::size_t w = 0; w < weights.size(); ++w) {
        for (std::size_t i = 0; i < size; ++i) {
          mixed[h * size + i] += weights[w] / sum * values[rows[t].sees[w]][k * size + i];
        }
      }
    }
    Vector state         = rows[t].state;
    const Vector through = times(layer.output, mixed);
    for (std::size_t i = 0; i < state.size(); ++i) state[i] += through[i];
    const Vector x  = normed(state, layer.feed_forward_norm, config.norm_epsilon);
    Vector gate     = times(layer.gate, x);
    const Vector up = times(layer.up, x);
    for (std::size_t i = 0; i < gate.size(); ++i) gate[i] *= up[i] / (1 + std::exp(-gate[i]));
    const Vector y = times(layer.down, gate);
    for (std::size_t i = 0; i < y.size(); ++i) state[i] += y[i];
    outputs.push_back(state);
  }
  return outputs;
}

/// The largest difference, relative to the largest number.
template <class Numbers>
double relative_error(const Numbers& actual, const Vector& expected) {
  double error = 0, magnitude = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    error     = std::max(error, std::abs(static_cast<double>(actual[i]) - expected[i]));
    magnitude = std::max(magnitude, std::abs(expected[i]));
  }
  return error / magnitude;
}

}  // namespace tooldecode::test
