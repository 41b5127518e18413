/// \file
/// DeviceLlama: the host's LlamaModel on the device, as a model that the host's decoders run.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <cuda_runtime.h>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/config.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/cuda/captured_graph.cuh>
#include <tooldecode/cuda/compact_cache.cuh>
#include <tooldecode/cuda/device.cuh>
#include <tooldecode/cuda/device_buffer.cuh>
#include <tooldecode/cuda/head_products.cuh>
#include <tooldecode/cuda/host_buffer.cuh>
#include <tooldecode/cuda/key_values.cuh>
#include <tooldecode/cuda/llama_layers.cuh>
#include <tooldecode/cuda/number.cuh>
#include <tooldecode/cuda/page_pool.cuh>
#include <tooldecode/cuda/tree_pass.cuh>
#include <tooldecode/cuda/tree_verifier.cuh>
#include <tooldecode/model/llama_config.hpp>
#include <tooldecode/model/llama_model.hpp>
#include <tooldecode/model/llama_weights.hpp>

namespace tooldecode::cuda {

/// How much memory a DeviceLlama has for its sequences.
struct DeviceLlamaOptions {
  /// Tokens that all sequences hold together; a sequence takes a multiple of 64.
  std::size_t context = 4096;
};

/// A Llama or Qwen2 model on the device: products of T with sums in F32, states in F32.
///
/// It computes what the host's LlamaModel does. Its logits differ from the host's by the rounding
/// of weights and of what they multiply: to 11 bits with F16, to 8 bits with BF16. F16 cuts numbers
/// at 65,504. The logits of a token depend, in their last bits, on how many tokens a pass has.
///
/// A pass is one CUDA graph, captured for each number of rows and each doubling of the length.
///
/// \par Shapes      logits [V] of the last token, [N, V] of a tree, [B, V] of a batch; hidden [L, H]
/// \par Complexity  reads the weights once per 64 tokens; 2 bytes of device memory a weight; keeps
///                  64 rows of logits on the device and in page-locked host memory
/// \par Threads     const members may run concurrently on different caches; passes run one after
///                  another, since they share memory
/// \par Errors      construction: Error{device_failure}, and Error{invalid_option} for heads of more
///                  than 256 numbers. Running: Error{limit_exceeded} past the context, that of the
///                  model or of all sequences, and Error{unknown_token}, before the cache is changed;
///                  {device_failure}
/// \par Source      as LlamaModel
template <HalfNumber T>
class DeviceLlama {
 public:
  /// The tokens that a sequence has read. Copies share pages until one of them writes.
  class Cache {
   private:
    friend class DeviceLlama;
    std::vector<CachePage> pages_;
    std::size_t length_ = 0;
  };

  DeviceLlama(const LlamaConfig& config, const model::LlamaWeights& weights,
              const DeviceLlamaOptions& options = {})
      : config_(config), engine_(std::make_unique<Engine>(config, weights, options)) {
    config_.context_length = engine_->context;
  }
  explicit DeviceLlama(const LlamaModel& model, const DeviceLlamaOptions& options = {})
      : DeviceLlama(model.config(), model.weights(), options) {}

  /// The model's, with the context that there is room for.
  [[nodiscard]] const LlamaConfig& config() const noexcept { return config_; }
  [[nodiscard]] const LlamaLayers<T>& layers() const noexcept { return engine_->layers; }
  [[nodiscard]] std::size_t vocabulary_size() const noexcept { return config_.vocabulary_size; }
  [[nodiscard]] std::size_t context_length() const noexcept { return engine_->context; }
  [[nodiscard]] std::size_t hidden_size() const noexcept { return config_.hidden_size; }

  [[nodiscard]] Cache make_cache() const { return {}; }
  [[nodiscard]] std::size_t length(const Cache& cache) const noexcept { return cache.length_; }
  [[nodiscard]] Cache fork(const Cache& cache) const { return cache; }
  void truncate(Cache& cache, std::size_t length) const {
    TOOLDECODE_ASSERT(length <= cache.length_);
    cache.length_ = length;
    drop_pages(cache);
  }

  /// Appends L >= 1 tokens and writes the logits after the last one.
  void forward(Cache& cache, std::span<const TokenId> tokens, std::span<float> logits) const {
    Cache* const caches[] = {&cache};
    forward_batch(caches, std::span(&tokens, 1), logits);
  }

  /// Appends L_i >= 1 tokens to each of B different sequences and writes the logits after the last
  /// token of each.
  void forward_batch(std::span<Cache* const> caches,
                     std::span<const std::span<const TokenId>> tokens,
                     std::span<float> logits) const {
    TOOLDECODE_ASSERT(caches.size() == tokens.size() &&
                      logits.size() == tokens.size() * vocabulary_size());
    const std::lock_guard lock(engine_->mutex);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      TOOLDECODE_ASSERT(!tokens[i].empty());
      config_.check(tokens[i], caches[i]->length_ + tokens[i].size());
    }
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      make_room(*caches[i], caches[i]->length_ + tokens[i].size());
    }
    // Parts of one sequence are rows of one pass too: its keys are written before any row reads
    // them.
    std::vector<Part> parts;
    std::vector<std::size_t> ends;  // the sequences whose last token is in a part
    std::size_t longest  = 0;
    const auto run_parts = [&] {
      if (parts.empty()) return;
      std::vector<std::int32_t> wanted;
      for (std::size_t p = 0; p < parts.size(); ++p) {
        if (ends[p] == tokens.size()) continue;
        wanted.push_back(
            static_cast<std::int32_t>(p * nodes_for(longest) + parts[p].tokens.size() - 1));
      }
      engine_->run(parts, nodes_for(longest), wanted, wanted.size());
      std::size_t row = 0;
      for (std::size_t p = 0; p < parts.size(); ++p) {
        parts[p].cache->length_ = parts[p].start + parts[p].tokens.size();
        if (ends[p] == tokens.size()) continue;
        std::ranges::copy(engine_->logits_of(row++),
                          logits.subspan(ends[p] * vocabulary_size(), vocabulary_size()).begin());
      }
      parts.clear();
      ends.clear();
      longest = 0;
    };
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const std::size_t begin = caches[i]->length_;
      for (std::size_t first = 0; first < tokens[i].size();) {
        const std::size_t count = std::min(max_part, tokens[i].size() - first);
        if (parts.size() == max_parts ||
            (parts.size() + 1) * nodes_for(std::max(longest, count)) > max_rows) {
          run_parts();
        }
        parts.push_back({caches[i], begin + first, tokens[i].subspan(first, count), {}});
        longest = std::max(longest, count);
        first += count;
        ends.push_back(first == tokens[i].size() ? i : tokens.size());
      }
    }
    run_parts();
  }

  /// As `forward`, and writes the final hidden states of all L tokens, with which drafters draft.
  void forward_states(Cache& cache, std::span<const TokenId> tokens, std::span<float> logits,
                      std::span<float> hidden) const {
    TOOLDECODE_ASSERT(!tokens.empty() && logits.size() == vocabulary_size() &&
                      hidden.size() == tokens.size() * hidden_size());
    const std::lock_guard lock(engine_->mutex);
    config_.check(tokens, cache.length_ + tokens.size());
    make_room(cache, cache.length_ + tokens.size());
    for (std::size_t first = 0; first < tokens.size();) {
      const std::size_t count = std::min(max_part, tokens.size() - first);
      const bool is_last      = first + count == tokens.size();
      // The last one first, so that the head multiplies it alone.
      std::vector<std::int32_t> wanted(count);
      for (std::size_t i = 0; i < count; ++i) wanted[i] = static_cast<std::int32_t>(count - 1 - i);
      const Part part{&cache, cache.length_, tokens.subspan(first, count), {}};
      engine_->run(std::span(&part, 1), nodes_for(count), wanted, is_last ? 1 : 0, true);
      cache.length_ += count;
      for (std::size_t i = 0; i < count; ++i) copy_state(count - 1 - i, hidden, first + i);
      first += count;
    }
    std::ranges::copy(engine_->logits_of(0), logits.begin());
  }

  /// Runs N <= 64 nodes of a draft tree and writes the logits after each. The nodes stay in the
  /// cache until `commit` or any other call.
  void forward_tree(Cache& cache, std::span<const TokenId> tokens,
                    std::span<const std::uint64_t> ancestors, std::span<float> logits) const {
    run_tree(cache, tokens, ancestors, logits, {});
  }
  /// The same, with the final hidden states, [N, H].
  void forward_tree_states(Cache& cache, std::span<const TokenId> tokens,
                           std::span<const std::uint64_t> ancestors, std::span<float> logits,
                           std::span<float> hidden) const {
    TOOLDECODE_ASSERT(hidden.size() == tokens.size() * hidden_size());
    run_tree(cache, tokens, ancestors, logits, hidden);
  }

  void commit(Cache& cache, std::span<const std::size_t> path) const {
    const std::lock_guard lock(engine_->mutex);
    engine_->commit(cache, path);
    cache.length_ += path.size();
    drop_pages(cache);
  }

 private:
  static constexpr std::size_t page_size = 64;
  static constexpr std::size_t max_part  = max_nodes;  // tokens of a sequence in one part
  static constexpr std::size_t max_parts = 64;         // of a pass
  static constexpr std::size_t max_rows  = 256;        // of a pass, padding included

  static std::size_t pages_of(std::size_t length) { return (length + page_size - 1) / page_size; }
  // Passes are captured for these numbers of rows.
  static std::size_t nodes_for(std::size_t count) { return std::bit_ceil(count); }
  // Attention is split for these lengths.
  static int longest_for(std::size_t length) {
    return static_cast<int>(std::bit_ceil(std::max<std::size_t>(length, 256)));
  }

  // Tokens of a sequence that a pass reads: a tree, or consecutive ones if there are no ancestors.
  struct Part {
    Cache* cache;
    std::size_t start;  // slots before them
    std::span<const TokenId> tokens;
    std::span<const std::uint64_t> ancestors;
  };

  // What all passes share.
  struct Engine {
    struct Shape {
      int sequences, nodes, wanted, multiplied, max_length;
      bool gives_states;
      auto operator<=>(const Shape&) const = default;
    };
    // A pass's arguments, in one block on the host and one on the device.
    struct Arguments {
      std::int32_t* lengths;     // [B]
      std::int32_t* wanted;      // [R]
      std::int32_t* pages;       // [B, max_pages]
      TokenId* tokens;           // [B, N]
      std::uint64_t* ancestors;  // [B, N]
      std::size_t bytes;

      Arguments(void* data, const Shape& shape, int max_pages) {
        const auto size = [](int a, int b) {
          return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
        };
        WorkspaceLayout layout(data);
        lengths   = layout.take<std::int32_t>(size(shape.sequences, 1));
        wanted    = layout.take<std::int32_t>(size(shape.wanted, 1));
        pages     = layout.take<std::int32_t>(size(shape.sequences, max_pages));
        tokens    = layout.take<TokenId>(size(shape.sequences, shape.nodes));
        ancestors = layout.take<std::uint64_t>(size(shape.sequences, shape.nodes));
        bytes     = layout.bytes();
      }
    };

    LlamaLayers<T> layers;
    std::size_t context;  // of one sequence
    PagePool<T> pool;
    int max_pages;  // of a sequence, with those of a tree after it
    std::mutex mutex;
    Stream stream;
    HostBuffer<std::byte> given;
    DeviceBuffer<std::byte> arguments, workspace;
    DeviceBuffer<T> hidden;      // [64, H]
    DeviceBuffer<float> logits;  // [64, V]
    HostBuffer<float> results;   // [64, V]
    HostBuffer<T> states;        // [64, H]
    std::map<Shape, CapturedGraph> graphs;

    Engine(const LlamaConfig& config, const model::LlamaWeights& weights,
           const DeviceLlamaOptions& options)
        : layers(config, weights),
          context(std::min(config.context_length, options.context)),
          pool({.pages     = static_cast<int>(pages_of(options.context)) + 1,
                .page_size = static_cast<int>(page_size),
                .layers    = layers.shape().layers,
                .key_heads = layers.shape().key_heads,
                .head_size = layers.shape().head.padded}),
          max_pages(static_cast<int>(pages_of(context + max_part))) {
      const auto shape_of = [](int sequences, int nodes) {
        return Shape{sequences, nodes, static_cast<int>(max_parts), 0, 0, false};
      };
      std::size_t bytes  = Arguments(nullptr, shape_of(1, 1), 0).bytes;
      std::size_t needed = 0;
      for (int nodes = 1; nodes <= static_cast<int>(max_part); nodes *= 2) {
        const int sequences =
            std::min(static_cast<int>(max_parts), static_cast<int>(max_rows) / nodes);
        bytes  = std::max(bytes, Arguments(nullptr, shape_of(sequences, nodes), max_pages).bytes);
        needed = std::max(needed, layers.workspace_bytes(sequences, nodes, longest_for(context)));
      }
      given           = HostBuffer<std::byte>(bytes);
      arguments       = DeviceBuffer<std::byte>(bytes);
      workspace       = DeviceBuffer<std::byte>(needed);
      const auto rows = [](int width) { return max_parts * static_cast<std::size_t>(width); };
      hidden          = DeviceBuffer<T>(rows(layers.hidden_size()));
      logits          = DeviceBuffer<float>(rows(layers.shape().vocabulary));
      results         = HostBuffer<float>(rows(layers.shape().vocabulary));
      states          = HostBuffer<T>(rows(layers.hidden_size()));
    }

    [[nodiscard]] std::span<const float> logits_of(std::size_t row) const {
      const auto size = static_cast<std::size_t>(layers.shape().vocabulary);
      return results.span().subspan(row * size, size);
    }

    [[nodiscard]] std::span<const T> state_of(std::size_t row) const {
      const auto size = static_cast<std::size_t>(layers.hidden_size());
      return states.span().subspan(row * size, size);
    }

    // Runs parts. Leaves the logits of the first `multiplied` of the wanted rows in `results`, and
    // the states of all of them in `states` if they are asked for.
    void run(std::span<const Part> parts, std::size_t nodes,
             const std::vector<std::int32_t>& wanted, std::size_t multiplied,
             bool gives_states = false) {
      const auto padded = [](std::size_t count) {
        return static_cast<int>(count == 0 ? 0 : std::bit_ceil(count));
      };
      std::size_t longest = 1;
      for (const Part& part : parts) longest = std::max(longest, part.start);
      const Shape shape{.sequences    = padded(parts.size()),
                        .nodes        = static_cast<int>(nodes),
                        .wanted       = padded(wanted.size()),
                        .multiplied   = padded(multiplied),
                        .max_length   = longest_for(longest),
                        .gives_states = gives_states};
      const Arguments host(given.data(), shape, max_pages);
      std::ranges::fill(given.span().first(host.bytes),
                        std::byte{0});  // what is not set is padding
      for (std::size_t p = 0; p < parts.size(); ++p) {
        const Part& part = parts[p];
        host.lengths[p]  = static_cast<std::int32_t>(part.start);
        for (std::size_t i = 0; i < part.cache->pages_.size(); ++i) {
          host.pages[p * static_cast<std::size_t>(max_pages) + i] = part.cache->pages_[i].index();
        }
        for (std::size_t i = 0; i < part.tokens.size(); ++i) {
          host.tokens[p * nodes + i] = part.tokens[i];
          host.ancestors[p * nodes + i] =
              part.ancestors.empty() ? ~std::uint64_t{0} >> (63 - i) : part.ancestors[i];
        }
      }
      std::ranges::copy(wanted, host.wanted);
      auto found = graphs.find(shape);
      if (found == graphs.end()) found = graphs.try_emplace(shape, capture(shape)).first;
      found->second.launch(stream);
      stream.wait();
    }

    CapturedGraph capture(const Shape& shape) {
      return CapturedGraph(stream, [&](cudaStream_t on) {
        const Arguments here(arguments.data(), shape, max_pages);
        check(cudaMemcpyAsync(arguments.data(), given.data(), here.bytes, cudaMemcpyHostToDevice,
                              on));
        layers.run({.tokens     = here.tokens,
                    .ancestors  = here.ancestors,
                    .lengths    = here.lengths,
                    .sequences  = shape.sequences,
                    .nodes      = shape.nodes,
                    .max_length = shape.max_length},
                   pool.views(here.pages, max_pages), here.wanted, shape.wanted, hidden.data(),
                   workspace, on);
        const auto size = [](int a, int b) {
          return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
        };
        if (shape.gives_states) {
          check(cudaMemcpyAsync(states.data(), hidden.data(),
                                size(shape.wanted, layers.hidden_size()) * sizeof(T),
                                cudaMemcpyDeviceToHost, on));
        }
        if (shape.multiplied == 0) return;
        fill_logits(layers.head(), hidden.data(), shape.multiplied, logits.data(), on);
        check(cudaMemcpyAsync(results.data(), logits.data(),
                              size(shape.multiplied, layers.shape().vocabulary) * sizeof(float),
                              cudaMemcpyDeviceToHost, on));
      });
    }

    // Moves the nodes of a path to the slots after the cache's tokens.
    void commit(const Cache& cache, std::span<const std::size_t> path) {
      bool is_in_place = true;
      for (std::size_t i = 0; i < path.size(); ++i) is_in_place = is_in_place && path[i] == i;
      if (is_in_place) return;
      // As `compact_cache` sees it there is a root before the tree.
      const auto lay_out = [&](std::byte* data) {
        WorkspaceLayout layout(data);
        auto* const verdict = layout.take<cuda::TreeVerdict>(1);
        auto* const length  = layout.take<std::int32_t>(1);
        auto* const pages   = layout.take<std::int32_t>(static_cast<std::size_t>(max_pages));
        return std::tuple(verdict, length, pages, layout.bytes());
      };
      const auto [verdict, length, pages, bytes] = lay_out(given.data());
      verdict->accepted                          = static_cast<std::int32_t>(path.size());
      for (std::size_t i = 0; i < path.size(); ++i) {
        verdict->path[i] = static_cast<std::int32_t>(path[i]) + 1;
      }
      *length = static_cast<std::int32_t>(cache.length_) - 1;
      for (std::size_t i = 0; i < cache.pages_.size(); ++i) pages[i] = cache.pages_[i].index();
      check(cudaMemcpyAsync(arguments.data(), given.data(), bytes, cudaMemcpyHostToDevice,
                            stream.get()));
      const auto on_device = lay_out(arguments.data());
      const auto views     = pool.views(std::get<2>(on_device), max_pages);
      compact_cache<T>(views,
                       {.sequences = 1,
                        .key_heads = pool.shape().key_heads,
                        .head_size = pool.shape().head_size},
                       std::get<0>(on_device), std::get<1>(on_device), stream.get());
      stream.wait();
    }
  };

  // \param hidden  empty: no states
  void run_tree(Cache& cache, std::span<const TokenId> tokens,
                std::span<const std::uint64_t> ancestors, std::span<float> logits,
                std::span<float> hidden) const {
    TOOLDECODE_ASSERT(tokens.size() <= max_part && ancestors.size() == tokens.size());
    TOOLDECODE_ASSERT(logits.size() == tokens.size() * vocabulary_size());
    if (tokens.empty()) return;
    const std::lock_guard lock(engine_->mutex);
    int depth = 0;
    for (const std::uint64_t of_node : ancestors) depth = std::max(depth, std::popcount(of_node));
    config_.check(tokens, cache.length_ + static_cast<std::size_t>(depth));
    make_room(cache, cache.length_ + tokens.size());
    std::vector<std::int32_t> wanted(tokens.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] = static_cast<std::int32_t>(i);
    const Part part{&cache, cache.length_, tokens, ancestors};
    engine_->run(std::span(&part, 1), nodes_for(tokens.size()), wanted, wanted.size(),
                 !hidden.empty());
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      std::ranges::copy(engine_->logits_of(i),
                        logits.subspan(i * vocabulary_size(), vocabulary_size()).begin());
      if (!hidden.empty()) copy_state(i, hidden, i);
    }
  }
  // The state of a wanted row, without padding.
  void copy_state(std::size_t row, std::span<float> hidden, std::size_t token) const {
    const auto state = engine_->state_of(row);
    for (std::size_t i = 0; i < hidden_size(); ++i) {
      hidden[token * hidden_size() + i] = to_float(state[i]);
    }
  }

  // Gives back the pages past the length.
  static void drop_pages(Cache& cache) {
    const std::size_t kept = pages_of(cache.length_);
    if (kept >= cache.pages_.size()) return;
    cache.pages_.erase(cache.pages_.begin() + static_cast<std::ptrdiff_t>(kept),
                       cache.pages_.end());
  }

  // Makes the slots from the cache's length on writable, up to a number of slots. The tokens stay
  // as they are if it throws.
  void make_room(Cache& cache, std::size_t slots) const {
    for (std::size_t page = cache.length_ / page_size; page < pages_of(slots); ++page) {
      if (page < cache.pages_.size() && cache.pages_[page].is_exclusive()) continue;
      CachePage own = engine_->pool.take();
      if (page == cache.pages_.size()) {
        cache.pages_.push_back(std::move(own));
        continue;
      }
      if (page * page_size < cache.length_) {
        engine_->pool.copy(cache.pages_[page], own, engine_->stream.get());
        engine_->stream.wait();  // before another sequence may write the page
      }
      cache.pages_[page] = std::move(own);
    }
  }

  LlamaConfig config_;
  std::unique_ptr<Engine> engine_;
};

static_assert(BatchModel<DeviceLlama<__half>> && StateTreeModel<DeviceLlama<__half>>);

}  // namespace tooldecode::cuda
