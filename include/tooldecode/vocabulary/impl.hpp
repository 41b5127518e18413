/// \file
/// The definitions that read tokenizers, which need PCRE2; see tooldecode/impl.hpp.
#pragma once

#if defined(TOOLDECODE_INLINE) && !defined(TOOLDECODE_COMPILED)
#error \
    "tooldecode/vocabulary/impl.hpp: include it before the library's other headers, or define TOOLDECODE_COMPILED"
#endif
#ifndef TOOLDECODE_COMPILED
#define TOOLDECODE_COMPILED
#endif

#include <tooldecode/vocabulary/added_tokens.ipp>
#include <tooldecode/vocabulary/compact_vocabulary.ipp>
#include <tooldecode/vocabulary/gguf.ipp>
#include <tooldecode/vocabulary/load_vocabulary.ipp>
#include <tooldecode/vocabulary/oniguruma_pattern.ipp>
#include <tooldecode/vocabulary/pre_tokenizer.ipp>
#include <tooldecode/vocabulary/sentencepiece_model.ipp>
#include <tooldecode/vocabulary/text_rules.ipp>
#include <tooldecode/vocabulary/tiktoken.ipp>
#include <tooldecode/vocabulary/token_spelling.ipp>
#include <tooldecode/vocabulary/tokenizer.ipp>
#include <tooldecode/vocabulary/tokenizer_json.ipp>
#include <tooldecode/vocabulary/white_space.ipp>
