#pragma once

#include <cstddef>
#include <utility>

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/decode/sequence.hpp>
#include <tooldecode/decode/sequential.hpp>
#include <tooldecode/decode/target_pass.hpp>
#include <tooldecode/decode/trace.hpp>
#include <tooldecode/research/tool_dec.hpp>

namespace tooldecode {

// Asks for the name of each call, and then allows that name alone.
class ToolDec::Asking {
 public:
  Asking(const ModelRef& model, const ToolDecMachine& machine, const NamePrompt& prompt,
         const decode::Run& run, ModelRef::Cache& cache, decode::Sequence& sequence)
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
    const bool in_name = state_.phase == ToolDecMachine::Phase::name;
    if (!in_name || (state_.written == 0 && at_ > 0)) {  // one token may end a call and begin one
      name_.clear();
      at_ = 0;
    }
    if (!in_name) return {};
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
    read_ahead();
    DecodeOptions options = run_.options;
    options.max_tokens    = DecodeOptions{}.max_tokens;
    options.always_ends   = false;
    options.likeliest     = 0;
    options.on_token = {}, options.trace = {}, options.end_tokens = {};
    if (prompt_.end) options.end_tokens.push_back(*prompt_.end);
    // A name that no other continues needs no end.
    options.ends_after = [&names = *machine_.names(),
                          node   = ToolNames::Node{0}](const TokenEvent& event) mutable {
      const auto next = names.child(node, event.token);
      if (next) node = *next;
      return next && names.next(node).empty();
    };
    // The answer's later tokens stand at the same positions: their noise is another.
    options.seed += 0x9E3779B97F4A7C15 * (tokens.size() + 1);

    const decode::Run run{machine_.names()->trie(), context, run_.pipeline, options, run_.context};
    decode::Sequence asked{run, options.seed};
    ModelRef::Cache fork = model_.fork(cache_);
    asked.mark_read(model_.length(cache_));
    decode::run_to_end(model_, fork, asked);
    Output& out = sequence_.output();
    (out.passes == 0 ? out.times.prefill : out.times.model) += asked.output().times.prefill;
    out.times.model += asked.output().times.model;
    out.passes += asked.output().passes;
    sequence_.trace_time(Phase::model);
    const Finish finish = asked.output().finish;
    if (finish != Finish::end && finish != Finish::stopped) return {};  // no room for the name
    return std::move(asked.output().tokens);
  }

  // Reads all but the last token, so that the answer does not read them again after the fork.
  void read_ahead() {
    const auto unread = sequence_.unread();
    if (unread.size() < 2) return;
    Output& out = sequence_.output();
    decode::Stopwatch watch;
    decode::TargetPass{model_}.read(cache_, unread.first(unread.size() - 1));
    sequence_.mark_read(unread.size() - 1);
    watch.add_to(out.passes++ == 0 ? out.times.prefill : out.times.model);
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
  ModelRef::Cache& cache_;
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
  std::vector<TokenId> given = name_prompt->text;
  if (name_prompt->end) given.push_back(*name_prompt->end);
  for (const TokenId token : given) {
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
