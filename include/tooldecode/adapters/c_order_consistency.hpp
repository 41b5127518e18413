/// \file
/// Order consistency for tooldecode.h: a model of C functions, and answers whose calls are voted on.
/// Defines functions of tooldecode.h, so include it in exactly one file; c_interface.hpp does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/adapters/c_constraint.hpp>
#include <tooldecode/adapters/c_errors.hpp>
#include <tooldecode/adapters/c_handles.hpp>
#include <tooldecode/adapters/tooldecode.h>
#include <tooldecode/consistency/order_consistency_sampler.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/text/json_value.hpp>

/// See tooldecode.h.
struct td_consensus {
  std::vector<std::int32_t> tokens;
  std::string votes;
  std::size_t passes;
};

namespace tooldecode::c_interface {

/// A caller's td_model as a BatchModel.
///
/// \par Threads     as the caller's functions
/// \par Errors      constructor: Refusal{TD_ERROR_INVALID_ARGUMENT} for a missing function; others:
///                  Refusal{TD_ERROR_MODEL} where a function fails
class CModel {
 public:
  struct Free {
    const td_model* functions;
    void operator()(void* cache) const { functions->free_cache(functions->self, cache); }
  };
  struct Cache {
    std::unique_ptr<void, Free> caller;
    std::size_t length = 0;
  };

  CModel(const td_model* functions, std::size_t vocabulary_size)
      : functions_(std::make_unique<const td_model>(fields_of(functions, "model"))),
        vocabulary_size_(vocabulary_size) {
    const auto need = [](bool is_there, const char* name) {
      if (!is_there) {
        throw Refusal(TD_ERROR_INVALID_ARGUMENT, std::string("model/") + name, "must not be null");
      }
    };
    need(functions_->make_cache != nullptr, "make_cache");
    need(functions_->fork != nullptr, "fork");
    need(functions_->truncate != nullptr, "truncate");
    need(functions_->free_cache != nullptr, "free_cache");
    need(functions_->forward != nullptr, "forward");
  }

  [[nodiscard]] std::size_t vocabulary_size() const noexcept { return vocabulary_size_; }
  [[nodiscard]] std::size_t length(const Cache& cache) const noexcept { return cache.length; }
  [[nodiscard]] Cache make_cache() const {
    return own(functions_->make_cache(functions_->self), 0, "make_cache");
  }
  [[nodiscard]] Cache fork(const Cache& cache) const {
    return own(functions_->fork(functions_->self, cache.caller.get()), cache.length, "fork");
  }
  void truncate(Cache& cache, std::size_t length) const {
    require_success(functions_->truncate(functions_->self, cache.caller.get(), length), "truncate");
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
    std::vector<void*> callers;
    std::vector<std::int32_t> all;
    std::vector<std::size_t> ends;
    for (std::size_t i = 0; i < caches.size(); ++i) {
      callers.push_back(caches[i]->caller.get());
      all.insert(all.end(), tokens[i].begin(), tokens[i].end());
      ends.push_back(all.size());
    }
    require_success(functions_->forward(functions_->self, callers.data(), callers.size(),
                                        all.data(), ends.data(), logits.data()),
                    "forward");
    for (std::size_t i = 0; i < caches.size(); ++i) caches[i]->length += tokens[i].size();
  }

 private:
  [[nodiscard]] Cache own(void* cache, std::size_t length, const char* function) const {
    if (cache == nullptr) {
      throw Refusal(TD_ERROR_MODEL, std::string("model/") + function, "returned null");
    }
    return {std::unique_ptr<void, Free>(cache, Free{functions_.get()}), length};
  }
  static void require_success(std::int32_t result, const char* function) {
    if (result == 0) return;
    throw Refusal(TD_ERROR_MODEL, std::string("model/") + function,
                  "returned " + std::to_string(result));
  }

  std::unique_ptr<const td_model> functions_;  // caches point to it
  std::size_t vocabulary_size_;
};
static_assert(BatchModel<CModel>);

}  // namespace tooldecode::c_interface

extern "C" {

td_code td_order_consistency(const td_constraint* constraint, const td_model* model,
                             const int32_t* prompt, size_t count, const td_order_options* options,
                             td_consensus** out, td_error** error) {
  using namespace tooldecode::c_interface;
  namespace td = tooldecode;
  return make(out, error, [&] {
    const Constrained& shared = shared_of(constraint);
    const auto& calls         = shared.calls();
    if (!calls) {
      throw Refusal(TD_ERROR_INVALID_ARGUMENT, "constraint", "must be of the kind TD_TOOLS");
    }
    const CModel target(model, calls->vocabulary_size());
    td_order_options fields{};
    if (options != nullptr) fields = fields_of(options, "options");
    td::OrderConsistencyOptions orders{.adaptive = fields.all_orders == 0, .seed = fields.seed};
    if (fields.max_orders != 0) orders.max_orders = fields.max_orders;
    if (const auto& tokenizer = shared.tokens().tokenizer) {
      orders.encode = [&tokenizer](std::string_view text) { return tokenizer->encode(text); };
    }
    const td::Decoder decoder(target, *calls);
    const td::OrderConsistencySampler sampler(decoder, std::move(orders));
    const td::Consensus made =
        sampler(tokens_from(prompt, count, "prompt"),
                {.max_tokens  = fields.max_tokens == 0 ? 256 : fields.max_tokens,
                 .temperature = fields.temperature,
                 .top_k       = fields.top_k,
                 .top_p       = fields.top_p == 0 ? 1.0F : fields.top_p,
                 .seed        = fields.seed,
                 .always_ends = true});
    td::JsonValue votes = td::JsonValue::array();
    for (const td::CallVote& vote : made.calls) votes.push_back(vote.json());
    return new td_consensus{made.output.tokens, votes.text(), made.output.passes};
  });
}
const int32_t* td_consensus_tokens(const td_consensus* consensus, size_t* count) {
  if (count != nullptr) *count = consensus == nullptr ? 0 : consensus->tokens.size();
  return consensus == nullptr ? nullptr : consensus->tokens.data();
}
const char* td_consensus_votes(const td_consensus* consensus) {
  return consensus == nullptr ? "[]" : consensus->votes.c_str();
}
size_t td_consensus_passes(const td_consensus* consensus) {
  return consensus == nullptr ? 0 : consensus->passes;
}
void td_consensus_free(td_consensus* consensus) {
  delete consensus;
}

}  // extern "C"
