#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include <tooldecode/cuda/compact_cache.cuh>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/model/kv_cache.hpp>

#include <support/catch.hpp>
#include <support/device.hpp>

using namespace tooldecode;
using namespace tooldecode::model;
using namespace tooldecode::cuda;

namespace {

using Verdict = tooldecode::cuda::TreeVerdict;

Verdict random_verdict(int count, int size, std::mt19937& random) {
  Verdict verdict{};
  std::vector<int> nodes(static_cast<std::size_t>(size - 1));
  std::iota(nodes.begin(), nodes.end(), 1);
  std::shuffle(nodes.begin(), nodes.end(), random);
  nodes.resize(static_cast<std::size_t>(count));
  std::sort(nodes.begin(), nodes.end());
  std::fill(std::begin(verdict.path), std::end(verdict.path), -1);
  std::copy(nodes.begin(), nodes.end(), verdict.path);
  verdict.accepted = count;
  verdict.kept     = count + 1;
  return verdict;
}

struct Plan {
  int layers    = 2;
  int heads     = 3;
  int head_size = 8;
  int page_size = 0;  // 0: contiguous
};

/// Numbers whose bits differ from those of their neighbours, NaN included.
template <class T>
std::vector<T> numbered(std::size_t count, std::uint16_t salt) {
  std::vector<T> numbers(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = static_cast<std::uint16_t>(i * 40503 + salt);
    std::memcpy(static_cast<void*>(&numbers[i]), &bits, sizeof bits);
  }
  return numbers;
}

/// Compacts a batch on the device and, out of place, on the host; all memory must be equal.
template <HalfNumber T>
void check_compaction(const Plan& plan, unsigned seed) {
  INFO("layers " << plan.layers << ", heads " << plan.heads << ", size " << plan.head_size
                 << ", page " << plan.page_size << ", seed " << seed);
  constexpr int slots = 150, nodes = 64;
  std::mt19937 random(seed);
  const std::vector<int> counts{0, 1, 63, 5, 4, 20};
  const int sequences = static_cast<int>(counts.size());
  std::vector<Verdict> verdicts;
  std::vector<std::int32_t> lengths;
  for (const int count : counts) {
    verdicts.push_back(random_verdict(count, nodes, random));
    lengths.push_back(static_cast<std::int32_t>(random() % (slots - nodes)));
  }
  // Edge cases: a sequence that begins, one that fills its memory, and one without a tree.
  lengths[1] = 0;
  lengths[2] = slots - nodes;
  verdicts.push_back({});
  lengths.push_back(9);
  const int all = sequences + 1;

  std::vector<std::int32_t> pages;
  KeyValues<T> layout{.slot_stride = std::int64_t{plan.heads} * plan.head_size,
                      .head_stride = plan.head_size,
                      .page_stride = std::int64_t{plan.heads} * plan.head_size * slots};
  auto numbers = static_cast<std::size_t>(layout.page_stride * all);
  if (plan.page_size > 0) {
    layout.page_size   = plan.page_size;
    layout.max_pages   = static_cast<int>(divide_up(slots, plan.page_size));
    layout.page_stride = layout.slot_stride * plan.page_size + 8;
    pages.resize(static_cast<std::size_t>(all * layout.max_pages));
    std::iota(pages.begin(), pages.end(), 1);
    std::shuffle(pages.begin(), pages.end(), random);
    numbers = (pages.size() + 1) * static_cast<std::size_t>(layout.page_stride);
  } else if (seed % 2 == 0) {  // [B, heads, slots, D]
    layout.slot_stride = plan.head_size;
    layout.head_stride = std::int64_t{plan.head_size} * slots;
  }
  const DeviceBuffer<std::int32_t> device_pages(pages);
  std::vector<DeviceBuffer<T>> memory;
  std::vector<std::vector<T>> before;
  std::vector<KeyValues<T>> layers;
  for (int layer = 0; layer < plan.layers; ++layer) {
    KeyValues<T> view = layout;
    for (T** part : {&view.keys, &view.values}) {
      before.push_back(numbered<T>(numbers, static_cast<std::uint16_t>(random())));
      memory.emplace_back(before.back());
      *part = memory.back().data();
    }
    view.pages = plan.page_size > 0 ? device_pages.data() : nullptr;
    layers.push_back(view);
  }

  const DeviceBuffer<Verdict> device_verdicts(verdicts);
  const DeviceBuffer<std::int32_t> device_lengths(lengths);
  const CacheShape shape{.sequences = all, .key_heads = plan.heads, .head_size = plan.head_size};
  compact_cache<T>(layers, shape, device_verdicts.data(), device_lengths.data(), nullptr);
  CHECK(device_lengths.download() == lengths);
  advance_lengths(device_verdicts.data(), device_lengths.data(), all, nullptr);
  const auto advanced = device_lengths.download();

  if (plan.page_size > 0) layout.pages = pages.data();
  for (std::size_t part = 0; part < before.size(); ++part) {
    std::vector<T> expected = before[part];
    for (int b = 0; b < all; ++b) {
      const auto& verdict = verdicts[static_cast<std::size_t>(b)];
      const int first     = lengths[static_cast<std::size_t>(b)];
      for (int i = 0; i < verdict.accepted; ++i) {
        for (int head = 0; head < plan.heads; ++head) {
          std::memcpy(
              static_cast<void*>(
                  &expected[static_cast<std::size_t>(layout.offset(b, first + 1 + i, head))]),
              &before[part]
                     [static_cast<std::size_t>(layout.offset(b, first + verdict.path[i], head))],
              static_cast<std::size_t>(plan.head_size) * sizeof(T));
        }
      }
    }
    const std::vector<T> got = memory[part].download();
    CHECK(std::memcmp(got.data(), expected.data(), got.size() * sizeof(T)) == 0);
  }
  for (std::size_t b = 0; b < verdicts.size(); ++b) {
    CHECK(advanced[b] == lengths[b] + verdicts[b].kept);
  }
}

}  // namespace

TEST_CASE("compact_cache moves accepted nodes to the slots of tokens and changes nothing else") {
  test::on_device([] {
    check_compaction<__half>({.layers = 1, .heads = 1, .head_size = 8}, 1);
    check_compaction<__half>({.layers = 2, .heads = 3, .head_size = 96}, 2);
    check_compaction<__nv_bfloat16>({.layers = 3, .heads = 2, .head_size = 64}, 3);
    check_compaction<__nv_bfloat16>({.layers = 2, .heads = 2, .head_size = 32, .page_size = 16}, 4);
    check_compaction<__half>({.layers = 1, .heads = 5, .head_size = 40, .page_size = 7}, 5);
    check_compaction<__half>({.layers = 1, .heads = 2, .head_size = 8, .page_size = 1}, 6);
    check_compaction<__half>({.layers = 65, .heads = 1, .head_size = 8}, 7);
  });
}

TEST_CASE("compact_cache keeps the keys and values that the host's KvCache commits") {
  test::on_device([] {
    constexpr int heads = 2, head_size = 8, width = heads * head_size, length = 40, nodes = 30;
    std::mt19937 random(8);
    const Verdict verdict = random_verdict(9, nodes, random);
    const auto numbers    = numbered<__half>(2 * (length + nodes) * std::size_t{width}, 77);
    const auto bits_of    = [&](std::size_t i) {  // the bits as a number that a float represents
      std::uint16_t bits = 0;
      std::memcpy(&bits, &numbers[i], sizeof bits);
      return static_cast<float>(bits);
    };
    KvCache host(1, width);
    const auto fill = [&](std::size_t first, std::size_t count) {
      for (std::size_t slot = first; slot < first + count; ++slot) {
        for (std::size_t i = 0; i < width; ++i) {
          host.key(0, slot)[i]   = bits_of(slot * width + i);
          host.value(0, slot)[i] = bits_of((length + nodes + slot) * width + i);
        }
      }
    };
    host.open(length);
    fill(0, length);
    host.close(length);
    host.open_nodes(nodes);
    fill(length, nodes);
    std::vector<std::size_t> path{0};
    for (int i = 0; i < verdict.accepted; ++i) {
      path.push_back(static_cast<std::size_t>(verdict.path[i]));
    }
    host.commit(path);

    const DeviceBuffer<__half> memory(numbers);
    const KeyValues<__half> layer{.keys        = memory.data(),
                                  .values      = memory.data() + (length + nodes) * width,
                                  .slot_stride = width,
                                  .head_stride = head_size,
                                  .page_stride = (length + nodes) * width};
    const DeviceBuffer<Verdict> verdicts(std::vector{verdict});
    const DeviceBuffer<std::int32_t> lengths(std::vector<std::int32_t>{length});
    compact_cache<__half>(std::span(&layer, 1),
                          {.sequences = 1, .key_heads = heads, .head_size = head_size},
                          verdicts.data(), lengths.data(), nullptr);
    advance_lengths(verdicts.data(), lengths.data(), 1, nullptr);
    REQUIRE(lengths.download()[0] == static_cast<int>(host.length()));
    const std::vector<__half> got = memory.download();
    for (std::size_t slot = 0; slot < host.length(); ++slot) {
      const auto keys = host.keys(0, slot, 1), values = host.values(0, slot, 1);
      bool is_equal = true;
      for (std::size_t i = 0; i < width; ++i) {
        std::uint16_t key = 0, value = 0;
        std::memcpy(&key, &got[slot * width + i], sizeof key);
        std::memcpy(&value, &got[(length + nodes + slot) * width + i], sizeof value);
        is_equal = is_equal && keys.row(0)[i] == static_cast<float>(key) &&
                   values.row(0)[i] == static_cast<float>(value);
      }
      INFO("slot " << slot);
      CHECK(is_equal);
    }
  });
}

TEST_CASE("compact_cache throws for caches that it cannot move") {
  test::on_device([] {
    const DeviceBuffer<__half> memory(64);
    const DeviceBuffer<Verdict> verdicts(1);
    const DeviceBuffer<std::int32_t> lengths(1);
    const KeyValues<__half> good{.keys        = memory.data(),
                                 .values      = memory.data() + 32,
                                 .slot_stride = 8,
                                 .head_stride = 8,
                                 .page_stride = 32};
    const auto run = [&](const KeyValues<__half>& layer, const CacheShape& shape) {
      compact_cache<__half>(std::span(&layer, 1), shape, verdicts.data(), lengths.data(), nullptr);
    };
    const CacheShape shape{.sequences = 1, .key_heads = 1, .head_size = 8};
    CHECK_NOTHROW(run(good, shape));
    CHECK_NOTHROW(compact_cache<__half>({}, shape, verdicts.data(), lengths.data(), nullptr));
    CHECK_NOTHROW(compact_cache<__half>({}, {}, nullptr, nullptr, nullptr));
    CHECK_THROWS_WITH(run(good, {.sequences = 1, .key_heads = 1, .head_size = 12}),
                      test::contains("head_size"));
    CHECK_THROWS_WITH(run(good, {.sequences = -1, .key_heads = 1, .head_size = 8}),
                      test::contains("sequences"));
    KeyValues<__half> bad = good;
    bad.keys += 1;
    CHECK_THROWS_WITH(run(bad, shape), test::contains("keys"));
    bad        = good;
    bad.values = nullptr;
    CHECK_THROWS_WITH(run(bad, shape), test::contains("values"));
    bad             = good;
    bad.slot_stride = 12;
    CHECK_THROWS_WITH(run(bad, shape), test::contains("strides"));
    bad       = good;
    bad.pages = lengths.data();
    CHECK_THROWS_WITH(run(bad, shape), test::contains("page_size"));
    CHECK_THROWS_WITH(compact_cache<__half>({}, shape, nullptr, lengths.data(), nullptr),
                      test::contains("verdicts"));
    CHECK_THROWS_WITH(advance_lengths(nullptr, lengths.data(), 1, nullptr),
                      test::contains("verdicts"));
    CHECK_NOTHROW(advance_lengths(nullptr, nullptr, 0, nullptr));
  });
}
