/// \file
/// The concepts for models, draft models and constraints.
/// Concepts that need types of other folders are declared there: CallFormat in
/// formats/call_format.hpp, Drafter in draft/drafter.hpp, DraftHead in draft/draft_head.hpp,
/// AcceptanceRule in verify/acceptance_rule.hpp, ToolRuntime in execute/tool_runtime.hpp.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>

#include <tooldecode/core/mask_view.hpp>
#include <tooldecode/core/types.hpp>

namespace tooldecode {

/// A constraint's state: a small value. To fork a sequence, copy the state; to undo a token, keep
/// the earlier state.
template <class S>
concept ConstraintState = std::regular<S> && std::is_trivially_copyable_v<S> && sizeof(S) <= 16;

/// Decides which tokens may follow. Immutable, shared by all sequences, safe to use from any number
/// of threads.
///
/// `advance` returns the state after a token, or nothing if the token is not allowed. `fill_mask`
/// sets exactly the tokens that `advance` accepts. `is_accepting` says whether the text may end
/// here; an end token is then allowed. `jump_forward` returns the jump-forward string: the bytes that
/// every continuation begins with. A finished state is an ordinary state that allows only end
/// tokens.
template <class C>
concept ConstraintPolicy =
    ConstraintState<typename C::State> &&
    requires(const C& c, const typename C::State s, TokenId token, MaskView words) {
      { c.vocabulary_size() } -> std::convertible_to<std::size_t>;
      { c.initial() } -> std::same_as<typename C::State>;
      { c.advance(s, token) } -> std::same_as<std::optional<typename C::State>>;
      { c.fill_mask(s, words) };
      { c.is_accepting(s) } -> std::convertible_to<bool>;
      { c.is_finished(s) } -> std::convertible_to<bool>;
      { c.jump_forward(s) } -> std::convertible_to<std::string>;
    };

/// A language model that runs one linear sequence at a time over a cache that the caller owns.
///
/// The model is immutable and shared. All per-request data is in its `Cache`, a movable value
/// returned by `make_cache`. `forward` appends L >= 1 tokens and writes the logits after the last
/// one. `fork` copies a cache and shares its content; `truncate` drops the tokens past a length. A
/// model may also have `context_length()`, the number of tokens that a cache can hold.
template <class M>
concept Model = std::movable<typename M::Cache> &&
                requires(const M& m, typename M::Cache& cache, const typename M::Cache& shared,
                         std::span<const TokenId> tokens, std::span<float> logits, std::size_t n) {
                  { m.vocabulary_size() } -> std::convertible_to<std::size_t>;
                  { m.make_cache() } -> std::same_as<typename M::Cache>;
                  { m.length(shared) } -> std::convertible_to<std::size_t>;
                  { m.forward(cache, tokens, logits) };  // tokens [L], logits [V]
                  { m.fork(shared) } -> std::same_as<typename M::Cache>;
                  { m.truncate(cache, n) };
                };

/// A model that runs several sequences in one forward pass.
///
/// `forward_batch` appends L_i >= 1 tokens to each of B different caches and writes the logits
/// after the last token of each.
template <class M>
concept BatchModel = Model<M> && requires(const M& m, std::span<typename M::Cache* const> caches,
                                          std::span<const std::span<const TokenId>> tokens,
                                          std::span<float> logits) {
  { m.forward_batch(caches, tokens, logits) };  // caches [B], tokens [B][L_i], logits [B, V]
};

/// A model that runs a draft tree in one forward pass and keeps one path of it.
///
/// `forward_tree` runs N <= 64 tokens on top of the cache. Node i attends to the cache and to the
/// nodes whose bits are set in `ancestors[i]` (its own bit included). Its position is length +
/// depth(i), where the depth is the number of its ancestors without itself. The nodes do not count
/// towards the length: `commit` appends those of one path from a root, in order; any other call with
/// this cache discards them.
template <class M>
concept TreeModel =
    Model<M> && requires(const M& m, typename M::Cache& cache, std::span<const TokenId> tokens,
                         std::span<const std::uint64_t> ancestors, std::span<float> logits,
                         std::span<const std::size_t> path) {
      m.forward_tree(cache, tokens, ancestors, logits);  // ancestors [N], logits [N, V]
      m.commit(cache, path);                             // path: node indices, ascending
    };

/// A model that also exposes its last hidden states and its LM head's matrix, so that callers
/// multiply only the rows they need. The states are final: the head times a state gives the logits.
/// A state may be wider than the head, with leading numbers that only drafters read; the head then
/// multiplies its last numbers.
template <class M>
concept HeadModel = Model<M> && requires(const M& m, typename M::Cache& cache,
                                         std::span<const TokenId> tokens, std::span<float> hidden) {
  { m.hidden_size() } -> std::convertible_to<std::size_t>;
  { m.forward_hidden(cache, tokens, hidden) };  // tokens [L], hidden [L, H]
  { m.lm_head() };                              // a view of [V, H]
};

/// A HeadModel whose head is a row-major matrix in host memory.
template <class M>
concept HostHeadModel = HeadModel<M> && requires(const M& m) {
  m.lm_head().data();
  m.lm_head().rows();
  m.lm_head().cols();
};

/// A model that runs a draft tree and returns the hidden states of its nodes. Drafters read these,
/// and callers multiply only the rows of the head that a mask allows.
template <class M>
concept HeadTreeModel =
    TreeModel<M> && HeadModel<M> &&
    requires(const M& m, typename M::Cache& cache, std::span<const TokenId> tokens,
             std::span<const std::uint64_t> ancestors, std::span<float> hidden) {
      m.forward_tree_hidden(cache, tokens, ancestors, hidden);  // as forward_tree; hidden [N, H]
    };

/// A TreeModel that computes logits itself and returns final hidden states beside them, for drafters
/// that read these: the model of an engine, whose head is not at hand.
template <class M>
concept StateTreeModel =
    TreeModel<M> && requires(const M& m, typename M::Cache& cache, std::span<const TokenId> tokens,
                             std::span<const std::uint64_t> ancestors, std::span<float> logits,
                             std::span<float> hidden) {
      { m.hidden_size() } -> std::convertible_to<std::size_t>;
      m.forward_states(cache, tokens, logits, hidden);  // as in forward; hidden [L, H]
      m.forward_tree_states(cache, tokens, ancestors, logits,
                            hidden);  // as in forward_tree; hidden [N, H]
    };

/// A model that runs several sequences, drafts included, in one pass and returns hidden states.
///
/// `forward_batch_hidden` appends the tokens of each sequence whose ancestors are empty. It runs
/// the tokens of the others as `forward_tree_hidden` does; `commit` keeps a path of them in the
/// same way.
template <class M>
concept BatchTreeModel =
    HeadTreeModel<M> &&
    requires(const M& m, std::span<typename M::Cache* const> caches,
             std::span<const std::span<const TokenId>> tokens,
             std::span<const std::span<const std::uint64_t>> ancestors, std::span<float> hidden) {
      {
        m.forward_batch_hidden(caches, tokens, ancestors, hidden)
      };  // caches [B], tokens [B][L_i], ancestors [B][L_i or 0], hidden [sum of L_i, H]
    };

/// A small autoregressive model that predicts a target's hidden states. Entry i of its cache reads
/// the target's state at position i and the token at position i + 1, and predicts the state at i +
/// 1. The target's head turns that prediction into logits of the token at i + 2.
///
/// `forward` appends L entries of known states, of S numbers each, and drops draft nodes.
/// `forward_nodes` runs n draft nodes after the existing nodes, each with its parent's prediction
/// as its state; `ancestors` numbers all nodes since the last `forward`.
template <class D>
concept DraftModel = std::movable<typename D::Cache> &&
                     requires(const D& d, typename D::Cache& cache, const typename D::Cache& shared,
                              std::span<const TokenId> tokens, std::span<const float> states,
                              std::span<const std::uint64_t> ancestors, std::span<float> guesses) {
                       { d.hidden_size() } -> std::convertible_to<std::size_t>;
                       { d.state_size() } -> std::convertible_to<std::size_t>;
                       { d.make_cache() } -> std::same_as<typename D::Cache>;
                       { d.length(shared) } -> std::convertible_to<std::size_t>;
                       {
                         d.forward(cache, tokens, states, guesses)
                       };  // tokens [L], states [L, S], guesses [L, H]
                       {
                         d.forward_nodes(cache, tokens, states, ancestors, guesses)
                       };  // tokens [n], states [n, H], ancestors [n], guesses [n, H]
                     };

}  // namespace tooldecode
