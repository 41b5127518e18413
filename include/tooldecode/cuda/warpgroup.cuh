/// \file
/// Matrix products of a warpgroup, four warps whose first has an index divisible by four: wgmma of
/// compute capability 9.0a.
///
/// Products run while their threads go on: begin, start, commit, wait. Until `wait_for_products`
/// nothing touches the sums, the factors in registers or the tile.
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/number.cuh>
#include <tooldecode/cuda/tensor_core.cuh>
#include <tooldecode/cuda/warp.cuh>

namespace tooldecode::cuda {

/// Threads of a warpgroup.
inline constexpr int warpgroup_size = 4 * warp_size;

/// Whether the code that is being compiled has these products; true in host code. A kernel that
/// needs them has launch bounds of `code_has_warpgroups ? threads : warp_size`, which tell
/// `has_warpgroup_products` whether its code has them.
inline constexpr bool code_has_warpgroups =
#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
    false;
#else
    true;
#endif

/// Whether a kernel's code for the current device has them, so was compiled for 9.0a.
///
/// \par Complexity  one driver call, which does not wait for the device
/// \par Threads     may run concurrently
/// \par Errors      Error{device_failure}
template <class... P>
[[nodiscard]] bool has_warpgroup_products(void (*kernel)(P...)) {
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, kernel));
  return attributes.maxThreadsPerBlock >= warpgroup_size;
}

/// A matrix in shared memory as these products read it: its columns in groups of 64, one group after
/// another; in each all rows, whose packs are swizzled so that eight rows use all banks.
///
/// \par Shapes      [rows, D] of two bytes, D a multiple of 64; begins at a multiple of 1024 bytes
template <int rows>
struct WarpgroupTile {
  static constexpr int group_size = 64 * rows;  ///< numbers of 64 columns

  /// Where a row's pack of eight numbers lies.
  static __host__ __device__ int place(int row, int pack) {
    return pack / 8 * group_size + 64 * row + 8 * ((pack ^ row) & 7);
  }
};

/// A tile as products find it.
///
/// \par Threads     a value that the lanes of a warp hold together; all call the constructor
template <HalfNumber T>
class ProductTile {
 public:
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  // The shuffle keeps compilers from computing the address again before each product.
  __device__ explicit ProductTile(const T* tile)
      : low_(__shfl_sync(whole_warp,
                         group_bytes / 16 << 16 |
                             static_cast<std::uint32_t>(__cvta_generic_to_shared(tile)) / 16,
                         0)) {}
  /// Where in the tile factors begin, the bytes from 64 columns to the next 64, and that from eight
  /// rows to the next there are 1024 bytes, swizzled by 128; as PTX ISA describes matrices to wgmma.
  [[nodiscard]] __device__ std::uint64_t describe(int numbers_before) const {
    return std::uint64_t{1U << 30 | 1024 / 16} << 32 | low_ + (numbers_before / 8);
  }
#else
  __device__ explicit ProductTile(const T* tile) : tile_(tile) {}
  [[nodiscard]] __device__ T operator[](int place) const { return tile_[place]; }
#endif
  /// The tile that lies so many numbers after this one.
  [[nodiscard]] __device__ ProductTile later(int numbers) const {
    ProductTile other = *this;
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    other.low_ += numbers / 8;
#else
    other.tile_ += numbers;
#endif
    return other;
  }

 private:
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  static constexpr std::uint32_t group_bytes = 2 * WarpgroupTile<64>::group_size;
  std::uint32_t low_;  // of the description; the other half is the same for all tiles
#else
  const T* tile_;
#endif
};

namespace detail {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
/// The type of factors, as PTX calls it.
template <HalfNumber T>
inline constexpr char product_type[] = "bf16";
template <>
inline constexpr char product_type<__half>[] = "f16";

/// c = a b, or c += a b if `adds`, for the 64 columns of b.
template <HalfNumber T, bool is_transposed>
__device__ inline void multiply_group(float (&c)[8][4], const std::uint32_t (&a)[4],
                                      std::uint64_t b, int adds) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.%39.%39 {"
      "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
      "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
      "}, {%32,%33,%34,%35}, %36, p, 1, 1, %38;\n}\n"
      : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]), "+f"(c[1][0]), "+f"(c[1][1]),
        "+f"(c[1][2]), "+f"(c[1][3]), "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]),
        "+f"(c[3][0]), "+f"(c[3][1]), "+f"(c[3][2]), "+f"(c[3][3]), "+f"(c[4][0]), "+f"(c[4][1]),
        "+f"(c[4][2]), "+f"(c[4][3]), "+f"(c[5][0]), "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]),
        "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]), "+f"(c[7][0]), "+f"(c[7][1]),
        "+f"(c[7][2]), "+f"(c[7][3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(adds), "n"(is_transposed ? 1 : 0),
        "C"(product_type<T>));
}
/// c = a b, or c += a b if `adds`, for the 128 columns of b.
template <HalfNumber T, bool is_transposed>
__device__ inline void multiply_group(float (&c)[16][4], const std::uint32_t (&a)[4],
                                      std::uint64_t b, int adds) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.%71.%71 {"
      "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
      "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
      "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
      "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
      "}, {%64,%65,%66,%67}, %68, p, 1, 1, %70;\n}\n"
      : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]), "+f"(c[1][0]), "+f"(c[1][1]),
        "+f"(c[1][2]), "+f"(c[1][3]), "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]),
        "+f"(c[3][0]), "+f"(c[3][1]), "+f"(c[3][2]), "+f"(c[3][3]), "+f"(c[4][0]), "+f"(c[4][1]),
        "+f"(c[4][2]), "+f"(c[4][3]), "+f"(c[5][0]), "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]),
        "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]), "+f"(c[7][0]), "+f"(c[7][1]),
        "+f"(c[7][2]), "+f"(c[7][3]), "+f"(c[8][0]), "+f"(c[8][1]), "+f"(c[8][2]), "+f"(c[8][3]),
        "+f"(c[9][0]), "+f"(c[9][1]), "+f"(c[9][2]), "+f"(c[9][3]), "+f"(c[10][0]), "+f"(c[10][1]),
        "+f"(c[10][2]), "+f"(c[10][3]), "+f"(c[11][0]), "+f"(c[11][1]), "+f"(c[11][2]),
        "+f"(c[11][3]), "+f"(c[12][0]), "+f"(c[12][1]), "+f"(c[12][2]), "+f"(c[12][3]),
        "+f"(c[13][0]), "+f"(c[13][1]), "+f"(c[13][2]), "+f"(c[13][3]), "+f"(c[14][0]),
        "+f"(c[14][1]), "+f"(c[14][2]), "+f"(c[14][3]), "+f"(c[15][0]), "+f"(c[15][1]),
        "+f"(c[15][2]), "+f"(c[15][3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(adds), "n"(is_transposed ? 1 : 0),
        "C"(product_type<T>));
}
#elif !defined(__CUDA_ARCH__)
/// c += a b by shuffles; `factor(k, column)` is b's.
template <HalfNumber T, int quads, class Factor>
__device__ inline void multiply_group(float (&c)[quads][4], const std::uint32_t (&a)[4],
                                      Factor factor) {
  const int g = lane_index() / 4, t = lane_index() % 4;
  float left[2][16];
  for (int half = 0; half < 2; ++half) {
    const std::uint64_t mine = static_cast<std::uint64_t>(a[2 * half + 1]) << 32 | a[2 * half];
    for (int quad = 0; quad < 4; ++quad) {
      const std::uint64_t from = __shfl_sync(whole_warp, mine, 4 * g + quad);
      for (int i = 0; i < 2; ++i) {
        const int k = 8 * half + 2 * quad + i;
        left[0][k]  = half_of<T>(static_cast<std::uint32_t>(from), i);
        left[1][k]  = half_of<T>(static_cast<std::uint32_t>(from >> 32), i);
      }
    }
  }
  for (int n = 0; n < quads; ++n) {
    for (int i = 0; i < 2; ++i) {
      for (int k = 0; k < 16; ++k) {
        const float right = to_float(factor(k, 8 * n + 2 * t + i));
        c[n][i] += left[0][k] * right;
        c[n][2 + i] += left[1][k] * right;
      }
    }
  }
}
#endif

}  // namespace detail

/// Lets products see what the thread has written to shared memory, or `wait_for_copies` has waited
/// for; a barrier follows.
__device__ inline void publish_to_products() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
#endif
}
/// Goes before the first product after registers of sums or factors were written.
__device__ inline void begin_products() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
#endif
}
/// Closes the group of products that were started since the last group.
__device__ inline void commit_products() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
#endif
}
/// Waits until at most `left` groups are in flight.
template <int left>
__device__ inline void wait_for_products() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(left) : "memory");
#endif
}
/// The same, once a number is known, which must not be negative: compilers would wait first, and
/// compute the number while nothing is multiplied.
template <int left>
__device__ inline void wait_for_products_after([[maybe_unused]] float number) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  // No trap: with it, compilers do not let the warpgroup take registers.
  if (__any_sync(whole_warp, number < 0) != 0)
    asm volatile("nanosleep.u32 1;\nexit;\n" ::: "memory");
#endif
  wait_for_products<left>();
}
/// Keeps the compiler from moving reads or writes of sums across this place.
template <int quads>
__device__ inline void hold([[maybe_unused]] float (&sums)[quads][4]) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  for (auto& four : sums) {
    asm volatile("" : "+f"(four[0]), "+f"(four[1]), "+f"(four[2]), "+f"(four[3])::"memory");
  }
#endif
}

/// Bounds the registers of each thread of a warpgroup, and gives the others back to the block. A
/// kernel has one branch for each bound.
///
/// \par Shapes      a multiple of 8 from 24 on; at the start each thread has 65,536 / threads
template <int registers>
__device__ inline void give_registers_but() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(registers));
#endif
}
/// Raises the register limit of each thread of a warpgroup; waits until other warpgroups have
/// released registers.
///
/// \par Shapes      a multiple of 8 up to 256
template <int registers>
__device__ inline void take_registers_up_to() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(registers));
#endif
}

/// Starts c = a b^T (k = 0) or c += a b^T for the columns 16 k, ... of a and b. A warp's 16 rows of
/// a's columns and of c are in registers, as `multiply_add` has them.
///
/// \par Shapes      a [64, 16] of [64, D], b [64, D] a tile, c [64, 64]
/// \par Threads     called by all threads of a warpgroup
/// \par Source      PTX ISA, wgmma.mma_async
template <HalfNumber T>
__device__ inline void start_product_of_rows([[maybe_unused]] float (&c)[8][4],
                                             [[maybe_unused]] const std::uint32_t (&a)[4],
                                             [[maybe_unused]] const ProductTile<T>& tile,
                                             [[maybe_unused]] int k) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  const int before = k / 4 * WarpgroupTile<64>::group_size + 16 * (k % 4);
  detail::multiply_group<T, false>(c, a, tile.describe(before), k == 0 ? 0 : 1);
#elif !defined(__CUDA_ARCH__)
  if (k == 0) {
    for (auto& four : c) four[0] = four[1] = four[2] = four[3] = 0;
  }
  detail::multiply_group<T>(c, a, [&](int i, int row) {
    const int column = 16 * k + i;
    return tile[WarpgroupTile<64>::place(row, column / 8) + column % 8];
  });
#endif
}

/// Starts c += a b for the columns 16 k, ... of a and these rows of b.
///
/// \par Shapes      a [64, 16] of [64, 64], b [64, D] a tile, c [64, D], D 64 or 128
/// \par Threads     called by all threads of a warpgroup
/// \par Source      PTX ISA, wgmma.mma_async
template <HalfNumber T, int quads>
__device__ inline void start_product([[maybe_unused]] float (&c)[quads][4],
                                     [[maybe_unused]] const std::uint32_t (&a)[4],
                                     [[maybe_unused]] const ProductTile<T>& tile,
                                     [[maybe_unused]] int k) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  detail::multiply_group<T, true>(c, a, tile.describe(64 * 16 * k), 1);
#elif !defined(__CUDA_ARCH__)
  detail::multiply_group<T>(c, a, [&](int i, int column) {
    return tile[WarpgroupTile<64>::place(16 * k + i, column / 8) + column % 8];
  });
#endif
}

}  // namespace tooldecode::cuda
