/// \file
/// make_sampler: a constraint as a link of llama.cpp's chains of samplers.
#pragma once

#include <cmath>
#include <cstddef>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <tooldecode/constraint/token_mask.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>

#include <llama.h>

namespace tooldecode::llama_cpp {

namespace detail {

/// A constraint, and where a text is in it. After a token that the constraint does not allow, which a
/// program may force, nothing is masked any more.
template <Constraint C>
struct Sampler {
  explicit Sampler(std::shared_ptr<const C> shared)
      : constraint(std::move(shared)),
        state(constraint->initial()),
        mask(constraint->vocabulary_size()) {}

  static Sampler& of(const llama_sampler* sampler) { return *static_cast<Sampler*>(sampler->ctx); }

  static const char* name(const llama_sampler*) { return "tooldecode"; }
  static void accept(llama_sampler* sampler, llama_token token) {
    Sampler& self = of(sampler);
    if (!self.state || self.constraint->is_finished(*self.state)) return;
    self.state     = self.constraint->advance(*self.state, token);
    self.is_filled = false;
  }
  static void apply(llama_sampler* sampler, llama_token_data_array* candidates) {
    Sampler& self = of(sampler);
    if (!self.state) return;
    if (!self.is_filled) {
      self.constraint->fill_mask(*self.state, self.mask.words());
      self.is_filled = true;
    }
    for (std::size_t i = 0; i < candidates->size; ++i) {
      const llama_token token = candidates->data[i].id;
      if (static_cast<std::size_t>(token) >= self.constraint->vocabulary_size() ||
          !self.mask.contains(token))
        candidates->data[i].logit = -std::numeric_limits<float>::infinity();
    }
  }
  static void reset(llama_sampler* sampler) {
    Sampler& self  = of(sampler);
    self.state     = self.constraint->initial();
    self.is_filled = false;
  }
  static llama_sampler* clone(const llama_sampler* sampler) { return make(of(sampler)); }
  static void free(llama_sampler* sampler) { delete &of(sampler); }
  static void copy_state(const llama_sampler* from, llama_sampler* to) {
    of(to).state     = of(from).state;
    of(to).is_filled = false;
  }

  // Older interfaces have no such member.
  template <class Interface>
  static void set_copy_state(Interface& all) {
    if constexpr (requires { all.copy_state; }) all.copy_state = copy_state;
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
      set_copy_state(all);
      return all;
    }();
    auto owned             = std::make_unique<Sampler>(std::move(sampler));
    llama_sampler* created = llama_sampler_init(&interface, owned.get());
    static_cast<void>(owned.release());
    return created;
  }

  std::shared_ptr<const C> constraint;
  std::optional<typename C::State> state;  // nothing: past a token that was not allowed
  TokenMask mask;
  bool is_filled = false;
};

}  // namespace detail

/// A sampler of llama.cpp that leaves the tokens that a constraint allows: put into a chain before those
/// that choose (`llama_sampler_chain_add`), which then owns it, or freed by `llama_sampler_free`.
///
/// Text before a call is free where the constraint allows it: a ToolCallFSM with ToolChoice::automatic
/// is lazy, a call begins with its format's mark. `llama_sampler_clone` keeps the place in the text,
/// `llama_sampler_reset` begins a new one. The constraint is shared, and may serve any number of samplers
/// in any number of threads; a sampler itself is used by one at a time.
///
/// \par Complexity  a mask of the constraint and O(candidates) per token
template <Constraint C>
[[nodiscard]] llama_sampler* make_sampler(std::shared_ptr<const C> constraint) {
  return detail::Sampler<C>::make(detail::Sampler<C>(std::move(constraint)));
}
/// The same for a constraint of its own.
template <Constraint C>
[[nodiscard]] llama_sampler* make_sampler(C constraint) {
  return make_sampler(std::make_shared<const C>(std::move(constraint)));
}

}  // namespace tooldecode::llama_cpp
