// A user's Model with a Decoder, under a constraint of tool calls.
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/decode.hpp>

namespace td = tooldecode;

// Prefers tokens that differ from the last one by a constant.
class Model {
 public:
  struct Cache {
    std::vector<td::TokenId> tokens;
  };

  [[nodiscard]] static std::size_t vocabulary_size() { return 257; }
  [[nodiscard]] static Cache make_cache() { return {}; }
  [[nodiscard]] static std::size_t length(const Cache& cache) { return cache.tokens.size(); }
  static void forward(Cache& cache, std::span<const td::TokenId> tokens, std::span<float> logits) {
    cache.tokens.insert(cache.tokens.end(), tokens.begin(), tokens.end());
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const auto last = static_cast<std::size_t>(cache.tokens.back());
      logits[i]       = static_cast<float>((i * 7 + last * 13) % 31);
    }
  }
  [[nodiscard]] static Cache fork(const Cache& cache) { return cache; }
  static void truncate(Cache& cache, std::size_t length) { cache.tokens.resize(length); }
};

int main() {
  std::vector<td::Vocabulary::Entry> tokens;
  for (int byte = 0; byte < 256; ++byte) {
    tokens.push_back({std::string(1, static_cast<char>(byte))});
  }
  tokens.push_back({"<end>", td::TokenType::control});
  const td::Vocabulary vocabulary{tokens, {.end_tokens = {256}}};
  const td::ToolSet tools = td::ToolSet::parse(R"([{
    "name": "switch_light",
    "parameters": {"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"]}
  }])");
  const td::ToolCallFSM calls{
      vocabulary, tools, td::PythonCall{}, {.choice = td::ToolChoice::required}};
  const Model model;
  const td::Decoder decode{model, calls};
  const std::vector<td::TokenId> prompt{1};
  const td::Output out = decode(prompt, {.max_tokens = 64});
  std::string text;
  for (const td::TokenId token : out.tokens) text += vocabulary.bytes(token);
  for (const td::ToolCall& call : calls.parse(text)) {
    std::cout << call.name << ' ' << call.arguments << '\n';
  }
}
