/// \file
/// Definitions of tool_library.hpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include <tooldecode/constraint/tool_call_parts.ipp>
#include <tooldecode/constraint/tool_library.hpp>
#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/mask/shared_states.hpp>

namespace tooldecode::constraint {

/// The compiled tools of a ToolLibrary.
///
/// \par Threads     through a Lock, one at a time; `size` may run concurrently
class CompiledTools {
 public:
  CompiledTools(VocabularyIndex index, formats::AnyFormat format, ChoiceOptions options);

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
    /// \param format  the format of the part, by its index in a FormatSet
    [[nodiscard]] Link link(std::size_t format, std::size_t index,
                            const std::shared_ptr<const Tool>& tool, const Grammar::MakePart& make);

   private:
    CompiledTools& tools_;
    std::lock_guard<std::mutex> lock_;
    Grammar part_;  // of the tool that is being compiled
  };

  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] ToolCallFSM machine(const std::shared_ptr<const ToolSet>& tools, ToolChoice choice,
                                    std::string name);

 private:
  VocabularyIndex index_;
  formats::AnyFormat format_;
  ChoiceOptions options_;
  mutable std::mutex mutex_;  // guards the following
  std::shared_ptr<mask::SharedStates> states_;
  struct Parts {
    // Owned, so that no other tool gets the address of one.
    std::unordered_map<std::shared_ptr<const Tool>, Link> tools;
    std::vector<Link> latest;  // by index in the latest set, because most sets are alike
  };
  std::vector<Parts> parts_{1};  // by format
  std::uint32_t next_number_    = 0;
  std::size_t max_before_sweep_ = 1024;
};

TOOLDECODE_INLINE CompiledTools::CompiledTools(VocabularyIndex index, formats::AnyFormat format,
                                               ChoiceOptions options)
    : index_(std::move(index)), format_(std::move(format)), options_(std::move(options)) {
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
  Lock lock(*this);
  ToolCallFSM::Parts parts{{}, lock.states(), {}};
  parts.numbers.reserve(tools->size());
  const auto part = [&](std::uint32_t number, const Grammar::MakePart& make) {
    const std::size_t index = number % tools->size();
    const auto tool         = lock.link(number / tools->size(), index, tools->share(index), make);
    parts.numbers.emplace_back(tool.number, index);
    return tool.node;
  };
  parts.grammar = build_call_grammar(format_, *tools, options, Grammar(part, tools->size()));
  std::sort(parts.numbers.begin(), parts.numbers.end());
  return {index_, tools, format_, options, std::move(parts)};
}

TOOLDECODE_INLINE std::shared_ptr<CompiledTools> compile_tools(VocabularyIndex index,
                                                               formats::AnyFormat format,
                                                               ChoiceOptions options) {
  return std::make_shared<CompiledTools>(std::move(index), std::move(format), std::move(options));
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
  return parts_[0].tools.size();
}

TOOLDECODE_INLINE CompiledTools::Lock::Lock(CompiledTools& tools)
    : tools_(tools), lock_(tools.mutex_) {
  auto states = tools_.index_.states();
  if (tools_.states_ != states) {
    tools_.states_ = std::move(states);
    tools_.parts_.assign(1, {});
    tools_.next_number_ = 0;
  }
  if (tools_.parts_[0].tools.size() < tools_.max_before_sweep_) return;
  const auto owners = [&](const std::shared_ptr<const Tool>& tool) {
    return std::ranges::count_if(tools_.parts_,
                                 [&](const Parts& one) { return one.tools.contains(tool); });
  };
  std::vector<std::shared_ptr<const Tool>> unused;
  for (const auto& [tool, link] : tools_.parts_[0].tools) {
    if (tool.use_count() == owners(tool)) unused.push_back(tool);
  }
  for (Parts& one : tools_.parts_) {
    one.latest.clear();
    for (const auto& tool : unused) one.tools.erase(tool);
  }
  tools_.max_before_sweep_ = 1024 + 2 * tools_.parts_[0].tools.size();
}

TOOLDECODE_INLINE CompiledTools::Link CompiledTools::Lock::link(
    std::size_t format, std::size_t index, const std::shared_ptr<const Tool>& tool,
    const Grammar::MakePart& make) {
  if (tools_.parts_.size() <= format) tools_.parts_.resize(format + 1);
  Parts& parts = tools_.parts_[format];
  if (parts.latest.size() <= index) parts.latest.resize(index + 1);
  Link& latest = parts.latest[index];
  if (latest.tool == tool.get()) return latest;
  auto known = parts.tools.find(tool);
  if (known == parts.tools.end()) {
    part_.clear();
    const NodeId root = part_.tagged(tools_.next_number_, make(part_));
    const auto node   = tools_.states_->automaton().compile(part_, root);
    known = parts.tools.emplace(tool, Link{tool.get(), tools_.next_number_++, node}).first;
  }
  return latest = known->second;
}

TOOLDECODE_INLINE const std::shared_ptr<mask::SharedStates>& CompiledTools::Lock::states()
    const noexcept {
  return tools_.states_;
}

}  // namespace tooldecode::constraint
