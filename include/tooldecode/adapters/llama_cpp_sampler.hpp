/// \file
/// make_sampler: a constraint as a sampler of llama.cpp.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <tooldecode/constraint/constraint_ref.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/ending.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>
#include <tooldecode/mask/token_mask.hpp>

#include <llama.h>

namespace tooldecode::llama_cpp {

/// How a sampler's text ends.
struct SamplerOptions {
  /// Guarantees that no text is cut: near this limit, the end token included, tokens after which
  /// the text could not end in time are removed; see Completions. Empty: no limit.
  std::optional<std::size_t> max_tokens = {};
  std::uint64_t max_completion_steps    = 200'000;  ///< as CompletionOptions::max_steps
};

namespace detail {

// Older interfaces lack this member.
template <class Interface>
void set_copy_state(Interface& all, void (*copy)(const llama_sampler*, llama_sampler*)) {
  if constexpr (requires { all.copy_state; }) all.copy_state = copy;
}

/// A constraint and a text's state in it. A program may force a token that the constraint does not
/// allow; from then on nothing is masked.
template <ConstraintPolicy C>
struct Sampler {
  Sampler(std::shared_ptr<const C> shared, const SamplerOptions& settings)
      : constraint(std::move(shared)),
        options(settings),
        state(constraint->initial()),
        mask(constraint->vocabulary_size()) {
    if (!options.max_tokens) return;
    add_ending();
    const auto least = ending->shortest(ConstraintRef::State(*state), *options.max_tokens);
    if (least && *least <= *options.max_tokens) return;
    throw Error(Errc::invalid_option, "max_tokens", *options.max_tokens,
                least
                    ? "must be at least " + std::to_string(*least) + ", which the shortest text has"
                    : "must be more, or none: no text that ends was found");
  }
  /// Each sampler has its own completions.
  [[nodiscard]] Sampler clone() const {
    Sampler copy = *this;
    copy.ending  = nullptr;
    copy.attempt([&] { copy.add_ending(); });
    return copy;
  }
  void add_ending() {
    if (ending || !options.max_tokens) return;
    ending = decode::Ending::make(
        *constraint, LogitsPipeline{},
        {.always_ends = true, .max_completion_steps = options.max_completion_steps});
  }

  /// Goes on with new memory where the constraint's has grown past its budget.
  void renew() {
    if constexpr (std::copyable<C> && requires(C& copy) { copy.reset(); }) {
      C copy = *constraint;
      copy.reset();
      if (copy.initial() == constraint->initial()) return;
      ending     = nullptr;  // of the old memory
      constraint = std::make_shared<const C>(std::move(copy));
    }
  }

  /// llama.cpp calls from C, where an exception would end the program for all its answers: after an
  /// error only end tokens stay.
  template <class Work>
  void attempt(const Work& work) {
    if (has_failed) return;
    try {
      work();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "tooldecode: an answer ends, as its constraint failed: %s\n",
                   error.what());
      has_failed = is_filled = true;
      if (!state) state.emplace(constraint->initial());
      mask = TokenMask(constraint->vocabulary_size());
      if constexpr (requires { constraint->vocabulary().end_tokens(); }) {
        for (const TokenId end : constraint->vocabulary().end_tokens()) mask.insert(end);
      }
    }
  }
  void fill() {
    if (is_filled) return;
    constraint->fill_mask(*state, mask.words());
    if (ending && taken < *options.max_tokens) {
      ending->narrow(ConstraintRef::State(*state), *options.max_tokens - taken, mask.words());
    }
    is_filled = true;
  }

  static Sampler& of(const llama_sampler* sampler) { return *static_cast<Sampler*>(sampler->ctx); }

  static const char* name(const llama_sampler*) { return "tooldecode"; }
  static void accept(llama_sampler* sampler, llama_token token) {
    Sampler& self = of(sampler);
    self.attempt([&] {
      if (!self.state || self.constraint->is_finished(*self.state)) return;
      self.state     = self.constraint->advance(*self.state, token);
      self.is_filled = false;
      ++self.taken;
    });
  }
  static void apply(llama_sampler* sampler, llama_token_data_array* candidates) {
    Sampler& self = of(sampler);
    if (!self.state) return;
    self.attempt([&] { self.fill(); });
    for (std::size_t i = 0; i < candidates->size; ++i) {
      const llama_token token = candidates->data[i].id;
      if (static_cast<std::size_t>(token) >= self.constraint->vocabulary_size() ||
          !self.mask.contains(token))
        candidates->data[i].logit = -std::numeric_limits<float>::infinity();
    }
  }
  static void reset(llama_sampler* sampler) {
    Sampler& self   = of(sampler);
    self.has_failed = false;
    self.attempt([&] {
      self.renew();
      self.add_ending();
      self.state     = self.constraint->initial();
      self.is_filled = false;
      self.taken     = 0;
    });
  }
  static llama_sampler* clone(const llama_sampler* sampler) { return make(of(sampler).clone()); }
  static void free(llama_sampler* sampler) { delete &of(sampler); }
  static void copy_state(const llama_sampler* from, llama_sampler* to) {
    Sampler& self      = of(to);
    const Sampler& one = of(from);
    if (self.constraint != one.constraint) self.ending = nullptr;
    self.constraint = one.constraint;
    self.state      = one.state;
    self.taken      = one.taken;
    self.has_failed = one.has_failed;
    self.is_filled  = one.has_failed;
    if (self.has_failed) self.mask = one.mask;
    self.attempt([&] { self.add_ending(); });
  }

  static llama_sampler* make(Sampler sampler) {
    static llama_sampler_i interface = [] {
      llama_sampler_i all{};
      all.name   = name;
      all.accept = accept;
      all.apply  = apply;
      all.reset  = reset;
      all.clone  = clone;
      all.free   = free;
      set_copy_state(all, copy_state);
      return all;
    }();
    auto owned             = std::make_unique<Sampler>(std::move(sampler));
    llama_sampler* created = llama_sampler_init(&interface, owned.get());
    static_cast<void>(owned.release());
    return created;
  }

  std::shared_ptr<const C> constraint;
  SamplerOptions options;
  std::shared_ptr<decode::Ending> ending{};
  std::optional<typename C::State> state;  // empty after a token that was not allowed
  std::size_t taken = 0;
  TokenMask mask;
  bool is_filled  = false;
  bool has_failed = false;
};

}  // namespace detail

/// Makes a sampler of llama.cpp that keeps only the tokens that a constraint allows. Put it into a
/// chain before the samplers that choose (`llama_sampler_chain_add`); the chain then owns it.
/// Otherwise free it with `llama_sampler_free`.
///
/// Text before a call is free if the constraint allows it: a ToolCallFSM with ToolChoice::automatic
/// is lazy, and a call begins with its format's trigger. `llama_sampler_clone` keeps the place in
/// the text; `llama_sampler_reset` begins a new text, in new memory where the constraint has `reset`
/// and has grown past its budget. The constraint is shared and may serve any
/// number of samplers in any number of threads; use a sampler in one thread at a time.
///
/// \par Complexity  a mask of the constraint and O(candidates) per token, plus Completions
/// \par Errors      Error{invalid_option} if `max_tokens` is below the shortest text, or is set for
///                  a constraint that is not a grammar. If a mask or a token later costs more than
///                  its limit, only end tokens stay, and a line on stderr says why
template <ConstraintPolicy C>
[[nodiscard]] llama_sampler* make_sampler(std::shared_ptr<const C> constraint,
                                          const SamplerOptions& options = {}) {
  return detail::Sampler<C>::make(detail::Sampler<C>(std::move(constraint), options));
}
/// Makes a sampler with its own copy of a constraint.
template <ConstraintPolicy C>
[[nodiscard]] llama_sampler* make_sampler(C constraint, const SamplerOptions& options = {}) {
  return make_sampler(std::make_shared<const C>(std::move(constraint)), options);
}

}  // namespace tooldecode::llama_cpp
