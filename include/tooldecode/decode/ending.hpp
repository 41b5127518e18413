/// \file
/// Ending: the part of a run that sees to it that answers end within their tokens.
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

/// Narrows masks such that an answer under a constraint ends in time, see
/// DecodeOptions::always_ends.
///
/// Known are the completions that ConstraintRef knows.
///
/// \par Complexity  as Completions
/// \par Threads     one thread at a time
/// \par Errors      from `make`: Error{invalid_option} for another constraint
class Ending {
 public:
  using State = ConstraintRef::State;

  /// Nothing where the options do not ask for one.
  [[nodiscard]] static std::shared_ptr<Ending> make(ConstraintRef constraint,
                                                    const LogitsPipeline& pipeline,
                                                    const DecodeOptions& options);

  Ending(ConstraintRef constraint, const LogitsPipeline& pipeline, const DecodeOptions& options);

  /// Tokens that it takes to end behind a state, the end token included, as in Completions.
  [[nodiscard]] std::optional<std::size_t> shortest(State state, std::size_t enough);

  /// Whether an answer can end behind a state within so many tokens, the end token included.
  [[nodiscard]] bool can_end(State state, std::size_t remaining);

  /// Takes out of a state's mask what leaves no room for the end, where so many more tokens may be
  /// chosen, the end token included.
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
