/// \file
/// Reads and checks the one decoder layer of EAGLE's and EAGLE-3's drafts.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <tooldecode/model/llama_config.hpp>
#include <tooldecode/model/llama_weights.hpp>
#include <tooldecode/model/safetensors.hpp>

namespace tooldecode::model {

/// Reads `<prefix>self_attn.q_proj.weight` and so on. The feed-forward width is that of the gate;
/// no attention norm is read.
///
/// \param inputs  columns of query, key and value
///
/// \par Errors  as SafeTensors::floats
[[nodiscard]] LlamaWeights::Layer read_draft_layer(const SafeTensors& file,
                                                   const LlamaConfig& config,
                                                   const std::string& prefix, std::size_t inputs);

/// Checks the sizes of such a layer.
///
/// \par Errors  Error{shape_mismatch} with the prefix and the matrix
void check_draft_layer(const LlamaWeights::Layer& layer, const LlamaConfig& config,
                       const std::string& prefix, std::size_t inputs);

/// Checks that some weights are so many numbers.
///
/// \par Errors  Error{shape_mismatch} at `name`
void require_numbers(const std::string& name, std::span<const float> weights, std::size_t count);

}  // namespace tooldecode::model

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/model/draft_layer.ipp>
#endif
