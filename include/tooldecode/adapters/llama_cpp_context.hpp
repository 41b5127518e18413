/// \file
/// A context of llama.cpp and the sequences in it, for LlamaCppModel.
#pragma once

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/config.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/model_limits.hpp>
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

namespace llama_cpp {

/// A sequence of a context, and those of the nodes of a draft tree after it.
struct Sequence {
  struct Leaf {
    llama_seq_id id;
    std::uint64_t path;
  };
  llama_seq_id id    = -1;
  std::size_t length = 0;
  std::vector<Leaf> leaves{};  ///< of the last tree
};

/// A context of llama.cpp with its sequences; call its members with the mutex held.
struct Context {
  struct FreeBatch {
    void operator()(llama_batch* one) const {
      llama_batch_free(*one);
      delete one;
    }
  };

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
      parameters.cb_eval           = &Context::take_states;
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
  void give_back(Sequence& sequence) noexcept {
    const std::lock_guard lock(mutex);
    forget_nodes(sequence);
    return_sequence(sequence.id);
  }
  void share(llama_seq_id from, llama_seq_id to, std::size_t first, std::size_t last) {
    if (first == last) return;
    llama_memory_seq_cp(memory(), from, to, static_cast<llama_pos>(first),
                        static_cast<llama_pos>(last));
  }
  void forget_nodes(Sequence& sequence) noexcept {
    for (const auto& leaf : sequence.leaves) return_sequence(leaf.id);
    sequence.leaves.clear();
  }
  void cut(Sequence& sequence, std::size_t to) {
    TOOLDECODE_ASSERT(to <= sequence.length);
    if (!llama_memory_seq_rm(memory(), sequence.id, static_cast<llama_pos>(to), -1))
      throw Error(Errc::limit_exceeded, "truncate",
                  "this kind of model cannot forget a part of a sequence");
    sequence.length = to;
  }

  void check(std::span<const TokenId> tokens, std::size_t new_length) const {
    core::ModelLimits{vocabulary_size, length}.check(tokens, new_length);
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
    if (from == nullptr) throw Error(Errc::device_failure, "llama_get_logits_ith", "gave nothing");
    std::copy_n(from, vocabulary_size, logits.begin());
  }
  void copy_state(std::size_t i, std::span<float> hidden) const {
    const float* from = llama_get_embeddings_ith(context.get(), static_cast<std::int32_t>(i));
    if (from == nullptr)
      throw Error(Errc::device_failure, "llama_get_embeddings_ith", "gave nothing");
    std::copy_n(from, hidden_size, hidden.begin());
  }

  void copy_last_state(std::span<float> hidden) const {
    if (last_state.size() != hidden.size())
      throw Error(Errc::device_failure, "final state", "llama.cpp's graph has no \"result_norm\"");
    std::copy(last_state.begin(), last_state.end(), hidden.begin());
  }

  // llama.cpp asks whether a tensor is wanted, then shows it after it was computed; the graph ends
  // where that returns false.
  static bool take_states(ggml_tensor* tensor, bool asks, void* context) {
    static constexpr std::string_view prefix = "l_out-";  // what a layer gives to the next
    auto& self                               = *static_cast<Context*>(context);
    if (self.stops) {
      if (ggml_get_name(tensor) != std::string_view("result_norm")) return false;
      if (asks) return true;
      self.last_state.resize(static_cast<std::size_t>(ggml_nelements(tensor)));
      if (self.last_state.empty()) return false;  // no token of this pass is the last
      ggml_backend_tensor_get(tensor, self.last_state.data(), 0,
                              self.last_state.size() * sizeof(float));
      return false;
    }
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
  void append(Sequence& sequence, std::span<const TokenId> tokens, const Visit& visit) {
    check(tokens, sequence.length + tokens.size());
    forget_nodes(sequence);
    const std::size_t before = sequence.length;
    try {
      for (std::size_t first = 0; first < tokens.size(); first += batch_size) {
        const std::size_t count = std::min(batch_size, tokens.size() - first);
        for (std::size_t i = 0; i < count; ++i) {
          add(tokens[first + i], sequence.length + i, {&sequence.id, 1},
              first + i + 1 == tokens.size());
        }
        run();
        sequence.length += count;
        visit(first, count);
      }
    } catch (...) {
      clear();
      try {
        cut(sequence, before);
      } catch (const Error&) {  // a recurrent model's sequence stays longer; the first error counts
      }
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
  void add_tree(Sequence& sequence, std::span<const TokenId> tokens,
                std::span<const std::uint64_t> ancestors, const BeforeNode& before_node) {
    TOOLDECODE_ASSERT(tokens.size() <= 64 && ancestors.size() == tokens.size());
    std::uint64_t inner = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      TOOLDECODE_ASSERT(ancestors[i] >> i == 1);
      inner |= ancestors[i] & ~(std::uint64_t{1} << i);
    }
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if ((inner >> i & 1) != 0) continue;
      sequence.leaves.push_back({take_sequence(), ancestors[i]});
      share(sequence.id, sequence.leaves.back().id, 0, sequence.length);
    }
    std::vector<llama_seq_id> below;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      below.clear();
      for (const auto& leaf : sequence.leaves) {
        if ((leaf.path >> i & 1) != 0) below.push_back(leaf.id);
      }
      const auto level = static_cast<std::size_t>(std::popcount(ancestors[i])) - 1;
      before_node();
      add(tokens[i], sequence.length + level, below, true);
    }
  }
  void run_tree(Sequence& sequence, std::span<const TokenId> tokens,
                std::span<const std::uint64_t> ancestors) {
    check(tokens, sequence.length + depth_of(ancestors));
    forget_nodes(sequence);
    try {
      add_tree(sequence, tokens, ancestors, [] {});
      run();
    } catch (...) {
      clear();
      forget_nodes(sequence);
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
  bool has_states = false, gives_features = false, stops = false;
  std::vector<float> last_state;             // of a pass that stops before the head
  std::vector<std::size_t> wanted;           // layers whose inputs a pass gives
  std::vector<std::vector<float>> features;  // [wanted][tokens of the pass, H]
  std::mutex mutex;
};

}  // namespace llama_cpp

}  // namespace tooldecode
