#include <string>

#include <tooldecode/cuda/device.cuh>

#include <support/catch.hpp>
#include <support/device.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

namespace {

__global__ void idle() {}

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

TEST_CASE("A failed call is an error that names its line") {
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

TEST_CASE("A launch that the device cannot run is an error, not silence") {
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

TEST_CASE("The device's traits are plausible") {
  test::on_device([] {
    const DeviceTraits traits = device_traits();
    CHECK(traits.multiprocessors > 0);
    CHECK(traits.compute_capability >= 70);
    CHECK(traits.shared_bytes >= 48 * 1024);
  });
}

TEST_CASE("Division rounds up") {
  CHECK(divide_up(0, 8) == 0);
  CHECK(divide_up(1, 8) == 1);
  CHECK(divide_up(8, 8) == 1);
  CHECK(divide_up(9, 8) == 2);
}
