#include <cmath>
#include <cstdint>
#include <vector>

#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/logits_rows.cuh>
#include <tooldecode/cuda/shared_memory.cuh>

#include <support/catch.hpp>
#include <support/device.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

namespace {

template <Number T>
__global__ void copy_rows(LogitsRows<T> rows, float temperature, int splits, std::uint64_t cut,
                          float* out, int* visits) {
  const int row = static_cast<int>(blockIdx.x) / splits;
  const tooldecode::cuda::detail::MaskedRow<T> from(rows, row, temperature, cut);
  from.for_each_pack(static_cast<int>(blockIdx.x) % splits, splits, [&](const auto& tokens) {
    if (tokens.allowed >> tokens.count != 0) atomicAdd(&visits[0], 1);  // none past the row
    for (int i = 0; i < tokens.count; ++i) {
      const std::int64_t at = std::int64_t{row} * rows.vocabulary + tokens.first + i;
      atomicAdd(&visits[at], 1);
      if ((tokens.allowed >> i & 1) != 0) out[at] = tokens.logits[i];
    }
  });
}

template <Number T>
__global__ void copy_kept_rows(LogitsRows<T> rows, float temperature, int splits, int kept_packs,
                               float* out, int* visits) {
  const int row   = static_cast<int>(blockIdx.x) / splits;
  const int split = static_cast<int>(blockIdx.x) % splits;
  const tooldecode::cuda::detail::MaskedRow<T> from(rows, row, temperature);
  auto* const kept = &shared<Pack<T>>();
  const int begin = from.begin_of(split, splits), end = from.begin_of(split + 1, splits);
  const int kept_end = end - begin < kept_packs ? end : begin + kept_packs;
  const auto first   = [&](const auto& tokens) {
    for (int i = 0; i < tokens.count; ++i) {
      const std::int64_t at = std::int64_t{row} * rows.vocabulary + tokens.first + i;
      if ((tokens.allowed >> i & 1) != 0) out[at] = 2 * tokens.logits[i];
    }
  };
  const auto second = [&](const auto& tokens) {
    for (int i = 0; i < tokens.count; ++i) {
      const std::int64_t at = std::int64_t{row} * rows.vocabulary + tokens.first + i;
      atomicAdd(&visits[at], 1);
      if ((tokens.allowed >> i & 1) != 0) out[at] -= tokens.logits[i];
    }
  };
  const auto run = [&](auto is_plain) {
    typename tooldecode::cuda::detail::MaskedRow<T>::template Few<2> few;
    from.read_few(few, kept_end, end);
    const auto bits = from.template for_each_pack_kept_in<is_plain>(kept, begin, kept_end, first);
    from.template for_each_of_few<is_plain>(few, kept_end, end, first);
    from.template for_each_kept_pack<is_plain>(kept, bits, begin, kept_end, second);
    from.template for_each_of_few<is_plain>(few, kept_end, end, second);
  };
  if (from.is_plain()) {
    run(std::true_type{});
  } else {
    run(std::false_type{});
  }
}

template <Number T>
void rows_are_read(std::size_t vocabulary, std::size_t offset, std::size_t stride, int splits) {
  CAPTURE(sizeof(T), vocabulary, offset, stride, splits);
  constexpr std::size_t count = 2;
  std::mt19937 random(3);
  std::vector<T> logits = test::normal_numbers<T>(offset + stride + vocabulary, random, 5);
  for (std::size_t i = 0; i < logits.size(); i += 7) logits[i] = from_float<T>(NAN);
  for (std::size_t i = 3; i < logits.size(); i += 11) logits[i] = from_float<T>(-INFINITY);
  std::vector<std::uint32_t> mask = test::random_mask(vocabulary, 0.6, random);
  mask.push_back(0);
  const auto second = test::random_mask(vocabulary, 0.1, random);
  mask.insert(mask.end(), second.begin(), second.end());
  const DeviceBuffer<T> device_logits(logits);
  const DeviceBuffer<std::uint32_t> device_mask(mask);
  DeviceBuffer<float> out(count * vocabulary);
  const LogitsRows<T> rows{.logits      = device_logits.data() + offset,
                           .rows        = static_cast<int>(count),
                           .vocabulary  = static_cast<int>(vocabulary),
                           .stride      = static_cast<std::int64_t>(stride),
                           .mask        = device_mask.data(),
                           .mask_stride = static_cast<std::int64_t>(second.size() + 1)};
  for (const float temperature : {0.7F, 1.0F}) {
    CAPTURE(temperature);
    out.upload(std::vector<float>(count * vocabulary, -77.0F));
    const DeviceBuffer<int> visits(count * vocabulary);
    launch(copy_rows<T>, {.grid = static_cast<unsigned>(2 * splits), .block = 32}, nullptr, rows,
           temperature, splits, std::uint64_t{0}, out.data(), visits.data());
    CHECK(visits.download() == std::vector<int>(count * vocabulary, 1));
    const std::vector<float> got = out.download();
    const int part = tooldecode::cuda::detail::MaskedRow<T>::part_packs(rows.vocabulary, splits);
    for (const int in_registers : {0, 40}) {  // of 64 that a block's threads hold
      CAPTURE(in_registers);
      const int kept = std::max(1, part - in_registers);
      const DeviceBuffer<float> out_kept(std::vector<float>(count * vocabulary, -77.0F));
      const DeviceBuffer<int> visits_kept(count * vocabulary);
      launch(copy_kept_rows<T>,
             {.grid         = static_cast<unsigned>(2 * splits),
              .block        = 32,
              .shared_bytes = static_cast<std::size_t>(kept) * sizeof(Pack<T>)},
             nullptr, rows, temperature, splits, kept, out_kept.data(), visits_kept.data());
      CHECK(visits_kept.download() == visits.download());
      CHECK(out_kept.download() == got);
    }
    for (std::size_t row = 0; row < count; ++row) {
      std::vector<float> distribution(vocabulary);
      for (std::size_t t = 0; t < vocabulary; ++t) {
        distribution[t] = to_float(logits[offset + row * stride + t]);
      }
      const LogitsPipeline pipeline({.temperature = temperature});
      pipeline.apply(distribution,
                     std::span(mask).subspan(row * (second.size() + 1), second.size()));
      for (float& x : distribution) x = x == -INFINITY ? -77.0F : x;
      CHECK(std::vector<float>(got.begin() + static_cast<std::ptrdiff_t>(row * vocabulary),
                               got.begin() + static_cast<std::ptrdiff_t>((row + 1) * vocabulary)) ==
            distribution);
    }
  }
}

}  // namespace

TEST_CASE("MaskedRow of any alignment has the logits of the host's pipeline") {
  test::on_device([] {
    for (const std::size_t offset : {0, 1, 2, 3}) {
      for (const std::size_t vocabulary : {1, 31, 33, 257, 600}) {
        rows_are_read<float>(vocabulary, offset, vocabulary, offset == 0 ? 1 : 3);
      }
    }
    for (const std::size_t offset : {0, 1, 2, 5, 7}) {
      rows_are_read<__half>(65, offset, 65, 2);
      rows_are_read<__half>(1100, offset, 1103, 1);
    }
    rows_are_read<__nv_bfloat16>(333, 3, 335, 1);
    rows_are_read<float>(4100, 0, 4100, 1);  // more than is in flight at once
  });
}

TEST_CASE("MaskedRow allows no token below its rank key") {
  test::on_device([] {
    const std::vector<float> logits = {1, 3, 2, 2, -0.0F, 0.0F, 2, 5};
    const DeviceBuffer<float> device_logits(logits);
    DeviceBuffer<float> out(std::vector<float>(8, -77.0F));
    const DeviceBuffer<int> visits(8);
    // From the second of the three logits of 2 on.
    const std::uint64_t cut = std::uint64_t{0xC0000000U} << 32 | (0xFFFFFFFFU - 3);
    launch(copy_rows<float>, {.grid = 1, .block = 32}, nullptr,
           LogitsRows<float>{.logits = device_logits.data(), .rows = 1, .vocabulary = 8}, 1.0F, 1,
           cut, out.data(), visits.data());
    CHECK(out.download() == std::vector<float>{-77, 3, 2, 2, -77, -77, -77, 5});
  });
}

TEST_CASE("LogitsRows and SamplingOptions out of range throw") {
  const float x      = 0;
  const auto refusal = [](const LogitsRows<float>& rows) -> std::string {
    try {
      rows.require_shape("f");
    } catch (const Error& error) {
      CHECK(error.code() == Errc::shape_mismatch);
      return error.what();
    }
    return "";
  };
  CHECK(refusal({.logits = &x, .rows = 1, .vocabulary = 1}).empty());
  CHECK(refusal({.rows = 0, .vocabulary = 5}).empty());
  CHECK(refusal({.rows = 5, .vocabulary = 0}).empty());
  CHECK(refusal({.rows = 1, .vocabulary = 1}) == "f: logits: must not be null");
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&x);
  CHECK(
      refusal({.logits = reinterpret_cast<const float*>(bytes + 2), .rows = 1, .vocabulary = 1}) ==
      "f: logits: must be aligned to 4 bytes");
  CHECK(refusal({.logits     = &x,
                 .rows       = 1,
                 .vocabulary = 1,
                 .mask       = reinterpret_cast<const std::uint32_t*>(bytes + 1)}) ==
        "f: mask: must be aligned to 4 bytes");
  CHECK(refusal({.logits = &x, .rows = -1, .vocabulary = 1}) == "f: rows -1: must be 0 or more");
  CHECK(refusal({.logits = &x, .rows = 1, .vocabulary = -1}) ==
        "f: vocabulary -1: must be from 0 to 2^30");
  CHECK(refusal({.logits = &x, .rows = 1, .vocabulary = 9, .stride = 8}) ==
        "f: stride 8: must be 0, or the vocabulary's 9 or more");
  CHECK(refusal({.logits = &x, .rows = 1, .vocabulary = 65, .mask_stride = 2}) ==
        "f: mask_stride 2: must be 0, or a mask's 3 words or more");
  CHECK_NOTHROW(SamplingOptions{.top_k = 3}.require_valid());
  CHECK_THROWS_WITH(SamplingOptions{.top_k = -1}.require_valid(), "top_k -1: must be 0 or more");
  CHECK_THROWS_AS(SamplingOptions{.temperature = -1}.require_valid(), Error);
  CHECK_THROWS_WITH(SamplingOptions{.top_p = 0}.require_valid(),
                    "top_p 0: must be above 0 and at most 1");
  CHECK_THROWS_WITH(SamplingOptions{.min_p = 2}.require_valid(), "min_p 2: must be from 0 to 1");
  CHECK_FALSE(SamplingOptions{.top_k = 7}.has_cuts(7));
  CHECK(SamplingOptions{.top_k = 6}.has_cuts(7));
}
