/// \file
/// What models, draft models and constraints must offer to take part. The concepts that need types
/// of a later folder stand there: CallFormat in tools/call_format.hpp, Drafter in
/// draft/drafter.hpp, DraftHead in draft/draft_head.hpp, AcceptanceRule in
/// verify/acceptance_rule.hpp, ToolRuntime in execute/tool_runtime.hpp.
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

/// A constraint's state: a small value, so that forking a branch is copying it and undoing a token
/// is forgetting it.
template <class S>
concept ConstraintState = std::regular<S> && std::is_trivially_copyable_v<S> && sizeof(S) <= 16;

/// Decides which tokens may follow: immutable, shared, safe from any number of threads.
///
/// `advance` gives the state after a token, or nothing where the token is not allowed; `fill_mask`
/// writes exactly the tokens that `advance` accepts; `is_accepting` says whether the text may end
/// here (an end token is then allowed); `forced` gives the bytes that every continuation begins
/// with. A finished state is an ordinary state that allows the end tokens alone.
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
      { c.forced(s) } -> std::convertible_to<std::string>;
    };

/// A language model that runs one linear sequence at a time over a cache that the caller owns.
///
/// The model is immutable and shared; what a request changes is its `Cache`, a movable value made
/// by `make_cache`. `forward` appends L >= 1 tokens and writes the logits after the last one;
/// `fork` copies a cache by sharing what is there; `truncate` forgets the tokens past a length. A
/// model may also say, as `context_length()`, how many tokens a cache can hold.
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
/// `forward_tree` runs N <= 64 tokens on top of the cache: node i attends to the cache and to the
/// nodes whose bits are set in `ancestors[i]` (its own included), at position length + depth(i),
/// where the depth is the number of its ancestors without itself. The nodes do not count as length:
/// `commit` appends those of one root path, in order, and any call but it forgets them.
template <class M>
concept TreeModel =
    Model<M> && requires(const M& m, typename M::Cache& cache, std::span<const TokenId> tokens,
                         std::span<const std::uint64_t> ancestors, std::span<float> logits,
                         std::span<const std::size_t> path) {
      {
        m.forward_tree(cache, tokens, ancestors, logits)
      };                          // tokens [N], ancestors [N], logits [N, V]
      { m.commit(cache, path) };  // path: node indices, ascending
    };

/// A model that also gives its last hidden states and its LM head's matrix, so that only the rows
/// that matter need be multiplied. The states are final: the head times a state are the logits. A
/// state may begin with more that only drafters read; it is then wider than the head, which is
/// multiplied by its last numbers.
template <class M>
concept HeadModel = Model<M> && requires(const M& m, typename M::Cache& cache,
                                         std::span<const TokenId> tokens, std::span<float> hidden) {
  { m.hidden_size() } -> std::convertible_to<std::size_t>;
  { m.forward_hidden(cache, tokens, hidden) };  // tokens [L], hidden [L, H]
  { m.lm_head() };                              // a view of [V, H]
};

/// A HeadModel whose head lies in the host's memory, as a row-major matrix.
template <class M>
concept HostHeadModel = HeadModel<M> && requires(const M& m) {
  m.lm_head().data();
  m.lm_head().rows();
  m.lm_head().cols();
};

/// A model that runs a draft tree and gives the hidden states of its nodes, so that drafters may
/// read them and only the rows of the head that a mask leaves need be multiplied.
template <class M>
concept HeadTreeModel =
    TreeModel<M> && HeadModel<M> &&
    requires(const M& m, typename M::Cache& cache, std::span<const TokenId> tokens,
             std::span<const std::uint64_t> ancestors, std::span<float> hidden) {
      {
        m.forward_tree_hidden(cache, tokens, ancestors, hidden)
      };  // as forward_tree, hidden [N, H]
    };

/// A model that runs several sequences in one forward pass, drafts too, and gives hidden states.
///
/// `forward_batch_hidden` appends the tokens of each sequence whose ancestors are empty, and runs
/// those of any other as `forward_tree_hidden` does, to be committed in the same way.
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

/// A small autoregressive model that predicts a target's hidden states: entry i of its cache reads
/// the target's state at position i and the token at position i + 1, and gives its guess of the
/// state at i + 1, which the target's head turns into logits of the token at i + 2.
///
/// `forward` appends L entries of known states, of S numbers each, and forgets nodes;
/// `forward_nodes` runs n draft nodes behind the nodes that are there, each with its parent's guess
/// as its state, where `ancestors` numbers all nodes since the last `forward`.
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
