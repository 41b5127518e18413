/// \file
/// make_trie: builds a byte trie of a vocabulary's tokens.
#pragma once

#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode::vocabulary {

/// The tokens that may be part of a text, by their `grammar_bytes`. End, unknown, unused and
/// padding tokens are left out. O(bytes of the vocabulary + V log V).
[[nodiscard]] core::ByteTrie make_trie(const Vocabulary& vocabulary);

}  // namespace tooldecode::vocabulary

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/vocabulary/vocabulary_trie.ipp>
#endif
