#include <cstddef>
#include <span>
#include <vector>

#include <tooldecode/draft/draft_head.hpp>
#include <tooldecode/mask/token_mask.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;

namespace {

/// The smallest rows that the engine takes: two tokens of six, logits equal to the hidden number
/// times the token; token 5 has a row outside.
struct Rows {
  [[nodiscard]] std::size_t vocabulary_size() const { return 6; }
  [[nodiscard]] std::size_t hidden_size() const { return 1; }
  [[nodiscard]] std::size_t size() const { return 2; }
  [[nodiscard]] td::TokenId token(std::size_t i) const { return i == 0 ? 4 : 1; }
  [[nodiscard]] td::WeightType row_type() const { return td::WeightType::float32; }
  [[nodiscard]] td::WeightType found_type() const { return td::WeightType::float32; }
  [[nodiscard]] const float* row(std::size_t i) const { return i == 0 ? &weights[4] : &weights[1]; }
  [[nodiscard]] const float* find_row(td::TokenId token) const {
    return token == 0 ? nullptr : &weights[static_cast<std::size_t>(token)];
  }
  std::vector<float> weights{0, 1, 2, 3, 4, 5};
};

td::TokenMask mask_of(std::vector<td::TokenId> tokens) {
  td::TokenMask mask(6);
  for (const td::TokenId token : tokens) mask.insert(token);
  return mask;
}

}  // namespace

TEST_CASE("project_topk multiplies a small mask's rows, and filters by any other mask") {
  const Rows rows;
  const std::vector<float> hidden{1, 1, 1, 1, -1};
  const td::TokenMask nothing = mask_of({}), outside = mask_of({5}), missing = mask_of({0}),
                      many = mask_of({0, 1, 5});
  const std::vector<td::ConstMaskView> masks{
      nothing.words(), outside.words(), missing.words(), many.words(), {}};
  const auto tops = td::draft::project_topk(rows, hidden, 3, masks);
  REQUIRE(tops.size() == 5);
  CHECK(tops[0].tokens.empty());
  CHECK(tops[1].tokens == std::vector<td::draft::ScoredToken>{{5, 5.0F}});
  CHECK(tops[2].tokens.empty());
  CHECK(tops[3].tokens == std::vector<td::draft::ScoredToken>{{1, 1.0F}});
  CHECK(tops[4].tokens == std::vector<td::draft::ScoredToken>{{1, -1.0F}, {4, -4.0F}});
  CHECK(td::draft::project_topk(rows, {}, 3, {}).empty());

  CHECK(td::draft::project_all(rows, std::span(hidden).first(1), {}).tokens ==
        std::vector<td::TokenId>{4, 1});
  CHECK(td::draft::project_all(rows, std::span(hidden).first(1), outside.words()).logits ==
        std::vector<float>{5});
}
