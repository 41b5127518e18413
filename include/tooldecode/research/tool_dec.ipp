/// \file
/// Definitions of tool_dec.hpp.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/config.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/decode/run_to_end.hpp>
#include <tooldecode/decode/sequence.hpp>
#include <tooldecode/decode/sequential.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>
#include <tooldecode/research/tool_dec.hpp>
#include <tooldecode/research/tool_dec_machine.hpp>
#include <tooldecode/research/tool_names.hpp>

namespace tooldecode {

// Asks for the name of each call, and then allows that name alone.
class ToolDec::Asking {
 public:
  Asking(const ModelRef& model, const ToolDecMachine& machine, const NamePrompt& prompt,
         const decode::Run& run, const ModelRef::Cache& cache, decode::Sequence& sequence)
      : model_(model),
        machine_(machine),
        prompt_(prompt),
        run_(run),
        cache_(cache),
        sequence_(sequence),
        state_(machine.initial()) {}

  decode::Sequence::Narrow operator()() {
    const std::vector<TokenId>& tokens = sequence_.output().tokens;
    for (; seen_ < tokens.size(); ++seen_) {
      state_ = *machine_.advance(state_, tokens[seen_]);
      if (at_ < name_.size() && tokens[seen_] == name_[at_]) ++at_;
    }
    if (state_.phase != ToolDecMachine::Phase::name) {
      name_.clear();
      at_ = 0;
      return {};
    }
    if (state_.written == 0 && name_.empty()) name_ = ask();
    if (name_.empty()) return {};
    return [this](MaskView mask) { keep_name(mask); };
  }

 private:
  std::vector<TokenId> ask() {
    std::vector<TokenId> context(run_.prompt.begin(), run_.prompt.end());
    const std::vector<TokenId>& tokens = sequence_.output().tokens;
    context.insert(context.end(), tokens.begin(), tokens.end());
    context.insert(context.end(), prompt_.text.begin(), prompt_.text.end());
    if (context.size() > run_.context) return {};
    DecodeOptions options = run_.options;
    options.max_tokens    = DecodeOptions{}.max_tokens;
    options.always_ends   = false;
    options.likeliest     = 0;
    options.on_token = {}, options.ends_after = {}, options.trace = {}, options.end_tokens = {};
    if (prompt_.end) options.end_tokens.push_back(*prompt_.end);

    const decode::Run run{machine_.names()->trie(), context, run_.pipeline, options, run_.context};
    decode::Sequence asked{run, options.seed};
    ModelRef::Cache fork = model_.fork(cache_);
    asked.mark_read(model_.length(cache_));
    decode::run_to_end(model_, fork, asked);
    Output& out = sequence_.output();
    out.passes += asked.output().passes;
    out.times.model += asked.output().times.prefill + asked.output().times.model;
    if (asked.output().finish != Finish::end) return {};  // no room for the whole name
    return std::move(asked.output().tokens);
  }

  // Where a limit leaves no room for the name, the others stay allowed.
  void keep_name(MaskView mask) const {
    if (at_ < name_.size()) {
      const auto next = static_cast<std::size_t>(name_[at_]);
      if (!mask.contains(next)) return;
      mask.clear();
      mask.insert(next);
    } else {
      for (const TokenId token : machine_.names()->next(state_.written)) {
        mask.erase(static_cast<std::size_t>(token));
      }
    }
  }

  const ModelRef& model_;
  const ToolDecMachine& machine_;
  const NamePrompt& prompt_;
  const decode::Run& run_;
  const ModelRef::Cache& cache_;
  decode::Sequence& sequence_;
  ToolDecMachine::State state_;
  std::size_t seen_ = 0;  // tokens of the answer that state_ has read
  std::vector<TokenId> name_;
  std::size_t at_ = 0;  // tokens of the name that are written
};

TOOLDECODE_INLINE Output ToolDec::operator()(const ModelRef& model, const ToolCallFSM& calls,
                                             std::span<const TokenId> prompt,
                                             const LogitsPipeline& pipeline,
                                             const DecodeOptions& options) const {
  const ToolDecMachine modes = machine(calls);
  if (!name_prompt) return Sequential{}(model, modes, prompt, pipeline, options);
  if (!names) throw Error(Errc::invalid_option, "name_prompt", "must come with names");
  for (const TokenId token : name_prompt->text) {
    if (token >= 0 && static_cast<std::size_t>(token) < model.vocabulary_size()) continue;
    throw Error(Errc::unknown_token, "name_prompt", token, "must be a token of the model");
  }
  const decode::Run run{modes, prompt, pipeline, options, model.context_length()};
  decode::Sequence sequence{run, options.seed};
  auto cache = model.make_cache();
  Asking asking{model, modes, *name_prompt, run, cache, sequence};
  decode::run_to_end(model, cache, sequence, [&] { return asking(); });
  return std::move(sequence.output());
}

TOOLDECODE_INLINE void ToolDec::require_room(const ModelRef& model, const ToolCallFSM& calls,
                                             std::span<const TokenId> prompt,
                                             const LogitsPipeline& pipeline,
                                             const DecodeOptions& options) const {
  const ToolDecMachine modes = machine(calls);
  decode::Run{modes, prompt, pipeline, options, model.context_length()}.require_room();
}

TOOLDECODE_INLINE ToolDecMachine ToolDec::machine(const ToolCallFSM& calls) const {
  return ToolDecMachine{calls, transition, names ? &*names : nullptr};
}

}  // namespace tooldecode
