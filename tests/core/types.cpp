#include <limits>
#include <type_traits>

#include <tooldecode/core/types.hpp>

#include <support/catch.hpp>

TEST_CASE("TokenId is std::int32_t and exceeds vocabularies of 262144 tokens") {
  CHECK(std::is_same_v<tooldecode::TokenId, std::int32_t>);
  CHECK(std::numeric_limits<tooldecode::TokenId>::max() > 262'144);
}
