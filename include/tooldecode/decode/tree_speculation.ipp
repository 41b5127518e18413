#pragma once

#include <tooldecode/decode/prefix_cache.hpp>
#include <tooldecode/decode/sequence.hpp>
#include <tooldecode/decode/speculative_sequence.hpp>
#include <tooldecode/decode/tree_speculation.hpp>

namespace tooldecode::decode {

TOOLDECODE_INLINE Output speculate(const ModelRef& model, const ConstraintRef& constraint,
                                   DrafterRef drafter, verify::RuleRef rule,
                                   std::span<const TokenId> prompt, const LogitsPipeline& pipeline,
                                   const DecodeOptions& options) {
  require_abilities(model, drafter);
  const Run run{constraint, prompt, pipeline, options, model.context_length()};
  SpeculativeSequence sequence{model, run, drafter, rule, CachedPrefix{model.make_cache()}};
  while (!sequence.is_finished()) {
    if (sequence.take_forced()) continue;
    if (sequence.can_draft()) {
      sequence.verify(sequence.draft());
    } else {
      sequence.read();
    }
  }
  return std::move(sequence.output());
}

}  // namespace tooldecode::decode
