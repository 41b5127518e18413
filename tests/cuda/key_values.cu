#include <cstdint>
#include <vector>

#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/key_values.cuh>

#include <support/catch.hpp>
#include <support/device.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

namespace {

__global__ void find_offsets(KeyValues<__half> cache, int sequences, int slots, int heads,
                             std::int64_t* out) {
  const int i = static_cast<int>(threadIdx.x);
  if (i >= sequences * slots * heads) return;
  out[i] = cache.offset(i / (slots * heads), i / heads % slots, i % heads);
}

std::vector<std::int64_t> offsets(const KeyValues<__half>& cache, int sequences, int slots,
                                  int heads) {
  const DeviceBuffer<std::int64_t> out(static_cast<std::size_t>(sequences * slots * heads));
  launch(find_offsets, {.grid = 1, .block = 128}, nullptr, cache, sequences, slots, heads,
         out.data());
  return out.download();
}

}  // namespace

TEST_CASE("KeyValues::offset of contiguous rows follows the strides, by token or by head") {
  test::on_device([] {
    const KeyValues<__half> by_token{.slot_stride = 16, .head_stride = 8, .page_stride = 80};
    const KeyValues<__half> by_head{.slot_stride = 8, .head_stride = 40, .page_stride = 80};
    const auto first = offsets(by_token, 2, 5, 2), second = offsets(by_head, 2, 5, 2);
    std::size_t i = 0;
    for (int sequence = 0; sequence < 2; ++sequence) {
      for (int slot = 0; slot < 5; ++slot) {
        for (int head = 0; head < 2; ++head, ++i) {
          CHECK(first[i] == 8 * ((5 * sequence + slot) * 2 + head));
          CHECK(second[i] == 8 * ((2 * sequence + head) * 5 + slot));
        }
      }
    }
  });
}

TEST_CASE("KeyValues::offset of paged rows looks up the sequence's page") {
  test::on_device([] {
    const DeviceBuffer<std::int32_t> pages(std::vector<std::int32_t>{3, 0, 5, 1, 4, 2});
    const KeyValues<__half> cache{.slot_stride = 16,
                                  .head_stride = 8,
                                  .page_stride = 48,
                                  .pages       = pages.data(),
                                  .page_size   = 3,
                                  .max_pages   = 3};
    const std::vector<std::int32_t> table = pages.download();
    const auto got                        = offsets(cache, 2, 8, 2);
    std::size_t i                         = 0;
    for (int sequence = 0; sequence < 2; ++sequence) {
      for (int slot = 0; slot < 8; ++slot) {
        for (int head = 0; head < 2; ++head, ++i) {
          const int page = table[static_cast<std::size_t>(3 * sequence + slot / 3)];
          CHECK(got[i] == 48 * page + 16 * (slot % 3) + 8 * head);
        }
      }
    }
  });
}

TEST_CASE("KeyValues::offset exceeds 32 bits") {
  const std::vector<std::int32_t> pages{70'000};
  const KeyValues<__half> paged{.slot_stride = 1024,
                                .page_stride = 1 << 20,
                                .pages       = pages.data(),
                                .page_size   = 1024,
                                .max_pages   = 1};
  CHECK(paged.offset(0, 5, 0) == (std::int64_t{70'000} << 20) + 5 * 1024);
  const KeyValues<__half> whole{.slot_stride = 1 << 13, .page_stride = std::int64_t{1} << 40};
  CHECK(whole.offset(3, 1 << 20, 0) == (std::int64_t{3} << 40) + (std::int64_t{1} << 33));
}
