// A model's GGUF file gives a typed error, or a model that runs.
#include <cstddef>
#include <cstdint>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/model/llama_model.hpp>

#include <fuzz/fuzz.hpp>

using namespace tooldecode;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto model = LlamaModel::parse_gguf(fuzz::text_of(data, size));
    auto cache       = model.make_cache();
    std::vector<float> logits(model.vocabulary_size());
    model.forward(cache, std::vector<TokenId>{0}, logits);
    fuzz::demand(model.length(cache) == 1, "the token is not in the cache", "");
  } catch (const Error&) {
    return 0;
  }
  return 0;
}
