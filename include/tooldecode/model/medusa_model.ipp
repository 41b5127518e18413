#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include <tooldecode/model/head_products.hpp>
#include <tooldecode/model/medusa_model.hpp>

namespace tooldecode {

TOOLDECODE_INLINE MedusaModel::MedusaModel(std::size_t hidden_size, std::vector<Head> heads)
    : hidden_size_(hidden_size), heads_(std::move(heads)) {
  for (const Head& head : heads_) {
    for (const Block& block : head) {
      if (block.weight.size() != hidden_size * hidden_size || block.bias.size() != hidden_size) {
        throw Error(Errc::shape_mismatch, "medusa",
                    std::to_string(block.weight.size()) + " numbers with a bias of " +
                        std::to_string(block.bias.size()) +
                        ": a block must be [H, H] with a bias of [H], where H is " +
                        std::to_string(hidden_size));
      }
    }
  }
}

TOOLDECODE_INLINE MedusaModel MedusaModel::read(const SafeTensors& file, std::size_t hidden_size) {
  std::vector<Head> heads;
  const auto name = [&heads](std::size_t block, const char* part) {
    return std::to_string(heads.size()) + '.' + std::to_string(block) + ".linear." + part;
  };
  while (file.contains(name(0, "weight"))) {
    Head head;
    while (file.contains(name(head.size(), "weight"))) {
      head.push_back(
          {file.floats(name(head.size(), "weight"), std::array{hidden_size, hidden_size}),
           file.floats(name(head.size(), "bias"), std::array{hidden_size})});
    }
    heads.push_back(std::move(head));
  }
  if (heads.empty()) throw Error(Errc::malformed_file, name(0, "weight"), "must be there");
  return MedusaModel(hidden_size, std::move(heads));
}

TOOLDECODE_INLINE MedusaModel MedusaModel::load(const std::filesystem::path& path,
                                                std::size_t hidden_size) {
  return read(SafeTensors::load(path), hidden_size);
}

TOOLDECODE_INLINE void MedusaModel::fill_states(std::span<const float> state,
                                                std::span<float> states) const {
  for (std::size_t h = 0; h < heads_.size(); ++h) {
    const auto y = states.subspan(h * hidden_size_, hidden_size_);
    std::ranges::copy(state, y.begin());
    for (const Block& block : heads_[h]) {
      std::vector<float> x(hidden_size_);  // [H]
      model::fill_packed_products(y,
                                  model::RowsView<const float>{block.weight.data(), hidden_size_,
                                                               hidden_size_, hidden_size_},
                                  x);
      for (std::size_t i = 0; i < hidden_size_; ++i) {
        x[i] += block.bias[i];
        y[i] += x[i] / (1.0F + std::exp(-x[i]));
      }
    }
  }
}

}  // namespace tooldecode
