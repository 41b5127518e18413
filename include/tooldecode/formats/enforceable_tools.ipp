#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include <tooldecode/formats/enforceable_tools.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/tools/document_note.hpp>

namespace tooldecode::formats {

/// Builds each tool alone and gives up what fails.
class ToolRelaxation {
 public:
  ToolRelaxation(const AnyFormat& format, const ToolSet& tools, const ChoiceOptions& options)
      : format_(format), tools_(tools), single_(options), enforcement_(options.enforcement) {
    if (options.choice != ToolChoice::named) {
      single_.leading_keys.clear();
      single_.open_ended = false;
    }
    single_.choice = ToolChoice::named;
    single_.text_schema.reset();
    single_.reasoning.reset();
  }

  [[nodiscard]] ToolSet run(const ChoiceOptions& options) {
    std::vector<std::shared_ptr<const Tool>> kept;
    for (std::size_t i = 0; i < tools_.size(); ++i) {
      const auto& tool       = tools_.share(i);
      const bool is_callable = options.choice != ToolChoice::none &&
                               (options.choice != ToolChoice::named || options.name == tool->name);
      auto some = is_callable ? enforceable(tool) : tool;
      if (some == nullptr && options.choice == ToolChoice::named) throw *refusal_;
      if (some != nullptr) kept.push_back(std::move(some));
    }
    if (kept.empty() && refusal_ && options.choice == ToolChoice::required) throw *refusal_;
    return tools_.replaced(std::move(kept), notes_);
  }

 private:
  static constexpr std::size_t max_costly = 4;  // each costs as much as a whole build may

  // The tool as far as it can be enforced; null if it is left out.
  [[nodiscard]] std::shared_ptr<const Tool> enforceable(std::shared_ptr<const Tool> tool) {
    const std::size_t known = notes_.size();
    bool may_widen = enforcement_ == ToolEnforcement::relax, may_open = may_widen;
    for (;;) {
      auto refusal = refusal_of(tool);
      if (!refusal) return tool;
      if (!tools::is_of_one_tool(refusal->code())) throw *refusal;
      if (refusal->code() == Errc::limit_exceeded && ++costly_ > max_costly) throw *refusal;
      refusal_     = std::move(refusal);
      auto widened = may_widen ? tools::widened_tool(*tool, *refusal_) : std::nullopt;
      if (!widened && may_open) {
        widened   = tools::with_any_arguments(*tool, *refusal_);
        may_widen = may_open = false;
        notes_.resize(known);  // what was widened before is part of it
      }
      if (!widened) break;
      notes_.push_back(std::move(widened->note));
      tool = std::make_shared<const Tool>(std::move(widened->tool));
    }
    notes_.resize(known);
    notes_.push_back(tools::dropped_tool(*tool, *refusal_));
    return nullptr;
  }

  [[nodiscard]] std::optional<Error> refusal_of(const std::shared_ptr<const Tool>& tool) {
    single_.name = tool->name;
    try {
      const BuildBudget budget(single_.limits);
      const CallGrammar made = build_call_grammar(format_, ToolSet().replaced({tool}, {}), single_);
      grammar::Automaton automaton;
      static_cast<void>(automaton.compile(made.grammar, made.grammar.root()));
      return std::nullopt;
    } catch (const Error& error) {
      return error.under("#");
    }
  }

  const AnyFormat& format_;
  const ToolSet& tools_;
  ChoiceOptions single_;
  ToolEnforcement enforcement_;
  std::vector<tools::Note> notes_;
  std::optional<Error> refusal_;  // the latest
  std::size_t costly_ = 0;
};

}  // namespace tooldecode::formats

namespace tooldecode {

TOOLDECODE_INLINE ToolSet enforceable_tools(const formats::AnyFormat& format, const ToolSet& tools,
                                            const ChoiceOptions& options) {
  if (options.enforcement == ToolEnforcement::strict) return tools;
  const BuildBudget::Pause pause;  // each tool has its own budget
  return formats::ToolRelaxation(format, tools, options).run(options);
}

TOOLDECODE_INLINE Grammar Grammar::tool_calls(const ToolSet& tools,
                                              const formats::AnyFormat& format,
                                              const ChoiceOptions& options) {
  const auto make = [&](const std::shared_ptr<const ToolSet>& enforced) {
    return build({options.limits, "#"},
                 [&] { return build_call_grammar(format, *enforced, options).grammar; });
  };
  return formats::build_enforceable(format, std::make_shared<const ToolSet>(tools), options, make);
}

}  // namespace tooldecode
