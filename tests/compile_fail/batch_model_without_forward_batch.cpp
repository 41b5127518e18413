// expected-error: BatchModel: add 'void forward_batch.std::span<Cache. const> caches, .*. const;'
// expected-lines: 30
#include <cstddef>
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
#ifndef TOOLDECODE_EXPECT_ERROR
  void forward_batch(std::span<Cache* const>, std::span<const std::span<const tooldecode::TokenId>>,
                     std::span<float>) const {}
#endif
};

static_assert(tooldecode::diagnose::is_batch_model<MyModel>());
