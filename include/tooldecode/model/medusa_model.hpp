/// \file
/// MedusaModel: Medusa's heads, which guess several tokens ahead from one hidden state.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/model/head_products.hpp>
#include <tooldecode/model/safetensors.hpp>

namespace tooldecode {

/// Residual blocks over a target's final hidden state at position i: head k gives the state whose
/// logits, by the target's own LM head, are those of the token at i + 2 + k.
///
/// Medusa trains an LM head of its own for every such head; sharing the target's keeps the draft
/// small and lets it be pruned to frequent tokens like any other.
///
/// \par Shapes      state [H] -> states [heads, H]
/// \par Complexity  O(heads blocks H^2)
/// \par Threads     immutable
/// \par Errors      `load` and `read` as SafeTensors, Error{malformed_file} where no head is;
///                  Error{shape_mismatch} from the constructor
/// \par Source      Cai et al., Medusa, arXiv:2401.10774, section 2.1.1
class MedusaModel {
 public:
  /// y = x + silu(weight x + bias).
  struct Block {
    std::vector<float> weight;  ///< [H, H]
    std::vector<float> bias;    ///< [H]
  };
  using Head = std::vector<Block>;

  explicit MedusaModel(std::size_t hidden_size, std::vector<Head> heads)
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

  /// Reads tensors named "<head>.<block>.linear.weight" and ".bias".
  [[nodiscard]] static MedusaModel read(const SafeTensors& file, std::size_t hidden_size) {
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
  /// Reads a checkpoint.
  [[nodiscard]] static MedusaModel load(const std::filesystem::path& path,
                                        std::size_t hidden_size) {
    return read(SafeTensors::load(path), hidden_size);
  }

  [[nodiscard]] std::size_t hidden_size() const noexcept { return hidden_size_; }
  /// Tokens that are guessed ahead.
  [[nodiscard]] std::size_t heads() const noexcept { return heads_.size(); }

  /// Writes the states of all heads.
  void fill_states(std::span<const float> state, std::span<float> states) const {
    for (std::size_t h = 0; h < heads_.size(); ++h) {
      const auto y = states.subspan(h * hidden_size_, hidden_size_);
      std::ranges::copy(state, y.begin());
      for (const Block& block : heads_[h]) {
        std::vector<float> x(hidden_size_);  // [H]
        model::fill_packed_products(
            y, {block.weight.data(), hidden_size_, hidden_size_, hidden_size_}, x);
        for (std::size_t i = 0; i < hidden_size_; ++i) {
          x[i] += block.bias[i];
          y[i] += x[i] / (1.0F + std::exp(-x[i]));
        }
      }
    }
  }

 private:
  std::size_t hidden_size_;
  std::vector<Head> heads_;
};

}  // namespace tooldecode
