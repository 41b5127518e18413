#include <algorithm>
#include <utility>
#include <vector>

#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/host_buffer.cuh>

#include <support/catch.hpp>
#include <support/device.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

TEST_CASE("HostBuffer: holds what a copy brings, and moves") {
  test::on_device([] {
    const std::vector<int> values{3, 1, 4};
    const DeviceBuffer<int> device(values);
    HostBuffer<int> buffer(3);
    CHECK(buffer.bytes() == 12);
    check(cudaMemcpyAsync(buffer.data(), device.data(), device.bytes(), cudaMemcpyDeviceToHost,
                          nullptr));
    check(cudaStreamSynchronize(nullptr));
    CHECK(std::ranges::equal(buffer.span(), values));

    HostBuffer<int> other = std::move(buffer);
    CHECK(std::ranges::equal(other.span(), values));
    CHECK(buffer.data() == nullptr);
    CHECK(buffer.size() == 0);
    other = HostBuffer<int>(0);
    CHECK(other.data() == nullptr);
  });
}
