/// \file
/// Definitions of tool_library.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/constraint/tool_call_parts.ipp>
#include <tooldecode/constraint/tool_library.hpp>
#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/diagnose.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/formats/call_format.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/mask/shared_states.hpp>
#include <tooldecode/mask/vocabulary_index.hpp>
#include <tooldecode/tools/tool_set.hpp>

namespace tooldecode::constraint {

/// The compiled tools of a ToolLibrary.
///
/// \par Threads     through a Lock, one at a time; `size` may run concurrently
class CompiledTools {
 public:
  CompiledTools(VocabularyIndex cache, formats::AnyFormat format, ChoiceOptions options);

  struct Link {
    const Tool* tool     = nullptr;
    std::uint32_t number = 0;  ///< its tag in the automaton
    grammar::StoredId node{};
  };

  /// Exclusive access for making one machine. Forgets tools that have no other owner; starts anew
  /// if the index has new states.
  class Lock {
   public:
    explicit Lock(CompiledTools& tools);

    [[nodiscard]] const std::shared_ptr<mask::SharedStates>& states() const noexcept;
    [[nodiscard]] Link link(std::uint32_t index, const std::shared_ptr<const Tool>& tool,
                            const Grammar::MakePart& make) const;

   private:
    CompiledTools& tools_;
    std::lock_guard<std::mutex> lock_;
  };

  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] ToolCallFSM machine(const std::shared_ptr<const ToolSet>& tools, ToolChoice choice,
                                    std::string name);

 private:
  VocabularyIndex cache_;
  formats::AnyFormat format_;
  ChoiceOptions options_;
  mutable std::mutex mutex_;  // guards the following
  std::shared_ptr<mask::SharedStates> states_;
  // Owned, so that no other tool gets the address of one.
  std::unordered_map<std::shared_ptr<const Tool>, Link> tools_;
  std::vector<Link> latest_;  // by index in the latest set, because most sets are alike
  std::uint32_t next_number_    = 0;
  std::size_t max_before_sweep_ = 1024;
};

TOOLDECODE_INLINE CompiledTools::CompiledTools(VocabularyIndex cache, formats::AnyFormat format,
                                               ChoiceOptions options)
    : cache_(std::move(cache)), format_(std::move(format)), options_(std::move(options)) {
  if (!options_.leading_keys.empty() || options_.open_ended) {
    throw Error(Errc::invalid_option, "leading_keys",
                "must be empty, and open_ended false: they are options of a single call");
  }
  if (options_.enforcement != ToolEnforcement::strict) {
    throw Error(Errc::invalid_option, "enforcement",
                "must be strict: tools are told apart by identity, so relax them once, with "
                "enforceable_tools");
  }
}

TOOLDECODE_INLINE ToolCallFSM CompiledTools::machine(const std::shared_ptr<const ToolSet>& tools,
                                                     ToolChoice choice, std::string name) {
  ChoiceOptions options = options_;
  options.choice        = choice;
  options.name          = std::move(name);
  const BuildBudget budget(options.limits);
  const Lock lock(*this);
  ToolCallFSM::Parts parts{{}, lock.states(), {}};
  parts.numbers.reserve(tools->size());
  const auto part = [&](std::uint32_t index, const Grammar::MakePart& make) {
    const auto tool = lock.link(index, tools->share(index), make);
    parts.numbers.emplace_back(tool.number, index);
    return tool.node;
  };
  parts.grammar = build_call_grammar(format_, *tools, options, Grammar(part, tools->size()));
  std::sort(parts.numbers.begin(), parts.numbers.end());
  return {cache_, tools, format_, options, std::move(parts)};
}

TOOLDECODE_INLINE std::shared_ptr<CompiledTools> compile_tools(VocabularyIndex cache,
                                                               formats::AnyFormat format,
                                                               ChoiceOptions options) {
  return std::make_shared<CompiledTools>(std::move(cache), std::move(format), std::move(options));
}

TOOLDECODE_INLINE ToolCallFSM make_machine(CompiledTools& compiled,
                                           const std::shared_ptr<const ToolSet>& tools,
                                           ToolChoice choice, std::string name) {
  return compiled.machine(tools, choice, std::move(name));
}

TOOLDECODE_INLINE std::size_t size_of(const CompiledTools& compiled) {
  return compiled.size();
}

TOOLDECODE_INLINE std::size_t CompiledTools::size() const {
  const std::lock_guard lock(mutex_);
  return tools_.size();
}

TOOLDECODE_INLINE CompiledTools::Lock::Lock(CompiledTools& tools)
    : tools_(tools), lock_(tools.mutex_) {
  auto states = tools_.cache_.states();
  if (tools_.states_ != states) {
    tools_.states_ = std::move(states);
    tools_.tools_.clear(), tools_.latest_.clear();
    tools_.next_number_ = 0;
  }
  if (tools_.tools_.size() < tools_.max_before_sweep_) return;
  tools_.latest_.clear();
  std::erase_if(tools_.tools_, [](const auto& entry) { return entry.first.use_count() == 1; });
  tools_.max_before_sweep_ = 1024 + 2 * tools_.tools_.size();
}

TOOLDECODE_INLINE CompiledTools::Link CompiledTools::Lock::link(
    std::uint32_t index, const std::shared_ptr<const Tool>& tool,
    const Grammar::MakePart& make) const {
  if (tools_.latest_.size() <= index) tools_.latest_.resize(index + std::size_t{1});
  Link& latest = tools_.latest_[index];
  if (latest.tool == tool.get()) return latest;
  auto known = tools_.tools_.find(tool);
  if (known == tools_.tools_.end()) {
    Grammar grammar;
    const NodeId root = grammar.tagged(tools_.next_number_, make(grammar));
    const auto node   = tools_.states_->automaton().compile(grammar, root);
    known = tools_.tools_.emplace(tool, Link{tool.get(), tools_.next_number_++, node}).first;
  }
  return latest = known->second;
}

}  // namespace tooldecode::constraint

namespace tooldecode::constraint {

TOOLDECODE_INLINE const std::shared_ptr<mask::SharedStates>& CompiledTools::Lock::states()
    const noexcept {
  return tools_.states_;
}

}  // namespace tooldecode::constraint
