/// \file
/// ToolOrders: the machines of one tool's calls, one per order of its required parameters.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/consistency/order_branch.hpp>
#include <tooldecode/consistency/parameter_orders.hpp>
#include <tooldecode/consistency/votes.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/tools/tool_call.hpp>
#include <tooldecode/tools/tool_set.hpp>

namespace tooldecode::consistency {

/// Begins branches of a tool's calls under several orders of its required parameters, and reads
/// candidates back from them.
///
/// \par Complexity  construction O(orders x size of the tool's schema)
/// \par Threads     immutable after construction
/// \par Errors      as ToolCallFSM, from the constructor
class ToolOrders {
 public:
  /// \param calls       the constraint of the answer
  /// \param tool        index in its ToolSet
  /// \param only_order  the one order, as `parameter_order` counts; else as many as `max_orders`
  ToolOrders(const ToolCallFSM& calls, std::size_t tool, std::size_t max_orders, std::uint64_t seed,
             std::optional<std::size_t> only_order = {});

  [[nodiscard]] std::size_t size() const noexcept { return calls_.size(); }
  /// All parameters, in the document's order; so are those that are required.
  [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }
  [[nodiscard]] const std::vector<std::string>& required() const noexcept { return required_; }
  /// What the format writes before the arguments of an answer's first call.
  [[nodiscard]] const std::string& opening() const noexcept { return opening_; }

  /// A branch per order, behind the opening and some more bytes; none where an order cannot go that
  /// way, or where the arguments end on it.
  ///
  /// \param outer            the answer's state there
  /// \param log_probability  of the token that the bytes are from
  [[nodiscard]] std::vector<OrderBranch> begin(std::string_view bytes, double log_probability,
                                               ToolCallFSM::State outer) const;

  /// What a branch that is over says: all arguments of a complete one, else those that came to
  /// their end.
  [[nodiscard]] Candidate read(std::size_t order, const OrderBranch& branch) const;

 private:
  [[nodiscard]] std::optional<JsonValue> read_value(std::string_view text) const;

  std::string name_;
  std::vector<std::string> names_, required_;
  std::string opening_;
  ToolCallFSM whole_;               // in any order, and closed
  std::vector<ToolCallFSM> calls_;  // by order, open-ended
};

}  // namespace tooldecode::consistency

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/consistency/tool_orders.ipp>
#endif
