/// \file
/// find_named_ends, without_message_ends: which tokens end a text, as far as their names tell.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/types.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode::vocabulary {

namespace detail {

// What models write where their turn, or the text, ends.
inline constexpr std::array<std::string_view, 21> end_names{
    "<|eot_id|>",          // Llama 3: the turn
    "<|eom_id|>",          // Llama 3: the message, before a tool's answer
    "<|end_of_text|>",     // Llama 3, Granite
    "<|eot|>",             // Llama 4
    "<|eom|>",             // Llama 4
    "<|im_end|>",          // ChatML: Qwen, Hermes
    "<|endoftext|>",       // GPT-2, Qwen, Phi
    "<|end|>",             // Phi 3
    "<|return|>",          // gpt-oss
    "<end_of_turn>",       // Gemma
    "<turn|>",             // Gemma 4
    "<|tool_response>",    // Gemma 4: a tool is to answer
    "<end_of_utterance>",  // SmolVLM
    "<EOT>",
    "_<EOT>",
    "<|EOT|>",  // DeepSeek Coder
    "[EOT]",    // Kimi
    "[EOS]",
    "<eos>",
    "</s>",  // Llama 2, Mistral
    "<|end_of_turn|>"};

inline bool has_special(const std::vector<Vocabulary::Entry>& entries, std::string_view name) {
  return std::any_of(entries.begin(), entries.end(), [&](const Vocabulary::Entry& entry) {
    return entry.type == TokenType::control && entry.bytes == name;
  });
}

}  // namespace detail

/// `ends` without what ends a message and not a text: in vocabularies with `<|channel|>` (gpt-oss)
/// an answer is several messages, and `<|end|>` and `<|call|>` are part of it, for grammars to
/// read.
///
/// The model's own list has `<|call|>`, because whoever serves it stops there to run the tool. An
/// engine may do so all the same; what its constraint may end with is another question.
///
/// \par Complexity  O(tokens)
[[nodiscard]] inline std::vector<TokenId> without_message_ends(
    std::vector<TokenId> ends, const std::vector<Vocabulary::Entry>& entries) {
  if (!detail::has_special(entries, "<|channel|>")) return ends;
  std::erase_if(ends, [&](TokenId id) {
    const auto i = static_cast<std::size_t>(id);
    return i < entries.size() && (entries[i].bytes == "<|end|>" || entries[i].bytes == "<|call|>");
  });
  return ends;
}

/// The tokens whose names say that they end a turn or a text, in the order of their ids: control
/// and user-defined tokens, and those of any type that look like `<|this|>`.
///
/// Files often name one end token where a model writes several: the one that ends a text, and not
/// the one that ends its turn.
///
/// \par Complexity  O(tokens)
/// \par Source      the list that llama.cpp keeps, and the models' own generation_config.json
[[nodiscard]] inline std::vector<TokenId> find_named_ends(
    const std::vector<Vocabulary::Entry>& entries) {
  std::vector<TokenId> ends;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string_view name = entries[i].bytes;
    const TokenType type        = entries[i].type;
    const bool is_special       = type == TokenType::control || type == TokenType::user_defined ||
                            (name.starts_with("<|") && name.ends_with("|>"));
    if (is_special && std::find(detail::end_names.begin(), detail::end_names.end(), name) !=
                          detail::end_names.end()) {
      ends.push_back(static_cast<TokenId>(i));
    }
  }
  return without_message_ends(std::move(ends), entries);
}

}  // namespace tooldecode::vocabulary
