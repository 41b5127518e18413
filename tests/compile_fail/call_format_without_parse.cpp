// expected-error: CallFormat: add 'std::vector<ToolCall> parse.std::string_view, const ToolSet&.
// expected-lines: 40
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>

struct MyFormat {
  static constexpr auto language = tooldecode::text::ValueReader::Language::json;
  std::string trigger() const { return "<"; }
  bool only_at_start() const { return false; }
  std::vector<tooldecode::CallOpening> openings(tooldecode::Grammar&, const tooldecode::ToolSet&,
                                                std::span<const std::size_t>,
                                                const tooldecode::ChoiceOptions&) const {
    return {};
  }
  std::string write(std::span<const tooldecode::ToolCall>) const { return {}; }
#ifndef TOOLDECODE_EXPECT_ERROR
  std::vector<tooldecode::ToolCall> parse(std::string_view, const tooldecode::ToolSet&) const {
    return {};
  }
#endif
};

tooldecode::ToolCallFSM make(const tooldecode::Vocabulary& vocabulary,
                             const tooldecode::ToolSet& tools) {
  return {tooldecode::VocabularyIndex(vocabulary), tools, MyFormat{}};
}
