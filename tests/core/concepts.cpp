#include <algorithm>
#include <optional>
#include <string>

#include <tooldecode/core/concepts.hpp>

#include <support/catch.hpp>

using namespace tooldecode;

namespace {

// Accepts the text "ab", over three tokens: a, b and the end token.
struct Toy {
  struct State {
    int read                                                            = 0;
    [[maybe_unused]] friend bool operator==(const State&, const State&) = default;
  };
  [[nodiscard]] std::size_t vocabulary_size() const { return 3; }
  [[nodiscard]] State initial() const { return {}; }
  [[nodiscard]] std::optional<State> advance(State s, TokenId t) const {
    return t == std::min(s.read, 2) ? std::optional(State{s.read + 1}) : std::nullopt;
  }
  void fill_mask(State s, MaskView words) const { words[0] = 1U << std::min(s.read, 2); }
  [[nodiscard]] bool is_accepting(State s) const { return s.read >= 2; }
  [[nodiscard]] bool is_finished(State s) const { return s.read >= 3; }
  [[nodiscard]] std::string jump_forward(State) const { return {}; }
};
struct Heavy : Toy {
  struct State {
    char bytes[17];
    [[maybe_unused]] friend bool operator==(const State&, const State&) = default;
  };
};

struct ToyModel {
  struct Cache {
    std::size_t tokens = 0;
  };
  [[nodiscard]] std::size_t vocabulary_size() const { return 3; }
  [[nodiscard]] Cache make_cache() const { return {}; }
  [[nodiscard]] std::size_t length(const Cache& cache) const { return cache.tokens; }
  void forward(Cache& cache, std::span<const TokenId> tokens, std::span<float> logits) const {
    cache.tokens += tokens.size();
    std::fill(logits.begin(), logits.end(), 0.0F);
  }
  [[nodiscard]] Cache fork(const Cache& cache) const { return cache; }
  void truncate(Cache& cache, std::size_t n) const { cache.tokens = n; }
};

}  // namespace

TEST_CASE("Core concepts accept types with the required members and reject others") {
  CHECK(ConstraintPolicy<Toy>);
  CHECK_FALSE(ConstraintPolicy<int>);
  CHECK_FALSE(ConstraintState<Heavy::State>);  // more than 16 bytes
  CHECK(Model<ToyModel>);
  CHECK_FALSE(Model<Toy>);
  CHECK_FALSE(TreeModel<ToyModel>);
  CHECK_FALSE(HeadModel<ToyModel>);
}
