// expected-error: TreeModel: add 'void commit.Cache&, std::span<const std::size_t> path. const.'
#include <cstddef>
#include <cstdint>
#include <span>

#include <tooldecode/core/diagnose.hpp>

#include "own_model.hpp"

struct MyModel : OwnModel {
  void forward_tree(Cache&, std::span<const tooldecode::TokenId>, std::span<const std::uint64_t>,
                    std::span<float>) const {}
#ifndef TOOLDECODE_EXPECT_ERROR
  void commit(Cache&, std::span<const std::size_t>) const {}
#endif
};

static_assert(tooldecode::diagnose::is_tree_model<MyModel>());
