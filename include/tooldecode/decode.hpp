/// \file
/// Constrained decoding of tool calls with your own model, and votes over parameter orders.
///
/// A Decoder runs any type that satisfies Model under a constraint, alone or in a ContinuousBatch.
/// An OrderConsistencySampler votes over calls decoded under several orders of their parameters. This header contains no model; the reference model
/// LlamaModel is in model/llama_model.hpp.
#pragma once

#include <tooldecode/consistency/order_consistency_sampler.hpp>
#include <tooldecode/consistency/tool_orders.hpp>
#include <tooldecode/consistency/votes.hpp>
#include <tooldecode/constrain.hpp>
#include <tooldecode/decode/continuous_batch.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/decoder.hpp>
#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/decode/prefix_cache.hpp>
#include <tooldecode/decode/sequential.hpp>
#include <tooldecode/decode/trace.hpp>
#include <tooldecode/decode/unconstrained.hpp>
#include <tooldecode/logits/log_sum_exp.hpp>
#include <tooldecode/logits/logits_pipeline.hpp>
#include <tooldecode/logits/selection.hpp>
