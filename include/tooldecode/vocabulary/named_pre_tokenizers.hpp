/// \file
/// find_pre_tokenizer: how text is split by the names that GGUF files give instead of patterns.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/core/config.hpp>

namespace tooldecode::vocabulary {

/// Splits as GPT-2 does, which is what a ByteLevel pre-tokenizer with `use_regex` means.
inline constexpr const char* gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// What a name stands for.
struct NamedPreTokenizer {
  std::vector<std::string> patterns;  ///< as PreTokenizer takes them
  bool whole_first = false;  ///< a piece that is a token is that token, whatever the merges say
};

namespace detail {

/// Names of pre-tokenizers that split alike.
struct PreTokenizerFamily {
  std::vector<std::string_view> names;
  std::vector<std::string> patterns;
  std::vector<std::string_view> whole_first = {};  ///< those of the names for which it holds
};

const std::vector<PreTokenizerFamily>& pre_tokenizer_families();

}  // namespace detail

/// How the pre-tokenizer of this name splits; nothing where the name is not known.
///
/// \par Complexity  O(names)
/// \par Source      the names and what they mean are llama.cpp's (`tokenizer.ggml.pre`), the patterns
///                  those of the models' own tokenizer.json
[[nodiscard]] std::optional<NamedPreTokenizer> find_pre_tokenizer(std::string_view name);

}  // namespace tooldecode::vocabulary

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/vocabulary/named_pre_tokenizers.ipp>
#endif
