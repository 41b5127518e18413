#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <tooldecode/vocabulary/vocabulary_trie.hpp>

namespace tooldecode::vocabulary {

TOOLDECODE_INLINE core::ByteTrie make_trie(const Vocabulary& vocabulary) {
  std::vector<core::ByteTrie::Entry> entries;
  entries.reserve(vocabulary.size());
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    const auto token = static_cast<TokenId>(id);
    entries.emplace_back(vocabulary.grammar_bytes(token), static_cast<std::uint32_t>(id));
  }
  return core::ByteTrie(std::move(entries));
}

}  // namespace tooldecode::vocabulary
