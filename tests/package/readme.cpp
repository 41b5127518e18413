// README's first example in a program, run in a folder where `model` is the embedded model: around
// it stands what it takes as given.
#include <cstddef>
#include <iostream>
#include <string>
#include <vector>

#include "declarations.inc"

int main() {
  const std::string documents = R"([{"name": "get_weather", "description": "", "parameters": {
    "type": "dict", "properties": {"city": {"type": "string"}}, "required": ["city"]}}])";
  const td::Tokenizer words   = td::load_tokenizer("model");
  const std::vector<td::TokenId> prompt = words.encode("Weather in Rome?");
  const td::TokenId token               = words.encode("[").front();
  td::TokenMask mask(words.vocabulary().size());
  std::size_t called = 0;
  const auto run     = [&](const std::string& name, const auto& arguments) {
    if (name == "get_weather" && arguments.contains("city")) ++called;
  };

#include "statements.inc"

  const bool answered =
      !out.tokens.empty() && called == calls.parse(tokenizer.decode(out.tokens)).size();
  std::cout << tokenizer.decode(out.tokens) << '\n' << called << " calls\n";
  return answered && mask.contains(token) ? 0 : 1;
}
