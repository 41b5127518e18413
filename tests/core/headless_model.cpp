#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <tooldecode/core/headless_model.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;

namespace {

struct Plain {
  struct Cache {
    std::size_t tokens = 0;
  };
  [[nodiscard]] std::size_t vocabulary_size() const { return 3; }
  [[nodiscard]] Cache make_cache() const { return {}; }
  [[nodiscard]] std::size_t length(const Cache& cache) const { return cache.tokens; }
  void forward(Cache& cache, std::span<const td::TokenId> tokens, std::span<float> logits) const {
    cache.tokens += tokens.size();
    std::ranges::fill(logits, 0.0F);
  }
  [[nodiscard]] Cache fork(const Cache& cache) const { return cache; }
  void truncate(Cache& cache, std::size_t n) const { cache.tokens = n; }
};
// A state is the token and its position.
struct WithHidden : Plain {
  [[nodiscard]] std::size_t hidden_size() const { return 2; }
  void forward_hidden(Cache& cache, std::span<const td::TokenId> tokens,
                      std::span<float> hidden) const {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      hidden[2 * i]     = static_cast<float>(tokens[i]);
      hidden[2 * i + 1] = static_cast<float>(cache.tokens++);
    }
  }
  [[nodiscard]] int lm_head() const { return 0; }
};
struct Headless : Plain {
  [[nodiscard]] std::size_t hidden_size() const { return 2; }
  void forward_state(Cache& cache, std::span<const td::TokenId> tokens,
                     std::span<float> hidden) const {
    cache.tokens += tokens.size();
    hidden[0] = -1;
    hidden[1] = static_cast<float>(cache.tokens);
  }
};
static_assert(td::HeadlessModel<Headless> && !td::HeadlessModel<WithHidden>);
static_assert(!td::HeadlessModel<Plain> && td::HeadModel<WithHidden>);

std::vector<float> state_of(const auto& model, const std::vector<td::TokenId>& tokens) {
  auto cache   = model.make_cache();
  cache.tokens = 4;
  std::vector<float> state(2);
  td::core::forward_state(model, cache, tokens, state);
  CHECK(model.length(cache) == 4 + tokens.size());
  return state;
}

}  // namespace

TEST_CASE("core::forward_state gives the last token's state, of models with either function") {
  CHECK(state_of(WithHidden{}, {2, 0, 1}) == std::vector<float>{1, 6});
  CHECK(state_of(WithHidden{}, {2}) == std::vector<float>{2, 4});
  CHECK(state_of(Headless{}, {2, 0, 1}) == std::vector<float>{-1, 7});
}
