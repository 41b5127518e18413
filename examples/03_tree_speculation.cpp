// Decodes one call, several tokens per forward pass; the answer equals plain decoding, token for
// token.
//
// Adds: TreeSpeculation. An EAGLE layer drafts a tree over a quarter of the vocabulary: the tokens
// that are frequent in such calls, and those of this prompt. Prompt lookup and the jump-forward
// string add drafts that need no model. The target verifies everything in one pass and keeps only
// what it would have written itself.
#include <cstddef>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string_view>

#include <tooldecode/model/llama_model.hpp>
#include <tooldecode/speculate.hpp>
#include <tooldecode/vocabulary/load_vocabulary.hpp>

namespace td = tooldecode;

namespace {

void run(const std::filesystem::path& directory) {
  const auto model                 = td::LlamaModel::load(directory);
  const td::Tokenizer tokenizer    = td::load_tokenizer(directory);
  const td::Vocabulary& vocabulary = tokenizer.vocabulary();
  const td::ToolSet tools          = td::ToolSet::parse(R"([{
    "name": "book_hotel",
    "description": "Book a hotel room.",
    "parameters": {
      "type": "object",
      "properties": {
        "city": {"type": "string"},
        "nights": {"type": "integer", "minimum": 1},
        "breakfast": {"type": "boolean"}
      },
      "required": ["city", "nights", "breakfast"]
    }
  }])");
  const td::ToolCallFSM calls{vocabulary, tools, td::PythonCall{}};
  const auto prompt = tokenizer.encode(
      "<|begin|><|tools|>format: python\n"
      "book_hotel(city: string, nights: integer, breakfast: boolean): Book a hotel room.\n"
      "<|user|>Please book a hotel in Lisbon for three nights, with breakfast.<|assistant|>",
      {.parse_special = true});

  //! [speculation]
  const auto ranks = td::FrequencyRanks::load(directory / "ranks.json");
  const auto words = ranks.first(vocabulary.size() / 4).with(calls.structural_tokens());
  const td::FrequencyRankedHead head{model.lm_head(), words};
  const auto layer = td::EagleModel::load(model, directory / "eagle.safetensors");
  const td::EagleDrafter eagle{layer, head, {.depth = 6, .width = 4, .context = vocabulary}};
  const td::SuffixDrafter lookup{vocabulary};
  const td::JumpForwardDrafter forced{
      [&](std::string_view text) { return tokenizer.encode(text); }};
  const td::TreeSpeculation drafts{td::DrafterGroup{eagle, lookup, forced}};

  const td::Decoder plain{model, calls};
  const td::Decoder fast{model, calls, drafts};
  for (const float temperature : {0.0F, 1.0F}) {
    const td::DecodeOptions options{.temperature = temperature, .seed = 7};
    const td::Output slow  = plain(prompt, options);
    const td::Output quick = fast(prompt, options);
    std::cout << "temperature " << temperature << ": " << tokenizer.decode(quick.tokens) << "\n  "
              << (quick.tokens == slow.tokens ? "the same" : "NOT the same")
              << " as plain decoding, in " << quick.passes << " forward passes instead of "
              << slow.passes << "\n  accepted by depth:";
    for (std::size_t depth = 0; depth < quick.drafts.tried.size(); ++depth) {
      std::cout << ' ' << quick.drafts.accepted[depth] << '/' << quick.drafts.tried[depth];
    }
    std::cout << '\n';
  }
  //! [speculation]
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? argv[1] : "examples/data/tiny");
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "03_tree_speculation: " << error.what() << '\n';
    return 1;
  }
}
