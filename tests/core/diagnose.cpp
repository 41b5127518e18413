#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <tooldecode/core/diagnose.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;

namespace {

struct LinearModel {
  struct Cache {};
  std::size_t vocabulary_size() const { return 1; }
  Cache make_cache() const { return {}; }
  std::size_t length(const Cache&) const { return 0; }
  void forward(Cache&, std::span<const td::TokenId>, std::span<float>) const {}
  Cache fork(const Cache&) const { return {}; }
  void truncate(Cache&, std::size_t) const {}
};

struct WholeModel : LinearModel {
  void forward_tree(Cache&, std::span<const td::TokenId>, std::span<const std::uint64_t>,
                    std::span<float>) const {}
  void commit(Cache&, std::span<const std::size_t>) const {}
  std::size_t hidden_size() const { return 1; }
  void forward_hidden(Cache&, std::span<const td::TokenId>, std::span<float>) const {}
  const float* lm_head() const { return nullptr; }
};

struct AnyText {
  using State = int;
  std::size_t vocabulary_size() const { return 1; }
  State initial() const { return 0; }
  std::optional<State> advance(State, td::TokenId) const { return 0; }
  void fill_mask(State, td::MaskView) const {}
  bool is_accepting(State) const { return true; }
  bool is_finished(State) const { return false; }
  std::string jump_forward(State) const { return {}; }
};

struct UnforkableModel : LinearModel {
  Cache fork(const Cache&) const = delete;
};

}  // namespace

TEST_CASE("diagnose accepts types that meet a concept") {
  STATIC_REQUIRE(td::diagnose::is_model<LinearModel>());
  STATIC_REQUIRE(td::diagnose::is_model<WholeModel>());
  STATIC_REQUIRE(td::diagnose::is_tree_model<WholeModel>());
  STATIC_REQUIRE(td::diagnose::is_head_model<WholeModel>());
  STATIC_REQUIRE(td::diagnose::is_constraint<AnyText>());
}

TEST_CASE("Concepts reject types that lack a required member") {
  STATIC_REQUIRE_FALSE(td::Model<UnforkableModel>);
  STATIC_REQUIRE_FALSE(td::Model<AnyText>);
  STATIC_REQUIRE_FALSE(td::TreeModel<LinearModel>);
  STATIC_REQUIRE_FALSE(td::HeadModel<LinearModel>);
  STATIC_REQUIRE_FALSE(td::ConstraintPolicy<LinearModel>);
}
