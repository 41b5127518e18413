// expected-error: ConstraintPolicy: add 'std::optional<State> advance.State, TokenId. const.'
#include <cstddef>
#include <optional>
#include <string>

#include <tooldecode/decode/decoder.hpp>

#include "own_model.hpp"

struct MyConstraint {
  using State = int;
  std::size_t vocabulary_size() const { return 1; }
  State initial() const { return 0; }
#ifndef TOOLDECODE_EXPECT_ERROR
  std::optional<State> advance(State state, tooldecode::TokenId) const { return state; }
#endif
  void fill_mask(State, tooldecode::MaskView) const {}
  bool is_accepting(State) const { return true; }
  bool is_finished(State) const { return false; }
  std::string jump_forward(State) const { return {}; }
};

static_assert(sizeof(tooldecode::Decoder<OwnModel, MyConstraint>) > 0);
