// expected-error: deleted
#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include <tooldecode/decode/decoder.hpp>

struct MyModel {
  struct Cache {};
  std::size_t vocabulary_size() const { return 1; }
  Cache make_cache() const { return {}; }
  std::size_t length(const Cache&) const { return 0; }
  void forward(Cache&, std::span<const tooldecode::TokenId>, std::span<float>) const {}
  Cache fork(const Cache&) const { return {}; }
  void truncate(Cache&, std::size_t) const {}
};

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
  const MyModel model;
  const MyConstraint constraint;
#ifdef TOOLDECODE_EXPECT_ERROR
  const tooldecode::Decoder decoder{model, MyConstraint{}};
#else
  const tooldecode::Decoder decoder{model, constraint};
#endif
  static_cast<void>(decoder);
}
