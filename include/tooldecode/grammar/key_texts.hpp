/// \file
/// KeyTexts: numbered texts of keys, which share their beginnings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <tooldecode/core/intern_index.hpp>
#include <tooldecode/core/stable_vector.hpp>

namespace tooldecode::grammar {

/// Numbers texts as nodes of a trie that is linked upwards, so that a text and one byte more, and
/// the question whether one text begins with another, do not cost the length of the text.
///
/// A text's number is greater than those of its beginnings.
///
/// \par Complexity  O(1) expected for one byte more, O(log bytes) for a beginning; 16 bytes per
///                  beginning, and a slot of the index. Each text visited is a step of the
///                  BuildBudget
/// \par Threads     members that are not const one at a time; the others need no lock
/// \par Source      Myers, "An applicative random-access stack", IPL 17(5), 1983
class KeyTexts {
 public:
  using Number                  = std::uint32_t;
  static constexpr Number empty = 0;

  KeyTexts() { nodes_.emplace(); }

  [[nodiscard]] Number with(Number text, std::uint8_t byte);
  [[nodiscard]] Number with(Number text, std::string_view bytes);
  /// The number here of a text of another object.
  [[nodiscard]] Number adopt(const KeyTexts& from, Number text);

  [[nodiscard]] std::size_t length(Number text) const noexcept { return nodes_[text].length; }
  /// The first `length` bytes of a text, which has that many.
  [[nodiscard]] Number beginning(Number text, std::size_t length) const;
  /// Whether a text is another one with more bytes.
  [[nodiscard]] bool goes_on_from(Number text, Number beginning) const;
  [[nodiscard]] bool goes_on_from(Number text, std::string_view beginning) const;
  /// The bytes from a place on, at most `count`.
  [[nodiscard]] std::string bytes_behind(Number text, std::size_t place,
                                         std::size_t count = std::string::npos) const;

  [[nodiscard]] std::size_t bytes() const noexcept { return nodes_.bytes() + index_.bytes(); }

 private:
  struct Node {
    Number before        = empty;
    Number far           = empty;  // a beginning further up: those on the way halve the distances
    std::uint32_t length = 0;
    std::uint8_t last    = 0;
  };

  core::StableVector<Node> nodes_;
  core::InternIndex index_;
};

}  // namespace tooldecode::grammar

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/grammar/key_texts.ipp>
#endif
