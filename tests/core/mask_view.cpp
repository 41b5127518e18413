#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <set>
#include <span>
#include <type_traits>
#include <vector>

#include <tooldecode/core/mask_view.hpp>

#include <support/catch.hpp>

using namespace tooldecode;

namespace {

// Takes the mask as a constraint does.
void set_first(MaskView words) {
  words[0] = 0x80000001U;
}
std::uint32_t read_first(std::span<const std::uint32_t> words) {
  return words[0];
}

}  // namespace

TEST_CASE("MaskView::fill of a row with more words than the vocabulary needs leaves these empty") {
  for (std::size_t size : {0U, 1U, 31U, 32U, 33U, 64U, 95U}) {
    std::vector<std::uint32_t> words(5, 0xFFFFFFFF);
    const tooldecode::MaskView mask(words);
    mask.fill(size);
    CHECK(mask.count() == size);
    CHECK(mask.contains(0) == (size > 0));
  }
  tooldecode::MaskView().fill(0);
}

TEST_CASE("MaskView united with a shorter mask keeps its words past that") {
  std::vector<std::uint32_t> words{1, 0, 4};
  const std::vector<std::uint32_t> shorter{2, 8};
  const tooldecode::MaskView mask(words);
  mask |= shorter;
  CHECK(words == std::vector<std::uint32_t>{3, 8, 4});
}

TEST_CASE("MaskView views the memory of containers and arrays of signed or unsigned words") {
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

TEST_CASE("MaskView accepts temporary spans and rejects temporary containers") {
  std::vector<std::int32_t> rows(6);
  set_first(std::span(rows).subspan(2, 2));
  set_first(std::span<std::int32_t, 2>(rows.data() + 4, 2));
  set_first(MaskView(rows).first(2));  // first() returns a std::span
  CHECK(rows == std::vector<std::int32_t>{-0x7FFFFFFF, 0, -0x7FFFFFFF, 0, -0x7FFFFFFF, 0});
  CHECK(MaskView().empty());
  static_assert(!std::is_convertible_v<std::vector<std::int32_t>, MaskView>);
  static_assert(!std::is_convertible_v<std::vector<std::uint32_t>, MaskView>);
  static_assert(!std::is_convertible_v<std::int32_t*, MaskView>);
  static_assert(std::is_trivially_copyable_v<MaskView> &&
                sizeof(MaskView) == sizeof(std::span<std::uint32_t>));
}

TEST_CASE("ConstMaskView reads signed and unsigned words, const or not") {
  const std::vector<std::int32_t> signed_words{-0x7FFFFFFF, 1};
  const std::vector<std::uint32_t> unsigned_words{0x80000001U, 1};
  CHECK(ConstMaskView(signed_words).contains(31));
  CHECK(ConstMaskView(signed_words).count() == 3);
  CHECK(ConstMaskView(unsigned_words).count() == 3);
  CHECK(read_first(ConstMaskView(signed_words)) == 0x80000001U);
  std::vector<std::int32_t> written(2);
  set_first(written);
  CHECK(ConstMaskView(written).count() == 2);
  CHECK(MaskView(written).count() == 2);
  CHECK(ConstMaskView().count() == 0);
  std::vector<TokenId> tokens;
  ConstMaskView(signed_words).for_each([&](TokenId token) { tokens.push_back(token); });
  CHECK(tokens == std::vector<TokenId>{0, 31, 32});
  static_assert(std::is_trivially_copyable_v<ConstMaskView> &&
                sizeof(ConstMaskView) == sizeof(std::span<const std::uint32_t>));
}

TEST_CASE("mask_word_count rounds up to whole words of 32 tokens") {
  CHECK(mask_word_count(0) == 0);
  CHECK(mask_word_count(64) == 2);
  CHECK(mask_word_count(65) == 3);
}

TEST_CASE("ConstMaskView::contains returns false for negative tokens and tokens beyond the words") {
  const std::vector<std::uint32_t> mask{0x80000001U};
  CHECK(ConstMaskView(mask).contains(0));
  CHECK_FALSE(ConstMaskView(mask).contains(1));
  CHECK(ConstMaskView(mask).contains(31));
  CHECK_FALSE(ConstMaskView(mask).contains(32U));
  CHECK_FALSE(ConstMaskView(mask).contains(TokenId{-1}));
}

TEST_CASE("MaskView under random operations equals a std::set of tokens", "[property]") {
  std::mt19937 random(4711);
  for (const std::size_t size : std::initializer_list<std::size_t>{1, 32, 100, 512, 1100}) {
    INFO("vocabulary of " << size);
    std::vector<std::int32_t> memory(mask_word_count(size)), other_memory(mask_word_count(size));
    const MaskView mask(memory), other(other_memory);
    std::set<TokenId> want, other_want;
    for (int step = 0; step < 500; ++step) {
      const auto token = static_cast<TokenId>(random() % size);
      switch (random() % 12) {
        case 0:
          mask.fill(size);
          for (std::size_t t = 0; t < size; ++t) want.insert(static_cast<TokenId>(t));
          break;
        case 1:
          mask.clear();
          want.clear();
          break;
        case 2:
          mask |= other;
          want.insert(other_want.begin(), other_want.end());
          break;
        case 3:
          mask &= other;
          std::erase_if(want, [&](TokenId t) { return other_want.count(t) == 0; });
          break;
        case 4:
        case 5:
          other.insert(token);
          other_want.insert(token);
          break;
        case 6:
        case 7:
          mask.erase(token);
          want.erase(token);
          break;
        default:
          mask.insert(token);
          want.insert(token);
      }
      std::set<TokenId> got;
      mask.for_each([&](TokenId t) { got.insert(t); });
      REQUIRE(got == want);
      REQUIRE(mask.count() == want.size());
      REQUIRE(mask.contains(token) == (want.count(token) == 1));
    }
  }
}
