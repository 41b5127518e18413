#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include <tooldecode/cuda/allowed_rows.cuh>
#include <tooldecode/cuda/device_buffer.cuh>

#include <support/catch.hpp>
#include <support/device.hpp>
#include <support/device_scratch.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;
using namespace tooldecode::test;

namespace {

struct Sizes {
  int vocabulary, rows, states, mask_words;
};

/// Which tokens a state may use, by the rule in the words of FrequencyRankedHead.
std::vector<bool> usable(const std::vector<std::uint32_t>& mask, const std::vector<TokenId>& ranked,
                         int known, bool is_copy) {
  std::vector<bool> allowed(static_cast<std::size_t>(known));
  for (std::size_t t = 0; t < allowed.size(); ++t) {
    allowed[t] = t / 32 < mask.size() && (mask[t / 32] >> t % 32 & 1) != 0;
  }
  const auto count = std::count(allowed.begin(), allowed.end(), true);
  if (!is_copy && count < static_cast<std::ptrdiff_t>(ranked.size())) return allowed;
  std::vector<bool> both(allowed.size());
  for (const TokenId token : ranked) {
    const auto at = static_cast<std::size_t>(token);
    if (at < both.size()) both[at] = allowed[at];
  }
  return both;
}

void check_sizes(const Sizes& sizes, bool is_copy, unsigned seed) {
  INFO("V " << sizes.vocabulary << ", K " << sizes.rows << ", n " << sizes.states << ", words "
            << sizes.mask_words << ", copy " << is_copy);
  std::mt19937 random(seed);
  std::vector<TokenId> ranked;
  for (TokenId token = 0; token < sizes.vocabulary; ++token) ranked.push_back(token);
  std::shuffle(ranked.begin(), ranked.end(), random);
  ranked.resize(static_cast<std::size_t>(sizes.rows));
  const int known =
      is_copy ? 32 * sizes.mask_words : std::min(32 * sizes.mask_words, sizes.vocabulary);
  std::vector<std::vector<std::uint32_t>> masks;
  std::vector<std::uint32_t> flat;
  for (int state = 0; state < sizes.states; ++state) {
    const double share = std::vector{0.01, 0.9, 0.0, 1.0, 0.3}[static_cast<std::size_t>(state % 5)];
    masks.push_back(random_mask(static_cast<std::size_t>(sizes.vocabulary), share, random));
    masks.back().resize(static_cast<std::size_t>(sizes.mask_words), ~0U);
    flat.insert(flat.end(), masks.back().begin(), masks.back().end());
  }
  const DeviceBuffer<TokenId> tokens(ranked);
  const DeviceBuffer<std::uint32_t> bits(flat);
  const HeadRows<__half> head{.rows        = sizes.rows,
                              .hidden_size = 8,
                              .tokens      = tokens.data(),
                              .vocabulary  = is_copy ? 0 : sizes.vocabulary};
  AllowedRows rows(sizes.states, sizes.rows, head.vocabulary, sizes.mask_words);
  WorkspaceLayout measured;
  rows.place(measured);
  const Scratch memory(measured.bytes());
  WorkspaceLayout layout(Workspace(memory).data);
  rows.place(layout);
  HeadOutput out;
  const HeadList<__half> list =
      fill_allowed_rows(head, bits.data(), sizes.mask_words, rows, out, nullptr);

  const auto read = [](const auto* from, int count) {
    std::vector<std::remove_cvref_t<decltype(*from)>> values(static_cast<std::size_t>(count));
    check(cudaMemcpy(values.data(), from, values.size() * sizeof(*from), cudaMemcpyDeviceToHost));
    return values;
  };
  if (is_copy) {
    CHECK(out.masks == bits.data());
    CHECK(list.rows == sizes.rows);
    CHECK(list.places == nullptr);
    if (sizes.mask_words == 0) return;
    const auto used = read(list.used, (sizes.rows + 15) / 16);
    std::vector<bool> got(ranked.size()), expected(ranked.size());
    for (std::size_t row = 0; row < ranked.size(); ++row) {
      got[row] = (used[row / 16] >> row % 16 & 1) != 0;
      for (const auto& mask : masks) {
        const auto token = static_cast<std::size_t>(ranked[row]);
        expected[row]    = expected[row] ||
                        (token / 32 < mask.size() && (mask[token / 32] >> token % 32 & 1) != 0);
      }
    }
    CHECK(got == expected);
    return;
  }
  std::vector<bool> either(static_cast<std::size_t>(known));
  const auto left = read(out.masks, sizes.states * rows.words);
  for (std::size_t state = 0; state < masks.size(); ++state) {
    const auto expected = usable(masks[state], ranked, known, is_copy);
    std::vector<bool> got(expected.size());
    for (std::size_t t = 0; t < got.size(); ++t) {
      const auto word = left[state * static_cast<std::size_t>(rows.words) + t / 32];
      got[t]          = (word >> t % 32 & 1) != 0;
      either[t]       = either[t] || expected[t];
    }
    CHECK(got == expected);
  }
  std::vector<TokenId> expected;
  for (std::size_t t = 0; t < either.size(); ++t) {
    if (either[t]) expected.push_back(static_cast<TokenId>(t));
  }
  REQUIRE(read(list.count, 1)[0] == static_cast<int>(expected.size()));
  REQUIRE(static_cast<int>(expected.size()) <= list.rows);
  CHECK(read(list.tokens, static_cast<int>(expected.size())) == expected);
  CHECK(read(list.places, static_cast<int>(expected.size())) == expected);
}

}  // namespace

TEST_CASE(
    "AllowedRows lists what states may use: the ranked and allowed, or all a narrow mask allows") {
  on_device([] {
    unsigned seed = 1;
    for (const Sizes& sizes :
         {Sizes{90, 41, 5, 3}, Sizes{90, 90, 3, 3}, Sizes{90, 1, 4, 3}, Sizes{1000, 300, 1, 32},
          Sizes{1000, 300, 2, 20}, Sizes{2100, 40, 7, 66}, Sizes{2100, 2000, 5, 70}}) {
      check_sizes(sizes, false, seed);
      check_sizes(sizes, true, seed);
      ++seed;
    }
  });
}

TEST_CASE("AllowedRows without mask words allows nothing") {
  on_device([] {
    const AllowedRows rows(3, 10, 100, 0);
    CHECK(rows.most_rows == 0);
    check_sizes({100, 10, 3, 0}, false, 9);
  });
}
