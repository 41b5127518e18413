/// \file
/// ToolLibrary: tools compiled once, whichever requests offer them.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/constraint/vocabulary_index.hpp>
#include <tooldecode/core/diagnose.hpp>
#include <tooldecode/tools/call_format.hpp>
#include <tooldecode/tools/tool_set.hpp>

namespace tooldecode {

namespace constraint {

/// The tools of a ToolLibrary as an automaton has them.
class CompiledTools;

/// What a ToolLibrary does, whatever the type of its format.
[[nodiscard]] std::shared_ptr<CompiledTools> compile_tools(VocabularyIndex cache,
                                                           tools::AnyFormat format,
                                                           ChoiceOptions options);
/// A machine of some tools.
[[nodiscard]] ToolCallFSM make_machine(CompiledTools& compiled,
                                       const std::shared_ptr<const ToolSet>& tools,
                                       ToolChoice choice, std::string name);
/// Tools that are compiled.
[[nodiscard]] std::size_t size_of(const CompiledTools& compiled);

}  // namespace constraint

/// Makes the machines of requests out of tools that are compiled when they are first offered.
///
/// Tools are known by identity: sets that share them, see ToolSet::with and ToolSet::subset, share
/// what is compiled, with every state and mask that earlier requests have met. A new request costs
/// the trie of its tools' names.
///
/// \par Complexity  machine O(bytes of the names) where the tools are known, else their schemas too
/// \par Threads     every const member may run concurrently
/// \par Errors      from `machine`, as ToolCallFSM; Error{invalid_option} from the constructor for
///                  options of one call only
template <class F>
class ToolLibrary {
  static_assert(diagnose::is_call_format<F>());

 public:
  /// \param options  of every machine, but for the choice
  explicit ToolLibrary(VocabularyIndex cache, F format = {}, ChoiceOptions options = {})
      : tools_(constraint::compile_tools(std::move(cache), std::move(format), std::move(options))) {
  }

  [[nodiscard]] ToolCallFSM machine(const ToolSet& tools, ToolChoice choice = ToolChoice::automatic,
                                    std::string name = {}) const {
    return machine(std::make_shared<const ToolSet>(tools), choice, std::move(name));
  }
  /// The same for a set that need not be copied.
  [[nodiscard]] ToolCallFSM machine(const std::shared_ptr<const ToolSet>& tools,
                                    ToolChoice choice = ToolChoice::automatic,
                                    std::string name  = {}) const {
    return constraint::make_machine(*tools_, tools, choice, std::move(name));
  }

  /// Tools that are compiled.
  [[nodiscard]] std::size_t size() const { return constraint::size_of(*tools_); }

 private:
  std::shared_ptr<constraint::CompiledTools> tools_;
};

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/constraint/tool_library.ipp>
#endif
