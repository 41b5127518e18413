// Masks for an engine with its own sampler: here a sampler that takes any allowed token.
#include <cstdint>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include <tooldecode/constrain.hpp>

namespace td = tooldecode;

int main() {
  // One token for each byte and an end token; td::load_tokenizer reads a model's tokens.
  std::vector<td::Vocabulary::Entry> tokens;
  for (int byte = 0; byte < 256; ++byte)
    tokens.push_back({std::string(1, static_cast<char>(byte))});
  tokens.push_back({"<end>", td::TokenType::control});
  const td::Vocabulary vocabulary{tokens, {.end_tokens = {256}}};

  const td::ToolSet tools = td::ToolSet::parse(R"([{
    "name": "get_weather",
    "parameters": {
      "type": "object",
      "properties": {
        "city": {"enum": ["Lisbon", "Oslo", "Rome"]},
        "tomorrow": {"type": "boolean"}
      },
      "required": ["city"]
    }
  }])");
  //! [mask]
  const td::ToolCallFSM calls{
      vocabulary, tools, td::PythonCall{}, {.choice = td::ToolChoice::required}};

  std::mt19937 random(22);
  std::string text;
  std::vector<std::int32_t> mask(td::mask_word_count(vocabulary.size()));  // one bit per token
  td::ToolCallFSM::State state = calls.initial();  // 8 bytes; a copy is a fork
  while (!calls.is_finished(state)) {
    calls.fill_mask(state, mask);
    std::vector<td::TokenId> allowed;
    td::ConstMaskView(mask).for_each([&](td::TokenId token) { allowed.push_back(token); });
    const td::TokenId token = allowed[random() % allowed.size()];
    text += vocabulary.bytes(token);
    state = *calls.advance(state, token);
  }
  //! [mask]
  std::cout << text << '\n';
  for (const td::ToolCall& call : calls.parse(text)) {
    std::cout << call.name << ' ' << call.arguments << '\n';
  }
  return 0;
}
