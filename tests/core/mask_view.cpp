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

TEST_CASE("What is read takes const memory of either type, and what is written too") {
  const std::vector<std::int32_t> signed_words{-0x7FFFFFFF, 1};
  const std::vector<std::uint32_t> unsigned_words{0x80000001U, 1};
  CHECK(is_allowed(signed_words, 31));
  CHECK(count_allowed(signed_words) == 3);
  CHECK(count_allowed(unsigned_words) == 3);
  CHECK(read_first(ConstMaskView(signed_words)) == 0x80000001U);
  std::vector<std::int32_t> written(2);
  set_first(written);
  CHECK(count_allowed(written) == 2);
  CHECK(count_allowed(MaskView(written)) == 2);
  CHECK(count_allowed(ConstMaskView()) == 0);
  std::vector<TokenId> tokens;
  for_each_allowed(signed_words, [&](TokenId token) { tokens.push_back(token); });
  CHECK(tokens == std::vector<TokenId>{0, 31, 32});
  static_assert(std::is_trivially_copyable_v<ConstMaskView> &&
                sizeof(ConstMaskView) == sizeof(std::span<const std::uint32_t>));
}

TEST_CASE("A word is of 32 tokens, the last one of fewer") {
  CHECK(mask_word_count(0) == 0);
  CHECK(mask_word_count(64) == 2);
  CHECK(mask_word_count(65) == 3);
}

TEST_CASE("tokens past the mask's end are not allowed") {
  const std::vector<std::uint32_t> mask{0x80000001U};
  CHECK(is_allowed(mask, 0));
  CHECK_FALSE(is_allowed(mask, 1));
  CHECK(is_allowed(mask, 31));
  CHECK_FALSE(is_allowed(mask, 32));
}

TEST_CASE("a mask gives its tokens ascending") {
  std::vector<std::uint32_t> mask(mask_word_count(100));
  for (const std::size_t token : {0U, 31U, 32U, 63U, 64U, 99U})
    mask[token / 32] |= 1U << (token % 32);
  std::vector<TokenId> tokens;
  for_each_allowed(mask, [&](TokenId token) { tokens.push_back(token); });
  CHECK(tokens == std::vector<TokenId>{0, 31, 32, 63, 64, 99});
}
