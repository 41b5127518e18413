#pragma once

#include <optional>
#include <utility>
#include <vector>

#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/decode/sequence.hpp>
#include <tooldecode/decode/sequential.hpp>
#include <tooldecode/decode/target_pass.hpp>

namespace tooldecode::decode {

TOOLDECODE_INLINE void run_to_end(const ModelRef& model, ModelRef::Cache& cache, Sequence& sequence,
                                  const std::function<Sequence::Narrow()>& prepare) {
  Output& out = sequence.output();
  TargetPass pass{model};
  std::vector<float> row(model.vocabulary_size());  // [V]
  while (!sequence.is_finished()) {
    const Sequence::Narrow narrow = prepare ? prepare() : Sequence::Narrow();
    Stopwatch watch;
    std::optional<TokenEvent> next = sequence.find_forced(narrow);
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
}

}  // namespace tooldecode::decode

namespace tooldecode {

TOOLDECODE_INLINE Output Sequential::operator()(const ModelRef& model,
                                                const ConstraintRef& constraint,
                                                std::span<const TokenId> prompt,
                                                const LogitsPipeline& pipeline,
                                                const DecodeOptions& options) const {
  const decode::Run run{constraint, prompt, pipeline, options, model.context_length()};
  decode::Sequence sequence{run, options.seed};
  auto cache = model.make_cache();
  decode::run_to_end(model, cache, sequence);
  return std::move(sequence.output());
}

}  // namespace tooldecode
