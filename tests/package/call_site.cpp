#include <iostream>

#include <tooldecode/decode.hpp>
#include <tooldecode/model/llama_model.hpp>
#include <tooldecode/vocabulary/load_vocabulary.hpp>

namespace td = tooldecode;

int main() {
  const td::Tokenizer tokenizer = td::load_tokenizer("examples/data/tiny");    // or a GGUF file
  const auto model              = td::LlamaModel::load("examples/data/tiny");  // or your td::Model
  const td::ToolSet tools       = td::ToolSet::parse(R"([{
    "name": "get_weather",
    "description": "Weather forecast for a city.",
    "parameters": {
      "type": "object",
      "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1}},
      "required": ["city"]
    }
  }])");
  const td::ToolCallFSM calls{tokenizer.vocabulary(), tools, td::PythonCall{}};

  const auto prompt = tokenizer.encode(
      "<|begin|><|tools|>format: python\n"
      "get_weather(city: string, days?: integer): Weather forecast for a city.\n"
      "<|user|>What is the weather in Oslo for two days?<|assistant|>",
      {.parse_special = true});
  const td::Decoder decode{model, calls};
  const td::Output out = decode(prompt, {.max_tokens = 64, .temperature = 0.7F, .seed = 1});
  for (const td::ToolCall& call : calls.parse(out.tokens)) {
    std::cout << call.name << ' ' << call.arguments << '\n';
  }
}
