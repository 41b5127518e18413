#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <tooldecode/cuda/attention_merge.cuh>
#include <tooldecode/cuda/device_buffer.cuh>

#include <support/catch.hpp>
#include <support/device.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

namespace {

template <class T>
void check_merge(int rows, int splits, int head_size, float spread) {
  INFO("rows " << rows << ", splits " << splits << ", head size " << head_size);
  std::mt19937 random(static_cast<unsigned>(rows + 100 * splits));
  const auto count            = static_cast<std::size_t>(rows * splits);
  const auto size             = static_cast<std::size_t>(head_size);
  std::vector<float> outputs  = test::normal_numbers<float>(count * size, random);
  std::vector<float> log_sums = test::normal_numbers<float>(count, random, spread);
  for (std::size_t part = 0; part < count; ++part) {
    const std::size_t row = part / static_cast<std::size_t>(splits);
    if (random() % 3 != 0 && row != 1) continue;  // all parts of row 1 are empty
    log_sums[part] = -INFINITY;
    for (std::size_t d = 0; d < size; ++d) {
      outputs[part * size + d] = std::numeric_limits<float>::quiet_NaN();
    }
  }
  const DeviceBuffer<float> outputs_there(outputs), log_sums_there(log_sums);
  const DeviceBuffer<T> out(static_cast<std::size_t>(rows) * size);
  merge_attention({.outputs   = outputs_there.data(),
                   .log_sums  = log_sums_there.data(),
                   .rows      = rows,
                   .splits    = splits,
                   .head_size = head_size},
                  out.data(), nullptr);
  const std::vector<T> got = out.download();

  double greatest = 0, error = 0;
  for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
    for (std::size_t d = 0; d < size; ++d) {
      double sum = 0, merged = 0, maximum = -INFINITY;
      for (std::size_t s = 0; s < static_cast<std::size_t>(splits); ++s) {
        maximum = std::max(
            maximum, static_cast<double>(log_sums[row * static_cast<std::size_t>(splits) + s]));
      }
      for (std::size_t s = 0; s < static_cast<std::size_t>(splits); ++s) {
        const std::size_t part = row * static_cast<std::size_t>(splits) + s;
        if (log_sums[part] == -INFINITY) continue;
        const double weight = std::exp2(static_cast<double>(log_sums[part]) - maximum);
        sum += weight;
        merged += weight * static_cast<double>(outputs[part * size + d]);
      }
      const double expected = sum > 0 ? merged / sum : 0;
      const double off = std::abs(static_cast<double>(to_float(got[row * size + d])) - expected);
      greatest         = std::max(greatest, std::abs(expected));
      error            = off <= error || std::isnan(error) ? error : off;
    }
  }
  CHECK(error <= test::tolerance<T>() * greatest);
}

}  // namespace

TEST_CASE("merge_attention weighs parts by their log-sum-exp and ignores empty parts") {
  test::on_device([] {
    check_merge<__half>(1, 1, 64, 1);
    check_merge<__half>(5, 2, 96, 3);
    check_merge<__half>(7, 33, 128, 10);
    check_merge<__half>(3, 4, 256, 2000);
    check_merge<__nv_bfloat16>(9, 5, 64, 3);
    merge_attention(AttentionParts{}, static_cast<__half*>(nullptr), nullptr);
  });
}

TEST_CASE("merge_attention keeps NaN of an output or a log sum") {
  test::on_device([] {
    std::vector<float> outputs(3 * 64, 1.0F);
    outputs[64 + 5] = std::numeric_limits<float>::quiet_NaN();
    for (const float log_sum : {0.0F, std::numeric_limits<float>::quiet_NaN()}) {
      const DeviceBuffer<float> parts(outputs);
      const DeviceBuffer<float> log_sums(std::vector<float>{1, log_sum, -INFINITY});
      const DeviceBuffer<__half> out(64);
      merge_attention({.outputs   = parts.data(),
                       .log_sums  = log_sums.data(),
                       .rows      = 1,
                       .splits    = 3,
                       .head_size = 64},
                      out.data(), nullptr);
      const std::vector<__half> got = out.download();
      for (std::size_t d = 0; d < 64; ++d) {
        CHECK(std::isnan(to_float(got[d])) == (d == 5 || std::isnan(log_sum)));
      }
    }
  });
}

TEST_CASE("merge_attention refuses sizes and pointers that its kernel does not have") {
  alignas(16) float numbers[8] = {};
  __half out[8]                = {};
  const AttentionParts right{
      .outputs = numbers, .log_sums = numbers, .rows = 1, .splits = 1, .head_size = 4};
  const auto refusal = [&](const AttentionParts& parts, __half* to) -> std::string {
    try {
      merge_attention(parts, to, nullptr);
    } catch (const Error& error) {
      CHECK(error.code() == Errc::shape_mismatch);
      return error.what();
    }
    return "";
  };
  const auto with = [&](auto change) {
    AttentionParts parts = right;
    change(parts);
    return refusal(parts, out);
  };
  const std::string size = ": must be a multiple of 4 from 4 to 2048";
  CHECK(with([](auto& parts) { parts.rows = -1; }) ==
        "merge_attention: rows -1: must be 0 or more");
  CHECK(with([](auto& parts) { parts.splits = 0; }) ==
        "merge_attention: splits 0: must be 1 or more");
  CHECK(with([](auto& parts) { parts.head_size = 0; }) == "merge_attention: head_size 0" + size);
  CHECK(with([](auto& parts) { parts.head_size = 6; }) == "merge_attention: head_size 6" + size);
  CHECK(with([](auto& parts) { parts.head_size = 2052; }) ==
        "merge_attention: head_size 2052" + size);
  const std::string pointers =
      "merge_attention: parts: must not be null, and outputs aligned to 16 bytes";
  CHECK(with([](auto& parts) { parts.log_sums = nullptr; }) == pointers);
  CHECK(with([](auto& parts) { parts.outputs = nullptr; }) == pointers);
  CHECK(with([](auto& parts) { parts.outputs += 1; }) == pointers);
  CHECK(refusal(right, nullptr) == "merge_attention: out: must not be null");
}

TEST_CASE("AttentionParts::place lays out outputs and log sums one after another") {
  AttentionParts parts{.rows = 3, .splits = 5, .head_size = 64};
  WorkspaceLayout measured;
  parts.place(measured);
  CHECK(parts.outputs == nullptr);
  CHECK(measured.bytes() == 3 * 5 * 64 * 4 + 256);
}
