/// \file
/// make_trie: a vocabulary's tokens as a byte trie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/core/types.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode::vocabulary {

/// The tokens that may be part of a text, by their `grammar_bytes`: end, unknown, unused and
/// padding tokens are not among them. O(bytes of the vocabulary + V log V).
[[nodiscard]] inline core::ByteTrie make_trie(const Vocabulary& vocabulary) {
  std::vector<core::ByteTrie::Entry> entries;
  entries.reserve(vocabulary.size());
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    const auto token = static_cast<TokenId>(id);
    entries.emplace_back(vocabulary.grammar_bytes(token), static_cast<std::uint32_t>(id));
  }
  return core::ByteTrie(std::move(entries));
}

}  // namespace tooldecode::vocabulary
