/// \file
/// GGUF files that llama.cpp can read: with a vocabulary, on disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include <tooldecode/model/llama_config.hpp>
#include <tooldecode/model/llama_weights.hpp>

#include <support/gguf_writer.hpp>
#include <support/make_gguf.hpp>

namespace tooldecode::test {

/// A model whose tokens are `<0>`, `<1>`, …, for tests that need ids only; the first two are the
/// begin and end tokens.
inline std::string numbered_gguf(const LlamaConfig& config, const model::LlamaWeights& weights) {
  std::vector<std::string> names;
  std::vector<std::int32_t> types;
  for (std::size_t i = 0; i < config.vocabulary_size; ++i) {
    names.push_back('<' + std::to_string(i) + '>');
    types.push_back(i < 2 ? 3 : 1);
  }
  GgufWriter file;
  put_config(file, config, "llama");
  put_weights(file, config, weights, true);
  file.text("tokenizer.ggml.model", "gpt2")
      .text("tokenizer.ggml.pre", "gpt-2")
      .texts("tokenizer.ggml.tokens", names)
      .types("tokenizer.ggml.token_type", types)
      .texts("tokenizer.ggml.merges", {"< 0"})
      .number("tokenizer.ggml.bos_token_id", 0)
      .number("tokenizer.ggml.eos_token_id", 1);
  return file.file(11 + 7);
}

/// A file that its destructor removes.
class TemporaryFile {
 public:
  TemporaryFile(const std::string& name, const std::string& bytes)
      : path_(std::filesystem::temp_directory_path() / name) {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  TemporaryFile(const TemporaryFile&)            = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace tooldecode::test
