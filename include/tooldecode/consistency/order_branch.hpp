/// \file
/// OrderBranch: one order's way through the arguments of a call.
#pragma once

#include <algorithm>
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

/// One order's way through the arguments of a call: what is written, and which bytes of it are
/// whose value.
///
/// \par Complexity  read O(bytes)
struct OrderBranch {
  ToolCallFSM calls;                        ///< of this call and this order, open-ended
  ToolCallFSM::State state;                 ///< after the tokens
  std::optional<ToolCallFSM::State> outer;  ///< the answer's, as long as it takes this order
  std::vector<TokenId> tokens{};
  std::vector<double> log_probabilities{};
  std::vector<bool> forced{};          ///< put in, not chosen
  std::vector<TokenTrace> trace{};     ///< of the tokens, where the options ask for one
  std::string closing{};               ///< bytes after the tokens, up to the end of the arguments
  double closing_log_probability = 0;  ///< of the token that closed the arguments
  bool is_over                   = false;
  bool is_complete               = false;        ///< the arguments came to their end
  Finish finish                  = Finish::end;  ///< why it is over, where it is not complete

  std::string text{};  ///< all bytes of the arguments, `closing` included

  /// An argument's text so far; a number's holds the byte that ended it.
  struct Value {
    std::size_t argument = 0;  ///< as in `argument_names`
    std::string text{};
    double log_probability = 0;  ///< sum over the tokens
    std::size_t tokens     = 0;
  };
  std::vector<Value> values{};

  /// Follows bytes as far as the arguments go, and notes which belong to which argument.
  ///
  /// \return how many bytes belong to the arguments, the last of which may close them
  std::size_t read(std::string_view bytes, double token_log_probability);
};

}  // namespace tooldecode::consistency

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/consistency/order_branch.ipp>
#endif
