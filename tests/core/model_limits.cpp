#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/core/model_limits.hpp>

#include <support/catch.hpp>

namespace td = tooldecode;

TEST_CASE("ModelLimits::check names a token past the vocabulary and a length past the context") {
  const td::core::ModelLimits limits{.vocabulary_size = 10, .context_length = 4};
  CHECK_NOTHROW(limits.check({}, 4));
  CHECK_NOTHROW(limits.check(std::vector<td::TokenId>{0, 9}, 4));
  CHECK_THROWS_WITH(limits.check(std::vector<td::TokenId>{0}, 5),
                    "context: 5 tokens: must be at most 4");
  CHECK_THROWS_WITH(limits.check(std::vector<td::TokenId>{3, 10}, 2),
                    "token 10: must be one of the model's vocabulary, below 10");
  CHECK_THROWS_WITH(limits.check(std::vector<td::TokenId>{-1}, 1),
                    "token -1: must be one of the model's vocabulary, below 10");
}
