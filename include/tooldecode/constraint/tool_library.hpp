/// \file
/// ToolLibrary: tools compiled once, whichever requests offer them.
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
#include <tooldecode/constraint/vocabulary_index.hpp>
#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/diagnose.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/tools/call_format.hpp>
#include <tooldecode/tools/tool_set.hpp>

namespace tooldecode {

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
      : cache_(std::move(cache)), format_(std::move(format)), options_(std::move(options)) {
    if (!options_.leading_keys.empty() || options_.open_ended) {
      throw Error(Errc::invalid_option, "leading_keys",
                  "must be empty, and open_ended false: they are options of a single call");
    }
  }

  [[nodiscard]] ToolCallFSM machine(const ToolSet& tools, ToolChoice choice = ToolChoice::automatic,
                                    std::string name = {}) const {
    return machine(std::make_shared<const ToolSet>(tools), choice, std::move(name));
  }
  /// The same for a set that need not be copied.
  [[nodiscard]] ToolCallFSM machine(const std::shared_ptr<const ToolSet>& tools,
                                    ToolChoice choice = ToolChoice::automatic,
                                    std::string name  = {}) const {
    ChoiceOptions options = options_;
    options.choice        = choice;
    options.name          = std::move(name);
    const BuildBudget budget(options.limits);
    const std::lock_guard lock(mutex_);
    forget_stale();
    typename ToolCallFSM::Parts parts{{}, states_, {}};
    parts.numbers.reserve(tools->size());
    const auto part = [&](std::uint32_t index, const Grammar::MakePart& make) {
      const Link tool = link(index, tools->share(index), make);
      parts.numbers.emplace_back(tool.number, index);
      return tool.node;
    };
    parts.grammar = build_call_grammar(format_, *tools, options, Grammar(part, tools->size()));
    std::sort(parts.numbers.begin(), parts.numbers.end());
    return ToolCallFSM(cache_, tools, format_, options, std::move(parts));
  }

  /// Tools that are compiled.
  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return tools_.size();
  }

 private:
  // A compiled tool.
  struct Link {
    const Tool* tool     = nullptr;
    std::uint32_t number = 0;
    grammar::StoredId node{};
  };

  Link link(std::uint32_t index, const std::shared_ptr<const Tool>& tool,
            const Grammar::MakePart& make) const {
    if (latest_.size() <= index) latest_.resize(index + std::size_t{1});
    Link& latest = latest_[index];
    if (latest.tool == tool.get()) return latest;
    auto known = tools_.find(tool);
    if (known == tools_.end()) {
      Grammar grammar;
      const NodeId root = grammar.tagged(next_number_, make(grammar));
      const auto node   = states_->automaton().compile(grammar, root);
      known             = tools_.emplace(tool, Link{tool.get(), next_number_++, node}).first;
    }
    return latest = known->second;
  }
  // Nobody else has these tools any more; and where the cache has begun anew, so does the library.
  void forget_stale() const {
    auto states = cache_.states();
    if (states_ != states) {
      states_ = std::move(states);
      tools_.clear(), latest_.clear();
      next_number_ = 0;
    }
    if (tools_.size() < max_before_sweep_) return;
    latest_.clear();
    std::erase_if(tools_, [](const auto& entry) { return entry.first.use_count() == 1; });
    max_before_sweep_ = 1024 + 2 * tools_.size();
  }

  VocabularyIndex cache_;
  F format_;
  ChoiceOptions options_;

  mutable std::mutex mutex_;  // guards what follows
  mutable std::shared_ptr<constraint::SharedStates> states_;
  // They are kept, so that no other tool has the address of one.
  mutable std::unordered_map<std::shared_ptr<const Tool>, Link> tools_;
  mutable std::vector<Link> latest_;  // by the number in the latest set: most sets are alike
  mutable std::uint32_t next_number_    = 0;
  mutable std::size_t max_before_sweep_ = 1024;
};

}  // namespace tooldecode
