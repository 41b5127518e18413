// README's call site: a tokenizer, a model, a constraint, an answer.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <tooldecode/decode.hpp>
#include <tooldecode/model/llama_model.hpp>
#include <tooldecode/vocabulary/load_vocabulary.hpp>

namespace td = tooldecode;

std::vector<td::ToolCall> answer(const std::string& documents, std::span<const td::TokenId> prompt,
                                 td::TokenId (*sample)(std::span<const std::uint32_t> allowed)) {
  const td::Tokenizer tokenizer = td::load_tokenizer("model/tokenizer.json");
  const td::VocabularyIndex masks{tokenizer.vocabulary()};
  const td::ToolSet tools = td::ToolSet::parse(documents);
  const td::ToolCallFSM calls{
      masks, tools, td::PythonCall{}, {.choice = td::ToolChoice::automatic}};

  const auto model = td::LlamaModel::load("model");
  const td::Decoder decode{model, calls};
  const td::Output out = decode(prompt, {.max_tokens = 256, .temperature = 0.7f, .seed = 1});

  td::TokenMask mask(tokenizer.vocabulary().size());
  auto state = calls.initial();
  calls.fill_mask(state, mask.words());
  state = *calls.advance(state, sample(mask.words()));
  return calls.parse(out.tokens);
}
