// Answers requests of tests/tokenizers_files.py and tests/bugreports.py. Reads one request per
// line, {"file": path, "texts": [...], "prefix": bool}, and writes the file's tokens and the
// encodings of the texts.
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>

#include <tooldecode/vocabulary/load_vocabulary.hpp>

#include <nlohmann/json.hpp>

namespace {

namespace td = tooldecode;
using nlohmann::json;

std::string hexadecimal(std::string_view bytes) {
  constexpr const char* digits = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<std::uint8_t>(c);
    text += digits[byte / 16];
    text += digits[byte % 16];
  }
  return text;
}

json error_of(const td::Error& error) {
  return {{"code", td::name(error.code())}, {"where", error.where()}, {"what", error.what()}};
}

json answer(const json& request) {
  json result;
  try {
    const td::Tokenizer tokenizer = td::load_tokenizer(request.at("file").get<std::string>());
    const td::Vocabulary& tokens  = tokenizer.vocabulary();
    result["tokens"]              = json::array();
    for (std::size_t i = 0; i < tokens.token_count(); ++i) {
      const auto id = static_cast<td::TokenId>(i);
      result["tokens"].push_back(
          {hexadecimal(tokens.bytes(id)), static_cast<int>(tokens.type(id))});
    }
    result["ends"]  = tokens.end_tokens();
    result["texts"] = json::array();
    for (const json& text : request.value("texts", json::array())) {
      try {
        result["texts"].push_back(tokenizer.encode(
            text.get<std::string>(),
            {.add_space_prefix = request.value("prefix", true), .parse_special = true}));
      } catch (const td::Error& error) {
        result["texts"].push_back(error_of(error));
      }
    }
  } catch (const td::Error& error) {
    result["error"] = error_of(error);
  }
  return result;
}

}  // namespace

int main() {
  try {
    for (std::string line; std::getline(std::cin, line);) {
      std::cout << answer(json::parse(line)).dump() << '\n';
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
