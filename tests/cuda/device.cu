#include <string>
#include <thread>
#include <vector>

#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/shared_memory.cuh>

#include <support/catch.hpp>
#include <support/device.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

namespace {

__global__ void idle() {}
__global__ void fill_shared(int* out) {
  auto* const numbers  = &shared<int>();
  numbers[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = numbers[blockDim.x - 1 - threadIdx.x];
}

Errc code_of(const LaunchShape& shape) {
  try {
    launch(idle, shape, nullptr);
  } catch (const Error& error) {
    CHECK(error.where().find("device.cuh:") != std::string::npos);
    return error.code();
  }
  return Errc::invalid_option;
}

}  // namespace

TEST_CASE("check throws an error that names the line of the failed call") {
  CHECK_NOTHROW(check(cudaSuccess));
  const int line = __LINE__ + 2;
  try {
    check(cudaErrorInvalidValue);
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::device_failure);
    CHECK(error.where().find("device.cu:" + std::to_string(line)) != std::string::npos);
    CHECK_THAT(error.what(), test::contains("invalid argument"));
  }
}

TEST_CASE("launch throws if the device cannot run the shape") {
  test::on_device([] {
    CHECK_NOTHROW(launch(idle, {.grid = 2, .block = 33}, nullptr));
    CHECK_NOTHROW(launch(idle, {.grid = 1, .block = 32, .shared_bytes = 60 * 1024}, nullptr));
    CHECK(code_of({.grid = 0, .block = 32}) == Errc::device_failure);
    CHECK(code_of({.grid = 1, .block = 1025}) == Errc::device_failure);
    CHECK(code_of({.grid = 1, .block = 32, .shared_bytes = 1 << 24}) == Errc::device_failure);
    CHECK(code_of({.grid = 3, .block = 32, .cluster = 2}) == Errc::device_failure);
    CHECK(code_of({.grid = 32, .block = 32, .cluster = 16}) == Errc::device_failure);
    check(cudaDeviceSynchronize());
  });
}

#if defined(TOOLDECODE_SIMT)

#if defined(TOOLDECODE_SIMT)
TEST_CASE("launch throws for a kernel that starts early on a device below 9.0") {
  const LaunchShape shape{.grid = 1, .block = 32, .starts_early = true};
  CHECK_NOTHROW(launch(idle, shape, nullptr));
  simt::compute_capability = 80;
  CHECK_THROWS_AS(launch(idle, shape, nullptr), Error);
  simt::compute_capability = 90;
}
#endif

TEST_CASE("launch does not lower the shared memory that another launch has requested") {
  test::on_device([] {
    int between = 0;
    for (const std::size_t other : {std::size_t{0}, std::size_t{60'000}, std::size_t{150'000}}) {
      simt::before_launch = [&] {
        launch(idle, {.grid = 1, .block = 32, .shared_bytes = other}, nullptr);
        ++between;
      };
      CHECK_NOTHROW(launch(idle, {.grid = 1, .block = 32, .shared_bytes = 200'000}, nullptr));
    }
    CHECK(between == 3);
  });
}

TEST_CASE("launch raises a kernel's shared memory limit once per device") {
  const std::size_t before = simt::options.shared_limit;
  const auto calls_of      = [](std::size_t bytes) {
    const int first = simt::shared_limit_calls;
    launch(fill_shared, {.grid = 1, .block = 32, .shared_bytes = bytes}, nullptr,
                DeviceBuffer<int>(32).data());
    return simt::shared_limit_calls - first;
  };
  CHECK(calls_of(48 * 1024) == 0);
  CHECK(calls_of(60'000) == 1);
  CHECK(calls_of(50'000) == 0);
  CHECK(calls_of(200'000) == 0);
  simt::options.shared_limit = 100'000;
  CHECK(calls_of(60'000) == 1);
  CHECK(calls_of(100'000) == 0);
  CHECK_THROWS_AS(calls_of(100'001), Error);
  simt::options.shared_limit = before;
  CHECK(calls_of(before) == 0);
}

#else  // the emulator has one thread

TEST_CASE("launch of one kernel from two host threads keeps the shared memory of both") {
  test::on_device([] {
    const auto launch_all = [](std::size_t bytes) {
      cudaStream_t stream = nullptr;
      check(cudaStreamCreate(&stream));
      const DeviceBuffer<int> out(64);
      for (int i = 0; i < 2000; ++i) {
        launch(fill_shared, {.grid = 1, .block = 64, .shared_bytes = bytes}, stream, out.data());
      }
      check(cudaStreamSynchronize(stream));
      check(cudaStreamDestroy(stream));
    };
    std::string failure;
    std::thread other([&] {
      try {
        launch_all(49 * 1024);
      } catch (const Error& error) {
        failure = error.what();
      }
    });
    CHECK_NOTHROW(launch_all(60 * 1024));
    other.join();
    CHECK(failure.empty());
  });
}

#endif

TEST_CASE("code_capability returns what the kernel was compiled for") {
  test::on_device([] {
    CHECK(code_capability(idle) >= 70);
    CHECK(code_capability(idle) <= device_traits().compute_capability);
#if defined(TOOLDECODE_SIMT)
    for (const int code : {75, 90}) {
      simt::code_capability = code;
      CHECK(code_capability(idle) == code);
    }
#endif
  });
}

TEST_CASE("device_traits returns plausible values") {
  test::on_device([] {
    const DeviceTraits traits = device_traits();
    CHECK(traits.multiprocessors > 0);
    CHECK(traits.compute_capability >= 70);
    CHECK(traits.shared_bytes >= 48 * 1024);
  });
}

TEST_CASE("grid_size throws for more blocks than a grid can have") {
  CHECK(grid_size(0) == 0);
  CHECK(grid_size(0x7FFFFFFF) == 0x7FFFFFFF);
  CHECK_THROWS_WITH(
      grid_size(std::int64_t{1} << 32),
      "grid 4294967296: must be at most 2147483647 blocks: pass fewer rows at a time");
  CHECK_THROWS_AS(grid_size(-1), Error);
}

TEST_CASE("divide_up rounds up") {
  CHECK(divide_up(0, 8) == 0);
  CHECK(divide_up(1, 8) == 1);
  CHECK(divide_up(8, 8) == 1);
  CHECK(divide_up(9, 8) == 2);
}
