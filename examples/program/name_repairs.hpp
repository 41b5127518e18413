/// \file
/// Repairs of calls to tools that do not exist, with which ToolDec is compared: fuzzy matching and
/// backtrace.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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

/// Where a written call has its name.
struct WrittenName {
  std::size_t begin  = 0;
  std::size_t length = 0;
};

/// The names of the calls of a text in Python's syntax: what stands before a parenthesis that is in
/// no other.
std::vector<WrittenName> find_written_names(std::string_view text);

/// The tool whose name shares the longest end with the one that is written; of equals the first,
/// none where even the last byte differs.
std::optional<std::size_t> find_by_suffix(const tooldecode::ToolSet& tools,
                                          std::string_view written);

/// Fuzzy matching: the answer's names of no tool become those of the tools found by their suffix.
/// Source: Zhang et al., ToolDec, arXiv:2310.07075, section 4.3.
tooldecode::Output repair_by_suffix(tooldecode::Output output,
                                    const tooldecode::Tokenizer& tokenizer,
                                    const tooldecode::ToolSet& tools);

/// Backtrace: where an answer's call fails, for it cannot be read or has the name of no tool, the
/// model goes back to the first token of the call's name, or of the answer where there is no call,
/// and takes the next probable one instead; the first answer without a failure, or else the first
/// of all. Source: the same, section 4.2.
class Backtrace {
 public:
  /// \param tries  answers at most, 1 or more
  Backtrace(const tooldecode::ModelRef& model, const tooldecode::Tokenizer& tokenizer,
            const tooldecode::ToolCallFSM& calls, std::size_t tries);

  [[nodiscard]] tooldecode::Output operator()(std::span<const tooldecode::TokenId> prompt,
                                              tooldecode::DecodeOptions options) const;

 private:
  // The token at which the first call that fails begins.
  [[nodiscard]] std::optional<std::size_t> find_failure(
      const std::vector<tooldecode::TokenId>& tokens) const;

  // The most probable tokens behind a beginning, one for each try that is left.
  [[nodiscard]] std::vector<tooldecode::TokenId> most_probable(
      std::span<const tooldecode::TokenId> beginning,
      std::span<const tooldecode::TokenId> without) const;

  tooldecode::ModelRef model_;
  const tooldecode::Tokenizer* tokenizer_;
  const tooldecode::ToolCallFSM* calls_;
  std::size_t tries_;
};

}  // namespace program
