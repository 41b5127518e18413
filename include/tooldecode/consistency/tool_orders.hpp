/// \file
/// ToolOrders: the automata of one tool's calls, one per order of its required parameters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/consistency/votes.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/decode/trace.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/tools/tool_set.hpp>

namespace tooldecode::consistency {

/// The arguments of a call in one order: the text so far, and which bytes belong to which value.
///
/// \par Complexity  read O(bytes)
struct OrderBranch {
  ToolCallFSM calls;                        ///< of this call and this order, open-ended
  ToolCallFSM::State state;                 ///< after the tokens
  std::optional<ToolCallFSM::State> outer;  ///< the answer's state while it accepts this order
  std::size_t order = 0;  ///< numbered as in `parameter_order`; each draws with separate noise
  std::vector<TokenId> tokens{};
  std::vector<double> log_probabilities{};
  std::vector<bool> forced{};  ///< inserted, not chosen
  std::vector<TokenTrace> trace{};
  std::string closing{};  ///< bytes after the tokens, up to the end of the arguments
  double closing_log_probability = 0;
  bool is_over                   = false;
  bool is_complete               = false;
  Finish finish                  = Finish::end;  ///< why it is over, if it is not complete

  std::string text{};  ///< all bytes of the arguments, `closing` included

  /// An argument's text so far; that of a number includes the byte that ended it.
  struct Value {
    std::size_t argument = 0;  ///< index in `argument_names`
    std::string text{};
    double log_probability = 0;  ///< sum over the tokens
    std::size_t tokens     = 0;
  };
  std::vector<Value> values{};

  /// Reads bytes while they belong to the arguments, and notes which argument they belong to.
  ///
  /// \return how many bytes belong to the arguments; the last one may close them
  std::size_t read(std::string_view bytes, double token_log_probability);
  /// Reads a control token, which stands for its name. One that closes the arguments is no part of
  /// `closing`: the model writes it once more, behind them.
  void read_control(TokenId token);
};

}  // namespace tooldecode::consistency

namespace tooldecode {

/// Distinct orders of `count` parameters: as documented, reversed, then seeded shuffles; at most
/// `max_orders`.
///
/// A shorter list is a prefix of a longer one.
///
/// \param count       parameters, numbered by their place in the document
/// \param max_orders  at most so many orders; at least one is returned
/// \par Shapes      [orders][count], orders = max(1, min(max_orders, count!))
/// \par Complexity  O(orders x count x log orders) expected if orders are fewer than count!; a
///                  further factor of log orders if all are requested
/// \par Source      Tool Decoding, order consistency
[[nodiscard]] std::vector<std::vector<std::size_t>> parameter_orders(std::size_t count,
                                                                     std::size_t max_orders,
                                                                     std::uint64_t seed = 0);

/// One order of `parameter_orders`: 0 as documented, 1 reversed, from 2 on the shuffles; modulo the
/// number of orders.
///
/// \par Shapes      [count]
/// \par Complexity  as of place + 1 orders
/// \par Source      Tool Decoding, Table 2
[[nodiscard]] std::vector<std::size_t> parameter_order(std::size_t count, std::size_t place,
                                                       std::uint64_t seed = 0);

}  // namespace tooldecode

namespace tooldecode::consistency {

/// Starts branches of a tool's calls under several orders of its required parameters, and reads
/// candidates from finished branches.
///
/// \par Complexity  construction O(orders x size of the tool's schema)
/// \par Threads     const members may run concurrently
/// \par Errors      constructor: as ToolCallFSM
class ToolOrders {
 public:
  /// \param calls       the constraint of the answer
  /// \param tool        index in its ToolSet
  /// \param only_order  a single order, numbered as in `parameter_order`; else up to `max_orders`
  ToolOrders(const ToolCallFSM& calls, std::size_t tool, std::size_t max_orders, std::uint64_t seed,
             std::optional<std::size_t> only_order = {});

  [[nodiscard]] std::size_t size() const noexcept { return calls_.size(); }
  /// Memory of all orders' states and masks, which grows with new texts.
  [[nodiscard]] std::size_t bytes() const;
  /// Whether an order's memory has grown past the budget of the vocabulary index.
  [[nodiscard]] bool is_past_budget() const;
  /// As that of Constraint, for each order; copies are not affected.
  void reset();
  /// All parameters in document order, and the required ones in document order.
  [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }
  [[nodiscard]] const std::vector<std::string>& required() const noexcept { return required_; }
  /// What the format writes before the arguments of an answer's first call.
  [[nodiscard]] const std::string& opening() const noexcept { return opening_; }

  /// A branch per order, after the opening and some more bytes. Empty if an order does not allow
  /// these bytes, or if the arguments end in them. A branch is over at once where a format writes
  /// no text for no arguments.
  ///
  /// \param outer            the answer's state there
  /// \param log_probability  of the token that contains the bytes
  [[nodiscard]] std::vector<OrderBranch> begin(std::string_view bytes, double log_probability,
                                               ToolCallFSM::State outer) const;

  /// Reads a finished branch: all arguments of a complete one, else the finished arguments.
  [[nodiscard]] Candidate read(std::size_t order, const OrderBranch& branch) const;

 private:
  // Of an answer that was cut: empty where the text alone does not say the value.
  [[nodiscard]] std::optional<JsonValue> read_value(const std::string& key,
                                                    std::string_view text) const;

  std::string name_;
  std::vector<std::string> names_, required_;
  std::string opening_;
  ToolCallFSM whole_;               // any order, closed
  std::vector<ToolCallFSM> calls_;  // by order, open-ended
  std::size_t first_order_ = 0;
};

}  // namespace tooldecode::consistency

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/consistency/tool_orders.ipp>
#endif
