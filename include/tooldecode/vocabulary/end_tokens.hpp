/// \file
/// find_named_ends, without_false_ends: find end tokens by their names.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include <tooldecode/core/types.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode::vocabulary {

namespace detail {

// Names of tokens that end a turn or a text. Those of the second group separate files in training
// texts, so a code completion ends there.
inline constexpr std::array<std::string_view, 33> end_names{
    "<|eot_id|>",                               // Llama 3: ends the turn
    "<|eom_id|>",                               // Llama 3: ends the message before a tool's answer
    "<|end_of_text|>",                          // Llama 3, Granite
    "<|im_end|>",                               // ChatML: Qwen, Hermes
    "<|endoftext|>",                            // GPT-2, Qwen, Phi
    "<|end|>",                                  // Phi 3
    "<|return|>",                               // gpt-oss
    "<|call|>",                                 // gpt-oss: a tool answers next
    "<|flush|>",                                // Solar
    "<|calls|>",                                // Solar: tools answer next
    "<end_of_turn>",                            // Gemma
    "<turn|>",                                  // Gemma 4
    "<|tool_response>",                         // Gemma 4: a tool answers next
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

bool has_special(const std::vector<Vocabulary::Entry>& entries, std::string_view name);

}  // namespace detail

/// Removes tokens from `ends` that have an end token's name but are none next to the others.
///
/// `<|end|>` ends only a message in models where other tokens end the text (gpt-oss, Solar). `</s>`
/// is text in Gemma 4 and PLaMo, which have their own end tokens. `<|call|>` also ends only a
/// message in vocabularies with `<|channel|>` (gpt-oss): an answer has several messages, and
/// grammars read `<|call|>` as part of it. A server for such a model stops at `<|call|>` to run the
/// tool; this does not change what the constraint may end with.
///
/// \par Complexity  O(tokens)
/// \par Source      llama.cpp's rules, except that for `<|call|>`
[[nodiscard]] std::vector<TokenId> without_false_ends(
    std::vector<TokenId> ends, const std::vector<Vocabulary::Entry>& entries);

/// The tokens whose names mark the end of a turn or a text, in order of their ids and regardless of
/// type: some files mark them as ordinary tokens.
///
/// Files often name one end token where a model writes several: the one that ends a text, but not
/// the one that ends a turn.
///
/// \par Complexity  O(tokens)
/// \par Source      the names in llama.cpp's llama_vocab_is_eog
[[nodiscard]] std::vector<TokenId> find_named_ends(const std::vector<Vocabulary::Entry>& entries);

}  // namespace tooldecode::vocabulary

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/vocabulary/end_tokens.ipp>
#endif
