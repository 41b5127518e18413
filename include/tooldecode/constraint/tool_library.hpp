/// \file
/// ToolLibrary: compiles each tool once for all requests.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/core/diagnose.hpp>
#include <tooldecode/formats/call_format.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>
#include <tooldecode/tools/tool_set.hpp>

namespace tooldecode {

namespace constraint {

/// The compiled tools of a ToolLibrary.
class CompiledTools;

/// Makes an empty set of compiled tools.
[[nodiscard]] std::shared_ptr<CompiledTools> compile_tools(VocabularyIndex index,
                                                           formats::AnyFormat format,
                                                           ChoiceOptions options);
/// Makes the constraint of some tools, and compiles those that are new.
[[nodiscard]] ToolCallFSM make_machine(CompiledTools& compiled,
                                       const std::shared_ptr<const ToolSet>& tools,
                                       ToolChoice choice, std::string name);
/// Number of compiled tools.
[[nodiscard]] std::size_t size_of(const CompiledTools& compiled);

}  // namespace constraint

/// Makes the constraints of requests from tools that are compiled when first offered.
///
/// Tools are recognized by identity: sets that share tools (ToolSet::with, ToolSet::subset) share
/// the compiled form, with all states and masks of earlier requests. A new request then costs only
/// the trie of its tool names. Other tools with the same parameters share the arguments' grammar
/// and its masks, if the format allows it (`shares_parts`, see CallFormat).
///
/// \par Complexity  machine O(bytes of the names) if the tools are compiled, plus the schemas of
///                  new ones, which are read once for tools with the same parameters
/// \par Threads     const members may run concurrently
/// \par Errors      from `machine`, as ToolCallFSM; from the constructor, Error{invalid_option} for
///                  options that apply to one call only
template <class F>
class ToolLibrary {
  static_assert(diagnose::is_call_format<F>());

 public:
  /// \param options  for every machine, except the tool choice
  explicit ToolLibrary(VocabularyIndex index, F format = {}, ChoiceOptions options = {})
      : tools_(constraint::compile_tools(std::move(index), std::move(format), std::move(options))) {
  }

  [[nodiscard]] ToolCallFSM machine(const ToolSet& tools, ToolChoice choice = ToolChoice::automatic,
                                    std::string name = {}) const {
    return machine(std::make_shared<const ToolSet>(tools), choice, std::move(name));
  }
  /// The same without a copy of the set.
  [[nodiscard]] ToolCallFSM machine(const std::shared_ptr<const ToolSet>& tools,
                                    ToolChoice choice = ToolChoice::automatic,
                                    std::string name  = {}) const {
    return constraint::make_machine(*tools_, tools, choice, std::move(name));
  }

  [[nodiscard]] std::size_t size() const { return constraint::size_of(*tools_); }

 private:
  std::shared_ptr<constraint::CompiledTools> tools_;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/constraint/tool_library.ipp>
#endif
