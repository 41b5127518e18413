// A complete Model, to which the sources beside this file add.
#pragma once

#include <cstddef>
#include <span>

#include <tooldecode/core/types.hpp>

struct OwnModel {
  struct Cache {};
  std::size_t vocabulary_size() const { return 1; }
  Cache make_cache() const { return {}; }
  std::size_t length(const Cache&) const { return 0; }
  void forward(Cache&, std::span<const tooldecode::TokenId>, std::span<float>) const {}
  Cache fork(const Cache&) const { return {}; }
  void truncate(Cache&, std::size_t) const {}
};
