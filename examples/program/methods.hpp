/// \file
/// The decoding methods to compare, by name.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/consistency/call_orders.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/vocabulary/tokenizer.hpp>

namespace program {

/// An answer, and the votes on its calls if the method votes.
struct MethodAnswer {
  MethodAnswer(tooldecode::Output decoded, std::vector<tooldecode::CallVote> counted = {})
      : output(std::move(decoded)), votes(std::move(counted)) {}

  tooldecode::Output output;
  std::vector<tooldecode::CallVote> votes;
};

using Run =
    std::function<MethodAnswer(std::span<const tooldecode::TokenId>, tooldecode::DecodeOptions)>;

/// A way to decode. The result of `prepare` refers to the model and the constraint of its
/// arguments.
struct Method {
  std::string name;
  bool constrained  = false;
  float temperature = 0;
  std::function<Run(const tooldecode::ModelRef&, const tooldecode::Tokenizer&,
                    const tooldecode::ToolCallFSM&)>
      prepare;
  std::size_t orders = 0;      ///< of tool-decoding: at most this many orders
  bool types_only    = false;  ///< the constraint knows only the types of arguments
  bool may_be_cut    = false;  ///< constrained, but answers may be cut at the limit
};

[[nodiscard]] Run decode_greedily(const tooldecode::ModelRef& model,
                                  const tooldecode::Tokenizer& tokenizer);

/// The orders that can be requested one by one, numbered as in OrderConsistencyOptions::only_order.
inline constexpr std::array<std::string_view, 3> order_names{"documented", "reversed", "shuffled"};

/// Continues a prompt under the constraint with drafts.
using Speculate = std::function<tooldecode::Output(
    const tooldecode::ModelRef&, const tooldecode::ToolCallFSM&,
    std::span<const tooldecode::TokenId> prompt, const tooldecode::DecodeOptions&)>;

/// The methods with these names; tool-decoding once for each of `orders`, and once for each order
/// of `only_orders` alone. Error{invalid_option} for an unknown name or order, or for no orders.
///
/// \param speculate  the method speculative; there is none if it is empty
[[nodiscard]] std::vector<Method> make_methods(const std::vector<std::string>& names,
                                               const std::vector<std::size_t>& orders,
                                               const std::vector<std::string>& only_orders,
                                               Speculate speculate = {});

}  // namespace program
