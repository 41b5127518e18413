// expected-error: HeadModel: add 'lm_head.. const', a view of the head's matrix, one row per token
// expected-lines: 30
#include <cstddef>
#include <span>

#include <tooldecode/core/diagnose.hpp>

#include "own_model.hpp"

struct MyModel : OwnModel {
  std::size_t hidden_size() const { return 1; }
  void forward_hidden(Cache&, std::span<const tooldecode::TokenId>, std::span<float>) const {}
#ifndef TOOLDECODE_EXPECT_ERROR
  std::span<const float> lm_head() const { return {}; }
#endif
};

static_assert(tooldecode::diagnose::is_head_model<MyModel>());
