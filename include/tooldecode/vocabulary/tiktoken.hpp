/// \file
/// Reads tiktoken files (a base64 token and its rank on each line) and Mistral's tekken.json.
#pragma once

#include <string_view>

#include <tooldecode/text/json_value.hpp>
#include <tooldecode/vocabulary/tokenizer.hpp>

namespace tooldecode::vocabulary {

/// Reads a `.tiktoken` file. The file contains neither patterns nor special tokens, so both come
/// from the encoding in its name (cl100k_base, o200k_base, p50k_base, r50k_base, or qwen with
/// `<|endoftext|>` after the last token). With any other name there are no end tokens, and `encode`
/// throws. Ranks may leave out some, whose tokens are unused.
///
/// \param name  the file's name without folder and extension
///
/// \par Complexity  O(size of the text)
/// \par Errors      Error{malformed_vocabulary} with the line
/// \par Source      openai/tiktoken, load.py and openai_public.py
[[nodiscard]] Tokenizer parse_tiktoken(std::string_view text, std::string_view name = {});

/// Reads a tekken.json: `config` with the pattern and the number of tokens, `vocab` with the base64
/// tokens by rank, and `special_tokens`, whose ids come before all others.
///
/// Files of the first versions list no special tokens. The first ones, which all these files share,
/// are known by their ids (`<unk>`, `<s>`, `</s>`, `[INST]`, `[/INST]`, `[AVAILABLE_TOOLS]`,
/// `[/AVAILABLE_TOOLS]`, `[TOOL_RESULTS]`, `[/TOOL_RESULTS]`, `[TOOL_CALLS]`).
///
/// \par Complexity  O(size of the text)
/// \par Errors      Error{malformed_json, malformed_vocabulary, malformed_pattern} with the place
/// \par Source      mistralai/mistral-common, tokens/tokenizers/tekken.py
[[nodiscard]] Tokenizer parse_tekken(std::string_view json_text);
/// The same, of a file that was parsed.
[[nodiscard]] Tokenizer read_tekken(const JsonValue& root);

}  // namespace tooldecode::vocabulary

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/vocabulary/tiktoken.ipp>
#endif
