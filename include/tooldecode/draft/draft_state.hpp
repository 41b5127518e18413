/// \file
/// DraftState: the progress of a request's draft model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/config.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/draft/draft_tree.hpp>
#include <tooldecode/draft/drafter.hpp>

namespace tooldecode::draft {

/// The draft model's cache, the number of target states it has read, and the nodes that it has run.
///
/// \par Shapes      the target's states [n, S] or wider, of which the model reads the last S
///                  numbers; guesses [n, H]; at most 64 nodes per round
/// \par Complexity  as the model's passes
/// \par Threads     a value of one request
/// \par Errors      Error{shape_mismatch} from `follow` if the target's states are too narrow
/// \par Source      Li et al., EAGLE, arXiv:2401.15077, section 3.1
template <class D>
class DraftState {
 public:
  explicit DraftState(const D& model) : cache_(model.make_cache()) {}

  /// Reads the target's new states since the last round, at least one, and then the emitted tokens
  /// that the target has not read. Guesses replace the states of these tokens.
  ///
  /// \return the guessed state that gives the logits of the token after the last emitted one, [H]
  template <ConstraintPolicy C>
  [[nodiscard]] std::vector<float> follow(const D& model, const DraftContext<C>& context) {
    const std::size_t width = model.hidden_size();
    TOOLDECODE_ASSERT(read_ + context.unread < context.length());
    const std::size_t count = context.length() - context.unread - read_;
    TOOLDECODE_ASSERT(context.hidden.size() % count == 0);
    std::vector<TokenId> tokens;
    for (std::size_t i = 0; i < count; ++i) tokens.push_back(context.token(read_ + i + 1));
    std::vector<float> guesses(count * width);  // [n, H]
    const auto states = last_numbers(context.hidden, count, model.state_size());
    model.forward(cache_, tokens, states, guesses);
    read_ += count;
    nodes_ = 0;
    above_ = 0;
    guesses.erase(guesses.begin(), guesses.end() - static_cast<std::ptrdiff_t>(width));
    for (std::size_t i = 1; i < context.unread; ++i) {
      const TokenId token           = context.token(read_ + i);
      const std::vector<float> from = guesses;
      above_ = run(model, std::span(&token, 1), std::span(&above_, 1), from, guesses).front();
    }
    return guesses;
  }

  /// Number of nodes that can still be run.
  [[nodiscard]] std::size_t room() const noexcept { return DraftTree::max_nodes - nodes_; }
  /// Ancestor mask of nodes above the root.
  [[nodiscard]] std::uint64_t above() const noexcept { return above_; }

  /// Runs nodes; `parents` are the ancestor masks of their parents.
  ///
  /// \param states   states of their parents, [n, H]
  /// \param guesses  [n, H]
  /// \return the ancestor masks of the nodes
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
  // The last `size` numbers of each of n states.
  std::span<const float> last_numbers(std::span<const float> states, std::size_t n,
                                      std::size_t size) {
    const std::size_t width = states.size() / n;
    if (width < size) {
      throw Error(Errc::shape_mismatch, "hidden",
                  "the target's states have " + std::to_string(width) + " numbers: must have the " +
                      std::to_string(size) +
                      " that the draft model reads, as a FeatureModel's do for EAGLE-3");
    }
    if (width == size) return states;
    narrow_.clear();
    for (std::size_t i = 0; i < n; ++i) {
      const auto some = states.subspan((i + 1) * width - size, size);
      narrow_.insert(narrow_.end(), some.begin(), some.end());
    }
    return narrow_;
  }

  typename D::Cache cache_;
  std::size_t read_    = 0;  // number of hidden states read
  std::size_t nodes_   = 0;
  std::uint64_t above_ = 0;    // ancestor mask of nodes above the root
  std::vector<float> narrow_;  // [n, S], if the target's states are wider
};

}  // namespace tooldecode::draft
