// Every vocabulary that llama.cpp ships: it is read, its texts get the ids of the file beside it,
// and its end tokens are llama.cpp's.
#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <tooldecode/core/read_file.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/vocabulary/load_vocabulary.hpp>

#include <support/cache.hpp>

namespace td = tooldecode;

namespace {

using ShippedIds = std::vector<td::TokenId>;

/// The tokens for which llama_vocab_is_eog holds, by llama.cpp of llama-cpp-python 0.3.36.
struct ShippedVocabulary {
  const char* name;
  ShippedIds ends;
};
const std::vector<ShippedVocabulary>& shipped_vocabularies() {
  static const std::vector<ShippedVocabulary> all{
      {"aquila", {0, 100007}},
      {"baichuan", {2}},
      {"bert-bge", {0}},
      {"command-r", {0, 255001}},
      {"deepseek-coder", {32014}},
      {"deepseek-llm", {100001}},
      {"falcon", {11}},
      {"gemma-4", {1, 50, 106}},
      {"gpt-2", {50256}},
      {"gpt-neox", {0}},
      {"llama-bpe", {128001, 128009}},
      {"llama-spm", {2}},
      {"mpt", {0}},
      {"nomic-bert-moe", {2}},
      {"phi-3", {2, 32000, 32007}},
      {"qwen2", {128247, 151643, 151645}},
      {"qwen35", {128247, 151643, 151645}},
      {"refact", {0, 4, 18}},
      {"starcoder", {0, 4}},
  };
  return all;
}

/// The texts of a file .inp, with a line between them, or after each.
std::vector<std::string> shipped_texts(const std::filesystem::path& path) {
  const std::string all = td::core::read_file(path), line = "\n__ggml_vocab_test__\n";
  std::vector<std::string> texts;
  for (std::size_t at = 0; at < all.size(); at += texts.back().size() + line.size()) {
    texts.push_back(all.substr(at, all.find(line, at) - at));
  }
  return texts;
}

/// The ids of a file .out, a text's on each line.
std::vector<ShippedIds> shipped_ids(const std::filesystem::path& path) {
  std::istringstream lines(td::core::read_file(path));
  std::vector<ShippedIds> ids;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream numbers(line);
    ids.emplace_back();
    for (td::TokenId id = 0; numbers >> id;) ids.back().push_back(id);
  }
  return ids;
}

}  // namespace

TEST_CASE("load_tokenizer reads llama.cpp's vocabularies and encodes texts to its ids",
          "[published]") {
  const auto folder = td::test::llama_cpp_models();
  if (!folder) {
    return td::test::report_skipped("llama.cpp's folder models, as TOOLDECODE_LLAMA_CPP names it");
  }
  std::set<std::string> known;
  std::size_t texts_compared = 0;
  for (const auto& [name, ends] : shipped_vocabularies()) {
    const auto path = *folder / ("ggml-vocab-" + std::string(name) + ".gguf");
    INFO(path.string());
    known.insert(path.filename().string());
    REQUIRE(std::filesystem::exists(path));
    const td::Tokenizer tokenizer = td::load_tokenizer(path);
    const auto found              = tokenizer.vocabulary().end_tokens();
    ShippedIds sorted(found.begin(), found.end());
    std::sort(sorted.begin(), sorted.end());
    CHECK(sorted == ends);
    if (!std::filesystem::exists(path.string() + ".out")) continue;
    const auto texts = shipped_texts(path.string() + ".inp");
    const auto ids   = shipped_ids(path.string() + ".out");
    REQUIRE(texts.size() == ids.size());
    for (std::size_t i = 0; i < texts.size(); ++i) {
      INFO(tooldecode::JsonValue(texts[i]).text());
      if (std::string(name) == "bert-bge") {
        CHECK_THROWS_AS(tokenizer.encode(texts[i]), td::Error);
        continue;
      }
      CHECK(tokenizer.encode(texts[i], {.add_space_prefix = true}) == ids[i]);
      ++texts_compared;
    }
  }
  CHECK(texts_compared > 600);
  // A version that ships other vocabularies needs a line for each above.
  for (const auto& entry : std::filesystem::directory_iterator(*folder)) {
    if (entry.path().extension() != ".gguf") continue;
    INFO(entry.path().string());
    CHECK(known.contains(entry.path().filename().string()));
  }
}
