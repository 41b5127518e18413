/// \file
/// find_named_ends, without_false_ends: which tokens end a text, as far as their names tell.
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

// What models write where their turn, or the text, ends; and, below, what stands between files that
// were trained on as one text, where a completion of code ends.
inline constexpr std::array<std::string_view, 33> end_names{
    "<|eot_id|>",                               // Llama 3: the turn
    "<|eom_id|>",                               // Llama 3: the message, before a tool's answer
    "<|end_of_text|>",                          // Llama 3, Granite
    "<|im_end|>",                               // ChatML: Qwen, Hermes
    "<|endoftext|>",                            // GPT-2, Qwen, Phi
    "<|end|>",                                  // Phi 3
    "<|return|>",                               // gpt-oss
    "<|call|>",                                 // gpt-oss: a tool is to answer
    "<|flush|>",                                // Solar
    "<|calls|>",                                // Solar: tools are to answer
    "<end_of_turn>",                            // Gemma
    "<turn|>",                                  // Gemma 4
    "<|tool_response>",                         // Gemma 4: a tool is to answer
    "<end_of_utterance>",                       // SmolVLM
    "<\uFF5Cend\u2581of\u2581sentence\uFF5C>",  // DeepSeek
    "<EOT>",
    "_<EOT>",
    "[EOT]",  // Kimi
    "[EOS]",
    "<eos>",
    "</s>",  // Llama 2, Mistral
    "[e~[",  // MiniMax

    "<|fim_pad|>",
    "<fim-pad>",
    "<fim_pad>",
    "<PAD>",
    "[PAD]",
    "<|fim_repo|>",
    "<|repo_name|>",
    "<fim-repo>",
    "<REPO>",
    "<reponame>",
    "<|file_sep|>"};

inline bool has_special(const std::vector<Vocabulary::Entry>& entries, std::string_view name) {
  return std::any_of(entries.begin(), entries.end(), [&](const Vocabulary::Entry& entry) {
    return entry.type == TokenType::control && entry.bytes == name;
  });
}

}  // namespace detail

/// `ends` without what has the name of an end and is none beside the others.
///
/// `<|end|>` ends a message where others end the text (gpt-oss, Solar), and `</s>` is text where
/// Gemma 4 and PLaMo have ends of their own. `<|call|>` is a message's end, too, in vocabularies with
/// `<|channel|>` (gpt-oss): an answer is several messages, and grammars read it as part of one. Who
/// serves such a model stops there to run the tool; what its constraint may end with is another
/// question.
///
/// \par Complexity  O(tokens)
/// \par Source      llama.cpp's rules, but that for `<|call|>`
[[nodiscard]] inline std::vector<TokenId> without_false_ends(
    std::vector<TokenId> ends, const std::vector<Vocabulary::Entry>& entries) {
  const auto name = [&](TokenId id) {
    const auto i = static_cast<std::size_t>(id);
    return i < entries.size() ? std::string_view(entries[i].bytes) : std::string_view();
  };
  const auto has = [&](std::string_view wanted) {
    return std::any_of(ends.begin(), ends.end(), [&](TokenId id) { return name(id) == wanted; });
  };
  const bool calls_end_messages    = detail::has_special(entries, "<|channel|>");
  const bool ends_are_of_messages  = calls_end_messages || ((has("<|call|>") || has("<|calls|>")) &&
                                                           (has("<|return|>") || has("<|flush|>")));
  const bool closing_tags_are_text = has("<|tool_response>") || has("<|plamo:eos|>");
  std::erase_if(ends, [&](TokenId id) {
    return (ends_are_of_messages && name(id) == "<|end|>") ||
           (calls_end_messages && name(id) == "<|call|>") ||
           (closing_tags_are_text && name(id) == "</s>");
  });
  return ends;
}

/// The tokens whose names say that they end a turn or a text, in the order of their ids, whatever
/// their types: files mark some of them as ordinary.
///
/// Files often name one end token where a model writes several: the one that ends a text, and not
/// the one that ends its turn.
///
/// \par Complexity  O(tokens)
/// \par Source      the names that llama.cpp's llama_vocab_is_eog knows
[[nodiscard]] inline std::vector<TokenId> find_named_ends(
    const std::vector<Vocabulary::Entry>& entries) {
  std::vector<TokenId> ends;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (std::find(detail::end_names.begin(), detail::end_names.end(), entries[i].bytes) !=
        detail::end_names.end()) {
      ends.push_back(static_cast<TokenId>(i));
    }
  }
  return without_false_ends(std::move(ends), entries);
}

}  // namespace tooldecode::vocabulary
