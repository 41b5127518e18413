/// \file
/// Definitions of order_voter.hpp.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/consistency/order_batch.hpp>
#include <tooldecode/consistency/order_branch.hpp>
#include <tooldecode/consistency/order_voter.hpp>
#include <tooldecode/consistency/tool_orders.hpp>
#include <tooldecode/consistency/votes.hpp>
#include <tooldecode/constraint/constraint_ref.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/config.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/decode/sequence.hpp>
#include <tooldecode/decode/trace.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>

namespace tooldecode::consistency {

/// One answer during decoding.
class OrderVoter::Answer {
 public:
  Answer(const OrderVoter& sampler, const LogitsPipeline& pipeline, const DecodeOptions& options,
         std::span<const TokenId> prompt)
      : sampler_(sampler),
        calls_(sampler.calls()),
        model_(sampler.model_),
        run_{calls_, prompt, pipeline, options, model_.context_length()},
        sequence_(run_, options.seed),
        cache_(model_.make_cache()),
        row_(model_.vocabulary_size()) {}

  [[nodiscard]] Consensus finish() {
    while (!sequence_.is_finished()) step();
    result_.output = std::move(sequence_.output());
    return std::move(result_);
  }

 private:
  [[nodiscard]] State current() const { return sequence_.state().as<State>(); }

  // As Sequential, but `decide` handles the arguments of a call.
  void step() {
    Output& out = sequence_.output();
    decode::Stopwatch watch;
    auto next = sequence_.find_forced([this](MaskView mask) { keep_pending(mask); });
    watch.add_to(out.times.constraint);
    if (!next) {
      if (!row_is_current_) {
        model_.forward(cache_, sequence_.unread(), row_);
        sequence_.mark_read();
        watch.add_to(out.passes++ == 0 ? out.times.prefill : out.times.model);
      }
      next = sequence_.draw(row_);
      watch.add_to(out.times.sampling);
    }
    if (!next) return;
    if (const auto opening = find_opening(next->token)) {
      decide(*next, *opening);
    } else {
      take(*next);
      pending_.erase(0, calls_.vocabulary().bytes(next->token).size());
      watch.add_to(out.times.constraint);
    }
    sequence_.report();
  }

  void take(const TokenEvent& event, std::optional<TokenTrace> known = {}) {
    sequence_.take(event, std::move(known));
    row_is_current_ = false;
  }

  // Keeps the allowed tokens that write pending bytes; ending in time has priority.
  void keep_pending(MaskView mask) {
    if (pending_.empty()) return;
    const std::vector<std::uint32_t> allowed(mask.begin(), mask.end());
    sampler_.text_.keep_agreeing(pending_, mask);
    if (!run_.ending || mask.count() > 0) return;
    pending_.clear();
    if (!result_.calls.empty()) result_.calls.back().is_written = false;
    std::copy(allowed.begin(), allowed.end(), mask.begin());
  }

  // Whether the answer can still end in time after inserted tokens and a text.
  [[nodiscard]] bool leaves_room(std::span<const TokenId> tokens, std::string_view text) const {
    if (!run_.ending) return true;
    std::vector<TokenId> all(tokens.begin(), tokens.end());
    const std::vector<TokenId> more = sampler_.encode(text);
    if (more.empty() != text.empty()) return false;
    all.insert(all.end(), more.begin(), more.end());
    const std::size_t length = sequence_.output().tokens.size() + all.size();
    if (length >= run_.max_tokens()) return false;
    State state = current();
    for (const TokenId token : all) {
      const auto next = calls_.advance(state, token);
      if (!next) return false;
      state = *next;
    }
    return run_.ending->can_end(ConstraintRef::State(state), run_.max_tokens() - length);
  }

  // The offset in a token, after pending bytes, where the arguments of a call begin.
  [[nodiscard]] std::optional<std::size_t> find_opening(TokenId token) const {
    const auto& end_tokens = run_.options.end_tokens;
    const bool is_stop = std::find(end_tokens.begin(), end_tokens.end(), token) != end_tokens.end();
    const auto next    = calls_.advance(current(), token);
    if (!next || calls_.is_finished(*next)) return std::nullopt;
    if (is_stop && calls_.is_accepting(current())) return std::nullopt;
    const std::string_view bytes = calls_.vocabulary().bytes(token);
    const std::size_t before     = std::min(pending_.size(), bytes.size());
    State state                  = *calls_.advance_bytes(current(), bytes.substr(0, before));
    bool inside                  = calls_.find_tool(state).has_value();
    for (std::size_t i = before; i < bytes.size(); ++i) {
      state             = *calls_.advance_bytes(state, bytes.substr(i, 1));
      const bool within = calls_.find_tool(state).has_value();
      if (within && !inside) return i + 1;
      inside = within;
    }
    return std::nullopt;
  }

  // Samples the call that a token opens under all orders, and puts the winner into the answer.
  void decide(const TokenEvent& event, std::size_t opening) {
    const std::string_view bytes = calls_.vocabulary().bytes(event.token);
    const State opened           = *calls_.advance_bytes(current(), bytes.substr(0, opening));
    const std::size_t tool       = *calls_.find_tool(opened);
    const ToolOrders& orders     = sampler_.orders_of(tool);

    // A token that reaches into the arguments is kept whole if every order can continue from it.
    std::string_view within = bytes.substr(opening);
    std::vector<OrderBranch> branches =
        orders.begin(within, event.log_probability, *calls_.advance(current(), event.token));
    if (branches.empty()) {
      if (!leaves_room({}, bytes.substr(0, opening))) return take(event);
      within   = {};
      branches = orders.begin(within, event.log_probability, opened);
      if (!push_text(bytes.substr(0, opening))) return sequence_.stop(Finish::stuck);
    } else {
      take(event);
    }
    pending_.clear();
    Output& out = sequence_.output();
    decode::Stopwatch watch;
    OrderBatch running{
        {model_, calls_, run_.pipeline, run_.options, run_.prompt, out.tokens, sampler_.text_,
         [this](std::string_view text) { return sampler_.encode(text); }, run_.ending.get()},
        model_.fork(cache_),
        sequence_.unread(),
        std::move(branches)};
    CallVote decided{.tool = tool, .orders = orders.size()};
    sample(orders, running, decided);
    sequence_.trace_time(Phase::orders);
    settle(orders, running, decided, within);
    out.passes += running.passes();
    out.times.model += running.model_time();
    std::chrono::nanoseconds spent{0};
    watch.add_to(spent);
    out.times.constraint += spent - running.model_time();
    for (const OrderBranch& branch : running.branches()) {
      result_.sampled_tokens += branch.tokens.size();
    }
    result_.calls.push_back(std::move(decided));
  }

  void sample(const ToolOrders& orders, OrderBatch& running, CallVote& decided) const {
    const OrderConsistencyOptions& options = sampler_.options_;
    const auto& branches                   = running.branches();
    const std::size_t all                  = branches.size();
    std::vector<bool> known(all);
    const auto needed_of = [&] {
      return votes_needed(decided.candidates, orders.names(), options.vote,
                          all - decided.candidates.size());
    };
    std::size_t needed = needed_of();
    // Reads finished branches; returns whether they are enough.
    const auto collect = [&] {
      const std::size_t before = decided.candidates.size();
      for (std::size_t i = 0; i < all; ++i) {
        if (!branches[i].is_over || known[i]) continue;
        known[i] = true;
        decided.candidates.push_back(orders.read(i, branches[i]));
      }
      if (decided.candidates.size() > before) needed = needed_of();
      return options.adaptive && known[0] && needed == 0;
    };
    for (std::size_t started = 0, last = 0; started < all && !collect();) {
      if (started == last) last = options.adaptive ? std::min(all, started + needed) : all;
      started = options.batched ? last : started + 1;
      running.run(started, collect);
    }
    collect();
    std::sort(decided.candidates.begin(), decided.candidates.end(),
              [](const Candidate& a, const Candidate& b) { return a.order < b.order; });
  }

  // Counts the votes and continues after the winning call.
  void settle(const ToolOrders& orders, OrderBatch& running, CallVote& decided,
              std::string_view within) {
    decided.parameters      = vote(decided.candidates, orders.names(), sampler_.options_.vote);
    const std::string& name = calls_.tools()[decided.tool].name;
    const auto call_of_keys = [&](std::span<const std::string> keys) {
      ToolCall call{name};
      for (const std::string& key : keys) {
        for (const ParameterVote& parameter : decided.parameters) {
          if (parameter.key != key || !parameter.choices.front().value) continue;
          call.arguments[key] = *parameter.choices.front().value;
        }
      }
      return call;
    };
    std::vector<std::string> documented, required_first = orders.required();
    for (const ParameterVote& parameter : decided.parameters) {
      documented.push_back(parameter.key);
      if (std::find(required_first.begin(), required_first.end(), parameter.key) ==
          required_first.end()) {
        required_first.push_back(parameter.key);
      }
    }
    decided.call = call_of_keys(documented);
    const bool is_won =
        std::all_of(orders.required().begin(), orders.required().end(),
                    [&](const std::string& key) { return decided.call.arguments.contains(key); });
    const OrderBranch& first = running.branches().front();
    const bool is_first =
        first.is_complete && call_of(decided.candidates.front(), name) == decided.call;
    if (is_won && !is_first) {
      if (write(call_of_keys(required_first), orders, within)) return;
      if (write(decided.call, orders, within)) return;
    }
    decided.is_written = adopt(first, *running.kept()) && is_first;
  }
  static ToolCall call_of(const Candidate& candidate, const std::string& name) {
    ToolCall call{name};
    for (const CandidateValue& value : candidate.values) call.arguments[value.key] = value.value;
    return call;
  }

  // Continues with a branch as it was decoded; the model writes its closing bytes.
  bool adopt(const OrderBranch& branch, OrderBatch::Kept& kept) {
    State state = current();
    for (const TokenId token : branch.tokens) {
      const auto next = calls_.advance(state, token);
      if (!next) return false;
      state = *next;
    }
    if (!calls_.advance_bytes(state, branch.closing)) return false;
    if (!leaves_room(branch.tokens, branch.closing)) return false;
    for (std::size_t i = 0; i < branch.tokens.size(); ++i) {
      take({.token           = branch.tokens[i],
            .log_probability = branch.log_probabilities[i],
            .forced          = branch.forced[i]},
           branch.trace.empty() ? std::nullopt : std::optional(branch.trace[i]));
    }
    pending_ = branch.closing;
    cache_   = std::move(kept.cache);
    sequence_.mark_read(kept.read);
    if (kept.row.empty()) return true;
    row_            = std::move(kept.row);
    row_is_current_ = true;
    return true;
  }

  // Continues with a call as the format writes it, if the constraint allows that.
  bool write(const ToolCall& call, const ToolOrders& orders, std::string_view within) {
    std::string text = sampler_.write(call);
    if (!text.starts_with(orders.opening() + std::string(within))) return false;
    text.erase(0, orders.opening().size() + within.size());
    State state = current();
    for (std::size_t i = 0; i < text.size() && calls_.find_tool(state); ++i) {
      const auto next = calls_.advance_bytes(state, std::string_view(text).substr(i, 1));
      if (!next) return false;
      state = *next;
      if (!calls_.find_tool(state)) text.resize(i + 1);
    }
    return leaves_room({}, text) && push_text(text, true);
  }

  // Writes a text; with `leave_end` the model may write its end, perhaps inside a longer token.
  bool push_text(std::string_view text, bool leave_end = false) {
    const std::vector<TokenId> tokens = sampler_.encode(text);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (sequence_.is_finished()) return true;
      if (leave_end && (i + 1 == tokens.size() || sampler_.text_.is_within_token(text))) {
        pending_ = text;
        return true;
      }
      text.remove_prefix(calls_.vocabulary().bytes(tokens[i]).size());
      take({.token = tokens[i], .forced = true}, TokenTrace{.origin = TokenOrigin::supplied});
    }
    return !tokens.empty();
  }

  const OrderVoter& sampler_;
  const ToolCallFSM& calls_;
  ModelRef model_;
  decode::Run run_;
  decode::Sequence sequence_;

  Consensus result_;
  ModelRef::Cache cache_;
  std::string pending_;          // the next tokens begin with these bytes, or are a prefix of them
  std::vector<float> row_;       // [V]
  bool row_is_current_ = false;  // row_ holds the raw logits of the next token
};

TOOLDECODE_INLINE OrderVoter::OrderVoter(ModelRef model, const ToolCallFSM& calls,
                                         OrderConsistencyOptions options)
    : model_(model),
      calls_(&calls),
      options_(std::move(options)),
      text_(calls.vocabulary_index().trie()),
      known_(std::make_unique<OrderCache>()) {
  if (options_.max_orders == 0) {
    throw Error(Errc::invalid_option, "max_orders", options_.max_orders, "must be 1 or more");
  }
}

TOOLDECODE_INLINE Consensus OrderVoter::operator()(std::span<const TokenId> prompt,
                                                   const LogitsPipeline& pipeline,
                                                   const DecodeOptions& options) const {
  return Answer{*this, pipeline, options, prompt}.finish();
}

TOOLDECODE_INLINE const ToolOrders& OrderVoter::orders_of(std::size_t tool) const {
  const std::lock_guard lock(known_->mutex);
  auto& known = known_->orders[tool];
  if (!known) {
    known = std::make_unique<const ToolOrders>(calls(), tool, options_.max_orders, options_.seed,
                                               options_.only_order);
  }
  return *known;
}

TOOLDECODE_INLINE std::string OrderVoter::write(const ToolCall& call) const {
  return calls().write(std::span(&call, 1));
}

TOOLDECODE_INLINE std::vector<TokenId> OrderVoter::encode(std::string_view text) const {
  const auto writes = [&](const std::vector<TokenId>& tokens) {
    std::string written;
    for (const TokenId token : tokens) {
      if (!calls().vocabulary().is_text(token)) return false;
      written += calls().vocabulary().bytes(token);
    }
    return written == text;
  };
  if (options_.encode) {
    std::vector<TokenId> tokens = options_.encode(text);
    if (writes(tokens)) return tokens;
  }
  std::vector<TokenId> tokens = text_.encode(text);
  if (!writes(tokens)) tokens.clear();
  return tokens;
}

}  // namespace tooldecode::consistency
