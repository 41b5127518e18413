/// \file
/// find_pre_tokenizer: the splits behind the pre-tokenizer names in GGUF files.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tooldecode/core/config.hpp>

namespace tooldecode::vocabulary {

/// GPT-2's pattern, used by a ByteLevel pre-tokenizer with `use_regex`.
inline constexpr const char* gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// What a pre-tokenizer's name means.
struct NamedPreTokenizer {
  std::vector<std::string> patterns;
  bool whole_first = false;  ///< a piece that is a token becomes that token, whatever the merges
};

namespace detail {

/// Names of pre-tokenizers with equal splits.
struct PreTokenizerFamily {
  std::vector<std::string_view> names;
  std::vector<std::string> patterns;
  std::vector<std::string_view> whole_first = {};  ///< the names for which `whole_first` is true
};

const std::vector<PreTokenizerFamily>& pre_tokenizer_families();

}  // namespace detail

/// The splits of a named pre-tokenizer; nothing for an unknown name.
///
/// \par Complexity  O(names)
/// \par Source      the names and their meaning: llama.cpp (`tokenizer.ggml.pre`); the patterns:
///                  the models' own tokenizer.json files
[[nodiscard]] std::optional<NamedPreTokenizer> find_pre_tokenizer(std::string_view name);

}  // namespace tooldecode::vocabulary

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/vocabulary/named_pre_tokenizers.ipp>
#endif
