#pragma once

#include <cstddef>

#include <tooldecode/core/error.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/decode/sequence.hpp>

namespace tooldecode::decode {

TOOLDECODE_INLINE void require_logits(const ModelRef& model, const ConstraintRef& constraint) {
  if (constraint.vocabulary_size() <= model.vocabulary_size()) return;
  throw Error(Errc::shape_mismatch, "constraint",
              std::to_string(constraint.vocabulary_size()) +
                  " tokens: must be at most those that the model has logits for, " +
                  std::to_string(model.vocabulary_size()));
}

TOOLDECODE_INLINE void require_prompt(const ModelRef& model, std::span<const TokenId> prompt) {
  if (prompt.empty()) throw Error(Errc::invalid_option, "prompt", "must hold at least one token");
  if (const std::size_t context = model.context_length(); prompt.size() > context) {
    throw Error(Errc::limit_exceeded, "prompt",
                std::to_string(prompt.size()) + " tokens: must be at most the model's context, " +
                    std::to_string(context));
  }
  require_tokens(model, prompt, "prompt token");
}

TOOLDECODE_INLINE void require_tokens(const ModelRef& model, std::span<const TokenId> tokens,
                                      const std::string& what) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= 0 && static_cast<std::size_t>(tokens[i]) < model.vocabulary_size()) continue;
    throw Error(Errc::unknown_token, what + ' ' + std::to_string(i),
                "id " + std::to_string(tokens[i]) +
                    " must be one of the model's vocabulary, below " +
                    std::to_string(model.vocabulary_size()));
  }
}

TOOLDECODE_INLINE void require_room(const ModelRef& model, const ConstraintRef& constraint,
                                    std::span<const TokenId> prompt, const LogitsPipeline& pipeline,
                                    const DecodeOptions& options) {
  Run{constraint, prompt, pipeline, options, model.context_length()}.require_room();
}

}  // namespace tooldecode::decode
