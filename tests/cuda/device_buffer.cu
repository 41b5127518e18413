#include <array>
#include <cstddef>
#include <vector>

#include <tooldecode/cuda/device_buffer.cuh>

#include <support/catch.hpp>
#include <support/device.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

TEST_CASE("DeviceBuffer downloads what was uploaded") {
  test::on_device([] {
    const std::vector<int> values{3, 1, 4, 1, 5};
    DeviceBuffer<int> buffer(values);
    CHECK(buffer.size() == 5);
    CHECK(buffer.bytes() == 20);
    CHECK(buffer.download() == values);
    buffer.upload(std::array{2, 7});
    CHECK(buffer.download() == std::vector<int>{2, 7, 4, 1, 5});
    CHECK(DeviceBuffer<float>(3).download() == std::vector<float>(3));
    CHECK(DeviceBuffer<float>().download().empty());
    CHECK(DeviceBuffer<float>(0).data() == nullptr);

    DeviceBuffer<int> other = std::move(buffer);
    CHECK(other.size() == 5);
    CHECK(buffer.data() == nullptr);
    buffer = DeviceBuffer<int>(std::vector<int>{9});
    CHECK(buffer.download() == std::vector<int>{9});

    try {
      buffer.upload(values);
      FAIL("five values went into one");
    } catch (const Error& error) {
      CHECK(error.code() == Errc::shape_mismatch);
      CHECK(std::string(error.what()) == "DeviceBuffer: 5 values: must be at most its size, 1");
    }
  });
}

#if defined(TOOLDECODE_SIMT)
TEST_CASE("DeviceBuffer frees its memory when a constructor's copy fails") {
  const int before  = simt::allocated;
  simt::copies_fail = true;
  CHECK_THROWS_AS(DeviceBuffer<int>(3), Error);
  CHECK_THROWS_AS(DeviceBuffer<int>(std::vector<int>{1, 2}), Error);
  simt::copies_fail = false;
  CHECK(simt::allocated == before);
  const DeviceBuffer<int> buffer(3);
  CHECK(simt::allocated == before + 1);
}
#endif

TEST_CASE("WorkspaceLayout takes the same parts from null and from a workspace") {
  test::on_device([] {
    const auto lay_out = [](WorkspaceLayout& layout) {
      return std::pair{layout.take<float>(3), layout.take<double>(33)};
    };
    WorkspaceLayout measured;
    CHECK(lay_out(measured) == std::pair<float*, double*>{nullptr, nullptr});
    CHECK(measured.bytes() == 256 + 512);

    const DeviceBuffer<std::byte> buffer(measured.bytes());
    const Workspace workspace = buffer;
    WorkspaceLayout layout(workspace.data);
    const auto [floats, doubles] = lay_out(layout);
    CHECK(static_cast<void*>(floats) == buffer.data());
    CHECK(static_cast<void*>(doubles) == buffer.data() + 256);

    CHECK_NOTHROW(require_workspace(workspace, 768, "kernel"));
    CHECK_NOTHROW(require_workspace({}, 0, "kernel"));
    CHECK_THROWS_WITH(require_workspace({nullptr, 768}, 700, "kernel"),
                      "kernel: workspace: 768 bytes at a null pointer: must be memory");
    CHECK_THROWS_WITH(
        require_workspace({buffer.data() + 16, 752}, 700, "kernel"),
        "kernel: workspace: 16 bytes past a multiple of 256: must be aligned to 256 bytes");
    try {
      require_workspace(workspace, 769, "kernel");
      FAIL("a byte was missing");
    } catch (const Error& error) {
      CHECK(error.code() == Errc::shape_mismatch);
      CHECK(error.where() == "kernel: workspace");
      CHECK_THAT(error.what(), test::contains("workspace: 768 bytes: must be 769 or more"));
    }
  });
}
