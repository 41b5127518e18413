/// \file
/// Sequential: the strategy that decodes one token after another.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/decode/sequence.hpp>
#include <tooldecode/decode/target_pass.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>

namespace tooldecode {

/// Decodes one token per forward pass, save where the constraint leaves only one.
///
/// A token that is the only one allowed is emitted without asking the model, and joins the tokens
/// of the next forward pass; the output is the same as without this shortcut, for the distribution
/// of such a token is certainty. Of a head in the host's memory only the rows that the mask allows
/// are multiplied. Nothing throws for what a model can produce.
///
/// \par Shapes      prompt [L]; one row of logits [V] and one mask [ceil(V / 32)] are kept
/// \par Complexity  at most max_tokens + 1 forward passes
/// \par Threads     stateless; runs may be concurrent
/// \par Errors      none of its own; Decoder has checked prompt and options
struct Sequential {
  template <Model M, Constraint C>
  [[nodiscard]] Output operator()(const M& model, const C& constraint,
                                  std::span<const TokenId> prompt, const LogitsPipeline& pipeline,
                                  const DecodeOptions& options) const {
    const decode::Run<C> run{constraint, prompt, pipeline, options,
                             decode::context_length_of(model)};
    decode::Sequence<C> sequence{run, options.seed};
    Output& out = sequence.output();
    auto cache  = model.make_cache();
    decode::TargetPass<M> pass{model};
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
};

}  // namespace tooldecode
