/// \file
/// Ending: makes answers end within their token limit.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include <tooldecode/constraint/completions.hpp>
#include <tooldecode/constraint/constraint_ref.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>

namespace tooldecode::decode {

/// Narrows masks so that an answer ends in time; see DecodeOptions::always_ends.
///
/// Supports the constraints whose completions ConstraintRef knows.
///
/// \par Complexity  as Completions
/// \par Threads     one thread at a time
/// \par Errors      from `make`: Error{invalid_option} for another constraint
class Ending {
 public:
  using State = ConstraintRef::State;

  /// Null if the options do not ask for it.
  [[nodiscard]] static std::shared_ptr<Ending> make(ConstraintRef constraint,
                                                    const LogitsPipeline& pipeline,
                                                    const DecodeOptions& options);

  Ending(ConstraintRef constraint, const LogitsPipeline& pipeline, const DecodeOptions& options);

  /// Tokens needed to end after a state, the end token included; see Completions.
  [[nodiscard]] std::optional<std::size_t> shortest(State state, std::size_t enough);

  [[nodiscard]] bool can_end(State state, std::size_t remaining);

  /// Removes from a state's mask the tokens after which the answer could not end. `remaining`
  /// counts the tokens that may still be chosen, the end token included.
  void narrow(State state, std::size_t remaining, MaskView words);

  [[nodiscard]] CompletionCounts counts() const;

 private:
  ConstraintRef constraint_;
  std::vector<TokenId> end_tokens_;
  std::unique_ptr<ConstraintRef::Endings> endings_;
};

}  // namespace tooldecode::decode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/decode/ending.ipp>
#endif
