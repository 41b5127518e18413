/// \file
/// LlamaCppModel: runs any decoder of llama.cpp as a model of this library.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/adapters/llama_cpp_context.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/config.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/headless_model.hpp>
#include <tooldecode/core/types.hpp>

#include <llama.h>

namespace tooldecode {

/// A model of llama.cpp. Its caches share the cells of one context.
///
/// A cache is a sequence of the context. A fork shares its cells (`llama_memory_seq_cp`) and frees
/// the cells that only it holds. A draft tree is one batch whose tokens carry the sequences of the
/// leaves below them. Sums depend on the shape of a batch, so a token's logits may differ in the
/// last bits between passes of one and of several tokens.
///
/// \par Shapes      logits [V] of the last token, [N, V] of a tree, [B, V] of a batch; hidden [L,
///                  H], or [L, (f + 1) H] with f features
/// \par Complexity  as llama.cpp's; `fork` and `commit` O(cells)
/// \par Threads     const members may run concurrently but take turns; a copy shares the context
/// \par Errors      `load`: Error{file_unreadable} and Error{malformed_file}. Running:
///                  Error{limit_exceeded} if cells, sequences or the context length do not suffice,
///                  and Error{unknown_token}, both before a cache is changed; Error{device_failure}
///                  for errors of llama.cpp
class LlamaCppModel {
  using Context = llama_cpp::Context;

 public:
  /// A sequence of the context, and the nodes of a draft tree after it.
  class Cache {
   public:
    Cache(Cache&& other) noexcept { swap(other); }
    Cache& operator=(Cache&& other) noexcept {
      swap(other);
      return *this;
    }
    ~Cache() {
      if (context_) context_->give_back(sequence_);
    }

   private:
    friend class LlamaCppModel;
    Cache(std::shared_ptr<Context> context, llama_seq_id sequence)
        : context_(std::move(context)), sequence_{.id = sequence} {}
    void swap(Cache& other) noexcept {
      std::swap(context_, other.context_);
      std::swap(sequence_, other.sequence_);
    }

    std::shared_ptr<Context> context_;
    llama_cpp::Sequence sequence_;
  };

  [[nodiscard]] static LlamaCppModel load(const std::filesystem::path& file,
                                          const LlamaCppOptions& options = {}) {
    if (!std::filesystem::is_regular_file(file))
      throw Error(Errc::file_unreadable, file.string(), "cannot be read");
    static const bool is_ready = (llama_backend_init(), true);
    static_cast<void>(is_ready);
    llama_model_params parameters = llama_model_default_params();
    parameters.n_gpu_layers       = options.gpu_layers;
    std::shared_ptr<llama_model> model(
        llama_model_load_from_file(file.string().c_str(), parameters), llama_model_free);
    if (!model)
      throw Error(Errc::malformed_file, file.string(), "must be a model that llama.cpp can load");
    return LlamaCppModel(std::move(model), options);
  }

  /// The same model over the same context, whose states begin with the inputs of some layers, as
  /// FeatureModel's: EAGLE-3 reads those of `eagle3_layers`.
  ///
  /// \param layers  ascending, from 1
  [[nodiscard]] LlamaCppModel with_features(std::vector<std::size_t> layers) const {
    if (!context_->gives_features) {
      throw Error(Errc::invalid_option, "features", "must be set for a model with layers on a GPU");
    }
    LlamaCppModel result = *this;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      if (layers[i] < layer_count() && (i == 0 ? 0 : layers[i - 1]) < layers[i]) continue;
      throw Error(
          Errc::invalid_option, "layers[" + std::to_string(i) + ']', layers[i],
          "must be above the one before, at least 1 and below " + std::to_string(layer_count()));
    }
    result.features_ = std::move(layers);
    return result;
  }

  /// Uses a model that is loaded already.
  explicit LlamaCppModel(std::shared_ptr<llama_model> model, const LlamaCppOptions& options = {})
      : context_(std::make_shared<Context>(std::move(model), options)) {}

  [[nodiscard]] std::size_t vocabulary_size() const noexcept { return context_->vocabulary_size; }
  /// Length of a state, features included.
  [[nodiscard]] std::size_t hidden_size() const noexcept {
    return (features_.size() + 1) * context_->hidden_size;
  }
  [[nodiscard]] std::size_t context_length() const noexcept { return context_->length; }
  [[nodiscard]] std::size_t layer_count() const noexcept {
    return static_cast<std::size_t>(llama_model_n_layer(model()));
  }
  [[nodiscard]] const llama_model* model() const noexcept { return context_->model.get(); }
  [[nodiscard]] const llama_vocab* vocab() const noexcept { return llama_model_get_vocab(model()); }

  [[nodiscard]] Cache make_cache() const {
    const std::lock_guard lock(context_->mutex);
    return {context_, context_->take_sequence()};
  }
  [[nodiscard]] std::size_t length(const Cache& cache) const noexcept {
    return cache.sequence_.length;
  }
  [[nodiscard]] Cache fork(const Cache& cache) const {
    const std::lock_guard lock(context_->mutex);
    Cache result(context_, context_->take_sequence());
    context_->share(cache.sequence_.id, result.sequence_.id, 0, cache.sequence_.length);
    result.sequence_.length = cache.sequence_.length;
    return result;
  }
  void truncate(Cache& cache, std::size_t length) const {
    const std::lock_guard lock(context_->mutex);
    context_->forget_nodes(cache.sequence_);
    context_->cut(cache.sequence_, length);
  }

  /// Appends L >= 1 tokens and writes the logits after the last one.
  void forward(Cache& cache, std::span<const TokenId> tokens, std::span<float> logits) const {
    TOOLDECODE_ASSERT(!tokens.empty() && logits.size() == vocabulary_size());
    const std::lock_guard lock(context_->mutex);
    context_->append(cache.sequence_, tokens, [&](std::size_t first, std::size_t count) {
      if (first + count == tokens.size()) context_->copy_logits(count - 1, logits);
    });
  }

  /// Appends L >= 1 tokens and writes the final hidden state after the last one, which the head
  /// turns into logits. The graph stops before the head if the model is on a CPU.
  void forward_state(Cache& cache, std::span<const TokenId> tokens, std::span<float> hidden) const {
    TOOLDECODE_ASSERT(!tokens.empty() && hidden.size() == hidden_size());
    if (!features_.empty() || !context_->gives_features) {
      std::vector<float> logits(vocabulary_size()), all(tokens.size() * hidden_size());
      forward_states(cache, tokens, logits, all);
      std::ranges::copy(std::span(all).last(hidden_size()), hidden.begin());
      return;
    }
    const std::lock_guard lock(context_->mutex);
    const StopsBeforeHead on(*context_);
    context_->append(cache.sequence_, tokens, [&](std::size_t first, std::size_t count) {
      if (first + count == tokens.size()) context_->copy_last_state(hidden);
    });
  }

  /// Appends L_i >= 1 tokens to each of B different sequences and writes the logits after the last
  /// token of each.
  void forward_batch(std::span<Cache* const> caches,
                     std::span<const std::span<const TokenId>> tokens,
                     std::span<float> logits) const {
    const std::vector<std::span<const std::uint64_t>> none(caches.size());
    forward_batch_states(caches, tokens, none, logits, {});
  }
  /// As forward_batch for sequences without ancestors and as forward_tree for the others, in one
  /// pass if the batch is large enough; also writes all tokens' states unless `hidden` is empty.
  void forward_batch_states(std::span<Cache* const> caches,
                            std::span<const std::span<const TokenId>> tokens,
                            std::span<const std::span<const std::uint64_t>> ancestors,
                            std::span<float> logits, std::span<float> hidden) const {
    TOOLDECODE_ASSERT(caches.size() == tokens.size() && caches.size() == ancestors.size());
    const std::lock_guard lock(context_->mutex);
    std::optional<WithStates> on;
    if (!hidden.empty()) on.emplace(*context_, features_);
    std::vector<std::size_t> before;
    for (std::size_t i = 0; i < caches.size(); ++i) {
      context_->check(tokens[i], caches[i]->sequence_.length +
                                     (ancestors[i].empty() ? tokens[i].size()
                                                           : Context::depth_of(ancestors[i])));
      context_->forget_nodes(caches[i]->sequence_);
      before.push_back(caches[i]->sequence_.length);
    }
    try {
      std::vector<std::pair<std::size_t, std::span<float>>> rows;  // (index in the batch, logits)
      const auto run = [&] {
        const std::size_t count = context_->pending();
        context_->run();
        if (!hidden.empty()) {
          copy_states(0, count, hidden.first(count * hidden_size()));
          hidden = hidden.subspan(count * hidden_size());
        }
        for (const auto& [at, row] : rows) context_->copy_logits(at, row);
        rows.clear();
      };
      const auto next_row = [&] {
        rows.emplace_back(context_->pending(), logits.first(vocabulary_size()));
        logits = logits.subspan(vocabulary_size());
      };
      for (std::size_t i = 0; i < caches.size(); ++i) {
        if (!ancestors[i].empty()) {
          if (context_->pending() + tokens[i].size() > context_->batch_size) run();
          context_->add_tree(caches[i]->sequence_, tokens[i], ancestors[i], next_row);
          continue;
        }
        for (std::size_t j = 0; j < tokens[i].size(); ++j) {
          const bool is_last = j + 1 == tokens[i].size();
          if (context_->pending() == context_->batch_size) run();
          if (is_last) next_row();
          auto& sequence = caches[i]->sequence_;
          context_->add(tokens[i][j], sequence.length++, {&sequence.id, 1}, is_last);
        }
      }
      if (context_->pending() > 0) run();
    } catch (...) {
      context_->clear();
      for (std::size_t i = 0; i < caches.size(); ++i) {
        context_->forget_nodes(caches[i]->sequence_);
        context_->cut(caches[i]->sequence_, before[i]);
      }
      throw;
    }
  }

  /// Runs N <= 64 nodes of a draft tree and writes the logits after each. The nodes stay in the
  /// cache until `commit` or any other call.
  void forward_tree(Cache& cache, std::span<const TokenId> tokens,
                    std::span<const std::uint64_t> ancestors, std::span<float> logits) const {
    TOOLDECODE_ASSERT(logits.size() == tokens.size() * vocabulary_size());
    const std::lock_guard lock(context_->mutex);
    context_->run_tree(cache.sequence_, tokens, ancestors);
    for (std::size_t i = 0; i < tokens.size(); ++i)
      context_->copy_logits(i, logits.subspan(i * vocabulary_size(), vocabulary_size()));
  }
  /// Appends the nodes of one path from the root; O(cells).
  void commit(Cache& cache, std::span<const std::size_t> path) const {
    const std::lock_guard lock(context_->mutex);
    if (!path.empty()) {
      auto& [id, length, leaves] = cache.sequence_;
      const auto leaf            = std::ranges::find_if(
          leaves, [&](const auto& one) { return (one.path >> path.back() & 1) != 0; });
      TOOLDECODE_ASSERT(leaf != leaves.end());
      context_->share(leaf->id, id, length, length + path.size());
      length += path.size();
    }
    context_->forget_nodes(cache.sequence_);
  }

  /// As forward; also writes the final hidden state of each token, which the head turns into
  /// logits. llama.cpp then computes the logits of all tokens.
  void forward_states(Cache& cache, std::span<const TokenId> tokens, std::span<float> logits,
                      std::span<float> hidden) const {
    TOOLDECODE_ASSERT(hidden.size() == tokens.size() * hidden_size());
    TOOLDECODE_ASSERT(!tokens.empty() && logits.size() == vocabulary_size());
    const std::lock_guard lock(context_->mutex);
    const WithStates on(*context_, features_);
    context_->append(cache.sequence_, tokens, [&](std::size_t first, std::size_t count) {
      copy_states(first, count, hidden);
      if (first + count == tokens.size()) context_->copy_logits(count - 1, logits);
    });
  }
  /// As forward_tree; also writes the final hidden state of each node.
  void forward_tree_states(Cache& cache, std::span<const TokenId> tokens,
                           std::span<const std::uint64_t> ancestors, std::span<float> logits,
                           std::span<float> hidden) const {
    TOOLDECODE_ASSERT(hidden.size() == tokens.size() * hidden_size());
    TOOLDECODE_ASSERT(logits.size() == tokens.size() * vocabulary_size());
    const std::lock_guard lock(context_->mutex);
    const WithStates on(*context_, features_);
    context_->run_tree(cache.sequence_, tokens, ancestors);
    copy_states(0, tokens.size(), hidden);
    for (std::size_t i = 0; i < tokens.size(); ++i)
      context_->copy_logits(i, logits.subspan(i * vocabulary_size(), vocabulary_size()));
  }

 private:
  // Makes the context return hidden states during its lifetime.
  class WithStates {
   public:
    WithStates(Context& context, const std::vector<std::size_t>& features) : context_(context) {
      context_.wanted = features;
      context_.features.assign(features.size(), {});
      set(true);
    }
    ~WithStates() {
      context_.wanted.clear();
      set(false);
    }
    WithStates(const WithStates&)            = delete;
    WithStates& operator=(const WithStates&) = delete;

   private:
    void set(bool on) {
      context_.has_states = on;
      llama_set_embeddings(context_.context.get(), on);
    }
    Context& context_;
  };

  // Makes passes end before the head during its lifetime, with the last token's state.
  class StopsBeforeHead {
   public:
    explicit StopsBeforeHead(Context& context) : context_(context) {
      context_.last_state.clear();
      context_.stops = true;
    }
    ~StopsBeforeHead() { context_.stops = false; }
    StopsBeforeHead(const StopsBeforeHead&)            = delete;
    StopsBeforeHead& operator=(const StopsBeforeHead&) = delete;

   private:
    Context& context_;
  };

  // Copies the states of a pass over tokens `first` to `first + count` of a call.
  void copy_states(std::size_t first, std::size_t count, std::span<float> hidden) const {
    const std::size_t width = context_->hidden_size;
    for (std::size_t i = 0; i < count; ++i) {
      auto state = hidden.subspan((first + i) * hidden_size(), hidden_size());
      for (std::size_t f = 0; f < features_.size(); ++f)
        context_->copy_feature(f, i, state.subspan(f * width, width));
      context_->copy_state(i, state.last(width));
    }
  }

  std::shared_ptr<Context> context_;
  std::vector<std::size_t> features_;
};

static_assert(StateTreeModel<LlamaCppModel> && BatchModel<LlamaCppModel> &&
              HeadlessModel<LlamaCppModel>);

}  // namespace tooldecode
