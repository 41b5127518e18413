/// \file
/// OrderConsistencySampler: samples a call under several orders of its parameters and takes a
/// majority vote on each value.
#pragma once

#include <functional>
#include <span>
#include <utility>

#include <tooldecode/consistency/call_orders.hpp>
#include <tooldecode/consistency/ordered_sequence.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/batch_sequence.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>

namespace tooldecode {

/// Decodes as a Decoder does, but samples every call under several orders of its parameters.
///
/// When the model has chosen a tool, each candidate uses one order of the required keys, which are
/// inserted, not generated. A value ends where its automaton accepts and the model moves on, inside
/// a token if necessary. Then the model chooses among unused optional keys and the end of the call.
/// There is a vote on each parameter, by value; leaving a parameter out is a vote too. If the
/// winners equal the candidate in the documented order, the answer continues with its tokens;
/// otherwise the winning call is written as the format writes it. If an answer has several calls,
/// each is voted on in turn. A tool with at most one required parameter has one order.
///
/// All orders share the caches of their common prefixes and run as one batch per step. `adaptive`
/// skips orders that could not change a winner; the winning values do not change.
///
/// The sampler refers to the model and the constraint, which must outlive it; temporaries do not
/// compile. Each prompt resets a copy of the constraint, as a Decoder's does, and calls reset the
/// automata of the orders, so memory does not grow with the number of answers. The documented order
/// draws with the noise of a Decoder and each other order with separate noise.
///
/// \par Shapes      prompt [L]
/// \par Complexity  a step of the longest order is one pass of a BatchModel, and one pass per
///                  distinct order of any other Model; orders x tokens in total, less if orders
///                  agree. The automata of a tool's orders are made at its first call
/// \par Threads     calls may run concurrently if the model's const members may
/// \par Errors      constructor: Error{invalid_option} for no orders, and as Decoder; a call: as
///                  Decoder
/// \par Source      Tool Decoding, constrained decoding and order consistency
template <Model M>
class OrderConsistencySampler {
 public:
  OrderConsistencySampler(const M& model, const ToolCallFSM& calls,
                          OrderConsistencyOptions options = {})
      : decoder_(model, calls), orders_(calls, std::move(options)) {}
  /// Of a decoder's model and constraint; its strategy is not used, and never changes tokens.
  template <class S>
  explicit OrderConsistencySampler(const Decoder<M, ToolCallFSM, S>& decoder,
                                   OrderConsistencyOptions options = {})
      : OrderConsistencySampler(decoder.model(), decoder.constraint(), std::move(options)) {}
  OrderConsistencySampler(const M&&, const ToolCallFSM&, OrderConsistencyOptions = {})  = delete;
  OrderConsistencySampler(const M&, const ToolCallFSM&&, OrderConsistencyOptions = {})  = delete;
  OrderConsistencySampler(const M&&, const ToolCallFSM&&, OrderConsistencyOptions = {}) = delete;

  [[nodiscard]] const OrderConsistencyOptions& options() const noexcept {
    return orders_.options();
  }

  [[nodiscard]] Consensus operator()(std::span<const TokenId> prompt,
                                     const DecodeOptions& options = {}) const {
    const LogitsPipeline pipeline{options.logits()};
    decoder_.check(prompt, options);
    ToolCallFSM calls = decoder_.constraint();
    calls.reset();
    const consistency::CallOrders orders = orders_.with(calls);
    return consistency::sample_orders(decoder_.model(), orders, prompt, pipeline, options);
  }

 private:
  Decoder<M, ToolCallFSM> decoder_;
  consistency::CallOrders orders_;
};

/// Samples the calls of a ContinuousBatch's sequence as OrderConsistencySampler does, for
/// BatchRequest::sequences. All orders share the passes of the batch; the answer is the sampler's.
/// The sequence makes no drafts; other sequences may.
///
/// \param votes  receives the votes of each answer, after those of earlier ones; its `output` is
///               not set. It must outlive the sequence
/// \par Complexity  as OrderConsistencySampler
/// \par Errors      when the sequence is added: as OrderConsistencySampler's constructor
[[nodiscard]] inline std::function<decode::MakeSequence(const ToolCallFSM&)> order_consistency(
    OrderConsistencyOptions options, Consensus& votes) {
  return [options = std::move(options), &votes](const ToolCallFSM& calls) {
    return consistency::ordered_sequences(calls, options, votes);
  };
}

}  // namespace tooldecode
