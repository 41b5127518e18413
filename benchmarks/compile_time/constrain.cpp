// An engine with its own sampler: masks for tool calls, from a vocabulary to the last token.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <tooldecode/constrain.hpp>

namespace td = tooldecode;

std::vector<td::TokenId> generate(const std::vector<td::Vocabulary::Entry>& entries,
                                  const std::string& documents,
                                  td::TokenId (*sample)(std::span<const std::uint32_t> allowed)) {
  const td::Vocabulary vocabulary(entries, {.end_tokens = {0}});
  const td::ToolSet tools = td::ToolSet::parse(documents);
  const td::ToolCallFSM calls{vocabulary, tools, td::PythonCall{}};
  td::TokenMask mask(vocabulary.size());
  std::vector<td::TokenId> tokens;
  for (auto state = calls.initial(); !calls.is_finished(state);) {
    calls.fill_mask(state, mask.words());
    tokens.push_back(sample(mask.words()));
    state = *calls.advance(state, tokens.back());
  }
  return tokens;
}
