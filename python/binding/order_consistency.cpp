#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/consistency/order_consistency_sampler.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/mask/dlpack_mask.hpp>
#include <tooldecode/text/json_value.hpp>

#include "handles.hpp"
#include "host_array.hpp"
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace tooldecode::python {
namespace {

using namespace nb::literals;

// A model whose functions are a Python object's. Needs the GIL for everything; torch gives it up in
// its own passes.
class PythonModel {
 public:
  struct Cache {
    nb::object object;
    std::size_t length = 0;  // tokens that it has read
  };

  PythonModel(nb::object functions, std::size_t vocabulary_size)
      : functions_(std::move(functions)), vocabulary_size_(vocabulary_size) {}

  [[nodiscard]] std::size_t vocabulary_size() const noexcept { return vocabulary_size_; }
  [[nodiscard]] Cache make_cache() const { return {functions_.attr("make_cache")(), 0}; }
  [[nodiscard]] std::size_t length(const Cache& cache) const noexcept { return cache.length; }
  [[nodiscard]] Cache fork(const Cache& cache) const {
    return {functions_.attr("fork")(cache.object), cache.length};
  }
  void truncate(Cache& cache, std::size_t length) const {
    functions_.attr("truncate")(cache.object, length);
    cache.length = length;
  }
  void forward(Cache& cache, std::span<const TokenId> tokens, std::span<float> logits) const {
    Cache* const caches[]                     = {&cache};
    const std::span<const TokenId> sequence[] = {tokens};
    forward_batch(caches, sequence, logits);
  }
  void forward_batch(std::span<Cache* const> caches,
                     std::span<const std::span<const TokenId>> tokens,
                     std::span<float> logits) const {
    nb::list objects, sequences;
    for (std::size_t i = 0; i < caches.size(); ++i) {
      objects.append(caches[i]->object);
      sequences.append(nb::cast(std::vector<TokenId>(tokens[i].begin(), tokens[i].end())));
    }
    const nb::object result = functions_.attr("forward")(objects, sequences);
    copy_rows(HostArray(result, "logits", HostArray::Use::read), caches.size(), logits);
    for (std::size_t i = 0; i < caches.size(); ++i) caches[i]->length += tokens[i].size();
  }

 private:
  // Rows [count, V] of float32 in the CPU's memory.
  void copy_rows(const HostArray& rows, std::size_t count, std::span<float> logits) const {
    constexpr int dlpack_float      = 2;
    const HostArray::Tensor& tensor = rows.tensor();
    if (tensor.device.device_type != detail::dlpack_cpu) {
      throw Error(Errc::invalid_option, "logits/device", tensor.device.device_type,
                  "must be the CPU, which DLPack numbers 1");
    }
    if (tensor.dtype.code != dlpack_float || tensor.dtype.bits != 32 || tensor.dtype.lanes != 1) {
      throw Error(Errc::invalid_option, "logits/dtype", "must be float32");
    }
    if (tensor.ndim != 2 || rows.extent(0) != static_cast<std::int64_t>(count) ||
        rows.extent(1) != static_cast<std::int64_t>(vocabulary_size_)) {
      throw Error(Errc::shape_mismatch, "logits/shape",
                  detail::dlpack_shape(tensor) + ": must be [" + std::to_string(count) + ", " +
                      std::to_string(vocabulary_size_) + "], a row per sequence");
    }
    if (rows.stride(1) != 1) {
      throw Error(Errc::shape_mismatch, "logits/strides", "must be those of rows without gaps");
    }
    const auto* first = reinterpret_cast<const float*>(static_cast<const std::byte*>(tensor.data) +
                                                       tensor.byte_offset);
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(logits.data() + i * vocabulary_size_,
                  first + static_cast<std::ptrdiff_t>(i) * rows.stride(0),
                  vocabulary_size_ * sizeof(float));
    }
  }

  nb::object functions_;
  std::size_t vocabulary_size_;
};
static_assert(BatchModel<PythonModel>);

nb::tuple order_consistency(const CallsHandle& constraint, const nb::object& model,
                            const std::vector<std::int64_t>& prompt, std::size_t max_orders,
                            std::size_t max_tokens, float temperature, std::size_t top_k,
                            float top_p, std::uint64_t seed, bool adaptive) {
  const ToolCallFSM& calls = constraint.calls();
  std::vector<TokenId> tokens;
  for (const std::int64_t token : prompt) {
    if (token < 0 || token > std::numeric_limits<TokenId>::max()) {
      throw Error(Errc::unknown_token, "prompt", token, "must be an id of the vocabulary");
    }
    tokens.push_back(static_cast<TokenId>(token));
  }
  OrderConsistencyOptions orders{.max_orders = max_orders, .adaptive = adaptive, .seed = seed};
  if (const auto& tokenizer = constraint.constraint().tokens().tokenizer) {
    orders.encode = [&tokenizer](std::string_view text) { return tokenizer->encode(text); };
  }
  const PythonModel target(model, calls.vocabulary_size());
  const Decoder decoder(target, calls);
  const OrderConsistencySampler sampler(decoder, std::move(orders));
  const Consensus made = sampler(tokens, {.max_tokens  = max_tokens,
                                          .temperature = temperature,
                                          .top_k       = top_k,
                                          .top_p       = top_p,
                                          .seed        = seed,
                                          .always_ends = true});
  JsonValue votes      = JsonValue::array();
  for (const CallVote& vote : made.calls) votes.push_back(vote.json());
  return nb::make_tuple(made.output.tokens, made.output.finish == Finish::end, votes.text(),
                        made.output.passes, made.sampled_tokens);
}

}  // namespace

void bind_order_consistency(nb::module_& module) {
  module.def("order_consistency", &order_consistency, "constraint"_a, "model"_a, "prompt"_a,
             "max_orders"_a, "max_tokens"_a, "temperature"_a, "top_k"_a, "top_p"_a, "seed"_a,
             "adaptive"_a,
             "See tooldecode.order_consistency; the votes are the JSON of CallVote::json.");
  module.attr("usual_orders") = usual_orders;
}

}  // namespace tooldecode::python
