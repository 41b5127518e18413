/// \file
/// The patterns that tokenizers split text by, and the names that GGUF files call them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/core/error.hpp>

namespace tooldecode::split_patterns {

/// GPT-2, and what ByteLevel means by `use_regex`.
inline constexpr const char* gpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
/// Llama 3: up to three digits, contractions in any case.
inline constexpr const char* llama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
/// Qwen2: as Llama 3, digits one by one.
inline constexpr const char* qwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
/// GPT-4o: words split where the case changes.
inline constexpr const char* gpt4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
/// Mistral Nemo (Tekken): words split where the case changes, digits one by one.
inline constexpr const char* tekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

/// A way to split text, and whether a piece that is a token is not merged.
struct NamedSplit {
  std::vector<std::string> patterns;
  bool ignore_merges = false;
};

/// What `tokenizer.ggml.pre` of a GGUF file names.
///
/// \par Complexity  O(1)
/// \par Threads     any
/// \par Errors      Error{unknown_format} for a name that is not known
/// \par Source      ggml-org/llama.cpp, src/llama-vocab.cpp
[[nodiscard]] inline NamedSplit named(std::string_view name) {
  const auto is = [&](auto... names) { return ((name == names) || ...); };
  if (is("gpt-2", "mpt", "olmo", "phi-2", "jais", "trillion", "granite-docling")) return {{gpt2}};
  if (is("llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "lfm2")) {
    return {{llama3}, true};
  }
  if (is("dbrx", "smaug-bpe", "chatglm-bpe", "glm4")) return {{llama3}};
  if (is("qwen2", "stablelm2", "deepseek-r1-qwen", "hunyuan")) return {{qwen2}};
  if (is("gpt-4o", "llama4", "o200k", "o200k_harmony")) return {{gpt4o}};
  if (is("tekken")) return {{tekken}, true};
  if (is("starcoder", "refact", "command-r", "smollm", "codeshell", "exaone")) {
    return {{"\\p{N}", gpt2}};
  }
  const std::string words =
      R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))";
  if (is("falcon")) return {{R"([\p{P}\$\+<=>\^~\|`]+)", words, "[0-9][0-9][0-9]"}};
  if (is("default", "")) {
    return {{R"([\p{P}\$\+<=>\^~\|]+)", words, "\\p{N}+", "[0-9][0-9][0-9]"}};
  }
  throw Error(Errc::unknown_format, "tokenizer.ggml.pre",
              "\"" + std::string(name) + "\" is not a known pre-tokenizer");
}

}  // namespace tooldecode::split_patterns
