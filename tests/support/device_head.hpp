/// \file
/// Heads with random weights in device memory, and reference products.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <utility>
#include <vector>

#include <tooldecode/core/types.hpp>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/head_products.cuh>

#include <support/catch.hpp>
#include <support/device.hpp>

namespace tooldecode::test {

/// A head, some of its rows, states and their products.
template <class T>
struct RandomHead {
  int vocabulary, hidden_size;
  std::vector<TokenId> tokens;  // [K]
  std::vector<T> weights;       // [V, H]
  cuda::DeviceBuffer<T> whole, gathered;
  cuda::DeviceBuffer<TokenId> ids;

  RandomHead(int size, int rows, int hidden, std::vector<T> numbers, unsigned seed)
      : vocabulary(size), hidden_size(hidden), weights(std::move(numbers)) {
    for (TokenId token = 0; token < size; ++token) tokens.push_back(token);
    std::shuffle(tokens.begin(), tokens.end(), std::mt19937(seed));
    tokens.resize(static_cast<std::size_t>(rows));
    // Equal rows; those with greater ids come first.
    for (std::size_t i = 0; i + 3 < tokens.size(); i += 4) {
      if (tokens[i] < tokens[i + 3]) std::swap(tokens[i], tokens[i + 3]);
      std::copy_n(row(tokens[i]), hidden, row(tokens[i + 3]));
    }
    std::vector<T> rows_side_by_side;
    for (const TokenId token : tokens) {
      rows_side_by_side.insert(rows_side_by_side.end(), row(token), row(token) + hidden);
    }
    whole    = cuda::DeviceBuffer<T>(weights);
    gathered = cuda::DeviceBuffer<T>(rows_side_by_side);
    ids      = cuda::DeviceBuffer<TokenId>(tokens);
  }

  auto row(TokenId token) { return weights.begin() + std::ptrdiff_t{token} * hidden_size; }
  [[nodiscard]] cuda::HeadRows<T> copied() const {
    return {.weights     = gathered.data(),
            .rows        = static_cast<int>(tokens.size()),
            .hidden_size = hidden_size,
            .tokens      = ids.data()};
  }
  [[nodiscard]] cuda::HeadRows<T> in_place() const {
    cuda::HeadRows<T> rows = copied();
    rows.weights           = whole.data();
    rows.vocabulary        = vocabulary;
    return rows;
  }
};

template <class T>
RandomHead<T> random_head(int rows, int hidden, unsigned seed) {
  std::mt19937 random(seed);
  const int vocabulary = rows + rows / 3 + 5;
  const float scale    = 3 / std::sqrt(static_cast<float>(hidden));
  return RandomHead<T>(
      vocabulary, rows, hidden,
      normal_numbers<T>(static_cast<std::size_t>(vocabulary * hidden), random, scale), seed);
}

template <class T>
std::vector<float> logits_of(const cuda::HeadRows<T>& rows, const cuda::DeviceBuffer<T>& hidden,
                             int states) {
  const cuda::DeviceBuffer<float> logits(static_cast<std::size_t>(states * rows.rows));
  cuda::fill_logits(rows, hidden.data(), states, logits.data(), nullptr);
  return logits.download();
}

/// Compares with float64, relative to the sum of the terms' magnitudes.
template <class T>
void check_logits(RandomHead<T>& head, const std::vector<T>& hidden,
                  const std::vector<float>& logits) {
  const auto width = static_cast<std::size_t>(head.hidden_size);
  double worst     = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const auto row  = head.row(head.tokens[i % head.tokens.size()]);
    const T* inputs = hidden.data() + i / head.tokens.size() * width;
    double sum = 0, size = 1e-30;
    for (std::size_t c = 0; c < width; ++c) {
      const double term = static_cast<double>(cuda::to_float(row[static_cast<std::ptrdiff_t>(c)])) *
                          static_cast<double>(cuda::to_float(inputs[c]));
      sum += term;
      size += std::abs(term);
    }
    worst = std::max(worst, std::abs(logits[i] - sum) / size);
  }
  CHECK(worst < tolerance<float>());
}

/// Sets a variable to a number during its lifetime.
template <class N>
class Setting {
 public:
  Setting(N& number, N value) : number_(number), before_(number) { number = value; }
  Setting(const Setting&)            = delete;
  Setting& operator=(const Setting&) = delete;
  ~Setting() { number_ = before_; }

 private:
  N& number_;
  N before_;
};

}  // namespace tooldecode::test
