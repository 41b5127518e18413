/// \file
/// The decoding methods that are compared, by name.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/consistency/order_voter.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/vocabulary/tokenizer.hpp>

namespace program {

/// An answer, and the votes on its calls where the method has them put to the vote.
struct MethodAnswer {
  MethodAnswer(tooldecode::Output decoded, std::vector<tooldecode::CallVote> counted = {})
      : output(std::move(decoded)), votes(std::move(counted)) {}

  tooldecode::Output output;
  std::vector<tooldecode::CallVote> votes;
};

/// Answers a prompt.
using Run =
    std::function<MethodAnswer(std::span<const tooldecode::TokenId>, tooldecode::DecodeOptions)>;

/// A way to decode. What `prepare` gives refers to the model and the
/// constraint of its arguments.
struct Method {
  std::string name;
  bool constrained  = false;
  float temperature = 0;
  std::function<Run(const tooldecode::ModelRef&, const tooldecode::Tokenizer&,
                    const tooldecode::ToolCallFSM&)>
      prepare;
  std::size_t orders = 0;      ///< of tool-decoding: at most so many orders
  bool types_only    = false;  ///< the constraint knows types of arguments and nothing more
  bool may_be_cut    = false;  ///< constrained, but not such that answers end within their tokens
};

/// Decodes without a constraint and greedily.
[[nodiscard]] Run decode_greedily(const tooldecode::ModelRef& model,
                                  const tooldecode::Tokenizer& tokenizer);

/// The orders that can be asked for one by one, as OrderConsistencyOptions::only_order counts them.
inline constexpr std::array<std::string_view, 3> order_names{"documented", "reversed", "shuffled"};

/// The methods of these names; tool-decoding once for each of `orders`, and once under each order
/// of `only_orders` alone. Error{invalid_option} for another name or order, or for no orders.
[[nodiscard]] std::vector<Method> make_methods(const std::vector<std::string>& names,
                                               const std::vector<std::size_t>& orders,
                                               const std::vector<std::string>& only_orders);

}  // namespace program
