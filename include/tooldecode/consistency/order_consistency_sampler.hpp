/// \file
/// OrderConsistencySampler: a call is sampled under several orders of its parameters, and each
/// value is put to the vote.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tooldecode/consistency/order_branches.hpp>
#include <tooldecode/consistency/tool_orders.hpp>
#include <tooldecode/consistency/votes.hpp>
#include <tooldecode/constraint/forced_text.hpp>
#include <tooldecode/constraint/token_mask.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/decode/sequence.hpp>
#include <tooldecode/decode/sequential.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>
#include <tooldecode/logits/masked_softmax.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>

#include <nlohmann/json.hpp>

namespace tooldecode {

/// How calls are sampled and voted on.
struct OrderConsistencyOptions {
  std::size_t max_orders = 12;  ///< the paper's `oc`; never more than there are
  VoteRule vote          = VoteRule::majority;
  bool adaptive          = true;  ///< ends when no order that is left could change a winner
  bool batched           = true;  ///< orders side by side in one pass; else one after another
  std::uint64_t seed     = 0;     ///< of the shuffles
  /// Text to tokens as the model's tokenizer has it; the longest tokens that fit where it is empty,
  /// or where what it gives is not the text.
  std::function<std::vector<TokenId>(std::string_view)> encode = {};
};

/// How a call came about.
struct CallVote {
  std::size_t tool = 0;  ///< index in the ToolSet
  ToolCall call{};       ///< of the winners
  std::vector<ParameterVote> parameters{};
  std::vector<Candidate> candidates{};  ///< those that were finished, by order
  std::size_t orders = 0;               ///< that there were to try
};

/// An answer, and the votes on its calls.
struct Consensus {
  Output output;  ///< passes count those of all orders; tokens written by vote count as forced
  std::vector<CallVote> calls{};
  std::size_t sampled_tokens = 0;  ///< of all candidates, those included that no one kept
};

/// Wraps a Decoder such that every call is sampled under several orders of its parameters.
///
/// Once the model has chosen a tool, the required keys are supplied, not generated, in one order
/// per candidate; a value ends where its machine accepts and the model moves on, inside a token if
/// need be. Then the model chooses among unused optional keys and the call's end. Each parameter is
/// voted on, by value; that a parameter is left out is a vote as well. Where the documented order
/// came out as the winners are, its tokens go on as the answer; else the winning call is written as
/// the format writes it. Each of several calls in an answer is voted on in turn. Of a tool with at
/// most one required parameter there is one order.
///
/// All orders share the caches of what they have in common, and run as one batch per step.
/// `adaptive` spares orders that could not change a winner; the answer is the same without.
///
/// The decoder and its model and constraint outlive the sampler. The law is the decoder's; its
/// strategy, which changes no token, is not used inside calls.
///
/// \par Shapes      prompt [L]
/// \par Complexity  a pass per step of the longest order, and orders x tokens in all; less where
///                  orders agree. The machines of a tool's orders are made at its first call
/// \par Threads     calls may run concurrently where the model's const members may
/// \par Errors      Error{invalid_option} from the constructor for no orders; as Decoder from a
/// call \par Source      Tool Decoding, constrained decoding and order consistency
template <Model M, class S = Sequential>
class OrderConsistencySampler {
 public:
  explicit OrderConsistencySampler(const Decoder<M, ToolCallFSM, S>& decoder,
                                   OrderConsistencyOptions options = {})
      : decoder_(&decoder),
        options_(std::move(options)),
        text_(calls().mask_cache().trie()),
        known_(std::make_unique<Known>()) {
    if (options_.max_orders == 0) {
      throw Error(Errc::invalid_option, "max_orders", "must be 1 or more");
    }
  }
  explicit OrderConsistencySampler(const Decoder<M, ToolCallFSM, S>&&,
                                   OrderConsistencyOptions = {}) = delete;

  [[nodiscard]] const OrderConsistencyOptions& options() const noexcept { return options_; }

  /// Continues a prompt.
  [[nodiscard]] Consensus operator()(std::span<const TokenId> prompt,
                                     const DecodeOptions& options = {}) const {
    const LogitsPipeline pipeline{options.logits()};
    decoder_->check(prompt);
    return Answer{*this, pipeline, options, prompt}.finish();
  }

 private:
  using State = ToolCallFSM::State;

  struct Known {
    std::mutex mutex;
    std::unordered_map<std::size_t, std::unique_ptr<const ToolOrders>> orders;  // by tool
  };
  class Answer;

  [[nodiscard]] const ToolCallFSM& calls() const noexcept { return decoder_->constraint(); }

  [[nodiscard]] const ToolOrders& orders_of(std::size_t tool) const {
    const std::lock_guard lock(known_->mutex);
    auto& known = known_->orders[tool];
    if (!known) {
      known = std::make_unique<const ToolOrders>(calls(), tool, options_.max_orders, options_.seed);
    }
    return *known;
  }
  [[nodiscard]] std::string write(const ToolCall& call) const {
    return calls().write(std::span(&call, 1));
  }

  // A text in tokens that together are the text; none where that cannot be.
  [[nodiscard]] std::vector<TokenId> encode(std::string_view text) const {
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

  const Decoder<M, ToolCallFSM, S>* decoder_;
  OrderConsistencyOptions options_;
  ForcedText text_;
  std::unique_ptr<Known> known_;
};

/// One answer in the making.
template <Model M, class S>
class OrderConsistencySampler<M, S>::Answer {
 public:
  Answer(const OrderConsistencySampler& sampler, const LogitsPipeline& pipeline,
         const DecodeOptions& options, std::span<const TokenId> prompt)
      : sampler_(sampler),
        calls_(sampler.calls()),
        model_(sampler.decoder_->model()),
        pipeline_(pipeline),
        options_(options),
        prompt_(prompt),
        cache_(model_.make_cache()),
        unread_(prompt.begin(), prompt.end()),
        state_(calls_.initial()),
        row_(model_.vocabulary_size()),
        mask_(calls_.vocabulary_size()) {}

  [[nodiscard]] Consensus finish() {
    while (step()) continue;
    return std::move(result_);
  }

 private:
  // As Sequential, save that a call's arguments are left to `decide`.
  bool step() {
    Output& out = result_.output;
    if (pending_.empty() && calls_.is_finished(state_)) return end(Finish::end);
    if (out.tokens.size() >= options_.max_tokens) return end(Finish::length);
    const std::size_t position = prompt_.size() + out.tokens.size();
    if (position > context_length_of(model_)) return end(Finish::context);

    Stopwatch watch;
    calls_.fill_mask(state_, mask_.words());
    if (!pending_.empty()) sampler_.text_.keep_agreeing(pending_, mask_.words());
    std::optional<TokenId> token;
    if (options_.skip_forced) token = find_only_token(mask_.words());
    if (token && pipeline_.is_banned(*token)) token.reset();
    watch.add_to(out.times.constraint);

    const bool forced      = token.has_value();
    double log_probability = 0;
    if (!token) {
      if (!row_is_current_) {
        model_.forward(cache_, unread_, row_);
        unread_.clear();
        watch.add_to(out.passes++ == 0 ? out.times.prefill : out.times.model);
      }
      pipeline_.apply(row_, mask_.words(), {prompt_, out.tokens, {}});
      token = find_token(row_, options_.temperature, {.seed = options_.seed, .position = position});
      if (!token) return end(Finish::stuck);
      log_probability =
          static_cast<double>(row_[static_cast<std::size_t>(*token)]) - log_sum_exp(row_);
      watch.add_to(out.times.sampling);
    }
    const auto next = calls_.advance(state_, *token);
    const bool stop = std::find(options_.end_tokens.begin(), options_.end_tokens.end(), *token) !=
                      options_.end_tokens.end();
    if ((stop && calls_.is_accepting(state_)) || calls_.vocabulary().is_end(*token)) {
      return end(Finish::end);
    }
    if (!next) return end(Finish::stuck);
    if (const auto opening = find_opening(*token)) {
      return decide(*token, *opening, log_probability, forced);
    }
    state_ = *next;
    push(*token, log_probability, forced);
    pending_.erase(0, calls_.vocabulary().bytes(*token).size());
    watch.add_to(out.times.constraint);
    return true;
  }

  bool end(Finish finish) {
    result_.output.finish = finish;
    return false;
  }

  void push(TokenId token, double log_probability, bool forced) {
    Output& out = result_.output;
    const TokenEvent event{token, out.tokens.size(), log_probability, forced};
    out.tokens.push_back(token);
    out.log_probabilities.push_back(log_probability);
    out.forced_tokens += forced;
    unread_.push_back(token);
    row_is_current_ = false;
    if (options_.on_token) options_.on_token(event);
  }

  // Where in a token, behind what is pending, the arguments of a call begin.
  [[nodiscard]] std::optional<std::size_t> find_opening(TokenId token) const {
    const std::string_view bytes = calls_.vocabulary().bytes(token);
    const std::size_t before     = std::min(pending_.size(), bytes.size());
    State state                  = *calls_.advance_bytes(state_, bytes.substr(0, before));
    bool inside                  = calls_.find_tool(state).has_value();
    for (std::size_t i = before; i < bytes.size(); ++i) {
      state             = *calls_.advance_bytes(state, bytes.substr(i, 1));
      const bool within = calls_.find_tool(state).has_value();
      if (within && !inside) return i + 1;
      inside = within;
    }
    return std::nullopt;
  }

  // Samples the call that a token opens, under all orders; puts the winner into the answer.
  bool decide(TokenId token, std::size_t opening, double log_probability, bool forced) {
    const std::string_view bytes = calls_.vocabulary().bytes(token);
    const State opened           = *calls_.advance_bytes(state_, bytes.substr(0, opening));
    const std::size_t tool       = *calls_.find_tool(opened);
    const ToolOrders& orders     = sampler_.orders_of(tool);

    // A token that reaches into the arguments stays whole where every order can go on from it.
    std::string_view within = bytes.substr(opening);
    std::vector<OrderBranch> branches =
        orders.begin(within, log_probability, *calls_.advance(state_, token));
    if (branches.empty()) {
      within   = {};
      branches = orders.begin(within, log_probability, opened);
      if (!push_text(bytes.substr(0, opening))) return end(Finish::stuck);
    } else {
      state_ = *calls_.advance(state_, token);
      push(token, log_probability, forced);
    }
    pending_.clear();
    Stopwatch watch;
    OrderBranches<M> running{
        {model_, calls_, pipeline_, options_, prompt_, result_.output.tokens, sampler_.text_,
         [this](std::string_view text) { return sampler_.encode(text); }},
        model_.fork(cache_),
        unread_,
        std::move(branches)};
    CallVote decided{.tool = tool, .orders = orders.size()};
    sample(orders, running, decided);
    settle(orders, running, decided, within);
    result_.output.passes += running.passes();
    result_.output.times.model += running.model_time();
    std::chrono::nanoseconds spent{0};
    watch.add_to(spent);
    result_.output.times.constraint += spent - running.model_time();
    for (const OrderBranch& branch : running.branches()) {
      result_.sampled_tokens += branch.tokens.size();
    }
    result_.calls.push_back(std::move(decided));
    return true;
  }

  // Runs as many orders as it takes.
  void sample(const ToolOrders& orders, OrderBranches<M>& running, CallVote& decided) const {
    const OrderConsistencyOptions& options = sampler_.options_;
    const auto& branches                   = running.branches();
    const std::size_t all                  = branches.size();
    std::vector<bool> known(all);
    const auto needed_of = [&] {
      return votes_needed(decided.candidates, orders.names(), options.vote,
                          all - decided.candidates.size());
    };
    std::size_t needed = needed_of();
    // Reads what has come to its end; whether that is enough.
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

  // Counts the votes, and goes on behind the winning call.
  void settle(const ToolOrders& orders, OrderBranches<M>& running, CallVote& decided,
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
    if (is_won &&
        !(first.is_complete && call_of(decided.candidates.front(), name) == decided.call)) {
      if (write(call_of_keys(required_first), orders, within)) return;
      if (write(decided.call, orders, within)) return;
    }
    adopt(first, *running.kept());
  }
  static ToolCall call_of(const Candidate& candidate, const std::string& name) {
    ToolCall call{name};
    for (const CandidateValue& value : candidate.values) call.arguments[value.key] = value.value;
    return call;
  }

  // Goes on with a branch as it was decoded; its closing bytes are for the model to write.
  void adopt(const OrderBranch& branch, typename OrderBranches<M>::Kept& kept) {
    State state = state_;
    for (const TokenId token : branch.tokens) {
      const auto next = calls_.advance(state, token);
      if (!next) return;
      state = *next;
    }
    if (!calls_.advance_bytes(state, branch.closing)) return;
    for (std::size_t i = 0; i < branch.tokens.size(); ++i) {
      push(branch.tokens[i], branch.log_probabilities[i], branch.forced[i]);
    }
    state_   = state;
    pending_ = branch.closing;
    cache_   = std::move(kept.cache);
    unread_.erase(unread_.begin(), unread_.begin() + static_cast<std::ptrdiff_t>(kept.read));
    if (kept.row.empty()) return;
    row_            = std::move(kept.row);
    row_is_current_ = true;
  }

  // Goes on with a call as the format writes it, where the constraint takes it so.
  bool write(const ToolCall& call, const ToolOrders& orders, std::string_view within) {
    std::string text = sampler_.write(call);
    if (!text.starts_with(orders.opening() + std::string(within))) return false;
    text.erase(0, orders.opening().size() + within.size());
    State state = state_;
    for (std::size_t i = 0; i < text.size() && calls_.find_tool(state); ++i) {
      const auto next = calls_.advance_bytes(state, std::string_view(text).substr(i, 1));
      if (!next) return false;
      state = *next;
      if (!calls_.find_tool(state)) text.resize(i + 1);
    }
    return push_text(text, true);
  }

  // Writes a text; its end may be left for the model to write, inside a longer token or not.
  bool push_text(std::string_view text, bool leave_end = false) {
    const std::vector<TokenId> tokens = sampler_.encode(text);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (result_.output.tokens.size() >= options_.max_tokens) return true;
      if (leave_end && (i + 1 == tokens.size() || sampler_.text_.is_within_token(text))) {
        pending_ = text;
        return true;
      }
      text.remove_prefix(calls_.vocabulary().bytes(tokens[i]).size());
      state_ = *calls_.advance(state_, tokens[i]);
      push(tokens[i], 0, true);
    }
    return !tokens.empty();
  }

  const OrderConsistencySampler& sampler_;
  const ToolCallFSM& calls_;
  const M& model_;
  const LogitsPipeline& pipeline_;
  const DecodeOptions& options_;
  std::span<const TokenId> prompt_;

  Consensus result_;
  typename M::Cache cache_;
  std::vector<TokenId> unread_;  // tokens that the cache does not hold yet
  State state_;
  std::string pending_;          // bytes that the next tokens begin with, or are the beginning of
  std::vector<float> row_;       // [V]
  bool row_is_current_ = false;  // the row holds the raw logits of the next token
  TokenMask mask_;
};

}  // namespace tooldecode
