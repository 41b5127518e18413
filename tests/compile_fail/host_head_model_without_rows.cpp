// expected-error: HostHeadModel: add 'data..', 'rows..' and 'cols..' to what lm_head.. returns
// expected-lines: 30
#include <cstddef>
#include <span>

#include <tooldecode/core/diagnose.hpp>

#include "own_model.hpp"

struct Matrix {
  const float* data() const { return nullptr; }
#ifndef TOOLDECODE_EXPECT_ERROR
  std::size_t rows() const { return 0; }
  std::size_t cols() const { return 0; }
#endif
};

struct MyModel : OwnModel {
  std::size_t hidden_size() const { return 1; }
  void forward_hidden(Cache&, std::span<const tooldecode::TokenId>, std::span<float>) const {}
  Matrix lm_head() const { return {}; }
};

static_assert(tooldecode::diagnose::is_host_head_model<MyModel>());
