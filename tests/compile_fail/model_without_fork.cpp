// expected-error: Model: add 'Cache fork.const Cache&. const.', a copy that shares what is there
#include <cstddef>
#include <span>

#include <tooldecode/decode/decoder.hpp>

struct MyModel {
  struct Cache {};
  std::size_t vocabulary_size() const { return 1; }
  Cache make_cache() const { return {}; }
  std::size_t length(const Cache&) const { return 0; }
  void forward(Cache&, std::span<const tooldecode::TokenId>, std::span<float>) const {}
  void truncate(Cache&, std::size_t) const {}
#ifndef TOOLDECODE_EXPECT_ERROR
  Cache fork(const Cache&) const { return {}; }
#endif
};

static_assert(sizeof(tooldecode::Decoder<MyModel>) > 0);
