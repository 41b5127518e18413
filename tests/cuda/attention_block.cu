#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

#include <tooldecode/cuda/attention_block.cuh>
#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/device_buffer.cuh>

#include <support/catch.hpp>
#include <support/device.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

namespace {

using tooldecode::cuda::detail::AttentionBlock;
using tooldecode::cuda::detail::TreeAttentionTask;

constexpr int first_slot = 2;

/// What a block says of itself, and which of the first 32 slots it reads.
struct Seen {
  int row_tile, split, head, sequence, rows, slots;
  std::uint32_t is_read;
};

__global__ void describe(TreeAttentionTask<__half> task, Seen* blocks, std::int64_t* rows,
                         std::uint64_t* ancestors, std::uint64_t* seen) {
  const AttentionBlock<__half> block(task);
  const auto lane      = static_cast<int>(threadIdx.x);
  const bool is_read   = block.is_read(lane, warp_size);
  const unsigned slots = __ballot_sync(whole_warp, static_cast<int>(is_read));
  if (lane == 0) {
    blocks[blockIdx.x] = {block.row_tile, block.split,   block.head, block.sequence,
                          block.rows(),   block.slots(), slots};
  }
  rows[blockIdx.x * warp_size + threadIdx.x]      = block.output_row(lane);
  ancestors[blockIdx.x * warp_size + threadIdx.x] = block.ancestors_of(lane);
  seen[blockIdx.x * warp_size + threadIdx.x]      = block.seen_from(lane, first_slot);
}

}  // namespace

TEST_CASE("AttentionBlock gives each row of each head to the blocks of its sequence") {
  test::on_device([] {
    const int nodes = 3, key_heads = 2, group = 2, splits = 2, row_tiles = 3, sequences = 2;
    const int blocks = sequences * key_heads * splits * row_tiles;
    const std::vector<std::uint64_t> masks{0b1, 0b0101, 0, 0b1001, 0b10'0000, 0b10'1000};
    const DeviceBuffer<std::uint64_t> ancestors(masks);
    const DeviceBuffer<std::int32_t> lengths(std::vector<std::int32_t>{4, 0});
    const DeviceBuffer<Seen> seen(static_cast<std::size_t>(blocks));
    const DeviceBuffer<std::int64_t> rows(static_cast<std::size_t>(blocks * warp_size));
    const DeviceBuffer<std::uint64_t> of_rows(static_cast<std::size_t>(blocks * warp_size));
    const DeviceBuffer<std::uint64_t> from_slot(static_cast<std::size_t>(blocks * warp_size));
    const TreeAttentionTask<__half> task{
        .trees     = {.ancestors = ancestors.data(),
                      .lengths   = lengths.data(),
                      .sequences = sequences,
                      .nodes     = nodes,
                      .slots     = 5},
        .cache     = {},
        .options   = {.query_heads = key_heads * group, .key_heads = key_heads},
        .out       = nullptr,
        .parts     = {.splits = splits},
        .row_tiles = row_tiles};
    launch(describe, {.grid = static_cast<unsigned>(blocks), .block = warp_size}, nullptr, task,
           seen.data(), rows.data(), of_rows.data(), from_slot.data());
    std::set<std::tuple<int, int, int, int>> all;
    std::set<std::int64_t> written;
    const auto got = seen.download();
    for (std::size_t b = 0; b < got.size(); ++b) {
      const Seen& block = got[b];
      all.insert({block.row_tile, block.split, block.head, block.sequence});
      CHECK(block.rows == nodes * group);
      CHECK(block.slots == (block.sequence == 0 ? 9 : 5));
      // Slots 4 + 0 and 4 + 2; and 0 and 3, but not 5, which is past the five slots of the tree.
      CHECK(block.is_read == (block.sequence == 0 ? 0b101'1111U : 0b1001U));
      for (int row = 0; row < block.rows; ++row) {
        const std::size_t at = b * warp_size + static_cast<std::size_t>(row);
        const int node = row / group, query_head = block.head * group + row % group;
        const std::int64_t expected =
            (block.sequence * nodes + node) * key_heads * group + query_head;
        CHECK(rows.download()[at] == expected);
        CHECK(of_rows.download()[at] ==
              masks[static_cast<std::size_t>(block.sequence * nodes + node)]);
        // From slot 2 on, of which two are in the first sequence's prefix of four.
        const std::uint64_t mask =
            masks[static_cast<std::size_t>(block.sequence * nodes + node)] & 0b1'1111;
        CHECK(from_slot.download()[at] == (block.sequence == 0 ? mask << 2 | 0b11 : mask >> 2));
        written.insert(expected);
      }
      CHECK(of_rows.download()[b * warp_size + static_cast<std::size_t>(block.rows)] == 0);
    }
    CHECK(all.size() == static_cast<std::size_t>(blocks));
    CHECK(written.size() == static_cast<std::size_t>(sequences * nodes * key_heads * group));
    CHECK(got[1].sequence == got[0].sequence);  // neighbours read the same slots
    CHECK(got[1].split == got[0].split);
  });
}
