#pragma once

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include <tooldecode/core/error.hpp>
#include <tooldecode/decode/sequence.hpp>
#include <tooldecode/logits/log_sum_exp.hpp>

namespace tooldecode::decode {

TOOLDECODE_INLINE std::optional<TokenId> find_only_token(ConstMaskView mask) noexcept {
  std::optional<TokenId> only;
  for (std::size_t w = 0; w < mask.size(); ++w) {
    if (mask[w] == 0) continue;
    if (only || !std::has_single_bit(mask[w])) return std::nullopt;
    only = static_cast<TokenId>(32 * w + static_cast<std::size_t>(std::countr_zero(mask[w])));
  }
  return only;
}

TOOLDECODE_INLINE void Stopwatch::add_to(std::chrono::nanoseconds& phase) {
  const auto now = std::chrono::steady_clock::now();
  phase += now - last_;
  last_ = now;
}

TOOLDECODE_INLINE std::size_t Run::max_tokens() const noexcept {
  return std::min(options.max_tokens, context - prompt.size() + 1);
}

TOOLDECODE_INLINE void Run::require_room() const {
  if (!ending) return;
  const std::size_t room = max_tokens();
  const auto least       = ending->shortest(constraint.initial(), room);
  if (least && *least <= room) return;
  const std::string what =
      least ? "must be at least " + std::to_string(*least) + ", which the shortest answer has"
            : "must be more, or unlimited: no answer that ends was found";
  if (room == options.max_tokens) throw Error(Errc::invalid_option, "max_tokens", room, what);
  throw Error(Errc::limit_exceeded, "prompt",
              "tokens left in the model's context " + std::to_string(room) + ": " + what);
}

TOOLDECODE_INLINE Sequence::Sequence(const Run& run, std::uint64_t seed)
    : run_(&run),
      seed_(seed),
      state_(run.constraint.initial()),
      mask_(run.constraint.vocabulary_size()),
      unread_(run.prompt.begin(), run.prompt.end()) {
  if (const auto removed = run.options.trace) {
    tracer_.emplace(*removed);
    output_.trace.begin = Tracer::Clock::now();
    all_                = TokenMask(run.constraint.vocabulary_size());
    all_.words().fill(run.constraint.vocabulary_size());
  }
  ends_in_time_ = run.ending && run.ending->can_end(state_, run.max_tokens());
  look_for_end();
}

TOOLDECODE_INLINE void Sequence::mark_read(std::size_t count) {
  unread_.erase(unread_.begin(), unread_.begin() + static_cast<std::ptrdiff_t>(count));
}

TOOLDECODE_INLINE void Sequence::mark_unread() {
  unread_.assign(run_->prompt.begin(), run_->prompt.end());
  unread_.insert(unread_.end(), output_.tokens.begin(), output_.tokens.end());
}

TOOLDECODE_INLINE std::optional<TokenEvent> Sequence::find_forced(const Narrow& narrow) {
  if (tracer_) tracer_->resume();
  run_->constraint.fill_mask(state_, mask_.words());
  allow_end_tokens();
  if (ends_in_time_) {
    run_->ending->narrow(state_, run_->max_tokens() - output_.tokens.size(), mask_.words());
    output_.searches_given_up = run_->ending->counts().searches_given_up;
  }
  if (narrow) narrow(mask_.words());
  trace_time(Phase::constraint);
  if (!run_->options.skip_forced) return std::nullopt;
  const auto token = find_only_token(mask_.words());
  if (!token || run_->pipeline.is_banned(*token)) return std::nullopt;
  TokenEvent event{.token = *token, .index = output_.tokens.size(), .forced = true};
  if (run_->options.likeliest > 0) event.likeliest.push_back({*token, 0});
  return event;
}

TOOLDECODE_INLINE void Sequence::make_distribution(std::span<float> row) {
  if (tracer_) tracer_->see(output_.trace, row, mask());
  run_->pipeline.apply(row, mask_.words(),
                       {.prompt = run_->prompt, .generated = output_.tokens, .branch = {}});
}

TOOLDECODE_INLINE std::optional<TokenEvent> Sequence::draw(std::span<float> row) {
  return draw(row, [this](std::span<const float> distribution, NoiseKey key) {
    return find_token(distribution, run_->options.temperature, key);
  });
}

TOOLDECODE_INLINE std::optional<TokenEvent> Sequence::draw(std::span<float> row,
                                                           const Choose& choose) {
  make_distribution(row);
  const std::uint64_t position       = run_->prompt.size() + output_.tokens.size();
  const std::optional<TokenId> token = choose(row, NoiseKey{.seed = seed_, .position = position});
  trace_time(Phase::sampling);
  if (!token) {
    stop(Finish::stuck);
    return std::nullopt;
  }
  return TokenEvent{.token           = *token,
                    .index           = output_.tokens.size(),
                    .log_probability = static_cast<double>(row[static_cast<std::size_t>(*token)]) -
                                       log_sum_exp(row),
                    .likeliest = find_likeliest(row, run_->options.likeliest)};
}

TOOLDECODE_INLINE void Sequence::take(const TokenEvent& event, std::optional<TokenTrace> known) {
  const ConstraintRef& constraint = run_->constraint;
  const auto& end_tokens          = run_->options.end_tokens;
  const bool is_stop =
      std::find(end_tokens.begin(), end_tokens.end(), event.token) != end_tokens.end();
  if (is_stop && constraint.is_accepting(state_)) return end(event, std::move(known));
  const auto next = constraint.advance(state_, event.token);
  if (!next) return stop(Finish::stuck);
  if (constraint.is_finished(*next)) {
    // A finished state allows only end tokens, so the mask tells an end token from a last token of
    // text.
    constraint.fill_mask(*next, mask_.words());
    if (mask_.contains(event.token)) return end(event, std::move(known));
  }
  state_ = *next;
  output_.tokens.push_back(event.token);
  output_.log_probabilities.push_back(event.log_probability);
  if (run_->options.likeliest > 0) output_.likeliest.push_back(event.likeliest);
  output_.forced_tokens += event.forced;
  forced_.push_back(event.forced);
  unread_.push_back(event.token);
  trace(event, false, std::move(known));
  const auto& ends_after = run_->options.ends_after;
  if (ends_after && ends_after(event)) return stop(Finish::stopped);
  look_for_end();
}

TOOLDECODE_INLINE void Sequence::report() {
  const auto& listener = run_->options.on_token;
  for (; listener && reported_ < output_.tokens.size(); ++reported_) {
    TokenEvent event{.token           = output_.tokens[reported_],
                     .index           = reported_,
                     .log_probability = output_.log_probabilities[reported_],
                     .forced          = forced_[reported_]};
    if (run_->options.likeliest > 0) event.likeliest = output_.likeliest[reported_];
    listener(event);
  }
}

TOOLDECODE_INLINE void Sequence::end(const TokenEvent& event, std::optional<TokenTrace> known) {
  output_.end_token = event.token;
  trace(event, true, std::move(known));
  stop(Finish::end);
}

TOOLDECODE_INLINE void Sequence::trace(const TokenEvent& event, bool is_end,
                                       std::optional<TokenTrace> known) {
  if (!tracer_) return;
  tracer_->take(output_.trace,
                {.token           = event.token,
                 .origin          = event.forced ? TokenOrigin::forced : TokenOrigin::sampled,
                 .is_end          = is_end,
                 .log_probability = event.log_probability},
                std::move(known));
}

TOOLDECODE_INLINE void Sequence::allow_end_tokens() {
  const ConstraintRef& constraint = run_->constraint;
  const auto& tokens              = run_->options.end_tokens;
  if (tokens.empty() || !constraint.is_accepting(state_)) return;
  for (const TokenId token : tokens) {
    if (static_cast<std::size_t>(token) < constraint.vocabulary_size()) mask_.insert(token);
  }
}

TOOLDECODE_INLINE void Sequence::look_for_end() {
  const std::size_t emitted = output_.tokens.size();
  if (run_->constraint.is_finished(state_)) {
    stop(Finish::end);
  } else if (emitted >= run_->options.max_tokens) {
    stop(Finish::length);
  } else if (run_->prompt.size() + emitted > run_->context) {
    stop(Finish::context);
  }
}

}  // namespace tooldecode::decode
