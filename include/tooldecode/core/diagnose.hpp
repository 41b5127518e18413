/// \file
/// Reports the members that a type lacks for a concept, all at once, each with the line to add.
/// The diagnoses of other folders' concepts are declared next to those concepts.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/types.hpp>

/// Compile-time checks with readable errors. Class templates begin with
/// `static_assert(diagnose::is_model<M>());` or the like.
namespace tooldecode::diagnose {

namespace detail {
template <class>
inline constexpr bool never = false;
}  // namespace detail

/// True if M is a Model; otherwise a compile error for each missing member.
template <class M>
consteval bool is_model() {
  using Tokens = std::span<const TokenId>;
  if constexpr (Model<M>) {
  } else if constexpr (!requires { typename M::Cache; }) {
    static_assert(detail::never<M>,
                  "Model: add 'using Cache = ...;', the value that holds one sequence");
  } else {
    using Cache = typename M::Cache;
    static_assert(
        std::movable<Cache>,
        "Model: make Cache movable: 'Cache(Cache&&) = default; Cache& operator=(Cache&&) = default;'");
    static_assert(
        requires(const M& m) {
          { m.vocabulary_size() } -> std::convertible_to<std::size_t>;
        }, "Model: add 'std::size_t vocabulary_size() const;', the logits per position");
    static_assert(
        requires(const M& m) {
          { m.make_cache() } -> std::same_as<Cache>;
        }, "Model: add 'Cache make_cache() const;', an empty sequence");
    static_assert(
        requires(const M& m, const Cache& cache) {
          { m.length(cache) } -> std::convertible_to<std::size_t>;
        }, "Model: add 'std::size_t length(const Cache&) const;', the tokens in a cache");
    static_assert(
        requires(const M& m, Cache& cache, Tokens tokens, std::span<float> logits) {
          m.forward(cache, tokens, logits);
        },
        "Model: add 'void forward(Cache&, std::span<const TokenId> tokens, std::span<float> logits) const;'");
    static_assert(
        requires(const M& m, const Cache& cache) {
          { m.fork(cache) } -> std::same_as<Cache>;
        }, "Model: add 'Cache fork(const Cache&) const;', a copy that shares what is there");
    static_assert(
        requires(const M& m, Cache& cache, std::size_t length) { m.truncate(cache, length); },
        "Model: add 'void truncate(Cache&, std::size_t length) const;', which forgets later tokens");
  }
  return true;
}

/// True if M is a TreeModel; otherwise a compile error for each missing member.
template <class M>
consteval bool is_tree_model() {
  if constexpr (TreeModel<M>) {
  } else if constexpr (!Model<M>) {
    return is_model<M>();
  } else {
    static_assert(
        requires(const M& m, typename M::Cache& cache, std::span<const TokenId> tokens,
                 std::span<const std::uint64_t> ancestors,
                 std::span<float> logits) { m.forward_tree(cache, tokens, ancestors, logits); },
        "TreeModel: add 'void forward_tree(Cache&, std::span<const TokenId> tokens, std::span<const std::uint64_t> ancestors, std::span<float> logits) const;'");
    static_assert(
        requires(const M& m, typename M::Cache& cache, std::span<const std::size_t> path) {
          m.commit(cache, path);
        },
        "TreeModel: add 'void commit(Cache&, std::span<const std::size_t> path) const;', which keeps one path of the tree");
  }
  return true;
}

/// True if M is a HeadModel; otherwise a compile error for each missing member.
template <class M>
consteval bool is_head_model() {
  if constexpr (HeadModel<M>) {
  } else if constexpr (!Model<M>) {
    return is_model<M>();
  } else {
    static_assert(
        requires(const M& m) {
          { m.hidden_size() } -> std::convertible_to<std::size_t>;
        }, "HeadModel: add 'std::size_t hidden_size() const;', the width of a hidden state");
    static_assert(
        requires(const M& m, typename M::Cache& cache, std::span<const TokenId> tokens,
                 std::span<float> hidden) { m.forward_hidden(cache, tokens, hidden); },
        "HeadModel: add 'void forward_hidden(Cache&, std::span<const TokenId> tokens, std::span<float> hidden) const;'");
    static_assert(
        requires(const M& m) { m.lm_head(); },
        "HeadModel: add 'lm_head() const', a view of the head's matrix, one row per token");
  }
  return true;
}

/// True if M is a HostHeadModel; otherwise a compile error for each missing member.
template <class M>
consteval bool is_host_head_model() {
  if constexpr (HostHeadModel<M>) {
  } else if constexpr (!HeadModel<M>) {
    return is_head_model<M>();
  } else {
    static_assert(
        detail::never<M>,
        "HostHeadModel: add 'data()', 'rows()' and 'cols()' to what lm_head() returns, a row-major matrix in the host's memory");
  }
  return true;
}

/// True if M is a HeadTreeModel; otherwise a compile error for each missing member.
template <class M>
consteval bool is_head_tree_model() {
  if constexpr (HeadTreeModel<M>) {
  } else if constexpr (!TreeModel<M>) {
    return is_tree_model<M>();
  } else if constexpr (!HeadModel<M>) {
    return is_head_model<M>();
  } else {
    static_assert(
        detail::never<M>,
        "HeadTreeModel: add 'void forward_tree_hidden(Cache&, std::span<const TokenId> tokens, std::span<const std::uint64_t> ancestors, std::span<float> hidden) const;', the states that a drafter reads");
  }
  return true;
}

/// True if D is a DraftModel; otherwise a compile error for each missing member.
template <class D>
consteval bool is_draft_model() {
  using Tokens = std::span<const TokenId>;
  using States = std::span<const float>;
  using Masks  = std::span<const std::uint64_t>;
  if constexpr (DraftModel<D>) {
  } else if constexpr (!requires { typename D::Cache; }) {
    static_assert(detail::never<D>,
                  "DraftModel: add 'using Cache = ...;', the value that holds one sequence");
  } else {
    using Cache = typename D::Cache;
    static_assert(
        std::movable<Cache>,
        "DraftModel: make Cache movable: 'Cache(Cache&&) = default; Cache& operator=(Cache&&) = default;'");
    static_assert(
        requires(const D& d) {
          { d.hidden_size() } -> std::convertible_to<std::size_t>;
        }, "DraftModel: add 'std::size_t hidden_size() const;', the width of a guess");
    static_assert(
        requires(const D& d) {
          { d.state_size() } -> std::convertible_to<std::size_t>;
        },
        "DraftModel: add 'std::size_t state_size() const;', the width of the target's states that forward reads");
    static_assert(
        requires(const D& d) {
          { d.make_cache() } -> std::same_as<Cache>;
        }, "DraftModel: add 'Cache make_cache() const;', an empty sequence");
    static_assert(
        requires(const D& d, const Cache& cache) {
          { d.length(cache) } -> std::convertible_to<std::size_t>;
        }, "DraftModel: add 'std::size_t length(const Cache&) const;', the entries in a cache");
    static_assert(
        requires(const D& d, Cache& cache, Tokens tokens, States states, std::span<float> guesses) {
          d.forward(cache, tokens, states, guesses);
        },
        "DraftModel: add 'void forward(Cache&, std::span<const TokenId> tokens, std::span<const float> states, std::span<float> guesses) const;'");
    static_assert(
        requires(const D& d, Cache& cache, Tokens tokens, States states, Masks ancestors,
                 std::span<float> guesses) {
          d.forward_nodes(cache, tokens, states, ancestors, guesses);
        },
        "DraftModel: add 'void forward_nodes(Cache&, std::span<const TokenId> tokens, std::span<const float> states, std::span<const std::uint64_t> ancestors, std::span<float> guesses) const;'");
  }
  return true;
}

/// True if C is a ConstraintPolicy; otherwise a compile error for each missing member.
template <class C>
consteval bool is_constraint() {
  if constexpr (ConstraintPolicy<C>) {
  } else if constexpr (!requires { typename C::State; }) {
    static_assert(
        detail::never<C>,
        "ConstraintPolicy: add 'using State = ...;', a regular value of at most 16 bytes");
  } else {
    using State = typename C::State;
    static_assert(ConstraintState<State>,
                  "ConstraintPolicy: make State regular, trivially copyable and at most 16 bytes");
    static_assert(
        requires(const C& c) {
          { c.vocabulary_size() } -> std::convertible_to<std::size_t>;
        }, "ConstraintPolicy: add 'std::size_t vocabulary_size() const;', the bits of a mask");
    static_assert(
        requires(const C& c) {
          { c.initial() } -> std::same_as<State>;
        }, "ConstraintPolicy: add 'State initial() const;'");
    static_assert(
        requires(const C& c, const State s, TokenId token) {
          { c.advance(s, token) } -> std::same_as<std::optional<State>>;
        }, "ConstraintPolicy: add 'std::optional<State> advance(State, TokenId) const;'");
    static_assert(
        requires(const C& c, const State s, MaskView words) { c.fill_mask(s, words); },
        "ConstraintPolicy: add 'void fill_mask(State, MaskView) const;', a bit for each allowed token");
    static_assert(
        requires(const C& c, const State s) {
          { c.is_accepting(s) } -> std::convertible_to<bool>;
        },
        "ConstraintPolicy: add 'bool is_accepting(State) const;', whether the text may end here");
    static_assert(
        requires(const C& c, const State s) {
          { c.is_finished(s) } -> std::convertible_to<bool>;
        },
        "ConstraintPolicy: add 'bool is_finished(State) const;', whether only end tokens may follow");
    static_assert(
        requires(const C& c, const State s) {
          { c.jump_forward(s) } -> std::convertible_to<std::string>;
        },
        "ConstraintPolicy: add 'std::string jump_forward(State) const;', the bytes that must follow");
  }
  return true;
}

}  // namespace tooldecode::diagnose
