/// \file
/// The parts of ToolCallFSM, for the definitions of the class and its friends.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/formats/call_format.hpp>
#include <tooldecode/formats/delimiter.hpp>
#include <tooldecode/tools/tool_set.hpp>

namespace tooldecode {

/// The grammar of a machine, and what was built with it.
struct ToolCallFSM::Parts {
  CallGrammar grammar;
  std::shared_ptr<mask::SharedStates> states{};  // null: those of the VocabularyIndex
  Numbers numbers{};
};

/// Data shared by copies.
struct ToolCallFSM::Shared {
  struct Reading {
    std::optional<std::vector<std::string>> openings;  // every text with calls begins with one of
                                                       // them
    std::vector<std::string> text_ends, turn_ends, reasoning_ends;

    [[nodiscard]] bool may_have_calls(std::string_view answer) const {
      if (!openings) return true;
      answer.remove_prefix(formats::leading_space(answer));
      return std::any_of(openings->begin(), openings->end(),
                         [&](const std::string& opening) { return answer.starts_with(opening); });
    }
  };

  std::shared_ptr<const ToolSet> tools;
  Numbers numbers;
  Reading reading;
  formats::AnyFormat format;
  ChoiceOptions options;
};

}  // namespace tooldecode
