// A tokenizer file of any form gives a typed error, or a tokenizer that decodes what it encodes.
#include <cstddef>
#include <cstdint>
#include <string>

#include <tooldecode/vocabulary/load_vocabulary.hpp>

#include <fuzz/fuzz.hpp>

using namespace tooldecode;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const Tokenizer tokenizer = parse_tokenizer(fuzz::text_of(data, size), "the file");
    const std::string text    = "[f(a='x y', b=\"1\")]\n caf\u00e9 42";
    for (const bool prefixed : {false, true}) {
      const auto tokens = tokenizer.encode(text, {.add_space_prefix = prefixed});
      for (const TokenId token : tokens) {
        fuzz::demand(token >= 0 && static_cast<std::size_t>(token) < tokenizer.vocabulary().size(),
                     "no such token", std::to_string(token));
      }
      const std::string back = tokenizer.decode(tokens);
      fuzz::demand(back == text || (prefixed && back == ' ' + text) || tokenizer.normalizes(),
                   "another text comes back", back);
    }
  } catch (const Error&) {
    return 0;
  }
  return 0;
}
