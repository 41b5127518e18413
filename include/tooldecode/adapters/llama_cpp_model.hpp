/// \file
/// LlamaCppModel: runs any decoder of llama.cpp as a model of this library.
#pragma once

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/config.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>

#include <ggml-backend.h>
#include <llama.h>

namespace tooldecode {

/// Settings of a LlamaCppModel.
struct LlamaCppOptions {
  std::uint32_t cells = 0;  ///< tokens that all caches hold together; 0: the trained context length
  std::uint32_t sequences = 64;  ///< most caches and leaves of draft trees; at most 256
  std::uint32_t batch     = 512;
  std::int32_t threads =
      1;  ///< llama.cpp's barriers spin: more threads than idle cores are slower than one
  std::int32_t gpu_layers = 0;  ///< layers on a GPU, if llama.cpp supports one; below 0: all
  ggml_type cache_type    = GGML_TYPE_F16;
  /// Whether `with_features` works if layers are on a GPU, which then waits at each part of the graph.
  bool features = false;
  /// On a CPU it sums in half precision: logits differ by a thousandth of their size.
  llama_flash_attn_type flash_attention = LLAMA_FLASH_ATTN_TYPE_AUTO;
};

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
  struct Context;

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
      if (context_) context_->give_back(*this);
    }

   private:
    friend class LlamaCppModel;
    struct Leaf {
      llama_seq_id sequence;
      std::uint64_t path;
    };
    Cache(std::shared_ptr<Context> context, llama_seq_id sequence)
        : context_(std::move(context)), sequence_(sequence) {}
    void swap(Cache& other) noexcept {
      std::swap(context_, other.context_);
      std::swap(sequence_, other.sequence_);
      std::swap(length_, other.length_);
      std::swap(leaves_, other.leaves_);
    }

    std::shared_ptr<Context> context_;
    llama_seq_id sequence_ = -1;
    std::size_t length_    = 0;
    std::vector<Leaf> leaves_;  // of the last tree
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
  [[nodiscard]] std::size_t length(const Cache& cache) const noexcept { return cache.length_; }
  [[nodiscard]] Cache fork(const Cache& cache) const {
    const std::lock_guard lock(context_->mutex);
    Cache result(context_, context_->take_sequence());
    context_->share(cache.sequence_, result.sequence_, 0, cache.length_);
    result.length_ = cache.length_;
    return result;
  }
  void truncate(Cache& cache, std::size_t length) const {
    const std::lock_guard lock(context_->mutex);
    context_->forget_nodes(cache);
    context_->cut(cache, length);
  }

  /// Appends L >= 1 tokens and writes the logits after the last one.
  void forward(Cache& cache, std::span<const TokenId> tokens, std::span<float> logits) const {
    TOOLDECODE_ASSERT(!tokens.empty() && logits.size() == vocabulary_size());
    const std::lock_guard lock(context_->mutex);
    context_->append(cache, tokens, [&](std::size_t first, std::size_t count) {
      if (first + count == tokens.size()) context_->copy_logits(count - 1, logits);
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
      context_->check(
          tokens[i], caches[i]->length_ + (ancestors[i].empty() ? tokens[i].size()
                                                                : Context::depth_of(ancestors[i])));
      context_->forget_nodes(*caches[i]);
      before.push_back(caches[i]->length_);
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
          context_->add_tree(*caches[i], tokens[i], ancestors[i], next_row);
          continue;
        }
        for (std::size_t j = 0; j < tokens[i].size(); ++j) {
          const bool is_last = j + 1 == tokens[i].size();
          if (context_->pending() == context_->batch_size) run();
          if (is_last) next_row();
          context_->add(tokens[i][j], caches[i]->length_++, {&caches[i]->sequence_, 1}, is_last);
        }
      }
      if (context_->pending() > 0) run();
    } catch (...) {
      context_->clear();
      for (std::size_t i = 0; i < caches.size(); ++i) {
        context_->forget_nodes(*caches[i]);
        context_->cut(*caches[i], before[i]);
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
    context_->run_tree(cache, tokens, ancestors);
    for (std::size_t i = 0; i < tokens.size(); ++i)
      context_->copy_logits(i, logits.subspan(i * vocabulary_size(), vocabulary_size()));
  }
  /// Appends the nodes of one path from the root; O(cells).
  void commit(Cache& cache, std::span<const std::size_t> path) const {
    const std::lock_guard lock(context_->mutex);
    if (!path.empty()) {
      const auto leaf =
          std::find_if(cache.leaves_.begin(), cache.leaves_.end(),
                       [&](const Cache::Leaf& one) { return (one.path >> path.back() & 1) != 0; });
      TOOLDECODE_ASSERT(leaf != cache.leaves_.end());
      context_->share(leaf->sequence, cache.sequence_, cache.length_, cache.length_ + path.size());
      cache.length_ += path.size();
    }
    context_->forget_nodes(cache);
  }

  /// As forward; also writes the final hidden state of each token, which the head turns into
  /// logits. llama.cpp then computes the logits of all tokens.
  void forward_states(Cache& cache, std::span<const TokenId> tokens, std::span<float> logits,
                      std::span<float> hidden) const {
    TOOLDECODE_ASSERT(hidden.size() == tokens.size() * hidden_size());
    TOOLDECODE_ASSERT(!tokens.empty() && logits.size() == vocabulary_size());
    const std::lock_guard lock(context_->mutex);
    const WithStates on(*context_, features_);
    context_->append(cache, tokens, [&](std::size_t first, std::size_t count) {
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
    context_->run_tree(cache, tokens, ancestors);
    copy_states(0, tokens.size(), hidden);
    for (std::size_t i = 0; i < tokens.size(); ++i)
      context_->copy_logits(i, logits.subspan(i * vocabulary_size(), vocabulary_size()));
  }

 private:
  struct FreeBatch {
    void operator()(llama_batch* batch) const {
      llama_batch_free(*batch);
      delete batch;
    }
  };

  // Shared by all caches; call its members with the mutex held.
  struct Context {
    Context(std::shared_ptr<llama_model> loaded, const LlamaCppOptions& options)
        : model(std::move(loaded)) {
      const auto trained = static_cast<std::uint32_t>(llama_model_n_ctx_train(model.get()));
      if (options.sequences < 1 || options.sequences > 256)
        throw Error(Errc::invalid_option, "sequences", options.sequences, "must be from 1 to 256");
      if (options.batch < 1)
        throw Error(Errc::invalid_option, "batch", options.batch, "must be at least 1");
      if (options.threads < 1)
        throw Error(Errc::invalid_option, "threads", options.threads, "must be at least 1");
      llama_context_params parameters = llama_context_default_params();
      parameters.n_ctx                = options.cells == 0 ? trained : options.cells;
      // A draft tree fits, and llama.cpp aborts if the sequences do not.
      parameters.n_batch         = std::max({options.batch, std::uint32_t{64}, options.sequences});
      parameters.n_ubatch        = parameters.n_batch;
      parameters.n_seq_max       = options.sequences;
      parameters.n_threads       = options.threads;
      parameters.n_threads_batch = options.threads;
      parameters.type_k          = options.cache_type;
      parameters.type_v          = options.cache_type;
      parameters.flash_attn_type = options.flash_attention;
      parameters.kv_unified      = true;  // sequences share cells
      parameters.no_perf         = true;
      gives_features             = options.gpu_layers == 0 || options.features;
      if (gives_features) {
        parameters.cb_eval           = &Context::take_features;
        parameters.cb_eval_user_data = this;
      }
      context.reset(llama_init_from_model(model.get(), parameters));
      if (!context)
        throw Error(
            Errc::limit_exceeded, "cells",
            "llama.cpp cannot make a context of " + std::to_string(parameters.n_ctx) + " cells");
      const llama_vocab* vocab = llama_model_get_vocab(model.get());
      vocabulary_size          = static_cast<std::size_t>(llama_vocab_n_tokens(vocab));
      hidden_size              = static_cast<std::size_t>(llama_model_n_embd(model.get()));
      cells                    = llama_n_ctx(context.get());
      length                   = std::min<std::size_t>(trained, cells);
      batch_size               = llama_n_batch(context.get());
      batch.reset(new llama_batch(llama_batch_init(static_cast<std::int32_t>(batch_size), 0,
                                                   static_cast<std::int32_t>(options.sequences))));
      for (auto i = static_cast<llama_seq_id>(options.sequences); i-- > 0;) free.push_back(i);
    }

    [[nodiscard]] llama_memory_t memory() const { return llama_get_memory(context.get()); }

    llama_seq_id take_sequence() {
      if (free.empty())
        throw Error(Errc::limit_exceeded, "sequences",
                    "all are in use: must be more than the caches and the leaves of draft trees");
      const llama_seq_id result = free.back();
      free.pop_back();
      return result;
    }
    void return_sequence(llama_seq_id sequence) noexcept {
      llama_memory_seq_rm(memory(), sequence, -1, -1);
      free.push_back(sequence);
    }
    void give_back(Cache& cache) noexcept {
      const std::lock_guard lock(mutex);
      forget_nodes(cache);
      return_sequence(cache.sequence_);
    }
    void share(llama_seq_id from, llama_seq_id to, std::size_t first, std::size_t last) {
      if (first == last) return;
      llama_memory_seq_cp(memory(), from, to, static_cast<llama_pos>(first),
                          static_cast<llama_pos>(last));
    }
    void forget_nodes(Cache& cache) noexcept {
      for (const auto& leaf : cache.leaves_) return_sequence(leaf.sequence);
      cache.leaves_.clear();
    }
    void cut(Cache& cache, std::size_t to) {
      TOOLDECODE_ASSERT(to <= cache.length_);
      if (!llama_memory_seq_rm(memory(), cache.sequence_, static_cast<llama_pos>(to), -1))
        throw Error(Errc::limit_exceeded, "truncate",
                    "this kind of model cannot forget a part of a sequence");
      cache.length_ = to;
    }

    void check(std::span<const TokenId> tokens, std::size_t new_length) const {
      if (new_length > length) {
        throw Error(
            Errc::limit_exceeded, "context",
            std::to_string(new_length) + " tokens: must be at most " + std::to_string(length));
      }
      for (const TokenId token : tokens) {
        if (token < 0 || static_cast<std::size_t>(token) >= vocabulary_size) {
          throw Error(
              Errc::unknown_token, "token " + std::to_string(token),
              "must be one of the model's vocabulary, below " + std::to_string(vocabulary_size));
        }
      }
    }

    [[nodiscard]] std::size_t pending() const { return static_cast<std::size_t>(batch->n_tokens); }
    void clear() noexcept { batch->n_tokens = 0; }
    void add(TokenId token, std::size_t position, std::span<const llama_seq_id> sequences,
             bool output) {
      const auto i       = pending();
      batch->token[i]    = token;
      batch->pos[i]      = static_cast<llama_pos>(position);
      batch->n_seq_id[i] = static_cast<std::int32_t>(sequences.size());
      std::copy(sequences.begin(), sequences.end(), batch->seq_id[i]);
      batch->logits[i] = output || has_states ? 1 : 0;
      ++batch->n_tokens;
    }
    void run() {
      const std::int32_t code = llama_decode(context.get(), *batch);
      clear();
      if (code == 1) {
        throw Error(
            Errc::limit_exceeded, "cells",
            "all " + std::to_string(cells) + " are in use: must hold the tokens of all caches");
      }
      if (code != 0)
        throw Error(Errc::device_failure, "llama_decode", "code " + std::to_string(code));
    }
    void copy_logits(std::size_t i, std::span<float> logits) const {
      const float* from = llama_get_logits_ith(context.get(), static_cast<std::int32_t>(i));
      if (from == nullptr)
        throw Error(Errc::device_failure, "llama_get_logits_ith", "gave nothing");
      std::copy_n(from, vocabulary_size, logits.begin());
    }
    void copy_state(std::size_t i, std::span<float> hidden) const {
      const float* from = llama_get_embeddings_ith(context.get(), static_cast<std::int32_t>(i));
      if (from == nullptr)
        throw Error(Errc::device_failure, "llama_get_embeddings_ith", "gave nothing");
      std::copy_n(from, hidden_size, hidden.begin());
    }

    // llama.cpp asks whether a tensor is wanted, then shows it after it was computed.
    static bool take_features(ggml_tensor* tensor, bool asks, void* context) {
      static constexpr std::string_view prefix = "l_out-";  // what a layer gives to the next
      auto& self                               = *static_cast<Context*>(context);
      if (self.wanted.empty()) return false;
      const std::string_view name = ggml_get_name(tensor);
      if (!name.starts_with(prefix)) return false;
      std::size_t layer = 0;
      std::from_chars(name.data() + prefix.size(), name.data() + name.size(), layer);
      const auto found = std::ranges::find(self.wanted, layer + 1);
      if (found == self.wanted.end()) return false;
      if (asks) return true;
      auto& rows = self.features[static_cast<std::size_t>(found - self.wanted.begin())];
      rows.resize(static_cast<std::size_t>(ggml_nelements(tensor)));
      ggml_backend_tensor_get(tensor, rows.data(), 0, rows.size() * sizeof(float));
      return true;
    }
    /// Copies what a pass gave for layer `wanted[f]` of its token i.
    void copy_feature(std::size_t f, std::size_t i, std::span<float> feature) const {
      if (features[f].size() < (i + 1) * hidden_size)
        throw Error(Errc::device_failure, "layer " + std::to_string(wanted[f]),
                    "llama.cpp's graph has no \"l_out-" + std::to_string(wanted[f] - 1) + '"');
      std::copy_n(features[f].begin() + static_cast<std::ptrdiff_t>(i * hidden_size), hidden_size,
                  feature.begin());
    }

    /// Appends tokens, and calls `visit(first, count)` after each pass.
    template <class Visit>
    void append(Cache& cache, std::span<const TokenId> tokens, const Visit& visit) {
      check(tokens, cache.length_ + tokens.size());
      forget_nodes(cache);
      const std::size_t before = cache.length_;
      try {
        for (std::size_t first = 0; first < tokens.size(); first += batch_size) {
          const std::size_t count = std::min(batch_size, tokens.size() - first);
          for (std::size_t i = 0; i < count; ++i) {
            add(tokens[first + i], cache.length_ + i, {&cache.sequence_, 1},
                first + i + 1 == tokens.size());
          }
          run();
          cache.length_ += count;
          visit(first, count);
        }
      } catch (...) {
        clear();
        cut(cache, before);
        throw;
      }
    }
    static std::size_t depth_of(std::span<const std::uint64_t> ancestors) {
      int depth = 0;
      for (const std::uint64_t path : ancestors) depth = std::max(depth, std::popcount(path));
      return static_cast<std::size_t>(depth);
    }
    /// Adds a tree to the batch, and calls `before_node()` before each node.
    template <class BeforeNode>
    void add_tree(Cache& cache, std::span<const TokenId> tokens,
                  std::span<const std::uint64_t> ancestors, const BeforeNode& before_node) {
      TOOLDECODE_ASSERT(tokens.size() <= 64 && ancestors.size() == tokens.size());
      std::uint64_t inner = 0;
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        TOOLDECODE_ASSERT(ancestors[i] >> i == 1);
        inner |= ancestors[i] & ~(std::uint64_t{1} << i);
      }
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        if ((inner >> i & 1) != 0) continue;
        cache.leaves_.push_back({take_sequence(), ancestors[i]});
        share(cache.sequence_, cache.leaves_.back().sequence, 0, cache.length_);
      }
      std::vector<llama_seq_id> below;
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        below.clear();
        for (const auto& leaf : cache.leaves_) {
          if ((leaf.path >> i & 1) != 0) below.push_back(leaf.sequence);
        }
        const auto level = static_cast<std::size_t>(std::popcount(ancestors[i])) - 1;
        before_node();
        add(tokens[i], cache.length_ + level, below, true);
      }
    }
    void run_tree(Cache& cache, std::span<const TokenId> tokens,
                  std::span<const std::uint64_t> ancestors) {
      check(tokens, cache.length_ + depth_of(ancestors));
      forget_nodes(cache);
      try {
        add_tree(cache, tokens, ancestors, [] {});
        run();
      } catch (...) {
        clear();
        forget_nodes(cache);
        throw;
      }
    }

    std::shared_ptr<llama_model> model;
    struct Free {
      void operator()(llama_context* one) const { llama_free(one); }
    };
    std::unique_ptr<llama_context, Free> context;
    std::unique_ptr<llama_batch, FreeBatch> batch;
    std::vector<llama_seq_id> free;
    std::size_t vocabulary_size = 0, hidden_size = 0, cells = 0, length = 0, batch_size = 0;
    bool has_states = false, gives_features = false;
    std::vector<std::size_t> wanted;           // layers whose inputs a pass gives
    std::vector<std::vector<float>> features;  // [wanted][tokens of the pass, H]
    std::mutex mutex;
  };

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

static_assert(StateTreeModel<LlamaCppModel> && BatchModel<LlamaCppModel>);

}  // namespace tooldecode
