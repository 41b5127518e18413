/// \file
/// Chain: continues a prompt with llama.cpp alone, with samplers of its chains.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include <tooldecode/adapters/llama_cpp_model.hpp>
#include <tooldecode/core/types.hpp>

#include <llama.h>
#include <program/seconds.hpp>

struct FreeLlama {
  void operator()(llama_context* context) const { llama_free(context); }
  void operator()(llama_sampler* sampler) const { llama_sampler_free(sampler); }
};
using Sampler = std::unique_ptr<llama_sampler, FreeLlama>;

/// The written tokens, and how long choosing them took.
struct Written {
  std::vector<tooldecode::TokenId> tokens;
  bool is_cut        = false;
  double choosing    = 0;  ///< seconds in samplers, which include a constraint
  std::size_t passes = 0;
};

/// Guesses what follows tokens and the one after them.
using Draft = std::function<std::vector<llama_token>(const std::vector<llama_token>& tokens,
                                                     llama_token last)>;

class Chain {
 public:
  Chain(llama_model* model, const tooldecode::LlamaCppOptions& options) {
    llama_context_params parameters = llama_context_default_params();
    parameters.n_ctx                = options.cells;
    parameters.n_batch              = options.batch;
    parameters.n_ubatch             = options.batch;
    parameters.n_threads            = options.threads;
    parameters.n_threads_batch      = options.threads;
    parameters.type_k               = options.cache_type;
    parameters.type_v               = options.cache_type;
    parameters.flash_attn_type      = options.flash_attention;
    parameters.no_perf              = true;
    context_.reset(llama_init_from_model(model, parameters));
    if (!context_) throw std::runtime_error("llama.cpp makes no context");
    vocab_ = llama_model_get_vocab(model);
  }

  [[nodiscard]] const llama_vocab* vocab() const { return vocab_; }

  /// Reads all of a prompt except its last token, which each answer reads again.
  void read(const std::vector<tooldecode::TokenId>& prompt) {
    llama_memory_clear(llama_get_memory(context_.get()), true);
    prompt_          = prompt;
    const auto batch = llama_n_batch(context_.get());
    for (std::size_t at = 0; at + 1 < prompt_.size(); at += batch) {
      decode(prompt_.data() + at, std::min<std::size_t>(batch, prompt_.size() - 1 - at));
    }
  }

  /// Continues it greedily among the tokens that a sampler leaves; null leaves all.
  /// \param token_first  shows the sampler only the best token, and the rest if that is refused, as
  ///         llama.cpp's own programs do with a grammar
  /// \param draft  guesses what follows tokens and the one after them, which one pass then verifies
  ///         as llama.cpp's server does: tokens are kept up to the first that is not chosen; empty
  ///         for no drafts
  [[nodiscard]] Written write(llama_sampler* constraint, bool token_first, std::size_t max_tokens,
                              const Draft& draft = {}) {
    std::vector<llama_token> history(prompt_.begin(), prompt_.end() - 1);
    Written written;
    llama_token token = prompt_.back();
    std::vector<llama_token> batch;
    while (true) {
      llama_memory_seq_rm(llama_get_memory(context_.get()), 0,
                          static_cast<llama_pos>(history.size()), -1);
      const auto start = std::chrono::steady_clock::now();
      batch.assign(1, token);
      if (draft) {
        const auto drafted = draft(history, token);
        batch.insert(batch.end(), drafted.begin(), drafted.end());
      }
      written.choosing += program::seconds_since(start);
      decode_all(batch);
      ++written.passes;
      for (std::size_t at = 0; at < batch.size() && batch[at] == token; ++at) {
        history.push_back(token);
        const auto sampling = std::chrono::steady_clock::now();
        token               = choose(constraint, token_first, static_cast<std::int32_t>(at));
        written.choosing += program::seconds_since(sampling);
        if (llama_vocab_is_eog(vocab_, token)) return written;
        written.tokens.push_back(token);
        if (written.tokens.size() == max_tokens) {
          written.is_cut = true;
          return written;
        }
      }
    }
  }

 private:
  void decode(llama_token* tokens, std::size_t count) {
    if (llama_decode(context_.get(),
                     llama_batch_get_one(tokens, static_cast<std::int32_t>(count))) != 0)
      throw std::runtime_error("llama.cpp does not decode");
  }

  // Tokens of which each gets its logits.
  void decode_all(std::vector<llama_token>& tokens) {
    if (tokens.size() == 1) return decode(tokens.data(), 1);
    llama_batch batch =
        llama_batch_get_one(tokens.data(), static_cast<std::int32_t>(tokens.size()));
    std::vector<std::int8_t> rows(tokens.size(), 1);
    batch.logits = rows.data();
    if (llama_decode(context_.get(), batch) != 0)
      throw std::runtime_error("llama.cpp does not decode");
  }

  // As llama_sampler_sample, except that the first try may be a single token.
  [[nodiscard]] llama_token choose(llama_sampler* constraint, bool token_first, std::int32_t row) {
    const float* logits = llama_get_logits_ith(context_.get(), row);
    const auto size     = static_cast<std::size_t>(llama_vocab_n_tokens(vocab_));
    if (token_first || constraint == nullptr) {
      const auto best = static_cast<llama_token>(std::max_element(logits, logits + size) - logits);
      llama_token_data one{best, logits[best], 0};
      llama_token_data_array single{&one, 1, -1, false};
      if (constraint == nullptr) return best;
      llama_sampler_apply(constraint, &single);
      if (std::isfinite(one.logit)) {
        llama_sampler_accept(constraint, best);
        return best;
      }
    }
    candidates_.resize(size);
    for (std::size_t i = 0; i < size; ++i)
      candidates_[i] = {static_cast<llama_token>(i), logits[i], 0};
    llama_token_data_array all{candidates_.data(), size, -1, false};
    llama_sampler_apply(constraint, &all);
    const auto best = std::max_element(
        all.data, all.data + all.size,
        [](const llama_token_data& a, const llama_token_data& b) { return a.logit < b.logit; });
    const llama_token token = best->id;
    llama_sampler_accept(constraint, token);
    return token;
  }

  std::unique_ptr<llama_context, FreeLlama> context_;
  const llama_vocab* vocab_ = nullptr;
  std::vector<tooldecode::TokenId> prompt_;
  std::vector<llama_token_data> candidates_;
};
