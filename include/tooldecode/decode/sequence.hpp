/// \file
/// Sequence: one answer while it is decoded, for strategies that decode one or several.
#pragma once

#include <algorithm>
#include <bit>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/constraint/token_mask.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/ending.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/decode/trace.hpp>
#include <tooldecode/draft/draft_tree.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>
#include <tooldecode/logits/masked_softmax.hpp>
#include <tooldecode/logits/selection.hpp>

namespace tooldecode::decode {

/// The most tokens that a model's sequence can hold: its `context_length()`, or no limit where it
/// has no such member.
template <Model M>
[[nodiscard]] std::size_t context_length_of(const M& model) {
  if constexpr (requires {
                  { model.context_length() } -> std::convertible_to<std::size_t>;
                }) {
    return model.context_length();
  } else {
    return std::numeric_limits<std::size_t>::max();
  }
}

/// The only token of a mask; nothing where there are none or several.
[[nodiscard]] std::optional<TokenId> find_only_token(ConstMaskView mask) noexcept;

/// Time since it was made or last asked.
class Stopwatch {
 public:
  void add_to(std::chrono::nanoseconds& phase);

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

/// What all sequences of a run share; it outlives them.
template <Constraint C>
struct Run {
  const C& constraint;
  std::span<const TokenId> prompt;
  const LogitsPipeline& pipeline;
  const DecodeOptions& options;
  std::size_t context = std::numeric_limits<std::size_t>::max();  ///< tokens that a cache holds
  /// What makes answers end in time, or null.
  std::shared_ptr<Ending<C>> ending = Ending<C>::make(constraint, pipeline, options);

  /// The most tokens that can be chosen, an end token included.
  [[nodiscard]] std::size_t max_tokens() const noexcept {
    return std::min(options.max_tokens, context - prompt.size() + 1);
  }

  /// Throws where an answer that must end has no room for it.
  void require_room() const {
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
};

/// One answer to a prompt: its constraint's state, what it has emitted, what its model's cache has
/// yet to read, and whether it has ended.
///
/// Each token is found, by `find_forced` or else by `make_distribution` and a choice, and then
/// taken; the strategy runs the model in between. A copy is a branch.
///
/// \par Shapes      distribution [V]; keeps a mask [ceil(V / 32)]
/// \par Complexity  find_forced and take as the constraint, the rest O(V); a copy O(L + V / 32)
template <Constraint C>
class Sequence {
 public:
  /// \param run   what the sequences of a run share
  /// \param seed  of the noise
  Sequence(const Run<C>& run, std::uint64_t seed)
      : run_(&run),
        seed_(seed),
        state_(run.constraint.initial()),
        mask_(run.constraint.vocabulary_size()),
        unread_(run.prompt.begin(), run.prompt.end()) {
    if (const auto removed = run.options.trace) {
      tracer_.emplace(*removed);
      output_.trace.begin = Tracer::Clock::now();
      all_                = TokenMask(run.constraint.vocabulary_size());
      for (std::uint32_t& word : all_.words()) word = ~std::uint32_t{0};
      const std::size_t rest = run.constraint.vocabulary_size() % 32;
      if (rest != 0) all_.words().back() = (std::uint32_t{1} << rest) - 1;
    }
    ends_in_time_ = run.ending && run.ending->can_end(state_, run.max_tokens());
    look_for_end();
  }

  /// Whether it has ended, and `output().finish` says why.
  [[nodiscard]] bool is_finished() const noexcept { return finished_; }
  /// Tokens chosen so far, an end token included.
  [[nodiscard]] std::size_t length() const noexcept {
    return output_.tokens.size() + (output_.end_token ? 1 : 0);
  }
  /// What is emitted; the strategy accounts for passes and times.
  [[nodiscard]] Output& output() noexcept { return output_; }
  [[nodiscard]] const Output& output() const noexcept { return output_; }
  /// The constraint's state after what is emitted.
  [[nodiscard]] typename C::State state() const noexcept { return state_; }
  /// Tokens that the model has yet to read before it gives the next distribution.
  [[nodiscard]] std::span<const TokenId> unread() const noexcept { return unread_; }
  /// Says that the model has read them, or the first so many.
  void mark_read() noexcept { unread_.clear(); }
  void mark_read(std::size_t count) {
    unread_.erase(unread_.begin(), unread_.begin() + static_cast<std::ptrdiff_t>(count));
  }
  /// Says that the model has forgotten all, the prompt too.
  void mark_unread() {
    unread_.assign(run_->prompt.begin(), run_->prompt.end());
    unread_.insert(unread_.end(), output_.tokens.begin(), output_.tokens.end());
  }

  /// The next token where it is the only one and the options spare its pass; fills the mask for
  /// `make_distribution` in any case.
  [[nodiscard]] std::optional<TokenEvent> find_forced() {
    return find_forced([](MaskView) {});
  }
  /// The same, where `narrow(mask)` may forbid further tokens.
  template <class Narrow>
  [[nodiscard]] std::optional<TokenEvent> find_forced(Narrow narrow) {
    if (tracer_) tracer_->resume();
    run_->constraint.fill_mask(state_, mask_.words());
    allow_end_tokens();
    if (ends_in_time_) {
      run_->ending->narrow(state_, run_->max_tokens() - output_.tokens.size(), mask_.words());
      output_.searches_given_up = run_->ending->counts().searches_given_up;
    }
    narrow(mask_.words());
    trace_time(Phase::constraint);
    if (!run_->options.skip_forced) return std::nullopt;
    const auto token = find_only_token(mask_.words());
    if (!token || run_->pipeline.is_banned(*token)) return std::nullopt;
    return TokenEvent{.token = *token, .index = output_.tokens.size(), .forced = true};
  }

  /// The tokens that `find_forced` found allowed.
  [[nodiscard]] ConstMaskView mask() const noexcept { return mask_.words(); }

  /// The tokens whose logits `make_distribution` is to be given: those allowed, or all where a trace
  /// tells of the others.
  [[nodiscard]] ConstMaskView wanted() const noexcept {
    return tracer_ ? ConstMaskView(all_.words()) : mask();
  }

  /// Makes the distribution of the next token from the model's logits, in place.
  void make_distribution(std::span<float> row) {
    if (tracer_) tracer_->see(output_.trace, row, mask());
    run_->pipeline.apply(row, mask_.words(),
                         {.prompt = run_->prompt, .generated = output_.tokens, .branch = {}});
  }

  /// Makes the distribution and chooses by it; nothing where no token may be chosen, and it is then
  /// stuck.
  [[nodiscard]] std::optional<TokenEvent> draw(std::span<float> row) {
    return draw(row, [this](std::span<const float> distribution, NoiseKey key) {
      return find_token(distribution, run_->options.temperature, key);
    });
  }
  /// The same, where `choose(distribution, key)` chooses.
  template <class Choose>
  [[nodiscard]] std::optional<TokenEvent> draw(std::span<float> row, Choose choose) {
    make_distribution(row);
    const std::uint64_t position = run_->prompt.size() + output_.tokens.size();
    const std::optional<TokenId> token =
        choose(std::span<const float>(row), NoiseKey{.seed = seed_, .position = position});
    trace_time(Phase::sampling);
    if (!token) {
      stop(Finish::stuck);
      return std::nullopt;
    }
    return TokenEvent{
        .token = *token,
        .index = output_.tokens.size(),
        .log_probability =
            static_cast<double>(row[static_cast<std::size_t>(*token)]) - log_sum_exp(row)};
  }

  /// Goes on with a token, or ends with it.
  ///
  /// \param known  the token's trace, where it is not of this sequence's own choice
  void take(const TokenEvent& event, std::optional<TokenTrace> known = {}) {
    const C& constraint    = run_->constraint;
    const auto& end_tokens = run_->options.end_tokens;
    const bool is_stop =
        std::find(end_tokens.begin(), end_tokens.end(), event.token) != end_tokens.end();
    if (is_stop && constraint.is_accepting(state_)) return end(event, std::move(known));
    const auto next = constraint.advance(state_, event.token);
    if (!next) return stop(Finish::stuck);
    if (constraint.is_finished(*next)) {
      // A finished state allows the end tokens alone, which tells them from a last token of text.
      constraint.fill_mask(*next, mask_.words());
      if (mask_.contains(event.token)) return end(event, std::move(known));
    }
    state_ = *next;
    output_.tokens.push_back(event.token);
    output_.log_probabilities.push_back(event.log_probability);
    output_.forced_tokens += event.forced;
    forced_.push_back(event.forced);
    unread_.push_back(event.token);
    trace(event, false, std::move(known));
    const auto& ends_after = run_->options.ends_after;
    if (ends_after && ends_after(event)) return stop(Finish::stopped);
    look_for_end();
  }

  /// Ends it.
  void stop(Finish reason) noexcept {
    output_.finish = reason;
    finished_      = true;
  }

  /// Says what the time since it was last said was spent on, and that a draft is to be verified: for
  /// the trace, where there is one.
  void trace_time(Phase phase) {
    if (tracer_) tracer_->spend(output_.trace, phase);
  }
  void trace_draft(const DraftTree& tree) {
    if (tracer_) tracer_->open(output_.trace, tree);
  }
  void untrace_draft() {
    if (tracer_) tracer_->drop(output_.trace);
  }

  /// Tells the run's listener of the tokens since the last report.
  void report() {
    const auto& listener = run_->options.on_token;
    for (; listener && reported_ < output_.tokens.size(); ++reported_) {
      listener({.token           = output_.tokens[reported_],
                .index           = reported_,
                .log_probability = output_.log_probabilities[reported_],
                .forced          = forced_[reported_]});
    }
  }

 private:
  void end(const TokenEvent& event, std::optional<TokenTrace> known) {
    output_.end_token = event.token;
    trace(event, true, std::move(known));
    stop(Finish::end);
  }
  void trace(const TokenEvent& event, bool is_end, std::optional<TokenTrace> known) {
    if (!tracer_) return;
    tracer_->take(output_.trace,
                  {.token           = event.token,
                   .origin          = event.forced ? TokenOrigin::forced : TokenOrigin::sampled,
                   .is_end          = is_end,
                   .log_probability = event.log_probability},
                  std::move(known));
  }
  // Those of the run, where the answer may end.
  void allow_end_tokens() {
    const C& constraint = run_->constraint;
    const auto& tokens  = run_->options.end_tokens;
    if (tokens.empty() || !constraint.is_accepting(state_)) return;
    for (const TokenId token : tokens) {
      const auto t = static_cast<std::size_t>(token);
      if (token < 0 || t >= constraint.vocabulary_size()) continue;
      mask_.words()[t / 32] |= std::uint32_t{1} << (t % 32);
    }
  }
  void look_for_end() {
    const std::size_t emitted = output_.tokens.size();
    if (run_->constraint.is_finished(state_)) {
      stop(Finish::end);
    } else if (emitted >= run_->options.max_tokens) {
      stop(Finish::length);
    } else if (run_->prompt.size() + emitted > run_->context) {
      stop(Finish::context);
    }
  }

  const Run<C>* run_;
  std::uint64_t seed_;
  typename C::State state_;
  TokenMask mask_;  // [ceil(V / 32)]
  TokenMask all_;   // the same, of all tokens, for a trace
  Output output_;
  std::optional<Tracer> tracer_;
  std::vector<bool> forced_;
  std::vector<TokenId> unread_;
  std::size_t reported_ = 0;
  bool ends_in_time_    = false;  // the run sees to it
  bool finished_        = false;
};

}  // namespace tooldecode::decode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/decode/sequence.ipp>
#endif
