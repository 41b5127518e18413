// expected-error: TreeModel: add 'void commit.Cache&, std::span<const std::size_t> path. const.'
#include <cstddef>
#include <cstdint>
#include <span>

#include <tooldecode/core/diagnose.hpp>

struct MyModel {
  struct Cache {};
  std::size_t vocabulary_size() const { return 1; }
  Cache make_cache() const { return {}; }
  std::size_t length(const Cache&) const { return 0; }
  void forward(Cache&, std::span<const tooldecode::TokenId>, std::span<float>) const {}
  Cache fork(const Cache&) const { return {}; }
  void truncate(Cache&, std::size_t) const {}
  void forward_tree(Cache&, std::span<const tooldecode::TokenId>, std::span<const std::uint64_t>,
                    std::span<float>) const {}
#ifndef TOOLDECODE_EXPECT_ERROR
  void commit(Cache&, std::span<const std::size_t>) const {}
#endif
};

static_assert(tooldecode::diagnose::is_tree_model<MyModel>());
