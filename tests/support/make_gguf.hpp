/// \file
/// GGUF files for tests: metadata and F32 tensors, as the format's specification says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <tooldecode/model/llama_config.hpp>
#include <tooldecode/model/llama_weights.hpp>

namespace tooldecode::test {

/// What a file holds, in the order in which it was put there.
class MakeGguf {
 public:
  static constexpr std::size_t alignment = 32;

  MakeGguf& number(const std::string& name, std::uint32_t value) { return key(name, 4, value); }
  MakeGguf& real(const std::string& name, float value) { return key(name, 6, value); }
  MakeGguf& text(const std::string& name, const std::string& value) {
    begin_key(name, 8);
    put_text(metadata_, value);
    return *this;
  }
  MakeGguf& texts(const std::string& name, const std::vector<std::string>& values) {
    begin_key(name, 9);
    put<std::uint32_t>(metadata_, 8);
    put<std::uint64_t>(metadata_, values.size());
    for (const std::string& value : values) put_text(metadata_, value);
    return *this;
  }
  MakeGguf& reals(const std::string& name, const std::vector<float>& values) {
    begin_key(name, 9);
    put<std::uint32_t>(metadata_, 6);
    put<std::uint64_t>(metadata_, values.size());
    for (const float value : values) put(metadata_, value);
    return *this;
  }
  MakeGguf& integers(const std::string& name, const std::vector<std::int32_t>& values) {
    begin_key(name, 9);
    put<std::uint32_t>(metadata_, 5);
    put<std::uint64_t>(metadata_, values.size());
    for (const std::int32_t value : values) put(metadata_, value);
    return *this;
  }
  /// A matrix of F32 in row-major order, or a vector where rows is 0.
  MakeGguf& floats(const std::string& name, std::size_t rows, std::size_t columns,
                   const std::vector<float>& values) {
    ++tensors_;
    put_text(infos_, name);
    put<std::uint32_t>(infos_, rows == 0 ? 1 : 2);
    put<std::uint64_t>(infos_, columns);
    if (rows != 0) put<std::uint64_t>(infos_, rows);
    put<std::uint32_t>(infos_, 0);
    put<std::uint64_t>(infos_, data_.size());
    data_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    pad(data_);
    return *this;
  }

  [[nodiscard]] std::string bytes() const {
    std::string file = "GGUF";
    put<std::uint32_t>(file, 3);
    put<std::uint64_t>(file, tensors_);
    put<std::uint64_t>(file, keys_);
    file += metadata_ + infos_;
    pad(file);
    return file + data_;
  }

 private:
  template <class T>
  static void put(std::string& to, T value) {
    const std::size_t at = to.size();
    to.resize(at + sizeof value);
    std::memcpy(to.data() + at, &value, sizeof value);
  }
  static void put_text(std::string& to, const std::string& text) {
    put<std::uint64_t>(to, text.size());
    to += text;
  }
  static void pad(std::string& to) {
    to.resize((to.size() + alignment - 1) / alignment * alignment);
  }
  void begin_key(const std::string& name, std::uint32_t type) {
    ++keys_;
    put_text(metadata_, name);
    put(metadata_, type);
  }
  template <class T>
  MakeGguf& key(const std::string& name, std::uint32_t type, T value) {
    begin_key(name, type);
    put(metadata_, value);
    return *this;
  }

  std::string metadata_, infos_, data_;
  std::uint64_t keys_ = 0, tensors_ = 0;
};

/// The rows of a head's query or key, which Hugging Face's files have as two halves, in the order of
/// GGUF's llama architecture: pairs that are rotated together lie side by side.
inline std::vector<float> with_rotary_pairs(const std::vector<float>& weight, std::size_t heads,
                                            std::size_t head_size, std::size_t columns) {
  std::vector<float> result(weight.size());
  for (std::size_t head = 0; head < heads; ++head) {
    for (std::size_t row = 0; row < head_size; ++row) {
      const std::size_t to   = head * head_size + row;
      const std::size_t from = head * head_size + row / 2 + (row % 2) * (head_size / 2);
      std::memcpy(&result[to * columns], &weight[from * columns], columns * sizeof(float));
    }
  }
  return result;
}

/// The tokens `<0>`, `<1>`, … of a model that is asked for ids alone; the first two begin and end.
inline MakeGguf& put_numbered_tokens(MakeGguf& file, std::size_t count) {
  std::vector<std::string> names;
  std::vector<std::int32_t> types;
  for (std::size_t i = 0; i < count; ++i) {
    names.push_back('<' + std::to_string(i) + '>');
    types.push_back(i < 2 ? 3 : 1);
  }
  return file.text("tokenizer.ggml.model", "gpt2")
      .text("tokenizer.ggml.pre", "gpt-2")
      .texts("tokenizer.ggml.tokens", names)
      .integers("tokenizer.ggml.token_type", types)
      .texts("tokenizer.ggml.merges", {"< 0"})
      .number("tokenizer.ggml.bos_token_id", 0)
      .number("tokenizer.ggml.eos_token_id", 1);
}

/// A Llama model's config and weights, to which a vocabulary is to be added.
inline MakeGguf llama_gguf(const LlamaConfig& config, const model::LlamaWeights& weights) {
  const auto number = [](std::size_t value) { return static_cast<std::uint32_t>(value); };
  MakeGguf file;
  file.text("general.architecture", "llama")
      .number("llama.vocab_size", number(config.vocabulary_size))
      .number("llama.context_length", number(config.context_length))
      .number("llama.embedding_length", number(config.hidden_size))
      .number("llama.block_count", number(config.layers))
      .number("llama.feed_forward_length", number(config.intermediate_size))
      .number("llama.attention.head_count", number(config.heads))
      .number("llama.attention.head_count_kv", number(config.key_value_heads))
      .number("llama.attention.key_length", number(config.head_size))
      .number("llama.attention.value_length", number(config.head_size))
      .number("llama.rope.dimension_count", number(config.head_size))
      .real("llama.rope.freq_base", static_cast<float>(config.rope_theta))
      .real("llama.attention.layer_norm_rms_epsilon", config.norm_epsilon);
  const std::size_t hidden  = config.hidden_size;
  const std::size_t inner   = config.intermediate_size;
  const std::size_t queries = config.heads * config.head_size;
  const std::size_t keys    = config.key_value_heads * config.head_size;
  file.floats("token_embd.weight", config.vocabulary_size, hidden, weights.embedding)
      .floats("output_norm.weight", 0, hidden, weights.final_norm);
  if (!config.tied_head) file.floats("output.weight", config.vocabulary_size, hidden, weights.head);
  for (std::size_t i = 0; i < config.layers; ++i) {
    const auto& layer = weights.layers[i];
    const auto name   = [i](const char* what) {
      return "blk." + std::to_string(i) + '.' + what + ".weight";
    };
    file.floats(name("attn_norm"), 0, hidden, layer.attention_norm)
        .floats(name("attn_q"), queries, hidden,
                with_rotary_pairs(layer.query, config.heads, config.head_size, hidden))
        .floats(name("attn_k"), keys, hidden,
                with_rotary_pairs(layer.key, config.key_value_heads, config.head_size, hidden))
        .floats(name("attn_v"), keys, hidden, layer.value)
        .floats(name("attn_output"), hidden, queries, layer.output)
        .floats(name("ffn_norm"), 0, hidden, layer.feed_forward_norm)
        .floats(name("ffn_gate"), inner, hidden, layer.gate)
        .floats(name("ffn_up"), inner, hidden, layer.up)
        .floats(name("ffn_down"), hidden, inner, layer.down);
  }
  return file;
}

/// Writes a file and removes it at the end.
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
