#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <tooldecode/adapters/tooldecode_cuda.h>
#include <tooldecode/cuda/c_interface.cuh>
#include <tooldecode/cuda/captured_graph.cuh>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/logits/log_sum_exp.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>
#include <tooldecode/logits/selection.hpp>

#include <support/catch.hpp>
#include <support/device.hpp>
#include <support/device_head.hpp>
#include <support/device_scratch.hpp>

using namespace tooldecode;
using namespace tooldecode::cuda;

namespace {

template <class T>
constexpr std::int32_t dtype_of = std::is_same_v<T, float>    ? TD_CUDA_F32
                                  : std::is_same_v<T, __half> ? TD_CUDA_F16
                                                              : TD_CUDA_BF16;

/// Equal bits, NaN included.
template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

/// Rows with gaps between them, of which each is sampled in its way.
template <Number T>
struct Batch {
  static constexpr int rows = 6, vocabulary = 205, words = 7, stride = 211, mask_stride = 9;
  std::vector<T> logits;
  std::vector<std::uint32_t> masks;
  std::vector<std::int64_t> positions;
  std::vector<td_cuda_sampling> sampling{
      {.seed = 1, .temperature = 0.7F, .top_k = 0, .top_p = 0, .min_p = 0},
      {.seed = 1, .temperature = 0.7F, .top_k = 0, .top_p = 0, .min_p = 0},
      {.seed = 9, .temperature = 0.7F, .top_k = 0, .top_p = 0, .min_p = 0},
      {.seed = 0, .temperature = 0, .top_k = 0, .top_p = 0, .min_p = 0},
      {.seed = 1ULL << 40, .temperature = 1.5F, .top_k = 30, .top_p = 0.9F, .min_p = 0.01F},
      {.seed = 7, .temperature = 1, .top_k = 0, .top_p = 0.5F, .min_p = 0}};
  DeviceBuffer<T> device_logits;
  DeviceBuffer<std::uint32_t> device_masks;
  DeviceBuffer<std::int64_t> device_positions;

  explicit Batch(unsigned seed) {
    std::mt19937 random(seed);
    logits = test::normal_numbers<T>(rows * stride, random, 2);
    for (int row = 0; row < rows; ++row) {
      for (int t = vocabulary; t < stride; ++t) {  // not of the row
        logits[static_cast<std::size_t>(row * stride + t)] = from_float<T>(50);
      }
      auto mask = test::random_mask(vocabulary, 0.6, random);
      mask.resize(mask_stride, ~0U);
      masks.insert(masks.end(), mask.begin(), mask.end());
      positions.push_back(static_cast<std::int64_t>(random() % 1000));
    }
    device_logits    = DeviceBuffer<T>(logits);
    device_masks     = DeviceBuffer<std::uint32_t>(masks);
    device_positions = DeviceBuffer<std::int64_t>(positions);
  }

  [[nodiscard]] td_cuda_logits view() const {
    return {.struct_size    = sizeof(td_cuda_logits),
            .logits         = device_logits.data(),
            .dtype          = dtype_of<T>,
            .rows           = rows,
            .vocabulary     = vocabulary,
            .stride         = stride,
            .mask           = device_masks.data(),
            .mask_stride    = mask_stride,
            .sampling       = sampling.data(),
            .sampling_count = sampling.size()};
  }
  /// The logits of a row that can be drawn, by the host.
  [[nodiscard]] std::vector<float> distribution(int row) const {
    std::vector<float> numbers(vocabulary);
    for (int t = 0; t < vocabulary; ++t) {
      numbers[static_cast<std::size_t>(t)] =
          to_float(logits[static_cast<std::size_t>(row * stride + t)]);
    }
    const td_cuda_sampling& one = sampling[static_cast<std::size_t>(row)];
    LogitsPipeline({.temperature = one.temperature,
                    .top_k       = static_cast<std::size_t>(one.top_k),
                    .top_p       = one.top_p == 0 ? 1 : one.top_p,
                    .min_p       = one.min_p})
        .apply(numbers,
               std::span(masks).subspan(static_cast<std::size_t>(row * mask_stride), words));
    return numbers;
  }
};

Workspace room_for_softmax(int rows, int vocabulary, test::Scratch& scratch) {
  std::size_t bytes = 0;
  REQUIRE(td_cuda_masked_softmax_workspace_bytes(rows, vocabulary, &bytes) == TD_OK);
  CHECK(bytes == masked_softmax_workspace_bytes(rows, vocabulary));
  scratch = test::Scratch(bytes);
  return scratch.on(nullptr);
}

template <Number T>
void softmax_equals_float64(unsigned seed) {
  using B = Batch<T>;
  const B batch(seed);
  test::Scratch scratch;
  const Workspace room     = room_for_softmax(B::rows, B::vocabulary, scratch);
  constexpr float no       = std::numeric_limits<float>::quiet_NaN();
  constexpr auto size      = static_cast<std::size_t>(B::rows * B::vocabulary);
  const td_cuda_logits all = batch.view();
  const DeviceBuffer<float> values(std::vector<float>(size, no)),
      logs(std::vector<float>(size, no));
  const DeviceBuffer<std::int32_t> kept(std::vector<std::int32_t>(B::rows, -5));
  REQUIRE(td_cuda_fill_masked_softmax(&all, values.data(), kept.data(), room.data, room.bytes,
                                      nullptr) == TD_OK);
  REQUIRE(td_cuda_fill_masked_log_softmax(&all, logs.data(), nullptr, room.data, room.bytes,
                                          nullptr) == TD_OK);
  const auto got_values = values.download(), got_logs = logs.download();
  const auto got_kept = kept.download();
  for (int row = 0; row < B::rows; ++row) {
    INFO("row " << row << ", number of " << sizeof(T) << " bytes, seed " << seed);
    const std::vector<float> logits = batch.distribution(row);
    double sum                      = 0;
    int count                       = 0;
    for (const float x : logits) sum += std::exp(static_cast<double>(x));
    double error = 0;
    for (int t = 0; t < B::vocabulary; ++t) {
      const auto at      = static_cast<std::size_t>(row * B::vocabulary + t);
      const float logit  = logits[static_cast<std::size_t>(t)];
      const double truth = std::exp(static_cast<double>(logit)) / sum;
      const double p = got_values[at], log = got_logs[at];
      if (logit == -INFINITY) {
        CHECK((p == 0 && log == -INFINITY));
        continue;
      }
      ++count;
      for (const double off : {p / truth - 1, log - std::log(truth)}) {
        error = std::abs(off) <= error || std::isnan(error) ? error : std::abs(off);
      }
    }
    CHECK(error < 1e-4);
    CHECK(got_kept[static_cast<std::size_t>(row)] == count);
  }
}

template <Number T>
void tokens_equal_the_hosts(unsigned seed) {
  using B = Batch<T>;
  const B batch(seed);
  test::Scratch scratch;
  const Workspace room     = room_for_softmax(B::rows, B::vocabulary, scratch);
  const td_cuda_logits all = batch.view();
  const DeviceBuffer<TokenId> tokens(std::vector<TokenId>(B::rows, -5));
  constexpr std::int64_t shift = 4;
  REQUIRE(td_cuda_find_tokens(&all, batch.device_positions.data(), shift, tokens.data(), room.data,
                              room.bytes, nullptr) == TD_OK);
  std::vector<TokenId> expected;
  for (std::size_t row = 0; row < B::rows; ++row) {
    const td_cuda_sampling& one = batch.sampling[row];
    expected.push_back(
        find_token(batch.distribution(static_cast<int>(row)), one.temperature,
                   {one.seed, static_cast<std::uint64_t>(batch.positions[row] + shift)})
            .value_or(-1));
  }
  INFO("seed " << seed);
  CHECK(tokens.download() == expected);
}

/// A call that must be refused: what it is, its code, and the argument that the error names.
struct Refused {
  std::string name;
  td_code code;
  std::string where;
  std::function<td_code()> call;
};
void check_refused(const std::vector<Refused>& calls) {
  for (const Refused& one : calls) {
    INFO(one.name);
    CHECK(one.call() == one.code);
    CHECK(td_cuda_last_error_where() == one.where);
    CHECK(std::string(td_cuda_last_error()).starts_with(one.where));
    CHECK(std::string(td_cuda_last_error()).size() > one.where.size() + 5);
  }
}
/// A copy with one field changed.
template <class Struct, class Field, class Value>
Struct with(Struct from, Field Struct::*field, Value value) {
  from.*field = static_cast<Field>(value);
  return from;
}

/// Trees of four nodes with random states, keys and values.
template <HalfNumber T>
struct Attention {
  static constexpr int sequences = 2, nodes = 4, heads = 2, group = 2, size = 64, slots = 40;
  static constexpr int page_size = 8, pages_each = slots / page_size;
  DeviceBuffer<T> queries, keys, values;
  DeviceBuffer<std::uint64_t> ancestors{
      std::vector<std::uint64_t>{1, 3, 5, 11, 1, 3, 7, 0}};  // the last is padding
  DeviceBuffer<std::int32_t> lengths{std::vector<std::int32_t>{30, 5}};
  DeviceBuffer<std::int32_t> pages{std::vector<std::int32_t>{9, 2, 0, 5, 7, 1, 3, 8, 6, 4}};
  bool is_paged;

  Attention(bool in_pages, unsigned seed) : is_paged(in_pages) {
    std::mt19937 random(seed);
    queries = DeviceBuffer<T>(
        test::normal_numbers<T>(sequences * nodes * heads * group * size, random, 2));
    keys   = DeviceBuffer<T>(test::normal_numbers<T>(sequences * slots * heads * size, random));
    values = DeviceBuffer<T>(test::normal_numbers<T>(sequences * slots * heads * size, random));
  }
  [[nodiscard]] td_cuda_tree_attention_shape shape() const {
    return {.struct_size = sizeof(td_cuda_tree_attention_shape),
            .dtype       = dtype_of<T>,
            .query_heads = heads * group,
            .key_heads   = heads,
            .head_size   = size,
            .scale       = 0,
            .sequences   = sequences,
            .nodes       = nodes,
            .max_length  = 30,
            .slots       = 0};
  }
  [[nodiscard]] td_cuda_cache cache() const {
    return {.struct_size = sizeof(td_cuda_cache),
            .keys        = keys.data(),
            .values      = values.data(),
            .slot_stride = heads * size,
            .head_stride = size,
            .page_stride = (is_paged ? page_size : slots) * heads * size,
            .pages       = is_paged ? pages.data() : nullptr,
            .page_size   = is_paged ? page_size : 0,
            .max_pages   = is_paged ? pages_each : 0};
  }
  [[nodiscard]] std::vector<T> expected() const {
    const DeviceBuffer<T> out(queries.size());
    const TreeAttentionOptions options{
        .query_heads = heads * group, .key_heads = heads, .head_size = size, .scale = 0.125F};
    const test::Scratch room(tree_attention_workspace_bytes(sequences, nodes, 30, options));
    const td_cuda_cache from = cache();
    tree_attention<T>({.queries    = queries.data(),
                       .ancestors  = ancestors.data(),
                       .lengths    = lengths.data(),
                       .sequences  = sequences,
                       .nodes      = nodes,
                       .max_length = 30},
                      {.keys        = keys.data(),
                       .values      = values.data(),
                       .slot_stride = from.slot_stride,
                       .head_stride = from.head_stride,
                       .page_stride = from.page_stride,
                       .pages       = from.pages,
                       .page_size   = from.page_size,
                       .max_pages   = from.max_pages},
                      options, out.data(), room, nullptr);
    return out.download();
  }
};

template <HalfNumber T>
void attention_equals_that_of_cpp(bool is_paged, unsigned seed) {
  INFO("paged " << is_paged << ", seed " << seed);
  using A = Attention<T>;
  A problem(is_paged, seed);
  const auto shape                  = problem.shape();
  td_cuda_tree_attention* attention = nullptr;
  REQUIRE(td_cuda_tree_attention_make(&shape, &attention) == TD_OK);
  std::size_t bytes = 0;
  REQUIRE(td_cuda_tree_attention_workspace_bytes(&shape, &bytes) == TD_OK);
  const test::Scratch scratch(bytes);
  const td_cuda_cache cache = problem.cache();
  std::vector<T> before;
  for (const std::vector<std::int32_t>& lengths :
       {std::vector<std::int32_t>{30, 5}, {0, 34}}) {  // of one plan
    problem.lengths.upload(lengths);
    const DeviceBuffer<T> out(problem.queries.size());
    const Workspace room = scratch.on(nullptr);
    REQUIRE(td_cuda_tree_attention_run(attention, problem.queries.data(), problem.ancestors.data(),
                                       problem.lengths.data(), &cache, out.data(), room.data,
                                       room.bytes, nullptr) == TD_OK);
    CHECK(same_bits(out.download(), problem.expected()));
    CHECK_FALSE(same_bits(out.download(), before));
    before = out.download();
  }
  td_cuda_tree_attention_free(attention);
}

/// Two trees: the root with a child, whose child is right in the first; an empty one.
struct Trees {
  DeviceBuffer<TokenId> tokens, choices;
  DeviceBuffer<std::int32_t> parents, sizes{std::vector<std::int32_t>{4, 1, 0}};
  DeviceBuffer<std::uint64_t> ancestors;

  Trees() {
    std::vector<TokenId> t(3 * 64, -1), c(3 * 64, -1);
    std::vector<std::int32_t> p(3 * 64, 0);
    std::vector<std::uint64_t> a(3 * 64, 0);
    const std::vector<TokenId> first{5, 8, 6, 7}, drawn{6, 1, 7, 9};
    const std::vector<std::int32_t> parents_of{0, 0, 0, 2};
    const std::vector<std::uint64_t> masks{1, 3, 5, 13};
    std::copy(first.begin(), first.end(), t.begin());
    std::copy(drawn.begin(), drawn.end(), c.begin());
    std::copy(parents_of.begin(), parents_of.end(), p.begin());
    std::copy(masks.begin(), masks.end(), a.begin());
    t[64]     = 3;
    c[64]     = 4;
    a[64]     = 1;
    tokens    = DeviceBuffer<TokenId>(t);
    choices   = DeviceBuffer<TokenId>(c);
    parents   = DeviceBuffer<std::int32_t>(p);
    ancestors = DeviceBuffer<std::uint64_t>(a);
  }
  td_code verify(td_cuda_verdict* verdicts, int sequences = 3) const {
    return td_cuda_verify_trees(tokens.data(), parents.data(), ancestors.data(), sizes.data(),
                                choices.data(), verdicts, sequences, nullptr);
  }
};

}  // namespace

TEST_CASE("td_cuda_fill_masked_softmax and its logarithm equal float64, each row sampled its way") {
  test::on_device([] {
    softmax_equals_float64<float>(1);
    softmax_equals_float64<__half>(2);
    softmax_equals_float64<__nv_bfloat16>(3);
  });
}

TEST_CASE(
    "td_cuda_find_tokens chooses the host's tokens, with a seed and a temperature of each row") {
  test::on_device([] {
    for (unsigned seed = 10; seed < 16; ++seed) tokens_equal_the_hosts<float>(seed);
    tokens_equal_the_hosts<__half>(20);
    tokens_equal_the_hosts<__nv_bfloat16>(21);
  });
}

TEST_CASE("td_cuda_find_tokens without sampling takes the most likely token of each row") {
  test::on_device([] {
    Batch<float> batch(31);
    std::fill(batch.sampling.begin(), batch.sampling.end(), td_cuda_sampling{});
    test::Scratch scratch;
    const Workspace room = room_for_softmax(Batch<float>::rows, Batch<float>::vocabulary, scratch);
    std::vector<TokenId> expected;
    for (int row = 0; row < Batch<float>::rows; ++row) {
      expected.push_back(find_token(batch.distribution(row), 0, {0, 0}).value_or(-1));
    }
    const std::vector<td_cuda_sampling> one(1);
    for (const std::vector<td_cuda_sampling>& sampling : {{}, one, batch.sampling}) {
      const DeviceBuffer<TokenId> tokens(std::vector<TokenId>(Batch<float>::rows, -5));
      td_cuda_logits all = batch.view();
      all.sampling       = sampling.empty() ? nullptr : sampling.data();
      all.sampling_count = sampling.size();
      CHECK(td_cuda_find_tokens(&all, nullptr, 0, tokens.data(), room.data, room.bytes, nullptr) ==
            TD_OK);
      CHECK(tokens.download() == expected);
    }
  });
}

#if defined(TOOLDECODE_SIMT)
TEST_CASE("td_cuda rows that are sampled alike share launches, whatever makes no difference") {
  using B = Batch<float>;
  B batch(34);
  test::Scratch scratch;
  const Workspace room = room_for_softmax(B::rows, B::vocabulary, scratch);
  const DeviceBuffer<TokenId> tokens(B::rows);
  const DeviceBuffer<float> values(static_cast<std::size_t>(B::rows * B::vocabulary));
  const auto launches = [&](bool is_choice, auto change) {
    std::vector<td_cuda_sampling> sampling(B::rows, batch.sampling[0]);
    for (std::size_t row = 0; row < B::rows; ++row) change(sampling[row], row);
    td_cuda_logits all = batch.view();
    all.sampling       = sampling.data();
    const int before   = simt::by_default;
    const td_code code = is_choice
                             ? td_cuda_find_tokens(&all, batch.device_positions.data(), 0,
                                                   tokens.data(), room.data, room.bytes, nullptr)
                             : td_cuda_fill_masked_softmax(&all, values.data(), nullptr, room.data,
                                                           room.bytes, nullptr);
    CHECK(code == TD_OK);
    return simt::by_default - before;
  };
  const auto none   = [](td_cuda_sampling&, std::size_t) {};
  const auto seed   = [](td_cuda_sampling& one, std::size_t row) { one.seed = row; };
  const auto greedy = [](td_cuda_sampling& one, std::size_t row) {
    one = {.seed = row, .temperature = 0, .top_k = static_cast<int>(row), .top_p = 0, .min_p = 0};
  };
  CHECK(launches(false, seed) == launches(false, none));
  CHECK(launches(true, greedy) == launches(true, none));
  CHECK(launches(true, seed) >= B::rows * launches(true, none));
}
#endif

TEST_CASE("td_cuda_find_tokens in a captured graph keeps the sampling that it was captured with") {
  test::on_device([] {
    Batch<__half> batch(33);
    test::Scratch scratch;
    const Workspace room =
        room_for_softmax(Batch<__half>::rows, Batch<__half>::vocabulary, scratch);
    const DeviceBuffer<TokenId> tokens(std::vector<TokenId>(Batch<__half>::rows, -5));
    const auto enqueue = [&](cudaStream_t stream) {
      const td_cuda_logits all = batch.view();
      return td_cuda_find_tokens(&all, batch.device_positions.data(), 0, tokens.data(), room.data,
                                 room.bytes, stream);
    };
    REQUIRE(enqueue(nullptr) == TD_OK);
    const auto expected = tokens.download();
    cudaStream_t stream = nullptr;
    check(cudaStreamCreate(&stream));
    cudaGraph_t graph = nullptr;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    CHECK(enqueue(stream) == TD_OK);
    check(cudaStreamEndCapture(stream, &graph));
    cudaGraphExec_t executable = nullptr;
    check(cudaGraphInstantiate(&executable, graph, 0));
    batch.sampling.assign(batch.sampling.size(), td_cuda_sampling{});
    check(cudaMemsetAsync(tokens.data(), 0, tokens.bytes(), stream));
    check(cudaGraphLaunch(executable, stream));
    check(cudaStreamSynchronize(stream));
    CHECK(tokens.download() == expected);
    check(cudaGraphExecDestroy(executable));
    check(cudaGraphDestroy(graph));
    check(cudaStreamDestroy(stream));
  });
}

TEST_CASE("td_cuda softmax and choice refuse each wrong argument by name") {
  test::on_device([] {
    const Batch<float> batch(41);
    const td_cuda_logits all = batch.view();
    test::Scratch scratch;
    const Workspace room = room_for_softmax(all.rows, all.vocabulary, scratch);
    const DeviceBuffer<float> out(static_cast<std::size_t>(all.rows * all.vocabulary));
    const DeviceBuffer<TokenId> tokens(std::vector<TokenId>(Batch<float>::rows, -5));
    const auto before = out.download();
    const auto fill   = [&](const td_cuda_logits& logits) {
      return [&, logits] {
        return td_cuda_fill_masked_softmax(&logits, out.data(), nullptr, room.data, room.bytes,
                                             nullptr);
      };
    };
    const auto find = [&](const td_cuda_logits& logits) {
      return [&, logits] {
        return td_cuda_find_tokens(&logits, batch.device_positions.data(), 0, tokens.data(),
                                   room.data, room.bytes, nullptr);
      };
    };
    auto sampling_with = [&](auto field, auto value) {  // of the last row; the others are right
      std::vector<td_cuda_sampling> sampling = batch.sampling;
      sampling.back()                        = with(sampling.back(), field, value);
      return [&, sampling, find] {
        td_cuda_logits logits = all;
        logits.sampling       = sampling.data();
        return find(logits)();
      };
    };
    using L = td_cuda_logits;
    using S = td_cuda_sampling;
    check_refused({
        {"null logits", TD_ERROR_INVALID_ARGUMENT, "logits",
         [&] {
           return td_cuda_fill_masked_softmax(nullptr, out.data(), nullptr, room.data, room.bytes,
                                              nullptr);
         }},
        {"null logits of a choice", TD_ERROR_INVALID_ARGUMENT, "logits",
         [&] {
           return td_cuda_find_tokens(nullptr, nullptr, 0, tokens.data(), room.data, room.bytes,
                                      nullptr);
         }},
        {"struct_size", TD_ERROR_INVALID_ARGUMENT, "logits.struct_size",
         fill(with(all, &L::struct_size, 8))},
        {"struct_size of a choice", TD_ERROR_INVALID_ARGUMENT, "logits.struct_size",
         find(with(all, &L::struct_size, 8))},
        {"dtype", TD_ERROR_INVALID_OPTION, "dtype", fill(with(all, &L::dtype, 0))},
        {"dtype of a choice", TD_ERROR_INVALID_OPTION, "dtype", find(with(all, &L::dtype, 4))},
        {"null memory", TD_ERROR_SHAPE_MISMATCH, "fill_masked_softmax: logits",
         fill(with(all, &L::logits, nullptr))},
        {"rows", TD_ERROR_SHAPE_MISMATCH, "fill_masked_softmax: rows",
         fill(with(all, &L::rows, -1))},
        {"vocabulary", TD_ERROR_SHAPE_MISMATCH, "find_tokens: vocabulary",
         find(with(all, &L::vocabulary, -1))},
        {"stride", TD_ERROR_SHAPE_MISMATCH, "find_tokens: stride",
         find(with(all, &L::stride, all.vocabulary - 1))},
        {"mask_stride", TD_ERROR_SHAPE_MISMATCH, "fill_masked_softmax: mask_stride",
         fill(with(all, &L::mask_stride, 6))},
        {"sampling_count", TD_ERROR_SHAPE_MISMATCH, "sampling_count",
         fill(with(all, &L::sampling_count, 5))},
        {"no sampling_count", TD_ERROR_SHAPE_MISMATCH, "sampling_count",
         find(with(all, &L::sampling_count, 0))},
        {"temperature", TD_ERROR_INVALID_OPTION, "temperature", sampling_with(&S::temperature, -1)},
        {"temperature that is no number", TD_ERROR_INVALID_OPTION, "temperature",
         sampling_with(&S::temperature, NAN)},
        {"top_k", TD_ERROR_INVALID_OPTION, "top_k", sampling_with(&S::top_k, -1)},
        {"top_p", TD_ERROR_INVALID_OPTION, "top_p", sampling_with(&S::top_p, 1.5)},
        {"min_p", TD_ERROR_INVALID_OPTION, "min_p", sampling_with(&S::min_p, -0.5)},
        {"out", TD_ERROR_SHAPE_MISMATCH, "fill_masked_log_softmax: out",
         [&] {
           return td_cuda_fill_masked_log_softmax(&all, nullptr, nullptr, room.data, room.bytes,
                                                  nullptr);
         }},
        {"tokens", TD_ERROR_SHAPE_MISMATCH, "find_tokens: tokens",
         [&] {
           return td_cuda_find_tokens(&all, batch.device_positions.data(), 0, nullptr, room.data,
                                      room.bytes, nullptr);
         }},
        {"positions", TD_ERROR_SHAPE_MISMATCH, "find_tokens: positions",
         [&] {
           return td_cuda_find_tokens(&all, nullptr, 0, tokens.data(), room.data, room.bytes,
                                      nullptr);
         }},
        {"a workspace too small", TD_ERROR_SHAPE_MISMATCH, "fill_masked_softmax: workspace",
         [&] {
           return td_cuda_fill_masked_softmax(&all, out.data(), nullptr, room.data, room.bytes - 1,
                                              nullptr);
         }},
        {"a null workspace", TD_ERROR_SHAPE_MISMATCH, "find_tokens: workspace",
         [&] {
           return td_cuda_find_tokens(&all, batch.device_positions.data(), 0, tokens.data(),
                                      nullptr, room.bytes, nullptr);
         }},
        {"a workspace that is not aligned", TD_ERROR_SHAPE_MISMATCH, "find_tokens: workspace",
         [&] {
           return td_cuda_find_tokens(&all, batch.device_positions.data(), 0, tokens.data(),
                                      static_cast<std::byte*>(room.data) + 16, room.bytes, nullptr);
         }},
        {"bytes", TD_ERROR_INVALID_ARGUMENT, "bytes",
         [] { return td_cuda_masked_softmax_workspace_bytes(1, 1, nullptr); }},
        {"rows of a workspace", TD_ERROR_SHAPE_MISMATCH, "masked_softmax_workspace_bytes: rows",
         [] {
           std::size_t bytes = 0;
           return td_cuda_masked_softmax_workspace_bytes(-1, 1, &bytes);
         }},
    });
    CHECK(
        same_bits(out.download(), before));  // nothing was launched, not for the first rows either
    CHECK(tokens.download() == std::vector<TokenId>(Batch<float>::rows, -5));
    CHECK(fill(with(all, &L::rows, 0))() == TD_ERROR_SHAPE_MISMATCH);  // sampling of six
    const L empty = with(with(all, &L::rows, 0), &L::sampling, nullptr);
    CHECK(td_cuda_fill_masked_softmax(&empty, nullptr, nullptr, nullptr, 0, nullptr) == TD_OK);
  });
}

TEST_CASE("td_cuda_project_topk gives the bits of project_topk, of a copy and of a whole head") {
  test::on_device([] {
    const auto check_type = []<class T>(std::type_identity<T>, unsigned seed) {
      auto head = test::random_head<T>(90, 24, seed);
      std::mt19937 random(seed);
      constexpr int states = 3, k = 5;
      const int words = (head.vocabulary + 31) / 32;
      const DeviceBuffer<T> hidden(test::normal_numbers<T>(states * 24, random));
      std::vector<std::uint32_t> bits;
      for (int i = 0; i < states; ++i) {
        const auto mask = test::random_mask(static_cast<std::size_t>(head.vocabulary),
                                            i == 1 ? 0.02 : 0.5, random);
        bits.insert(bits.end(), mask.begin(), mask.end());
      }
      const DeviceBuffer<std::uint32_t> masks(bits);
      for (const bool is_whole : {false, true}) {
        for (const bool is_masked : {false, true}) {
          INFO("whole " << is_whole << ", masked " << is_masked << ", seed " << seed);
          const HeadRows<T> rows = is_whole ? head.in_place() : head.copied();
          const td_cuda_head c_rows{.struct_size = sizeof(td_cuda_head),
                                    .weights     = rows.weights,
                                    .dtype       = dtype_of<T>,
                                    .rows        = rows.rows,
                                    .hidden_size = rows.hidden_size,
                                    .stride      = rows.stride,
                                    .tokens      = rows.tokens,
                                    .vocabulary  = rows.vocabulary};
          const auto* masks_or_none = is_masked ? masks.data() : nullptr;
          std::size_t bytes         = 0;
          REQUIRE(td_cuda_pruned_head_workspace_bytes(states, rows.rows, k, is_masked ? words : 0,
                                                      &bytes) == TD_OK);
          const test::Scratch scratch(bytes);
          struct Out {
            DeviceBuffer<TokenId> tokens{std::vector<TokenId>(states * k, -9)};
            DeviceBuffer<float> logits{std::vector<float>(states * k, 9)},
                sums{std::vector<float>(states, 9)};
          } mine, theirs;
          Workspace room = scratch.on(nullptr);
          REQUIRE(td_cuda_project_topk(&c_rows, hidden.data(), states, masks_or_none,
                                       is_masked ? words : 0, k, mine.tokens.data(),
                                       mine.logits.data(), mine.sums.data(), room.data, room.bytes,
                                       nullptr) == TD_OK);
          project_topk(rows, hidden.data(), states, masks_or_none, is_masked ? words : 0, k,
                       {theirs.tokens.data(), theirs.logits.data(), theirs.sums.data()},
                       scratch.on(nullptr), nullptr);
          CHECK(mine.tokens.download() == theirs.tokens.download());
          CHECK(mine.tokens.download()[0] >= 0);
          CHECK(same_bits(mine.logits.download(), theirs.logits.download()));
          CHECK(same_bits(mine.sums.download(), theirs.sums.download()));
        }
      }
    };
    check_type(std::type_identity<__half>{}, 51);
    check_type(std::type_identity<__nv_bfloat16>{}, 52);
  });
}

TEST_CASE("td_cuda_project_topk refuses each wrong argument by name") {
  test::on_device([] {
    const DeviceBuffer<__half> weights(8 * 16), hidden(16);
    const DeviceBuffer<TokenId> tokens(std::vector<TokenId>(2, -5));
    const DeviceBuffer<float> logits(2), sums(1);
    const td_cuda_head right{.struct_size = sizeof(td_cuda_head),
                             .weights     = weights.data(),
                             .dtype       = TD_CUDA_F16,
                             .rows        = 8,
                             .hidden_size = 16,
                             .stride      = 0,
                             .tokens      = nullptr,
                             .vocabulary  = 0};
    std::size_t bytes = 0;
    REQUIRE(td_cuda_pruned_head_workspace_bytes(1, 8, 2, 0, &bytes) == TD_OK);
    const test::Scratch scratch(bytes);
    const Workspace room = scratch.on(nullptr);
    using H              = td_cuda_head;
    const auto project   = [&](const H& head) {
      return [&, head] {
        return td_cuda_project_topk(&head, hidden.data(), 1, nullptr, 0, 2, tokens.data(),
                                      logits.data(), sums.data(), room.data, room.bytes, nullptr);
      };
    };
    const auto with_hidden = [&](const void* from, int states, int k, std::size_t size) {
      return [&, from, states, k, size] {
        return td_cuda_project_topk(&right, from, states, nullptr, 0, k, tokens.data(),
                                    logits.data(), sums.data(), room.data, size, nullptr);
      };
    };
    const auto with_outputs = [&](TokenId* to, float* to_logits, float* to_sums) {
      return [&, to, to_logits, to_sums] {
        return td_cuda_project_topk(&right, hidden.data(), 1, nullptr, 0, 2, to, to_logits, to_sums,
                                    room.data, room.bytes, nullptr);
      };
    };
    const auto bytes_of = [](int states, int rows, int k, int words, std::size_t* to) {
      return [=] { return td_cuda_pruned_head_workspace_bytes(states, rows, k, words, to); };
    };
    check_refused({
        {"null head", TD_ERROR_INVALID_ARGUMENT, "head",
         [&] {
           return td_cuda_project_topk(nullptr, hidden.data(), 1, nullptr, 0, 2, tokens.data(),
                                       logits.data(), sums.data(), room.data, room.bytes, nullptr);
         }},
        {"struct_size", TD_ERROR_INVALID_ARGUMENT, "head.struct_size",
         project(with(right, &H::struct_size, 0))},
        {"dtype", TD_ERROR_INVALID_OPTION, "dtype", project(with(right, &H::dtype, TD_CUDA_F32))},
        {"weights", TD_ERROR_SHAPE_MISMATCH, "head: weights",
         project(with(right, &H::weights, weights.data() + 1))},
        {"rows", TD_ERROR_SHAPE_MISMATCH, "head: rows", project(with(right, &H::rows, -1))},
        {"hidden_size", TD_ERROR_SHAPE_MISMATCH, "head: hidden_size",
         project(with(right, &H::hidden_size, 12))},
        {"stride", TD_ERROR_SHAPE_MISMATCH, "head: stride", project(with(right, &H::stride, 8))},
        {"vocabulary", TD_ERROR_SHAPE_MISMATCH, "head: vocabulary",
         project(with(right, &H::vocabulary, 7))},
        {"hidden", TD_ERROR_SHAPE_MISMATCH, "head: hidden",
         with_hidden(hidden.data() + 4, 1, 2, room.bytes)},
        {"states", TD_ERROR_INVALID_OPTION, "head: states",
         with_hidden(hidden.data(), 65'536, 2, room.bytes)},
        {"k", TD_ERROR_INVALID_OPTION, "k = 33", with_hidden(hidden.data(), 1, 33, room.bytes)},
        {"a workspace too small", TD_ERROR_SHAPE_MISMATCH, "project_topk: workspace",
         with_hidden(hidden.data(), 1, 2, 0)},
        {"tokens", TD_ERROR_SHAPE_MISMATCH, "to",
         with_outputs(nullptr, logits.data(), sums.data())},
        {"logits", TD_ERROR_SHAPE_MISMATCH, "to",
         with_outputs(tokens.data(), nullptr, sums.data())},
        {"log_sum_exp", TD_ERROR_SHAPE_MISMATCH, "to",
         with_outputs(tokens.data(), logits.data(), nullptr)},
        {"mask_words", TD_ERROR_SHAPE_MISMATCH, "mask_words",
         [&] {
           return td_cuda_project_topk(&right, hidden.data(), 1, nullptr, -1, 2, tokens.data(),
                                       logits.data(), sums.data(), room.data, room.bytes, nullptr);
         }},
        {"bytes", TD_ERROR_INVALID_ARGUMENT, "bytes", bytes_of(1, 8, 2, 0, nullptr)},
        {"states of a workspace", TD_ERROR_INVALID_OPTION, "head: states",
         bytes_of(-1, 8, 2, 0, &bytes)},
        {"rows of a workspace", TD_ERROR_SHAPE_MISMATCH, "head: rows",
         bytes_of(1, -8, 2, 0, &bytes)},
        {"k of a workspace", TD_ERROR_INVALID_OPTION, "k = 0", bytes_of(1, 8, 0, 0, &bytes)},
    });
    CHECK(tokens.download() == std::vector<TokenId>(2, -5));
  });
}

TEST_CASE("td_cuda_tree_attention gives the bits of tree_attention, from one plan") {
  test::on_device([] {
    for (const bool is_paged : {false, true}) {
      attention_equals_that_of_cpp<__half>(is_paged, 61);
      attention_equals_that_of_cpp<__nv_bfloat16>(is_paged, 62);
    }
  });
}

TEST_CASE("td_cuda_tree_attention refuses each wrong argument by name") {
  test::on_device([] {
    const Attention<__half> problem(true, 71);
    using Shape                       = td_cuda_tree_attention_shape;
    using C                           = td_cuda_cache;
    const Shape right                 = problem.shape();
    const C cache                     = problem.cache();
    td_cuda_tree_attention* attention = nullptr;
    REQUIRE(td_cuda_tree_attention_make(&right, &attention) == TD_OK);
    std::size_t bytes = 0;
    REQUIRE(td_cuda_tree_attention_workspace_bytes(&right, &bytes) == TD_OK);
    const test::Scratch scratch(bytes);
    const Workspace room = scratch.on(nullptr);
    const DeviceBuffer<__half> out(problem.queries.size());
    const auto before = out.download();
    const auto make   = [](const Shape& shape) {
      return [shape] {
        int any                      = 0;
        td_cuda_tree_attention* made = reinterpret_cast<td_cuda_tree_attention*>(&any);
        const td_code code           = td_cuda_tree_attention_make(&shape, &made);
        CHECK(made == nullptr);
        return code;
      };
    };
    const auto run = [&](const C& from) {
      return [&, from] {
        return td_cuda_tree_attention_run(attention, problem.queries.data(),
                                          problem.ancestors.data(), problem.lengths.data(), &from,
                                          out.data(), room.data, room.bytes, nullptr);
      };
    };
    const auto run_with = [&](const void* queries, const std::uint64_t* ancestors,
                              const std::int32_t* lengths, void* to) {
      return [&, queries, ancestors, lengths, to] {
        return td_cuda_tree_attention_run(attention, queries, ancestors, lengths, &cache, to,
                                          room.data, room.bytes, nullptr);
      };
    };
    const auto* q           = problem.queries.data();
    const auto* a           = problem.ancestors.data();
    const auto* l           = problem.lengths.data();
    const std::string place = "tree_attention: ";
    check_refused({
      {"null shape", TD_ERROR_INVALID_ARGUMENT, "shape",
       [] {
         td_cuda_tree_attention* made = nullptr;
         return td_cuda_tree_attention_make(nullptr, &made);
       }},
          {"out of a plan", TD_ERROR_INVALID_ARGUMENT, "out",
           [&] { return td_cuda_tree_attention_make(&right, nullptr); }},
          {"bytes", TD_ERROR_INVALID_ARGUMENT, "bytes",
           [&] { return td_cuda_tree_attention_workspace_bytes(&right, nullptr); }},
          {"shape of a workspace", TD_ERROR_INVALID_OPTION, place + "nodes",
           [&] {
             const Shape wrong = with(right, &Shape::nodes, 65);
             return td_cuda_tree_attention_workspace_bytes(&wrong, &bytes);
           }},
          {"struct_size", TD_ERROR_INVALID_ARGUMENT, "shape.struct_size",
           make(with(right, &Shape::struct_size, 1))},
          {"dtype", TD_ERROR_INVALID_OPTION, "dtype",
           make(with(right, &Shape::dtype, TD_CUDA_F32))},
          {"query_heads", TD_ERROR_INVALID_OPTION, place + "query_heads",
           make(with(right, &Shape::query_heads, 3))},
          {"key_heads", TD_ERROR_INVALID_OPTION, place + "key_heads",
           make(with(right, &Shape::key_heads, 0))},
          {"head_size", TD_ERROR_INVALID_OPTION, place + "head_size",
           make(with(right, &Shape::head_size, 32))},
          {"scale", TD_ERROR_INVALID_OPTION, place + "scale",
           make(with(right, &Shape::scale, NAN))},
          {"sequences", TD_ERROR_INVALID_OPTION, place + "sequences",
           make(with(right, &Shape::sequences, -1))},
          {"nodes", TD_ERROR_INVALID_OPTION, place + "nodes", make(with(right, &Shape::nodes, 65))},
          {"max_length", TD_ERROR_INVALID_OPTION, place + "max_length",
           make(with(right, &Shape::max_length, -1))},
          {"slots", TD_ERROR_INVALID_OPTION, place + "slots", make(with(right, &Shape::slots, 65))},
          {"null plan", TD_ERROR_INVALID_ARGUMENT, "attention",
           [&] {
             return td_cuda_tree_attention_run(nullptr, q, a, l, &cache, out.data(), room.data,
                                               room.bytes, nullptr);
           }},
          {"queries", TD_ERROR_SHAPE_MISMATCH, place + "queries",
           run_with(q + 1, a, l, out.data())},
          {"ancestors", TD_ERROR_SHAPE_MISMATCH, place + "ancestors",
           run_with(q, nullptr, l, out.data())},
          {"lengths", TD_ERROR_SHAPE_MISMATCH, place + "lengths",
           run_with(q, a, nullptr, out.data())},
          {"out", TD_ERROR_SHAPE_MISMATCH, place + "out", run_with(q, a, l, nullptr)},
          {"null cache", TD_ERROR_INVALID_ARGUMENT, "cache",
           [&] {
             return td_cuda_tree_attention_run(attention, q, a, l, nullptr, out.data(), room.data,
                                               room.bytes, nullptr);
           }},
          {"struct_size of a cache", TD_ERROR_INVALID_ARGUMENT, "cache.struct_size",
           run(with(cache, &C::struct_size, 0))},
          {"keys", TD_ERROR_SHAPE_MISMATCH, place + "keys", run(with(cache, &C::keys, nullptr))},
          {"values", TD_ERROR_SHAPE_MISMATCH, place + "values",
           run(with(cache, &C::values, problem.values.data() + 1))},
          {"slot_stride", TD_ERROR_SHAPE_MISMATCH, place + "strides",
           run(with(cache, &C::slot_stride, 65))},
          {"head_stride", TD_ERROR_SHAPE_MISMATCH, place + "strides",
           run(with(cache, &C::head_stride, 65))},
          {"page_stride", TD_ERROR_SHAPE_MISMATCH, place + "strides",
           run(with(cache, &C::page_stride, 65))},
          {"page_size", TD_ERROR_SHAPE_MISMATCH, place + "page_size",
           run(with(cache, &C::page_size, 0))},
          {"max_pages", TD_ERROR_SHAPE_MISMATCH, place + "page_size",
           run(with(cache, &C::max_pages, 0))},
#if defined(TOOLDECODE_SIMT)
          {"another device", TD_ERROR_INVALID_ARGUMENT, "attention", [&] {
             const test::Setting other(simt::options.shared_limit, std::size_t{99 * 1024});
             return run(cache)();
           }},
#endif
    });
    CHECK(same_bits(out.download(), before));
    td_cuda_tree_attention_free(attention);
    td_cuda_tree_attention_free(nullptr);

    const Shape empty = with(right, &Shape::sequences, 0);
    REQUIRE(td_cuda_tree_attention_make(&empty, &attention) == TD_OK);
    CHECK(td_cuda_tree_attention_run(attention, nullptr, nullptr, nullptr, &cache, nullptr, nullptr,
                                     0, nullptr) == TD_OK);
    td_cuda_tree_attention_free(attention);
  });
}

#if defined(TOOLDECODE_SIMT)
TEST_CASE("td_cuda_tree_attention refuses a workspace that its plan's splits do not fit into") {
  test::on_device([] {
    const test::Setting many(simt::multiprocessors, 16);  // more than there are heads
    const Attention<__half> problem(false, 72);
    auto shape                        = problem.shape();
    shape.max_length                  = 4000;
    td_cuda_tree_attention* attention = nullptr;
    REQUIRE(td_cuda_tree_attention_make(&shape, &attention) == TD_OK);
    std::size_t bytes = 0;
    REQUIRE(td_cuda_tree_attention_workspace_bytes(&shape, &bytes) == TD_OK);
    REQUIRE(bytes > 0);
    const DeviceBuffer<__half> out(problem.queries.size());
    const td_cuda_cache cache = problem.cache();
    CHECK(td_cuda_tree_attention_run(attention, problem.queries.data(), problem.ancestors.data(),
                                     problem.lengths.data(), &cache, out.data(), nullptr, 0,
                                     nullptr) == TD_ERROR_SHAPE_MISMATCH);
    CHECK(td_cuda_last_error_where() == std::string("tree_attention: workspace"));
    td_cuda_tree_attention_free(attention);
  });
}
#endif

TEST_CASE("td_cuda_verify_trees, td_cuda_compact_cache and td_cuda_advance_lengths keep a path") {
  test::on_device([] {
    const Trees trees;
    const DeviceBuffer<td_cuda_verdict> verdicts(3);
    REQUIRE(trees.verify(verdicts.data()) == TD_OK);
    const auto got = verdicts.download();
    CHECK((got[0].accepted == 2 && got[0].kept == 3 && got[0].emitted == 3));
    CHECK((got[0].path[0] == 2 && got[0].path[1] == 3 && got[0].path[2] == -1));
    CHECK((got[0].tokens[0] == 6 && got[0].tokens[1] == 7 && got[0].tokens[2] == 9));
    CHECK((got[0].tokens[3] == -1 && got[0].path[63] == -1));
    CHECK((got[1].accepted == 0 && got[1].kept == 1 && got[1].emitted == 1));
    CHECK((got[1].tokens[0] == 4 && got[1].path[0] == -1));
    CHECK((got[2].accepted == 0 && got[2].kept == 0 && got[2].emitted == 0));

    constexpr int slots = 16, width = 2 * 8;
    std::mt19937 random(81);
    for (const bool is_paged : {false, true}) {
      INFO("paged " << is_paged);
      const auto numbers = test::normal_numbers<__nv_bfloat16>(3 * slots * width, random);
      std::vector<DeviceBuffer<__nv_bfloat16>> memory;
      std::vector<td_cuda_cache> layers;
      const DeviceBuffer<std::int32_t> pages(std::vector<std::int32_t>{5, 1, 0, 2, 4, 3});
      for (int layer = 0; layer < 2; ++layer) {
        for (int part = 0; part < 2; ++part) memory.emplace_back(numbers);
        layers.push_back({.struct_size = sizeof(td_cuda_cache),
                          .keys        = memory[memory.size() - 2].data(),
                          .values      = memory.back().data(),
                          .slot_stride = width,
                          .head_stride = 8,
                          .page_stride = (is_paged ? 8 : slots) * width,
                          .pages       = is_paged ? pages.data() : nullptr,
                          .page_size   = is_paged ? 8 : 0,
                          .max_pages   = is_paged ? 2 : 0});
      }
      const DeviceBuffer<std::int32_t> lengths(std::vector<std::int32_t>{5, 9, 2});
      REQUIRE(td_cuda_compact_cache(layers.data(), 2, TD_CUDA_BF16, 3, 2, 8, verdicts.data(),
                                    lengths.data(), nullptr) == TD_OK);
      auto expected     = numbers;
      const auto row_of = [&](int slot) {  // of the first sequence
        const int at = is_paged ? (slot < 8 ? 5 : 1) * 8 + slot % 8 : slot;
        return static_cast<std::size_t>(at * width);
      };
      for (const auto& [to, from] : {std::pair{6, 7}, {7, 8}}) {
        std::copy_n(numbers.data() + row_of(from), width, expected.data() + row_of(to));
      }
      for (const auto& part : memory) CHECK(same_bits(part.download(), expected));
      REQUIRE(td_cuda_advance_lengths(verdicts.data(), lengths.data(), 3, nullptr) == TD_OK);
      CHECK(lengths.download() == std::vector<std::int32_t>{8, 10, 2});
    }
  });
}

TEST_CASE("td_cuda verification and compaction refuse each wrong argument by name") {
  test::on_device([] {
    const Trees trees;
    const DeviceBuffer<td_cuda_verdict> verdicts(3);
    check(cudaMemsetAsync(verdicts.data(), 0, verdicts.bytes(), nullptr));
    const DeviceBuffer<std::int32_t> lengths(std::vector<std::int32_t>{1, 2, 3});
    const DeviceBuffer<__half> memory(256);
    using C = td_cuda_cache;
    const C right{.struct_size = sizeof(C),
                  .keys        = memory.data(),
                  .values      = memory.data(),
                  .slot_stride = 8,
                  .head_stride = 8,
                  .page_stride = 64,
                  .pages       = nullptr,
                  .page_size   = 0,
                  .max_pages   = 0};
    const auto verify = [&](int missing) {
      return [&, missing] {
        const auto unless = [missing](int i, auto* pointer) {
          return i == missing ? nullptr : pointer;
        };
        return td_cuda_verify_trees(unless(0, trees.tokens.data()), unless(1, trees.parents.data()),
                                    unless(2, trees.ancestors.data()),
                                    unless(3, trees.sizes.data()), unless(4, trees.choices.data()),
                                    unless(5, verdicts.data()), 3, nullptr);
      };
    };
    const auto compact = [&](const C& second) {
      return [&, second] {
        const C layers[] = {right, second};
        return td_cuda_compact_cache(layers, 2, TD_CUDA_F16, 3, 1, 8, verdicts.data(),
                                     lengths.data(), nullptr);
      };
    };
    const auto compact_with = [&](std::int32_t dtype, int sequences, int heads, int size,
                                  const td_cuda_verdict* from, const std::int32_t* at) {
      return [=] {
        return td_cuda_compact_cache(&right, 1, dtype, sequences, heads, size, from, at, nullptr);
      };
    };
    const td_cuda_verdict* v = verdicts.data();
    std::int32_t* l          = lengths.data();
    check_refused({
        {"tokens", TD_ERROR_SHAPE_MISMATCH, "tree", verify(0)},
        {"parents", TD_ERROR_SHAPE_MISMATCH, "tree", verify(1)},
        {"ancestors", TD_ERROR_SHAPE_MISMATCH, "tree", verify(2)},
        {"sizes", TD_ERROR_SHAPE_MISMATCH, "tree", verify(3)},
        {"choices", TD_ERROR_SHAPE_MISMATCH, "choices", verify(4)},
        {"verdicts", TD_ERROR_SHAPE_MISMATCH, "verdicts", verify(5)},
        {"sequences", TD_ERROR_INVALID_OPTION, "sequences",
         [&] { return trees.verify(verdicts.data(), -1); }},
        {"null layers", TD_ERROR_INVALID_ARGUMENT, "layers",
         [&] { return td_cuda_compact_cache(nullptr, 1, TD_CUDA_F16, 3, 1, 8, v, l, nullptr); }},
        {"struct_size", TD_ERROR_INVALID_ARGUMENT, "layers/1.struct_size",
         compact(with(right, &C::struct_size, 3))},
        {"keys", TD_ERROR_SHAPE_MISMATCH, "keys", compact(with(right, &C::keys, nullptr))},
        {"values", TD_ERROR_SHAPE_MISMATCH, "values",
         compact(with(right, &C::values, memory.data() + 1))},
        {"strides", TD_ERROR_SHAPE_MISMATCH, "strides", compact(with(right, &C::slot_stride, 4))},
        {"pages", TD_ERROR_SHAPE_MISMATCH, "page_size", compact(with(right, &C::pages, l))},
        {"dtype", TD_ERROR_INVALID_OPTION, "dtype", compact_with(TD_CUDA_F32, 3, 1, 8, v, l)},
        {"sequences of a cache", TD_ERROR_SHAPE_MISMATCH, "sequences",
         compact_with(TD_CUDA_F16, 65'536, 1, 8, v, l)},
        {"key_heads", TD_ERROR_SHAPE_MISMATCH, "key_heads",
         compact_with(TD_CUDA_F16, 3, -1, 8, v, l)},
        {"head_size", TD_ERROR_SHAPE_MISMATCH, "head_size",
         compact_with(TD_CUDA_F16, 3, 1, 12, v, l)},
        {"verdicts of a cache", TD_ERROR_SHAPE_MISMATCH, "verdicts",
         compact_with(TD_CUDA_F16, 3, 1, 8, nullptr, l)},
        {"lengths", TD_ERROR_SHAPE_MISMATCH, "lengths",
         compact_with(TD_CUDA_F16, 3, 1, 8, v, nullptr)},
        {"verdicts of lengths", TD_ERROR_SHAPE_MISMATCH, "verdicts",
         [&] { return td_cuda_advance_lengths(nullptr, l, 3, nullptr); }},
        {"null lengths", TD_ERROR_SHAPE_MISMATCH, "lengths",
         [&] { return td_cuda_advance_lengths(v, nullptr, 3, nullptr); }},
        {"sequences of lengths", TD_ERROR_SHAPE_MISMATCH, "sequences",
         [&] { return td_cuda_advance_lengths(v, l, -1, nullptr); }},
    });
    CHECK(lengths.download() == std::vector<std::int32_t>{1, 2, 3});
  });
}

TEST_CASE("td_cuda_last_error is the thread's own, and empty before its first error") {
  CHECK(td_cuda_abi_version() == TD_CUDA_ABI_VERSION);
  CHECK(td_cuda_advance_lengths(nullptr, nullptr, -1, nullptr) == TD_ERROR_SHAPE_MISMATCH);
  std::string other = "unread";
  std::thread([&other] { other = td_cuda_last_error(); }).join();
  CHECK(other.empty());
  CHECK(td_cuda_last_error() == std::string("sequences: must be 0 or more"));
  CHECK(td_cuda_advance_lengths(nullptr, nullptr, 0, nullptr) == TD_OK);
  CHECK(td_cuda_last_error() == std::string("sequences: must be 0 or more"));
}
