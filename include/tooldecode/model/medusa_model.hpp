/// \file
/// MedusaModel: Medusa's heads, which guess several tokens ahead from one hidden state.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include <tooldecode/model/safetensors.hpp>

namespace tooldecode {

/// Residual blocks over a target's final hidden state at position i. Head k gives the state whose
/// logits, by the target's LM head, are those of the token at i + 2 + k.
///
/// Medusa trains a separate LM head for each of its heads. Sharing the target's keeps the draft
/// small, and it can be pruned to frequent tokens.
///
/// \par Shapes      state [H] -> states [heads, H]
/// \par Complexity  O(heads blocks H^2)
/// \par Threads     immutable
/// \par Errors      `load` and `read` as SafeTensors, Error{malformed_file} if there is no head;
///                  constructor: Error{shape_mismatch}
/// \par Source      Cai et al., Medusa, arXiv:2401.10774, section 2.1.1
class MedusaModel {
 public:
  /// y = x + silu(weight x + bias).
  struct Block {
    std::vector<float> weight;  ///< [H, H]
    std::vector<float> bias;    ///< [H]
  };
  using Head = std::vector<Block>;

  explicit MedusaModel(std::size_t hidden_size, std::vector<Head> heads);

  /// Reads tensors named "<head>.<block>.linear.weight" and ".bias".
  [[nodiscard]] static MedusaModel read(const SafeTensors& file, std::size_t hidden_size);
  [[nodiscard]] static MedusaModel load(const std::filesystem::path& path, std::size_t hidden_size);

  [[nodiscard]] std::size_t hidden_size() const noexcept { return hidden_size_; }
  /// Number of tokens guessed ahead.
  [[nodiscard]] std::size_t heads() const noexcept { return heads_.size(); }

  void fill_states(std::span<const float> state, std::span<float> states) const;

 private:
  std::size_t hidden_size_;
  std::vector<Head> heads_;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/model/medusa_model.ipp>
#endif
