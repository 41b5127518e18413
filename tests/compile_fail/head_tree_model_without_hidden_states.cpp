// expected-error: HeadTreeModel: add 'void forward_tree_hidden.Cache&, .*. const;'
// expected-lines: 30
#include <cstddef>
#include <cstdint>
#include <span>

#include <tooldecode/core/diagnose.hpp>

#include "own_model.hpp"

using Tokens    = std::span<const tooldecode::TokenId>;
using Ancestors = std::span<const std::uint64_t>;

struct MyModel : OwnModel {
  std::size_t hidden_size() const { return 1; }
  void forward_hidden(Cache&, Tokens, std::span<float>) const {}
  std::span<const float> lm_head() const { return {}; }
  void forward_tree(Cache&, Tokens, Ancestors, std::span<float>) const {}
  void commit(Cache&, std::span<const std::size_t>) const {}
#ifndef TOOLDECODE_EXPECT_ERROR
  void forward_tree_hidden(Cache&, Tokens, Ancestors, std::span<float>) const {}
#endif
};

static_assert(tooldecode::diagnose::is_head_tree_model<MyModel>());
