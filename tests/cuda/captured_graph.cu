#include <stdexcept>
#include <utility>
#include <vector>

#include <tooldecode/cuda/captured_graph.cuh>
#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/device_buffer.cuh>

#include <support/catch.hpp>
#include <support/device.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

namespace {

__global__ void double_number(int* number) {
  if (threadIdx.x == 0) *number *= 2;
}

}  // namespace

TEST_CASE("CapturedGraph: runs nothing until it is launched, then each time") {
  test::on_device([] {
    const Stream stream;
    const DeviceBuffer<int> number(std::vector<int>{3});
    CapturedGraph graph(stream, [&](cudaStream_t on) {
      launch(double_number, {.grid = 1, .block = 32}, on, number.data());
    });
    stream.wait();
    CHECK(number.download() == std::vector<int>{3});
    graph.launch(stream);
    const CapturedGraph moved = std::move(graph);
    moved.launch(stream);
    stream.wait();
    CHECK(number.download() == std::vector<int>{12});
  });
}

TEST_CASE("CapturedGraph, a function that throws: ends the capture, and another one works") {
  test::on_device([] {
    const Stream stream;
    const DeviceBuffer<int> number(std::vector<int>{3});
    CHECK_THROWS_AS(CapturedGraph(stream, [](cudaStream_t) { throw std::runtime_error("no"); }),
                    std::runtime_error);
    const CapturedGraph graph(stream, [&](cudaStream_t on) {
      launch(double_number, {.grid = 1, .block = 32}, on, number.data());
    });
    graph.launch(stream);
    stream.wait();
    CHECK(number.download() == std::vector<int>{6});
  });
}
