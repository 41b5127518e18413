#pragma once

#include <algorithm>
#include <utility>

#include <tooldecode/consistency/ordered_sequence.hpp>
#include <tooldecode/consistency/votes.hpp>
#include <tooldecode/constraint/constraint_ref.hpp>
#include <tooldecode/decode/trace.hpp>
#include <tooldecode/tools/tool_set.hpp>

namespace tooldecode::consistency {

TOOLDECODE_INLINE OrderedSequence::OrderedSequence(ModelRef model, const CallOrders& orders,
                                                   const decode::Run& run, CachedPrefix read,
                                                   Consensus& votes)
    : model_(model),
      orders_(&orders),
      run_(&run),
      sequence_(run, run.options.seed),
      read_(std::move(read)),
      votes_(&votes),
      all_(model_.vocabulary_size()),
      row_(model_.vocabulary_size()) {
  all_.words().fill(model_.vocabulary_size());
  read_.states.clear();
  sequence_.mark_read(model_.length(read_.cache));
}

TOOLDECODE_INLINE void OrderedSequence::give_up_cache() {
  model_.truncate(read_.cache, 0);
  sequence_.mark_unread();
  row_is_current_ = false;
  if (voting_) {
    const Voting& old = *voting_;
    voting_.emplace(Voting{old.orders,
                           old.within,
                           old.log_probability,
                           old.begin,
                           {.tool = old.decided.tool, .orders = old.decided.orders}});
  }
}

TOOLDECODE_INLINE bool OrderedSequence::take_forced() {
  decode::Stopwatch watch;
  if (voting_) {
    const bool is_decided = advance_voting();
    watch.add_to(output().times.constraint);
    return is_decided;
  }
  auto next = sequence_.find_forced([this](MaskView mask) { keep_pending(mask); });
  watch.add_to(output().times.constraint);
  if (!next && row_is_current_) {
    next = sequence_.draw(row_);
    watch.add_to(output().times.sampling);
  }
  if (next) take_next(*next);
  watch.add_to(output().times.constraint);
  return next || is_finished();
}

TOOLDECODE_INLINE std::size_t OrderedSequence::reading_count() const noexcept {
  return std::min(unread_count() - (voting_ ? 1 : 0), limit_);
}

TOOLDECODE_INLINE void OrderedSequence::add_readings(std::vector<decode::BatchReading>& readings) {
  if (is_sampling()) return voting_->batch->add_readings(readings);
  const std::size_t count = reading_count();
  const bool needs_row    = count == unread_count();
  readings.push_back({&read_.cache,
                      sequence_.unread().first(count),
                      {},
                      count - 1,
                      needs_row ? ConstMaskView(all_.words()) : ConstMaskView()});
}

TOOLDECODE_INLINE void OrderedSequence::take_pass(decode::BatchPass& pass, std::size_t first) {
  decode::Stopwatch watch;
  Output& out = output();
  if (is_sampling()) {
    voting_->batch->take(pass, first);
    ++out.passes;
    collect();
    watch.add_to(out.times.constraint);
    return;
  }
  const std::size_t count = reading_count();
  const bool is_read      = count == unread_count();
  limit_                  = unlimited;
  sequence_.mark_read(count);
  out.passes += is_read || (voting_ && unread_count() == 1);
  if (!is_read) return;
  const auto next = sequence_.draw(pass.row(first));
  watch.add_to(out.times.sampling);
  if (next) take_next(*next);
  watch.add_to(out.times.constraint);
}

TOOLDECODE_INLINE void OrderedSequence::take(const TokenEvent& event,
                                             std::optional<TokenTrace> known) {
  sequence_.take(event, std::move(known));
  row_is_current_ = false;
}

TOOLDECODE_INLINE void OrderedSequence::take_next(const TokenEvent& event) {
  if (const auto opening = find_opening(event.token)) {
    begin_voting(event, *opening);
  } else {
    take(event);
    pending_.erase(0, calls().vocabulary().bytes(event.token).size());
    if (is_cut()) votes_->calls.back().is_written = false;
  }
  sequence_.report();
}

TOOLDECODE_INLINE bool OrderedSequence::is_cut() const {
  return sequence_.is_finished() && !pending_.empty();
}

TOOLDECODE_INLINE void OrderedSequence::keep_pending(MaskView mask) {
  if (pending_.empty()) return;
  const std::vector<std::uint32_t> allowed(mask.begin(), mask.end());
  orders_->text().keep_agreeing(pending_, mask);
  if (!run_->ending || mask.count() > 0) return;
  pending_.clear();
  if (!votes_->calls.empty()) votes_->calls.back().is_written = false;
  std::copy(allowed.begin(), allowed.end(), mask.begin());
}

TOOLDECODE_INLINE bool OrderedSequence::leaves_room(std::span<const TokenId> tokens,
                                                    std::string_view text) const {
  if (!run_->ending) return true;
  std::vector<TokenId> all(tokens.begin(), tokens.end());
  const std::vector<TokenId> more = orders_->encode(text);
  if (more.empty() != text.empty()) return false;
  all.insert(all.end(), more.begin(), more.end());
  const std::size_t length = sequence_.output().tokens.size() + all.size();
  if (length >= run_->max_tokens()) return false;
  State state = current();
  for (const TokenId token : all) {
    const auto next = calls().advance(state, token);
    if (!next) return false;
    state = *next;
  }
  return run_->ending->can_end(ConstraintRef::State(state), run_->max_tokens() - length);
}

TOOLDECODE_INLINE std::optional<std::size_t> OrderedSequence::find_opening(TokenId token) const {
  const auto& end_tokens = run_->options.end_tokens;
  const bool is_stop = std::find(end_tokens.begin(), end_tokens.end(), token) != end_tokens.end();
  const auto next    = calls().advance(current(), token);
  if (!next || calls().is_finished(*next)) return std::nullopt;
  if (is_stop && calls().is_accepting(current())) return std::nullopt;
  const std::string_view bytes = calls().vocabulary().bytes(token);
  if (bytes.empty()) {  // a control token, which opens the arguments as a whole
    const bool opens = calls().find_tool(*next) && !calls().find_tool(current());
    return opens ? std::optional<std::size_t>(0) : std::nullopt;
  }
  const std::size_t before = std::min(pending_.size(), bytes.size());
  State state              = *calls().advance_bytes(current(), bytes.substr(0, before));
  const bool was_open      = pending_.empty() && calls().is_name_open(state);
  bool inside              = calls().find_tool(state).has_value() && !was_open;
  // Where a name ended that may go on as another one: what follows decides.
  std::optional<std::size_t> end_of_name;
  if (was_open) end_of_name = 0;
  for (std::size_t i = before; i < bytes.size(); ++i) {
    state = *calls().advance_bytes(state, bytes.substr(i, 1));
    if (!calls().find_tool(state)) {
      inside = false;
      end_of_name.reset();
    } else if (!inside && calls().is_name_open(state)) {
      end_of_name = i + 1;
    } else if (!inside) {
      return end_of_name.value_or(i + 1);
    }
  }
  return std::nullopt;
}

TOOLDECODE_INLINE void OrderedSequence::begin_voting(const TokenEvent& event, std::size_t opening) {
  const std::string_view bytes = calls().vocabulary().bytes(event.token);
  const State after            = *calls().advance(current(), event.token);
  const State opened =
      bytes.empty() ? after : *calls().advance_bytes(current(), bytes.substr(0, opening));
  const std::size_t tool = *calls().find_tool(opened);
  const auto orders      = orders_->of(tool);

  // A token that reaches into the arguments is kept whole if every order can continue from it.
  Voting voting{orders,
                std::string(bytes.substr(opening)),
                event.log_probability,
                after,
                {.tool = tool, .orders = orders->size()}};
  pending_.clear();
  if (!orders->begin(voting.within, voting.log_probability, voting.begin).empty()) {
    take(event);
  } else {
    // Without a token before the arguments the orders have none to read first: no vote.
    if (opening == 0 || !leaves_room({}, bytes.substr(0, opening))) return take(event);
    voting.within.clear();
    voting.begin = opened;
    if (!push_text(bytes.substr(0, opening))) return sequence_.stop(Finish::stuck);
  }
  if (!sequence_.is_finished()) voting_.emplace(std::move(voting));
}

TOOLDECODE_INLINE void OrderedSequence::begin_sampling() {
  Voting& voting = *voting_;
  auto branches  = voting.orders->begin(voting.within, voting.log_probability, voting.begin);
  voting.known.assign(branches.size(), false);
  voting.batch.emplace(OrderBatch::Setting{model_, calls(), run_->pipeline, run_->options,
                                           run_->prompt, sequence_.output().tokens, orders_->text(),
                                           [orders = orders_](std::string_view text) {
                                             return orders->encode(text);
                                           },
                                           run_->ending.get()},
                       read_.cache, sequence_.unread(), std::move(branches));
  find_needed();
}

TOOLDECODE_INLINE bool OrderedSequence::advance_voting() {
  Voting& voting = *voting_;
  if (!voting.batch) {
    if (unread_count() > max_unread) return false;
    begin_sampling();
  }
  const OrderConsistencyOptions& options = orders_->options();
  const std::size_t all                  = voting.known.size();
  while (!voting.is_enough) {
    if (voting.batch->prepare(voting.started)) return false;
    collect();
    if (voting.is_enough || voting.started == all) break;
    if (voting.started == voting.last) {
      voting.last = options.adaptive ? std::min(all, voting.started + voting.needed) : all;
    }
    voting.started = options.batched ? voting.last : voting.started + 1;
  }
  sequence_.trace_time(Phase::orders);
  auto& candidates = voting.decided.candidates;
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate& a, const Candidate& b) { return a.order < b.order; });
  settle();
  for (const OrderBranch& branch : voting.batch->branches()) {
    votes_->sampled_tokens += branch.tokens.size();
  }
  votes_->calls.push_back(std::move(voting.decided));
  voting_.reset();
  sequence_.report();
  return true;
}

TOOLDECODE_INLINE void OrderedSequence::find_needed() {
  Voting& voting = *voting_;
  voting.needed =
      votes_needed(voting.decided.candidates, voting.orders->names(), orders_->options().vote,
                   voting.known.size() - voting.decided.candidates.size());
}

TOOLDECODE_INLINE void OrderedSequence::collect() {
  Voting& voting           = *voting_;
  auto& candidates         = voting.decided.candidates;
  const auto& branches     = voting.batch->branches();
  const std::size_t before = candidates.size();
  for (std::size_t i = 0; i < branches.size(); ++i) {
    if (!branches[i].is_over || voting.known[i]) continue;
    voting.known[i] = true;
    candidates.push_back(voting.orders->read(i, branches[i]));
  }
  if (candidates.size() > before) find_needed();
  voting.is_enough = orders_->options().adaptive && voting.known[0] && voting.needed == 0;
}

namespace ordered_sequence {

inline ToolCall call_of(const Candidate& candidate, const std::string& name) {
  ToolCall call{name};
  for (const CandidateValue& value : candidate.values) call.arguments[value.key] = value.value;
  return call;
}

// The winners of some keys, in the order of the keys.
inline ToolCall winner_of(std::span<const ParameterVote> votes, std::span<const std::string> keys,
                          const std::string& name) {
  ToolCall call{name};
  for (const std::string& key : keys) {
    for (const ParameterVote& parameter : votes) {
      if (parameter.key != key || !parameter.choices.front().value) continue;
      call.arguments[key] = *parameter.choices.front().value;
    }
  }
  return call;
}

}  // namespace ordered_sequence

TOOLDECODE_INLINE void OrderedSequence::settle() {
  using ordered_sequence::call_of, ordered_sequence::winner_of;
  CallVote& decided        = voting_->decided;
  const ToolOrders& orders = *voting_->orders;
  decided.parameters       = vote(decided.candidates, orders.names(), orders_->options().vote);
  const std::string& name  = calls().tools()[decided.tool].name;
  std::vector<std::string> documented, required_first = orders.required();
  for (const ParameterVote& parameter : decided.parameters) {
    documented.push_back(parameter.key);
    if (std::find(required_first.begin(), required_first.end(), parameter.key) ==
        required_first.end()) {
      required_first.push_back(parameter.key);
    }
  }
  decided.call = winner_of(decided.parameters, documented, name);
  const bool is_won =
      std::all_of(orders.required().begin(), orders.required().end(),
                  [&](const std::string& key) { return decided.call.arguments.contains(key); });
  const OrderBranch& first = voting_->batch->branches().front();
  const bool is_first =
      first.is_complete && call_of(decided.candidates.front(), name) == decided.call;
  if (is_won && !is_first) {
    if (write(winner_of(decided.parameters, required_first, name)) || write(decided.call)) {
      decided.is_written = !sequence_.is_finished();  // else cut: the end is not written here
      return;
    }
  }
  decided.is_written = adopt(first, voting_->batch->kept()) && is_first && !is_cut();
}

TOOLDECODE_INLINE bool OrderedSequence::adopt(const OrderBranch& branch,
                                              std::optional<OrderBatch::Kept>& kept) {
  State state = current();
  for (const TokenId token : branch.tokens) {
    const auto next = calls().advance(state, token);
    if (!next) return false;
    state = *next;
  }
  if (!calls().advance_bytes(state, branch.closing)) return false;
  if (!leaves_room(branch.tokens, branch.closing)) return false;
  for (std::size_t i = 0; i < branch.tokens.size(); ++i) {
    if (sequence_.is_finished()) return false;
    take({.token           = branch.tokens[i],
          .log_probability = branch.log_probabilities[i],
          .forced          = branch.forced[i]},
         branch.trace.empty() ? std::nullopt : std::optional(branch.trace[i]));
  }
  pending_ = branch.closing;
  if (!kept) return true;
  read_.cache = std::move(kept->cache);
  sequence_.mark_read(kept->read);
  if (kept->row.empty()) return true;
  row_            = std::move(kept->row);
  row_is_current_ = true;
  return true;
}

TOOLDECODE_INLINE bool OrderedSequence::write(const ToolCall& call) {
  const std::string& opening = voting_->orders->opening();
  const std::string& within  = voting_->within;
  std::string text           = orders_->write(call);
  if (!text.starts_with(opening + within)) return false;
  text.erase(0, opening.size() + within.size());
  State state = current();
  for (std::size_t i = 0; i < text.size() && calls().find_tool(state); ++i) {
    const auto next = calls().advance_bytes(state, std::string_view(text).substr(i, 1));
    if (!next) return false;
    state = *next;
    if (!calls().find_tool(state)) text.resize(i + 1);
  }
  return leaves_room({}, text) && push_text(text, true);
}

TOOLDECODE_INLINE bool OrderedSequence::push_text(std::string_view text, bool leave_end) {
  const std::vector<TokenId> tokens = orders_->encode(text);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (sequence_.is_finished()) return true;
    if (leave_end && (i + 1 == tokens.size() || orders_->text().is_within_token(text))) {
      pending_ = text;
      return true;
    }
    text.remove_prefix(calls().vocabulary().bytes(tokens[i]).size());
    take({.token = tokens[i], .forced = true}, TokenTrace{.origin = TokenOrigin::supplied});
  }
  return !tokens.empty();
}

TOOLDECODE_INLINE Consensus sample_orders(ModelRef model, const CallOrders& orders,
                                          std::span<const TokenId> prompt,
                                          const LogitsPipeline& pipeline,
                                          const DecodeOptions& options) {
  const decode::Run run{orders.calls(), prompt, pipeline, options, model.context_length()};
  Consensus result;
  OrderedSequence sequence{model, orders, run, CachedPrefix{model.make_cache()}, result};
  decode::BatchPass pass{model};
  std::vector<decode::BatchReading> readings;
  while (!sequence.is_finished()) {
    if (sequence.take_forced()) continue;
    Output& out = sequence.output();
    readings.clear();
    sequence.add_readings(readings);
    decode::Stopwatch watch;
    const std::size_t passes = pass.run(readings);
    watch.add_to(out.passes == 0 ? out.times.prefill : out.times.model);
    sequence.take_pass(pass, 0);
    out.passes += passes - 1;
  }
  result.output = std::move(sequence.output());
  return result;
}

TOOLDECODE_INLINE decode::MakeSequence ordered_sequences(const ToolCallFSM& calls,
                                                         OrderConsistencyOptions options,
                                                         Consensus& votes) {
  const auto orders = std::make_shared<const CallOrders>(calls, std::move(options));
  return [orders, &votes](ModelRef model, const decode::Run& run, CachedPrefix read) {
    return std::make_unique<OrderedSequence>(model, *orders, run, std::move(read), votes);
  };
}

}  // namespace tooldecode::consistency
