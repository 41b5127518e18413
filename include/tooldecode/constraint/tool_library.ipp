/// \file
/// What tool_library.hpp declares.
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

#include <tooldecode/constraint/shared_states.hpp>
#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/constraint/tool_library.hpp>
#include <tooldecode/constraint/vocabulary_index.hpp>
#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/diagnose.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/tools/call_format.hpp>
#include <tooldecode/tools/tool_set.hpp>

namespace tooldecode::constraint {

TOOLDECODE_INLINE CompiledTools::CompiledTools(VocabularyIndex cache) : cache_(std::move(cache)) {}

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

TOOLDECODE_INLINE const std::shared_ptr<SharedStates>& CompiledTools::Lock::states()
    const noexcept {
  return tools_.states_;
}

}  // namespace tooldecode::constraint
