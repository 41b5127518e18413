#include <vector>

#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/tree_pass.cuh>

#include <support/catch.hpp>
#include <support/device.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

namespace {

__global__ void find_places(TreePass pass, std::int64_t* places) {
  const int row = static_cast<int>(threadIdx.x);
  if (row < pass.rows()) places[row] = pass.place(row);
}

std::vector<std::int64_t> places_of(const TreePass& pass) {
  const DeviceBuffer<std::int64_t> places(static_cast<std::size_t>(pass.rows()));
  launch(find_places, {.grid = 1, .block = 32}, nullptr, pass, places.data());
  return places.download();
}

}  // namespace

TEST_CASE("TreePass, rows of sequences: follow the stride, or each other without one") {
  test::on_device([] {
    CHECK(places_of({.sequences = 2, .nodes = 3}) == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5});
    CHECK(places_of({.sequences = 2, .nodes = 3, .stride = 64}) ==
          std::vector<std::int64_t>{0, 1, 2, 64, 65, 66});
  });
}
