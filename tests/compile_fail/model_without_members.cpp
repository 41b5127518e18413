// expected-error: vocabulary_size.*make_cache.*length.*forward.*fork.*truncate
#include <cstddef>
#include <span>

#include <tooldecode/core/diagnose.hpp>
#include <tooldecode/core/types.hpp>

struct MyModel {
  struct Cache {};
#ifndef TOOLDECODE_EXPECT_ERROR
  std::size_t vocabulary_size() const { return 1; }
  Cache make_cache() const { return {}; }
  std::size_t length(const Cache&) const { return 0; }
  void forward(Cache&, std::span<const tooldecode::TokenId>, std::span<float>) const {}
  Cache fork(const Cache&) const { return {}; }
  void truncate(Cache&, std::size_t) const {}
#endif
};

static_assert(tooldecode::diagnose::is_model<MyModel>());
