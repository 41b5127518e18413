// expected-error: deleted
#include <cstddef>
#include <optional>
#include <string>

#include <tooldecode/decode/decoder.hpp>

#include "own_model.hpp"

struct MyConstraint {
  using State = int;
  std::size_t vocabulary_size() const { return 1; }
  State initial() const { return 0; }
  std::optional<State> advance(State state, tooldecode::TokenId) const { return state; }
  void fill_mask(State, tooldecode::MaskView) const {}
  bool is_accepting(State) const { return true; }
  bool is_finished(State) const { return false; }
  std::string jump_forward(State) const { return {}; }
};

void decode() {
  const OwnModel model;
  const MyConstraint constraint;
#ifdef TOOLDECODE_EXPECT_ERROR
  const tooldecode::Decoder decoder{model, MyConstraint{}};
#else
  const tooldecode::Decoder decoder{model, constraint};
#endif
  static_cast<void>(decoder);
}
