/// \file
/// ReadySlices: slices that a file holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/mask/lexeme_slice.hpp>
#include <tooldecode/mask/token_classes.hpp>
#include <tooldecode/text/dfa.hpp>

namespace tooldecode::mask {

/// The slices of one vocabulary by their lexemes' tables, which no process numbers otherwise.
///
/// \par Complexity  `find` O(1) for a lexeme without slices; else O(bytes of its table + slices of
///                  the lexeme)
/// \par Threads     const members may run concurrently
class ReadySlices {
 public:
  using Pointer = std::shared_ptr<const LexemeSlice>;

  ReadySlices() = default;
  /// Reads what `write` has written. The slices refer to the classes.
  ReadySlices(core::TableReader& from, const core::ByteTrie& trie, const TokenClasses& classes,
              std::size_t vocabulary_size);
  void write(core::TableWriter& to) const;

  void add(const text::Dfa& dfa, text::Dfa::State state, core::ByteTrie::NodeIndex node,
           Pointer slice);
  /// Null if there is none.
  [[nodiscard]] Pointer find(const text::Dfa& dfa, text::Dfa::State state,
                             core::ByteTrie::NodeIndex node) const;
  [[nodiscard]] std::size_t size() const noexcept { return slices_.size(); }

 private:
  struct Slice {
    std::string lexeme;  // its tables
    text::Dfa::State state;
    core::ByteTrie::NodeIndex node;
    Pointer slice;
  };

  static std::string tables_of(const text::Dfa& dfa);

  std::unordered_multimap<std::uint64_t, Slice> slices_;  // by the lexeme's hash
};

}  // namespace tooldecode::mask

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/mask/ready_slices.ipp>
#endif
