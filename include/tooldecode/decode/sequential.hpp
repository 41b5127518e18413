/// \file
/// Sequential: the strategy that decodes one token after another.
#pragma once

#include <algorithm>
#include <bit>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include <tooldecode/constraint/token_mask.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>
#include <tooldecode/logits/masked_softmax.hpp>
#include <tooldecode/logits/selection.hpp>

namespace tooldecode {

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
[[nodiscard]] inline std::optional<TokenId> find_only_token(
    std::span<const std::uint32_t> mask) noexcept {
  std::optional<TokenId> only;
  for (std::size_t w = 0; w < mask.size(); ++w) {
    if (mask[w] == 0) continue;
    if (only || !std::has_single_bit(mask[w])) return std::nullopt;
    only = static_cast<TokenId>(32 * w + static_cast<std::size_t>(std::countr_zero(mask[w])));
  }
  return only;
}

/// Chooses from a law: greedy at temperature 0, else by the position's Gumbel noise.
[[nodiscard]] inline std::optional<TokenId> find_token(std::span<const float> law,
                                                       const DecodeOptions& options,
                                                       std::size_t position) noexcept {
  if (options.temperature == 0) return find_greedy(law);
  return find_gumbel(law, {.seed = options.seed, .position = position});
}

/// Decodes one token per forward pass, save where the constraint leaves only one.
///
/// A token that is the only one allowed is emitted without asking the model, and joins the tokens
/// of the next forward pass; the output is the same as without this shortcut, for the law of such a
/// token is certainty. Nothing throws for what a model can produce.
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
    Output out;
    auto cache                = model.make_cache();
    auto state                = constraint.initial();
    const std::size_t context = context_length_of(model);
    std::vector<float> row(model.vocabulary_size());  // [V]
    TokenMask mask(constraint.vocabulary_size());     // [ceil(V / 32)]
    std::vector<TokenId> unread(prompt.begin(), prompt.end());

    for (;;) {
      const std::size_t position = prompt.size() + out.tokens.size();
      if (constraint.is_finished(state)) return finished(out, Finish::end);
      if (out.tokens.size() >= options.max_tokens) return finished(out, Finish::length);
      if (position > context) return finished(out, Finish::context);

      Stopwatch watch;
      constraint.fill_mask(state, mask.words());
      std::optional<TokenId> token;
      if (options.skip_forced) token = find_only_token(mask.words());
      if (token && pipeline.is_banned(*token)) token.reset();
      watch.add_to(out.times.constraint);

      TokenEvent event{.index = out.tokens.size(), .forced = token.has_value()};
      if (!token) {
        model.forward(cache, unread, row);
        unread.clear();
        watch.add_to(out.passes++ == 0 ? out.times.prefill : out.times.model);
        pipeline.apply(row, mask.words(),
                       {.prompt = prompt, .generated = out.tokens, .branch = {}});
        token = find_token(row, options, position);
        if (!token) return finished(out, Finish::stuck);
        event.log_probability =
            static_cast<double>(row[static_cast<std::size_t>(*token)]) - log_sum_exp(row);
        watch.add_to(out.times.sampling);
      }

      const bool is_stop = std::find(options.end_tokens.begin(), options.end_tokens.end(),
                                     *token) != options.end_tokens.end();
      if (is_stop && constraint.is_accepting(state)) return finished(out, Finish::end);
      const auto next = constraint.advance(state, *token);
      if (!next) return finished(out, Finish::stuck);
      if (constraint.is_finished(*next)) {
        // A finished state allows the end tokens alone, which tells them from a last token of text.
        constraint.fill_mask(*next, mask.words());
        if (mask.contains(*token)) return finished(out, Finish::end);
      }
      state = *next;
      watch.add_to(out.times.constraint);

      event.token = *token;
      out.tokens.push_back(event.token);
      out.log_probabilities.push_back(event.log_probability);
      out.forced_tokens += event.forced;
      unread.push_back(event.token);
      if (options.on_token) options.on_token(event);
    }
  }

 private:
  class Stopwatch {
   public:
    void add_to(std::chrono::nanoseconds& phase) {
      const auto now = std::chrono::steady_clock::now();
      phase += now - last_;
      last_ = now;
    }

   private:
    std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  };

  static Output finished(Output& out, Finish reason) {
    out.finish = reason;
    return std::move(out);
  }
};

}  // namespace tooldecode
