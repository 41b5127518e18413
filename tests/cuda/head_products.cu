#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/head_products.cuh>

#include <support/catch.hpp>
#include <support/device.hpp>
#include <support/device_head.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;
using namespace tooldecode::test;

namespace {

struct Sizes {
  int rows, hidden, states;
};

template <class T>
void check_sizes(const Sizes& sizes, unsigned seed) {
  INFO("K " << sizes.rows << ", H " << sizes.hidden << ", n " << sizes.states << ", seed " << seed);
  RandomHead<T> head = random_head<T>(sizes.rows, sizes.hidden, seed);
  std::mt19937 random(seed + 1);
  const auto states =
      normal_numbers<T>(static_cast<std::size_t>(sizes.states * sizes.hidden), random);
  const DeviceBuffer<T> hidden(states);
  check_logits(head, states, logits_of(head.copied(), hidden, sizes.states));
}

}  // namespace

TEST_CASE("fill_logits on CUDA cores equals a float64 product") {
  on_device([] {
    unsigned seed = 1;
    for (const Sizes& sizes :
         {Sizes{1, 8, 1}, Sizes{15, 24, 1}, Sizes{257, 264, 1}, Sizes{65, 1032, 1},
          Sizes{16, 72, 2}, Sizes{130, 520, 3}, Sizes{17, 256, 4}}) {
      check_sizes<__half>(sizes, seed);
      check_sizes<__nv_bfloat16>(sizes, seed + 100);
      ++seed;
    }
  });
}

TEST_CASE("fill_logits on tensor cores equals a float64 product") {
  on_device([] {
    unsigned seed = 1;
    for (const Sizes& sizes : {Sizes{1, 8, 5}, Sizes{17, 24, 8}, Sizes{33, 72, 9},
                               Sizes{15, 128, 16}, Sizes{16, 1032, 6}, Sizes{35, 64, 33},
                               Sizes{18, 72, 64}, Sizes{20, 40, 70}, Sizes{17, 16, 129}}) {
      if (seed % 2 == 0) check_sizes<__half>(sizes, seed);
      if (seed % 2 != 0) check_sizes<__nv_bfloat16>(sizes, seed);
      ++seed;
    }
  });
}

TEST_CASE("fill_logits writes the same bits for any layout of rows and number of multiprocessors") {
  std::optional<std::vector<float>> all[2];
  on_device([&] {
    const RandomHead<__nv_bfloat16> head = random_head<__nv_bfloat16>(150, 72, 6);
    std::mt19937 random(7);
    const DeviceBuffer<__nv_bfloat16> hidden(
        normal_numbers<__nv_bfloat16>(std::size_t{6} * 72, random));
    for (const int states : {1, 6}) {
      INFO("states " << states);
      const std::vector<float> logits = logits_of(head.copied(), hidden, states);
      CHECK(logits_of(head.in_place(), hidden, states) == logits);
      auto& first = all[states == 6];  // of all schedules
      if (!first) first = logits;
      CHECK(logits == *first);

      HeadRows<__nv_bfloat16> fewer = head.copied();
      fewer.rows                    = 37;
      const std::vector<float> some = logits_of(fewer, hidden, states);
      for (std::size_t i = 0; i < some.size(); ++i) CHECK(some[i] == logits[i / 37 * 150 + i % 37]);
      HeadRows<__nv_bfloat16> apart = head.copied();  // every second row
      apart.stride                  = 2 * 72;
      apart.rows                    = 75;
      const std::vector<float> even = logits_of(apart, hidden, states);
      for (std::size_t i = 0; i < even.size(); ++i) {
        CHECK(even[i] == logits[i / 75 * 150 + 2 * (i % 75)]);
      }
#if defined(TOOLDECODE_SIMT)
      for (const int multiprocessors : {1, 132}) {
        const Setting setting(simt::multiprocessors, multiprocessors);
        CHECK(logits_of(head.copied(), hidden, states) == logits);
      }
#endif
    }
    // Tensor cores multiply from two states on, up to as many as fit into shared memory.
    for (const int states : {2, 5}) {
      const std::vector<float> fewer = logits_of(head.copied(), hidden, states);
      CHECK(std::equal(fewer.begin(), fewer.end(), all[1]->begin()));
    }
  });
}

#if defined(TOOLDECODE_SIMT)
TEST_CASE("fill_logits on tensor cores is right when a block multiplies several tiles") {
  on_device([] {
    const Setting few(simt::multiprocessors, 1);
    check_sizes<__half>({49, 4104, 5}, 7);
    check_sizes<__nv_bfloat16>({33, 2056, 17}, 8);
  });
}

TEST_CASE("fill_logits is right when states do not fit into shared memory") {
  on_device([] {
    const auto check_with = [](std::size_t bytes, const Sizes& sizes) {
      INFO(bytes << " bytes");
      const Setting few(simt::multiprocessors, 1);
      const Setting limit(simt::options.shared_limit, bytes);
      check_sizes<__nv_bfloat16>(sizes, 9);
    };
    check_with(31 * 1024, {150, 264, 12});  // 128 columns at a time
    check_with(56'000, {131, 1032, 10});    // 512 columns, more than are in flight
    check_with(83 * 1024, {20, 1032, 17});  // the same with many states
    check_with(30 * 1024, {130, 600, 12});  // passes of eight states
  });
}

TEST_CASE("fill_logits multiplies all states on CUDA cores if the code has no tensor cores") {
  on_device([] {
    {
      const Setting older(simt::compute_capability, 75);
      check_sizes<__half>({33, 40, 9}, 10);
    }
    const Setting older_code(simt::code_capability, 75);
    check_sizes<__half>({33, 40, 9}, 10);
    const RandomHead<__half> head = random_head<__half>(33, 40, 11);
    const DeviceBuffer<__half> hidden(std::size_t{9} * 40);
    const DeviceBuffer<float> logits(std::size_t{9} * 33);
    HeadOutput out{.logits = logits.data()};
    multiply_head(HeadList<__half>(head.copied()), hidden.data(), 9, out, device_traits(), nullptr);
    CHECK(out.lists == 1);  // of 64 rows; tensor cores would give three, of 16
  });
}
#endif

TEST_CASE("fill_logits throws an error that names the argument it does not support") {
  on_device([] {
    const DeviceBuffer<__half> weights(64), hidden(64);
    const DeviceBuffer<float> logits(64);
    const HeadRows<__half> good{.weights = weights.data(), .rows = 4, .hidden_size = 8};
    const auto code_of = [&](HeadRows<__half> rows, const __half* states, int n, float* to) {
      try {
        fill_logits(rows, states, n, to, nullptr);
      } catch (const Error& error) {
        return std::optional(error.code());
      }
      return std::optional<Errc>();
    };
    const auto with = [&](auto change) {
      HeadRows<__half> rows = good;
      change(rows);
      return code_of(rows, hidden.data(), 2, logits.data());
    };
    const auto text_of = [&](HeadRows<__half> rows, int n) {
      try {
        fill_logits(rows, hidden.data(), n, logits.data(), nullptr);
      } catch (const Error& error) {
        return std::string(error.what());
      }
      return std::string();
    };
    const auto text_with = [&](auto change) {
      HeadRows<__half> rows = good;
      change(rows);
      return text_of(rows, 2);
    };
    CHECK(text_of(good, 65'536) == "head: states 65536: must be from 0 to 65535");
    CHECK(text_of(good, -1) == "head: states -1: must be from 0 to 65535");
    CHECK(
        text_with([](auto& rows) { rows.vocabulary = 3; }) ==
        "head: vocabulary 3: must be 0 for a copy of rows, or at least the 4 rows of the whole head");
    CHECK(text_with([](auto& rows) { rows.rows = -1; }) == "head: rows -1: must be 0 or more");
    CHECK(text_with([](auto& rows) { rows.hidden_size = 12; }) ==
          "head: hidden_size 12: must be a positive multiple of 8");
    CHECK(text_with([](auto& rows) { rows.stride = 12; }) ==
          "head: stride 12: must be 0, or a multiple of 8 from hidden_size 8 on");
    CHECK(text_with([](auto& rows) { rows.weights = nullptr; }) ==
          "head: weights: must be aligned to 16 bytes, and not null");
    CHECK(text_with([](auto& rows) {
            rows.vocabulary = 1 << 30;
            rows.stride     = 40;
          }) == "head: rows * stride 42949672960: must be at most 2^35");
    CHECK(!code_of(good, hidden.data(), 2, logits.data()));
    CHECK(code_of(good, hidden.data(), 65'536, logits.data()) == Errc::invalid_option);
    CHECK(code_of(good, hidden.data(), -1, logits.data()) == Errc::invalid_option);
    CHECK(code_of(good, hidden.data() + 1, 2, logits.data()) == Errc::shape_mismatch);
    CHECK(code_of(good, nullptr, 2, logits.data()) == Errc::shape_mismatch);
    CHECK(code_of(good, hidden.data(), 2, nullptr) == Errc::shape_mismatch);
    CHECK(with([](auto& rows) { rows.hidden_size = 12; }) == Errc::shape_mismatch);
    CHECK(with([](auto& rows) { rows.hidden_size = 0; }) == Errc::shape_mismatch);
    CHECK(with([](auto& rows) { rows.rows = -1; }) == Errc::shape_mismatch);
    CHECK(with([](auto& rows) { rows.stride = 12; }) == Errc::shape_mismatch);
    CHECK(with([](auto& rows) { rows.weights += 4; }) == Errc::shape_mismatch);
    CHECK(with([](auto& rows) { rows.weights = nullptr; }) == Errc::shape_mismatch);
    CHECK(with([](auto& rows) { rows.vocabulary = -1; }) == Errc::shape_mismatch);
  });
}
