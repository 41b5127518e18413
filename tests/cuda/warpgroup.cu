#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/shared_memory.cuh>
#include <tooldecode/cuda/warpgroup.cuh>

#include <support/catch.hpp>
#include <support/device.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

namespace {

using Tile = WarpgroupTile<64>;

template <class T, int columns>
__device__ void load_tile(T* tile, const T* from) {
  for (int i = static_cast<int>(threadIdx.x); i < 64 * columns / 8; i += warpgroup_size) {
    const int row = i / (columns / 8), pack = i % (columns / 8);
    *reinterpret_cast<uint4*>(tile + Tile::place(row, pack)) =
        *reinterpret_cast<const uint4*>(from + columns * row + 8 * pack);
  }
}

/// Columns 16 k, ... of a warp's 16 rows of a matrix, as factors.
template <class T>
__device__ void load_factors(std::uint32_t (&a)[4], const T* rows, int columns, int k) {
  const int g = lane_index() / 4, t = lane_index() % 4;
  for (int i = 0; i < 4; ++i) {
    const T* const two =
        rows + columns * (16 * warp_index() + g + 8 * (i % 2)) + 16 * k + 2 * t + 8 * (i / 2);
    a[i] = pack_two(two[0], two[1]);
  }
}

template <int quads>
__device__ void store(const float (&c)[quads][4], float* to) {
  const int g = lane_index() / 4, t = lane_index() % 4;
  for (int n = 0; n < quads; ++n) {
    for (int i = 0; i < 4; ++i) {
      to[8 * quads * (16 * warp_index() + g + 8 * (i / 2)) + 8 * n + 2 * t + i % 2] = c[n][i];
    }
  }
}

/// rows = a b^T, with garbage in the sums before; columns = 1 + c d. Products of both are in flight
/// together.
///
/// \par Shapes  a [64, D], b [64, D], c [64, 64], d [64, D], rows [64, 64], columns [64, D]
template <class T, int columns>
__global__ void __launch_bounds__(code_has_warpgroups ? warpgroup_size : warp_size)
    multiply(const T* a, const T* b, const T* c, const T* d, float* by_rows, float* by_columns) {
  if constexpr (code_has_warpgroups) {
    T* tiles = &shared<T>();
    tiles += (1024 - reinterpret_cast<std::uintptr_t>(tiles) % 1024) % 1024 / sizeof(T);
    load_tile<T, columns>(tiles, b);
    load_tile<T, columns>(tiles + 64 * columns, d);
    const ProductTile factors(tiles);
    publish_to_products();
    __syncthreads();
    std::uint32_t left[columns / 16][4], weights[4][4];
    for (int k = 0; k < columns / 16; ++k) load_factors(left[k], a, columns, k);
    for (int k = 0; k < 4; ++k) load_factors(weights[k], c, 64, k);
    float rows[8][4], sums[columns / 8][4];
    for (auto& four : rows) four[0] = four[1] = four[2] = four[3] = 77;
    for (auto& four : sums) four[0] = four[1] = four[2] = four[3] = 1;
    hold(rows);
    hold(sums);
    begin_products();
    for (int k = 0; k < columns / 16; ++k) start_product_of_rows(rows, left[k], factors, k);
    commit_products();
    for (int k = 0; k < 4; ++k) start_product(sums, weights[k], factors.later(64 * columns), k);
    commit_products();
    wait_for_products<1>();
    hold(rows);
    store(rows, by_rows);
    wait_for_products_after<0>(1);
    hold(sums);
    store(sums, by_columns);
  }
}

template <class T, int columns>
void products_equal_float64() {
  CAPTURE(columns);
  std::mt19937 random(5);
  const auto a = test::normal_numbers<T>(64 * columns, random);
  const auto b = test::normal_numbers<T>(64 * columns, random);
  const auto c = test::normal_numbers<T>(64 * 64, random);
  const auto d = test::normal_numbers<T>(64 * columns, random);
  const DeviceBuffer<T> da(a), db(b), dc(c), dd(d);
  const DeviceBuffer<float> by_rows(64 * 64), by_columns(64 * columns);
  launch(multiply<T, columns>,
         {.grid = 1, .block = warpgroup_size, .shared_bytes = 1024 + sizeof(T) * 2 * 64 * columns},
         nullptr, da.data(), db.data(), dc.data(), dd.data(), by_rows.data(), by_columns.data());
  const auto number   = [](T x) { return static_cast<double>(to_float(x)); };
  const auto got_rows = by_rows.download(), got_columns = by_columns.download();
  double error = 0;
  for (std::size_t i = 0; i < 64; ++i) {
    for (std::size_t j = 0; j < 64; ++j) {
      double sum = 0;
      for (std::size_t k = 0; k < columns; ++k) {
        sum += number(a[columns * i + k]) * number(b[columns * j + k]);
      }
      error = std::max(error, std::abs(sum - static_cast<double>(got_rows[64 * i + j])));
      REQUIRE(error < 1e-4);
    }
    for (std::size_t j = 0; j < columns; ++j) {
      double sum = 1;
      for (std::size_t k = 0; k < 64; ++k) {
        sum += number(c[64 * i + k]) * number(d[columns * k + j]);
      }
      error = std::max(error, std::abs(sum - static_cast<double>(got_columns[columns * i + j])));
      REQUIRE(error < 1e-4);
    }
  }
}

}  // namespace

TEST_CASE("WarpgroupTile gives each pack another place, and eight rows use all banks") {
  std::set<int> places;
  for (int row = 0; row < 64; ++row) {
    for (int pack = 0; pack < 16; ++pack) places.insert(Tile::place(row, pack));
  }
  CHECK(places.size() == 64 * 16);
  CHECK(*places.begin() == 0);
  CHECK(*places.rbegin() == 64 * 128 - 8);
  for (int pack = 0; pack < 16; ++pack) {
    std::set<int> banks;
    for (int row = 8; row < 16; ++row) banks.insert(Tile::place(row, pack) % 64);
    CHECK(banks.size() == 8);
  }
}

TEST_CASE("warpgroup products equal float64") {
  test::on_device([] {
    if (!has_warpgroup_products(multiply<__half, 64>)) return;
    products_equal_float64<__half, 64>();
    products_equal_float64<__half, 128>();
    products_equal_float64<__nv_bfloat16, 64>();
    products_equal_float64<__nv_bfloat16, 128>();
  });
}

#if defined(TOOLDECODE_SIMT)

TEST_CASE("has_warpgroup_products is false for code of another capability") {
  CHECK(has_warpgroup_products(multiply<__half, 64>));
  for (const int capability : {75, 89, 100}) {
    simt::code_capability = simt::compute_capability = capability;
    CHECK(!has_warpgroup_products(multiply<__half, 64>));
  }
  simt::code_capability = simt::compute_capability = 90;
}

#endif
