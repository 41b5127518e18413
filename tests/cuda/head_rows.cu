#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/head_products.cuh>
#include <tooldecode/cuda/head_rows.cuh>

#include <support/catch.hpp>
#include <support/device.hpp>
#include <support/device_head.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;
using namespace tooldecode::test;

TEST_CASE("HeadList of a pruned head has the rows of the whole head, or those of a copy") {
  const HeadRows<__half> copy{.rows = 3, .hidden_size = 8, .tokens = reinterpret_cast<TokenId*>(8)};
  CHECK(HeadList<__half>(copy).places == nullptr);
  CHECK(HeadList<__half>(copy).tokens == copy.tokens);
  CHECK(HeadList<__half>(copy).stride == 8);
  HeadRows<__half> whole = copy;
  whole.vocabulary       = 5;
  whole.stride           = 16;
  CHECK(HeadList<__half>(whole).places == copy.tokens);
  CHECK(HeadList<__half>(whole).stride == 16);
}

TEST_CASE("HeadList: only the rows before its count are read, which is on the device") {
  on_device([] {
    const RandomHead<__half> head = random_head<__half>(150, 72, 6);
    std::mt19937 random(7);
    const DeviceBuffer<__half> hidden(normal_numbers<__half>(std::size_t{17} * 72, random));
    for (const int states : {1, 3, 6, 17}) {
      const std::vector<float> all = logits_of(head.copied(), hidden, states);
      for (const int count : {0, 1, 15, 16, 33, 150}) {
        INFO("states " << states << ", count " << count);
        // Places past the count are of no row.
        std::vector<std::int32_t> places(150, 0x3FFFFFFF);
        for (int i = 0; i < count; ++i) places[static_cast<std::size_t>(i)] = 149 - i;
        const DeviceBuffer<std::int32_t> where(places), counted(std::vector{count});
        HeadList<__half> list(head.copied());
        list.places = where.data();
        list.count  = counted.data();
        const std::vector<float> unwritten(static_cast<std::size_t>(states) * 150, -7);
        const DeviceBuffer<float> logits(unwritten);
        HeadOutput out{.logits = logits.data()};
        multiply_head(list, hidden.data(), states, out, device_traits(), nullptr);
        const std::vector<float> got = logits.download();
        for (std::size_t i = 0; i < got.size(); ++i) {
          const auto row = static_cast<int>(i % 150);
          REQUIRE(got[i] == (row < count ? all[i - i % 150 + 149 - i % 150] : -7));
        }
      }
    }
  });
}
