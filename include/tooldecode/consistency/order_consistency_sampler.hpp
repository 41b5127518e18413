/// \file
/// OrderConsistencySampler: a call is sampled under several orders of its parameters, and each
/// value is put to the vote.
#pragma once

#include <span>
#include <utility>

#include <tooldecode/consistency/order_voter.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/concepts.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/decode/sequential.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>

namespace tooldecode {

/// Wraps a Decoder such that every call is sampled under several orders of its parameters.
///
/// Once the model has chosen a tool, the required keys are supplied, not generated, in one order
/// per candidate; a value ends where its machine accepts and the model moves on, inside a token if
/// need be. Then the model chooses among unused optional keys and the call's end. Each parameter is
/// voted on, by value; that a parameter is left out is a vote as well. Where the documented order
/// came out as the winners are, its tokens go on as the answer; else the winning call is written as
/// the format writes it. Each of several calls in an answer is voted on in turn. Of a tool with at
/// most one required parameter there is one order.
///
/// All orders share the caches of what they have in common, and run as one batch per step.
/// `adaptive` spares orders that could not change a winner; the answer is the same without.
///
/// The decoder and its model and constraint outlive the sampler. The distribution is the decoder's;
/// its strategy, which changes no token, is not used inside calls.
///
/// \par Shapes      prompt [L]
/// \par Complexity  a pass per step of the longest order, and orders x tokens in all; less where
///                  orders agree. The machines of a tool's orders are made at its first call
/// \par Threads     calls may run concurrently where the model's const members may
/// \par Errors      Error{invalid_option} from the constructor for no orders; a call as Decoder
/// \par Source      Tool Decoding, constrained decoding and order consistency
template <Model M, class S = Sequential>
class OrderConsistencySampler {
 public:
  explicit OrderConsistencySampler(const Decoder<M, ToolCallFSM, S>& decoder,
                                   OrderConsistencyOptions options = {})
      : decoder_(&decoder), voter_(decoder.model(), decoder.constraint(), std::move(options)) {}
  explicit OrderConsistencySampler(const Decoder<M, ToolCallFSM, S>&&,
                                   OrderConsistencyOptions = {}) = delete;

  [[nodiscard]] const OrderConsistencyOptions& options() const noexcept { return voter_.options(); }

  /// Continues a prompt.
  [[nodiscard]] Consensus operator()(std::span<const TokenId> prompt,
                                     const DecodeOptions& options = {}) const {
    const LogitsPipeline pipeline{options.logits()};
    decoder_->check(prompt, options);
    return voter_(prompt, pipeline, options);
  }

 private:
  const Decoder<M, ToolCallFSM, S>* decoder_;
  consistency::OrderVoter voter_;
};

}  // namespace tooldecode
