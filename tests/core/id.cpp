#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <unordered_set>
#include <vector>

#include <tooldecode/core/id.hpp>
#include <tooldecode/core/intern_index.hpp>

#include <support/catch.hpp>

using tooldecode::core::Id;

namespace {

struct Apple;
struct Pear;
using AppleId = Id<Apple>;
using PearId  = Id<Pear>;

template <class A, class B>
concept comparable = requires(A a, B b) { a == b; } || requires(A a, B b) { a < b; };

}  // namespace

TEST_CASE("Id is zero by default and returns its number as an index") {
  static_assert(AppleId().number() == 0 && AppleId(7).number() == 7);
  static_assert(std::is_same_v<decltype(AppleId().index()), std::size_t>);
  CHECK(AppleId(~std::uint32_t{0}).index() == 0xffff'ffff);
  std::vector<int> apples{1, 2, 3};
  CHECK(apples[AppleId(2).index()] == 3);
}

TEST_CASE("Id compares, sorts and hashes as its number does") {
  static_assert(AppleId(3) == AppleId(3) && AppleId(3) != AppleId(4));
  static_assert(AppleId(3) < AppleId(4) && AppleId(~std::uint32_t{0}) > AppleId(0));
  std::vector<AppleId> ids{AppleId(4), AppleId(1), AppleId(3), AppleId(1)};
  std::sort(ids.begin(), ids.end());
  CHECK(ids == std::vector<AppleId>{AppleId(1), AppleId(1), AppleId(3), AppleId(4)});
  CHECK(std::unordered_set<AppleId>(ids.begin(), ids.end()).size() == 3);
  CHECK(std::hash<AppleId>()(AppleId(9)) == std::hash<std::uint32_t>()(9));
  CHECK(tooldecode::core::hash_combine(5, AppleId(9)) ==
        tooldecode::core::hash_combine(5, std::uint64_t{9}));
}

TEST_CASE("Id converts neither from nor to integers or other ids and has the size of its number") {
  static_assert(!std::is_convertible_v<std::uint32_t, AppleId> &&
                !std::is_convertible_v<int, AppleId> &&
                !std::is_convertible_v<AppleId, std::uint32_t> &&
                !std::is_constructible_v<std::size_t, AppleId>);
  static_assert(!std::is_constructible_v<AppleId, PearId> &&
                !std::is_assignable_v<AppleId&, PearId> &&
                !std::is_assignable_v<AppleId&, std::uint32_t>);
  static_assert(comparable<AppleId, AppleId> && !comparable<AppleId, PearId> &&
                !comparable<AppleId, std::uint32_t>);
  static_assert(sizeof(AppleId) == 4 && std::is_trivially_copyable_v<AppleId> &&
                std::is_standard_layout_v<AppleId>);
  SUCCEED();
}
