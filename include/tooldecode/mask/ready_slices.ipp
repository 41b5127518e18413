/// \file
/// Definitions of ready_slices.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/core/table_file.hpp>
#include <tooldecode/mask/lexeme_slice.hpp>
#include <tooldecode/mask/ready_slices.hpp>
#include <tooldecode/mask/token_classes.hpp>
#include <tooldecode/text/dfa.hpp>

namespace tooldecode::mask {

TOOLDECODE_INLINE ReadySlices::ReadySlices(core::TableReader& from, const core::ByteTrie& trie,
                                           const TokenClasses& classes,
                                           std::size_t vocabulary_size) {
  for (auto left = from.number<std::uint64_t>(); left > 0; --left) {
    const auto hash   = from.number<std::uint64_t>();
    const auto lexeme = from.table<char>();
    const auto state  = from.number<text::Dfa::State>();
    const auto node   = from.number<core::ByteTrie::NodeIndex>();
    slices_.emplace(
        hash, Slice{std::string(lexeme.begin(), lexeme.end()), state, node,
                    std::make_shared<const LexemeSlice>(from, trie, classes, vocabulary_size)});
  }
}

TOOLDECODE_INLINE void ReadySlices::write(core::TableWriter& to) const {
  to.number(std::uint64_t{slices_.size()});
  for (const auto& [hash, known] : slices_) {
    to.number(hash);
    to.table(std::span<const char>(known.lexeme));
    to.number(known.state), to.number(known.node);
    known.slice->write(to);
  }
}

TOOLDECODE_INLINE void ReadySlices::add(const text::Dfa& dfa, text::Dfa::State state,
                                        core::ByteTrie::NodeIndex node, Pointer slice) {
  slices_.emplace(dfa.hash(), Slice{tables_of(dfa), state, node, std::move(slice)});
}

TOOLDECODE_INLINE ReadySlices::Pointer ReadySlices::find(const text::Dfa& dfa,
                                                         text::Dfa::State state,
                                                         core::ByteTrie::NodeIndex node) const {
  const auto [first, last] = slices_.equal_range(dfa.hash());
  if (first == last) return nullptr;
  const std::string lexeme = tables_of(dfa);
  for (auto known = first; known != last; ++known) {
    const Slice& slice = known->second;
    if (slice.state == state && slice.node == node && slice.lexeme == lexeme) return slice.slice;
  }
  return nullptr;
}

TOOLDECODE_INLINE std::string ReadySlices::tables_of(const text::Dfa& dfa) {
  core::TableWriter tables;
  dfa.write(tables);
  return tables.bytes();
}

}  // namespace tooldecode::mask
