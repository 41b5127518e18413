#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tooldecode/constraint/tool_call_parts.ipp>
#include <tooldecode/constraint/tool_library.hpp>
#include <tooldecode/core/build_budget.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/core/intern_index.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/node_store.hpp>
#include <tooldecode/mask/shared_states.hpp>

namespace tooldecode::constraint {

namespace detail {

/// Hashes all of a value: tools may differ in one number only.
[[nodiscard]] inline std::uint64_t hash_of(const JsonValue& value) {
  const std::hash<std::string_view> hash_text;
  std::uint64_t hash = static_cast<std::uint64_t>(value.type());
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) {
      hash = core::hash_combine(core::hash_combine(hash, hash_text(key)), hash_of(member));
    }
  } else if (value.is_array()) {
    for (const JsonValue& item : value) hash = core::hash_combine(hash, hash_of(item));
  } else if (value.is_string() || value.is_exact()) {
    hash = core::hash_combine(hash, hash_text(value.string()));
  } else if (value.is_number()) {
    hash = core::hash_combine(hash, std::hash<double>()(value.get<double>()));
  } else if (value.is_boolean()) {
    hash = core::hash_combine(hash, value.get<bool>() ? 1U : 0U);
  }
  return hash;
}

/// Whether values are equal and of the same types: schemas tell 1 from 1.0.
[[nodiscard]] inline bool are_identical(const JsonValue& a, const JsonValue& b) {
  if (a.type() != b.type()) return false;
  if (!a.is_structured()) return a == b;
  if (a.size() != b.size()) return false;
  for (auto left = a.begin(), right = b.begin(); left != a.end(); ++left, ++right) {
    if (a.is_object() && left.key() != right.key()) return false;
    if (!are_identical(*left, *right)) return false;
  }
  return true;
}

}  // namespace detail

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
  /// A format of a FormatSet, by its index, and a choice: what a tool's part depends on.
  struct Slot {
    std::size_t format;
    ToolChoice choice;

    [[nodiscard]] std::size_t index() const noexcept {
      return 4 * format + static_cast<std::size_t>(choice);
    }
  };

  /// Exclusive access for making one machine. Forgets tools that have no other owner; starts anew
  /// if the index has new states.
  class Lock {
   public:
    explicit Lock(CompiledTools& tools);

    [[nodiscard]] const std::shared_ptr<mask::SharedStates>& states() const noexcept;
    [[nodiscard]] Link link(Slot slot, std::size_t index, const std::shared_ptr<const Tool>& tool,
                            const Grammar::MakePart& make);

   private:
    [[nodiscard]] Link compile(Slot slot, const std::shared_ptr<const Tool>& tool,
                               std::optional<std::uint32_t> number, const Grammar::MakePart& make);

    CompiledTools& tools_;
    std::lock_guard<std::mutex> lock_;
    Grammar part_;  // of the tool that is being compiled
  };

  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] ToolCallFSM machine(const std::shared_ptr<const ToolSet>& tools, ToolChoice choice,
                                    std::string name);

 private:
  // What a format reads of a tool to make its part, see CallFormat.
  struct Parameters {
    std::size_t slot;
    std::shared_ptr<const Tool> tool;
    std::size_t hash;

    Parameters(std::size_t index, std::shared_ptr<const Tool> of);
    bool operator==(const Parameters& other) const;
    struct Hash {
      std::size_t operator()(const Parameters& one) const noexcept { return one.hash; }
    };
  };
  void forget();

  VocabularyIndex index_;
  formats::AnyFormat format_;
  ChoiceOptions options_;
  mutable std::mutex mutex_;  // guards the following
  std::shared_ptr<mask::SharedStates> states_;
  // By slot. The tools are owned, so that no other tool gets the address of one.
  std::unordered_map<std::shared_ptr<const Tool>, std::vector<Link>> links_;
  std::vector<std::vector<Link>> latest_;  // by slot and index, because most sets are alike
  std::unordered_map<Parameters, grammar::StoredId, Parameters::Hash> parts_;
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
    const auto tool = lock.link({number / tools->size(), choice}, index, tools->share(index), make);
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
  return links_.size();
}

TOOLDECODE_INLINE CompiledTools::Parameters::Parameters(std::size_t index,
                                                        std::shared_ptr<const Tool> of)
    : slot(index),
      tool(std::move(of)),
      hash(core::hash_combine(detail::hash_of(tool->parameters), slot)) {}

TOOLDECODE_INLINE bool CompiledTools::Parameters::operator==(const Parameters& other) const {
  BuildBudget::spend(10);
  return hash == other.hash && slot == other.slot && tool->strict == other.tool->strict &&
         detail::are_identical(tool->parameters, other.tool->parameters) &&
         detail::are_identical(tool->documented, other.tool->documented);
}

TOOLDECODE_INLINE void CompiledTools::forget() {
  latest_.clear();
  parts_.clear();
  std::erase_if(links_, [](const auto& one) { return one.first.use_count() == 1; });
  max_before_sweep_ = 1024 + 2 * links_.size();
}

TOOLDECODE_INLINE CompiledTools::Lock::Lock(CompiledTools& tools)
    : tools_(tools), lock_(tools.mutex_) {
  auto states = tools_.index_.states();
  if (tools_.states_ != states) {
    tools_.states_ = std::move(states);
    tools_.links_.clear();
    tools_.latest_.clear();
    tools_.parts_.clear();
    tools_.next_number_ = 0;
  }
  if (tools_.links_.size() >= tools_.max_before_sweep_) tools_.forget();
}

TOOLDECODE_INLINE CompiledTools::Link CompiledTools::Lock::link(
    Slot slot, std::size_t index, const std::shared_ptr<const Tool>& tool,
    const Grammar::MakePart& make) {
  if (tools_.latest_.size() <= slot.index()) tools_.latest_.resize(slot.index() + 1);
  std::vector<Link>& latest = tools_.latest_[slot.index()];
  if (latest.size() <= index) latest.resize(index + 1);
  if (latest[index].tool == tool.get()) return latest[index];
  const auto known = tools_.links_.find(tool);
  if (known == tools_.links_.end()) {
    std::vector<Link> links(slot.index() + 1);
    latest[index] = links.back() = compile(slot, tool, std::nullopt, make);
    tools_.links_.emplace(tool, std::move(links));
    return latest[index];
  }
  std::vector<Link>& links = known->second;
  if (links.size() <= slot.index()) links.resize(slot.index() + 1);
  Link& link = links[slot.index()];
  if (link.tool == nullptr) {
    const auto numbered = std::ranges::find_if(links, [](const Link& one) { return one.tool; });
    link                = compile(slot, tool, numbered->number, make);
  }
  return latest[index] = link;
}

TOOLDECODE_INLINE CompiledTools::Link CompiledTools::Lock::compile(
    Slot slot, const std::shared_ptr<const Tool>& tool, std::optional<std::uint32_t> number,
    const Grammar::MakePart& make) {
  part_.clear();
  grammar::Automaton& automaton = tools_.states_->automaton();
  NodeId arguments{};
  if (tools_.format_.member(slot.format).shares_parts()) {
    const auto [part, is_new] =
        tools_.parts_.try_emplace(Parameters(slot.index(), tool), grammar::NodeStore::nothing);
    if (is_new) {
      try {
        part->second = automaton.compile(part_, make(part_));
      } catch (...) {
        tools_.parts_.erase(part);
        throw;
      }
      part_.clear();
    }
    arguments = part_.linked(part->second);
  } else {
    arguments = make(part_);
  }
  if (!number) number = tools_.next_number_++;
  return {tool.get(), *number, automaton.compile(part_, part_.tagged(*number, arguments))};
}

TOOLDECODE_INLINE const std::shared_ptr<mask::SharedStates>& CompiledTools::Lock::states()
    const noexcept {
  return tools_.states_;
}

}  // namespace tooldecode::constraint
