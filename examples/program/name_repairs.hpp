/// \file
/// Repairs of calls to unknown tools, compared with ToolDec: fuzzy matching and backtrace.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/decode/decode_options.hpp>
#include <tooldecode/decode/model_ref.hpp>
#include <tooldecode/decode/output.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/vocabulary/tokenizer.hpp>

namespace program {

/// The place of the name in a written call.
struct WrittenName {
  std::size_t begin  = 0;
  std::size_t length = 0;
};

/// The names of the calls in a text in Python's syntax: what precedes each outermost parenthesis.
std::vector<WrittenName> find_written_names(std::string_view text);

/// The tool whose name shares the longest suffix with the written one; the first among equals;
/// empty if even the last byte differs.
std::optional<std::size_t> find_by_suffix(const tooldecode::ToolSet& tools,
                                          std::string_view written);

/// Fuzzy matching: replaces unknown tool names by the tool with the longest common suffix. Source:
/// Zhang et al., ToolDec, arXiv:2310.07075, section 4.3.
tooldecode::Output repair_by_suffix(tooldecode::Output output,
                                    const tooldecode::Tokenizer& tokenizer,
                                    const tooldecode::ToolSet& tools);

/// Backtrace: if a call of the answer fails (it cannot be read, or its tool is unknown), the model
/// goes back to the first token of the call's name, or of the answer if there is no call, and takes
/// the next most probable token. Returns the first answer without a failure, or else the first
/// answer. Source: the same, section 4.2.
class Backtrace {
 public:
  /// \param tries  most answers, 1 or more
  Backtrace(const tooldecode::ModelRef& model, const tooldecode::Tokenizer& tokenizer,
            const tooldecode::ToolCallFSM& calls, std::size_t tries);

  [[nodiscard]] tooldecode::Output operator()(std::span<const tooldecode::TokenId> prompt,
                                              tooldecode::DecodeOptions options) const;

 private:
  // The token at which the first failing call begins.
  [[nodiscard]] std::optional<std::size_t> find_failure(
      const std::vector<tooldecode::TokenId>& tokens) const;

  // The most probable tokens after a beginning, one for each remaining try.
  [[nodiscard]] std::vector<tooldecode::TokenId> most_probable(
      std::span<const tooldecode::TokenId> beginning,
      std::span<const tooldecode::TokenId> without) const;

  tooldecode::ModelRef model_;
  const tooldecode::Tokenizer* tokenizer_;
  const tooldecode::ToolCallFSM* calls_;
  std::size_t tries_;
};

}  // namespace program
