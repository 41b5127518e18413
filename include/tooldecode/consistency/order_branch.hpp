/// \file
/// OrderBranch: the arguments of a call, decoded in one order.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/decode/trace.hpp>

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
};

}  // namespace tooldecode::consistency

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/consistency/order_branch.ipp>
#endif
