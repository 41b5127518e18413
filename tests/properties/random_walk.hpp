/// \file
/// Random walks through constraints: which tools, which options, which token to take.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/constraint/tool_call_fsm.hpp>
#include <tooldecode/formats/json_call.hpp>
#include <tooldecode/formats/python_call.hpp>
#include <tooldecode/mask/token_mask.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/text/value_reader.hpp>
#include <tooldecode/tools/tool_set.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

#include <support/data.hpp>

namespace tooldecode::test {

/// The tokens of a mask, ascending.
inline std::vector<TokenId> tokens_of(const TokenMask& mask) {
  std::vector<TokenId> tokens;
  for (std::size_t w = 0; w < mask.words().size(); ++w) {
    for (std::uint32_t bits = mask.words()[w]; bits != 0; bits &= bits - 1) {
      const auto bit = static_cast<std::size_t>(std::countr_zero(bits));
      tokens.push_back(static_cast<TokenId>(32 * w + bit));
    }
  }
  return tokens;
}

/// One of the tokens; most often the one of many draws that does the most to end a string or a
/// value, or a walk would hardly leave the first string that it comes to.
inline TokenId draw_token(const std::vector<TokenId>& tokens, const Vocabulary& vocabulary,
                          std::mt19937& random) {
  const auto draw  = [&] { return tokens[random() % tokens.size()]; };
  const auto marks = [&](TokenId token) {
    int count = 0;
    for (const char c : vocabulary.bytes(token)) {
      count += std::string_view("\"'()[]{}:,=<>").find(c) != std::string_view::npos;
    }
    return count;
  };
  TokenId best = draw();
  for (std::uint32_t more = random() % 4 == 0 ? 0 : 64; more > 0; --more) {
    const TokenId other = draw();
    if (marks(other) > marks(best)) best = other;
  }
  return best;
}

/// Adds the tool sets under a key of a file's rows, each once.
inline void add_tool_sets(const std::filesystem::path& path, const char* key,
                          std::vector<ToolSet>& sets) {
  std::set<std::string> known;
  std::istringstream lines(read_text(path));
  for (std::string line; std::getline(lines, line);) {
    const auto row = tooldecode::text::parse_json(line);
    if (known.insert(row.at(key).text()).second) sets.push_back(ToolSet::from_json(row.at(key)));
  }
}

/// A constraint over some tools: which format, tool choice and options is up to the round.
inline ToolCallFSM constraint_of_round(std::size_t round, const VocabularyIndex& cache,
                                       const ToolSet& tools) {
  constexpr ToolChoice choices[] = {ToolChoice::required, ToolChoice::automatic, ToolChoice::named,
                                    ToolChoice::required, ToolChoice::automatic, ToolChoice::none};
  ChoiceOptions options{.choice = choices[round / 2 % 6]};
  if (options.choice == ToolChoice::named) options.name = tools[tools.size() - 1].name;
  options.parallel         = round % 3 != 0;
  options.documented_order = round % 5 == 0;
  if (round % 7 != 0) options.whitespace = 40;
  return round % 2 == 0 ? ToolCallFSM(cache, tools, PythonCall{}, options)
                        : ToolCallFSM(cache, tools, JsonCall::hermes(), options);
}

}  // namespace tooldecode::test
