/// \file
/// CallOrders: the orders of each tool's parameters, and how a decided call becomes tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <tooldecode/consistency/tool_orders.hpp>
#include <tooldecode/consistency/votes.hpp>
#include <tooldecode/constraint/jump_forward_text.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/tools/tool_call.hpp>

namespace tooldecode {

/// The default of `max_orders`, in C, Python and the server too: all orders of three parameters.
inline constexpr std::size_t usual_orders = 6;

/// How calls are sampled and voted on.
struct OrderConsistencyOptions {
  std::size_t max_orders = usual_orders;  ///< the paper's `oc`; limited by the number of orders
  /// Uses one order, numbered as in `parameter_order`, without a vote: the columns of Table 2.
  std::optional<std::size_t> only_order = {};
  VoteRule vote                         = VoteRule::majority;
  bool adaptive      = true;  ///< stops when no remaining order could change a winner
  bool batched       = true;  ///< orders share a pass; else they run one after another
  std::uint64_t seed = 0;
  /// Encodes text as the model's tokenizer does. If it is empty or its result does not spell the
  /// text, the longest tokens that fit are used.
  std::function<std::vector<TokenId>(std::string_view)> encode = {};

  /// Throws Error{invalid_option} for no orders.
  void require() const;
};

/// How a call was decided.
struct CallVote {
  std::size_t tool = 0;  ///< index in the ToolSet
  ToolCall call{};
  std::vector<ParameterVote> parameters{};
  std::vector<Candidate> candidates{};  ///< finished candidates, by order
  std::size_t orders = 0;
  /// Whether the answer contains the call; false if the answer was cut or had to end before.
  bool is_written = true;

  /// An object: name, arguments, orders, sampled, written, and parameters, a list of objects with
  /// key, agreement and choices, the winner first. A choice has votes, weight, probability (the
  /// geometric mean over its tokens), order and value; one that leaves the parameter out has no
  /// value.
  [[nodiscard]] JsonValue json() const;
};

/// An answer, and the votes on its calls.
struct Consensus {
  Output output;  ///< passes include all orders; tokens written by vote count as forced
  std::vector<CallVote> calls{};
  std::size_t sampled_tokens = 0;  ///< of all candidates, including those that were not used
};

namespace consistency {

/// What the answers of an OrderConsistencySampler share: the automata of each tool's orders, and
/// how a decided call becomes tokens.
///
/// \par Threads     const members may run concurrently; refers to `calls`
/// \par Errors      constructor: Error{invalid_option} for no orders
class CallOrders {
 public:
  CallOrders(const ToolCallFSM& calls, OrderConsistencyOptions options);
  CallOrders(const ToolCallFSM&&, OrderConsistencyOptions) = delete;

  [[nodiscard]] const OrderConsistencyOptions& options() const noexcept { return options_; }
  [[nodiscard]] const ToolCallFSM& calls() const noexcept { return *calls_; }
  [[nodiscard]] const constraint::JumpForwardText& text() const noexcept { return text_; }

  /// The same for an answer whose constraint is a copy of `calls`; shares the automata.
  [[nodiscard]] CallOrders with(const ToolCallFSM& calls) const;
  CallOrders with(const ToolCallFSM&&) const = delete;

  /// The automata of a tool's orders for one call, made when they are first asked for. If their
  /// memory has grown past the budget, later calls use ones that were reset.
  [[nodiscard]] std::shared_ptr<const ToolOrders> of(std::size_t tool) const;
  /// The call as the format writes it.
  [[nodiscard]] std::string write(const ToolCall& call) const;
  /// Tokens that spell the text; empty if there are none.
  [[nodiscard]] std::vector<TokenId> encode(std::string_view text) const;

 private:
  struct OrderCache {
    std::mutex mutex;
    std::unordered_map<std::size_t, std::shared_ptr<const ToolOrders>> orders;  // by tool
  };

  const ToolCallFSM* calls_;
  OrderConsistencyOptions options_;
  constraint::JumpForwardText text_;
  std::shared_ptr<OrderCache> known_;
};

}  // namespace consistency

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/consistency/call_orders.ipp>
#endif
