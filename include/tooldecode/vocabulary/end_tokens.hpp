/// \file
/// find_named_ends, without_false_ends: which tokens end a text, as far as their names tell.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
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

bool has_special(const std::vector<Vocabulary::Entry>& entries, std::string_view name);

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
[[nodiscard]] std::vector<TokenId> without_false_ends(
    std::vector<TokenId> ends, const std::vector<Vocabulary::Entry>& entries);

/// The tokens whose names say that they end a turn or a text, in the order of their ids, whatever
/// their types: files mark some of them as ordinary.
///
/// Files often name one end token where a model writes several: the one that ends a text, and not
/// the one that ends its turn.
///
/// \par Complexity  O(tokens)
/// \par Source      the names that llama.cpp's llama_vocab_is_eog knows
[[nodiscard]] std::vector<TokenId> find_named_ends(const std::vector<Vocabulary::Entry>& entries);

}  // namespace tooldecode::vocabulary

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/vocabulary/end_tokens.ipp>
#endif
