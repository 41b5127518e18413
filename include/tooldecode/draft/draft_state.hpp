/// \file
/// DraftState: where a request's draft model stands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/config.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/drafter.hpp>

namespace tooldecode {

/// The draft model's cache, how far it has followed the target, and the nodes that it has run.
///
/// \par Shapes      guesses [n, H]; at most 64 nodes per round
/// \par Complexity  as the model's passes
/// \par Threads     a value of one request
/// \par Errors      none
/// \par Source      Li et al., EAGLE, arXiv:2401.15077, section 3.1
template <DraftModel D>
class DraftState {
 public:
  explicit DraftState(const D& model) : cache_(model.make_cache()) {}

  /// Reads what the target has read since, then the emitted tokens that it has yet to read, for
  /// whose states guesses stand in.
  ///
  /// \return the guess whose logits are those of the token after the last emitted one, [H]
  template <Constraint C>
  std::span<const float> follow(const D& model, const DraftContext<C>& context) {
    const std::size_t width = model.hidden_size();
    const std::size_t count = context.hidden.size() / width;
    nodes_                  = 0;
    if (count > 0) {
      std::vector<TokenId> tokens;
      for (std::size_t i = 0; i < count; ++i) tokens.push_back(context.token(read_ + i + 1));
      guesses_.resize(count * width);
      model.forward(cache_, tokens, context.hidden, guesses_);
      known_.assign(guesses_.end() - static_cast<std::ptrdiff_t>(width), guesses_.end());
      read_ += count;
    }
    TOOLDECODE_ASSERT(read_ + context.unread == context.length());
    above_   = 0;
    guesses_ = known_;
    for (std::size_t i = 1; i < context.unread; ++i) {
      const TokenId token           = context.token(read_ + i);
      const std::uint64_t chain     = above_ | std::uint64_t{1} << nodes_;
      const std::vector<float> from = guesses_;
      model.forward_nodes(cache_, std::span(&token, 1), from, std::span(&chain, 1), guesses_);
      above_ = chain;
      ++nodes_;
    }
    return guesses_;
  }

  /// How many nodes can still be run.
  [[nodiscard]] std::size_t room() const noexcept { return most_nodes - nodes_; }
  /// Ancestors of the root that are nodes.
  [[nodiscard]] std::uint64_t above() const noexcept { return above_; }

  /// Runs nodes; `parents` are the ancestor masks of their parents.
  ///
  /// \param states   of their parents, [n, H]
  /// \param guesses  [n, H]
  /// \return their own ancestor masks
  std::vector<std::uint64_t> run(const D& model, std::span<const TokenId> tokens,
                                 std::span<const std::uint64_t> parents,
                                 std::span<const float> states, std::span<float> guesses) {
    std::vector<std::uint64_t> ancestors;
    for (const std::uint64_t parent : parents) {
      ancestors.push_back(parent | std::uint64_t{1} << nodes_++);
    }
    model.forward_nodes(cache_, tokens, states, ancestors, guesses);
    return ancestors;
  }

 private:
  static constexpr std::size_t most_nodes = 64;  // bits of an ancestor mask

  typename D::Cache cache_;
  std::size_t read_    = 0;  // hidden states read: those of the first positions
  std::size_t nodes_   = 0;  // draft nodes in the cache
  std::uint64_t above_ = 0;
  std::vector<float> known_;    // [H], the guess after what is known
  std::vector<float> guesses_;  // [n, H]
};

}  // namespace tooldecode
