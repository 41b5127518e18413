/// \file
/// Files of tiktoken (a token in base64 and its rank in each line), and of Mistral's tekken.json.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <tooldecode/core/error.hpp>
#include <tooldecode/text/json_value.hpp>
#include <tooldecode/vocabulary/compact_vocabulary.hpp>
#include <tooldecode/vocabulary/end_tokens.hpp>
#include <tooldecode/vocabulary/named_pre_tokenizers.hpp>
#include <tooldecode/vocabulary/tokenizer.hpp>

namespace tooldecode::vocabulary {

/// Reads a `.tiktoken` file. It holds neither patterns nor special tokens: those of the encoding that
/// the file is named for are used (cl100k_base, o200k_base, p50k_base, r50k_base and qwen, with
/// `<|endoftext|>` after the last token); of any other, nothing ends a text and nothing is encoded.
///
/// \param name  of the file, without its folder and its extension
///
/// \par Complexity  O(size of the text)
/// \par Errors      Error{malformed_vocabulary} with the line
/// \par Source      openai/tiktoken, load.py and openai_public.py
[[nodiscard]] Tokenizer parse_tiktoken(std::string_view text, std::string_view name = {});

/// Reads a tekken.json: `config` with the pattern and the number of tokens, `vocab` with the tokens
/// in base64 by rank, and `special_tokens`, whose ids come before all others.
///
/// Files of the first versions list no special tokens: the first of those that they all have are
/// known by their ids (`<unk>`, `<s>`, `</s>`, `[INST]`, `[/INST]`, `[AVAILABLE_TOOLS]`,
/// `[/AVAILABLE_TOOLS]`, `[TOOL_RESULTS]`, `[/TOOL_RESULTS]`, `[TOOL_CALLS]`).
///
/// \par Complexity  O(size of the text)
/// \par Errors      Error{malformed_json, malformed_vocabulary, malformed_pattern} with the place
/// \par Source      mistralai/mistral-common, tokens/tokenizers/tekken.py
[[nodiscard]] Tokenizer parse_tekken(std::string_view json_text);

}  // namespace tooldecode::vocabulary

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/vocabulary/tiktoken.ipp>
#endif
