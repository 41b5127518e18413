#include <array>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include <tooldecode/core/mask_view.hpp>

#include <support/catch.hpp>

using namespace tooldecode;

namespace {

// As a constraint takes them.
void set_first(MaskView words) {
  words[0] = 0x80000001U;
}
std::uint32_t read_first(std::span<const std::uint32_t> words) {
  return words[0];
}

}  // namespace

TEST_CASE("Words are the memory that they are made of, signed or not") {
  std::vector<std::int32_t> signed_words(3);
  set_first(signed_words);
  CHECK(signed_words[0] == std::int32_t{-0x7FFFFFFF});
  CHECK(MaskView(signed_words).size() == 3);
  CHECK(read_first(MaskView(signed_words)) == 0x80000001U);

  std::vector<std::uint32_t> unsigned_words(2);
  set_first(unsigned_words);
  CHECK(unsigned_words[0] == 0x80000001U);
  CHECK(MaskView(unsigned_words).data() == unsigned_words.data());

  std::array<std::int32_t, 2> in_array{};
  set_first(in_array);
  CHECK(in_array[0] == signed_words[0]);
  std::int32_t plain[2] = {};  // NOLINT: as C programs have it
  set_first(plain);
  CHECK(plain[0] == signed_words[0]);
}

TEST_CASE("Words are made of temporary views, and of no temporary memory") {
  std::vector<std::int32_t> rows(6);
  set_first(std::span(rows).subspan(2, 2));
  set_first(std::span<std::int32_t, 2>(rows.data() + 4, 2));
  set_first(MaskView(rows).first(2));  // a part is a std::span again
  CHECK(rows == std::vector<std::int32_t>{-0x7FFFFFFF, 0, -0x7FFFFFFF, 0, -0x7FFFFFFF, 0});
  CHECK(MaskView().empty());
  static_assert(!std::is_convertible_v<std::vector<std::int32_t>, MaskView>);
  static_assert(!std::is_convertible_v<std::vector<std::uint32_t>, MaskView>);
  static_assert(!std::is_convertible_v<std::int32_t*, MaskView>);
  static_assert(std::is_trivially_copyable_v<MaskView> &&
                sizeof(MaskView) == sizeof(std::span<std::uint32_t>));
}
