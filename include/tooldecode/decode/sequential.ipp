/// \file
/// Definitions of sequential.hpp.
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <tooldecode/constraint/constraint_ref.hpp>
#include <tooldecode/core/config.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/decode/sequence.hpp>
#include <tooldecode/decode/sequential.hpp>
#include <tooldecode/decode/target_pass.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>

namespace tooldecode {

TOOLDECODE_INLINE Output Sequential::operator()(const ModelRef& model,
                                                const ConstraintRef& constraint,
                                                std::span<const TokenId> prompt,
                                                const LogitsPipeline& pipeline,
                                                const DecodeOptions& options) const {
  const decode::Run run{constraint, prompt, pipeline, options, model.context_length()};
  decode::Sequence sequence{run, options.seed};
  Output& out = sequence.output();
  auto cache  = model.make_cache();
  decode::TargetPass pass{model};
  std::vector<float> row(model.vocabulary_size());  // [V]

  while (!sequence.is_finished()) {
    decode::Stopwatch watch;
    std::optional<TokenEvent> next = sequence.find_forced();
    watch.add_to(out.times.constraint);
    if (!next) {
      pass.read(cache, sequence.unread());
      pass.fill_row(0, sequence.wanted(), row);
      sequence.mark_read();
      watch.add_to(out.passes++ == 0 ? out.times.prefill : out.times.model);
      next = sequence.draw(row);
      watch.add_to(out.times.sampling);
    }
    if (next) sequence.take(*next);
    watch.add_to(out.times.constraint);
    sequence.report();
  }
  return std::move(out);
}

}  // namespace tooldecode
