/// \file
/// StackPool: hash-consed stacks of grammar frames; a position in a text is the number of its
/// stack.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <tooldecode/core/id.hpp>
#include <tooldecode/core/intern_index.hpp>
#include <tooldecode/core/stable_vector.hpp>
#include <tooldecode/grammar/grammar.hpp>

namespace tooldecode::grammar {

/// Number of a stack.
using StackId = core::Id<class StackPool>;
inline constexpr StackId empty_stack{};  ///< the text is complete

/// Number of what a keyed set has written.
using SeenId = core::Id<class MembersSeen>;

/// The innermost frame of a stack and the stack below it: where a text is in a node. What the two
/// words `a` and `b` hold depends on the node's kind, and is read by the names below.
struct StackFrame {
  StoredId node{};
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  StackId below{};
  friend auto operator<=>(const StackFrame&, const StackFrame&) = default;

  /// A literal: the bytes that were read.
  [[nodiscard]] std::uint32_t offset() const noexcept { return a; }
  /// A sequence: the part that the text is in.
  [[nodiscard]] std::uint32_t part() const noexcept { return a; }
  /// A trie of literals: the node of it that was reached.
  [[nodiscard]] std::uint32_t trie_node() const noexcept { return b; }
  /// A lexeme: the state of its Dfa.
  [[nodiscard]] std::uint32_t dfa_state() const noexcept { return a; }
  /// A lexeme: the counted units (characters of a string) that were begun.
  [[nodiscard]] std::uint32_t units() const noexcept { return b; }
  /// A repetition: the items that may have been read, a number of CountSets.
  [[nodiscard]] std::uint32_t counts() const noexcept { return a; }
  /// A keyed set: what it has written.
  [[nodiscard]] SeenId seen() const noexcept { return SeenId(a); }
  /// A keyed set whose key is read: where in it the text is, see KeyReader.
  [[nodiscard]] std::uint32_t key() const noexcept { return b; }
  /// A keyed set or a repetition with something read inside of it: what that is, see Positions.
  [[nodiscard]] std::uint32_t stage() const noexcept { return b; }
  /// Several stacks as one (StackSets): the number of what they are.
  [[nodiscard]] std::uint32_t bundle() const noexcept { return a; }
  /// Whether it is at the same place of the same node, whatever is below.
  [[nodiscard]] bool is_beside(const StackFrame& other) const noexcept;
};

/// A hash of a frame; the same on every machine.
[[nodiscard]] std::uint64_t hash_of(const StackFrame& frame) noexcept;

/// The same of several.
[[nodiscard]] std::uint64_t hash_of(std::span<const StackFrame> frames) noexcept;

/// Interns stacks, so that equal ones have equal numbers and share their tails.
///
/// \par Complexity  O(1) expected per push; 48 bytes per distinct stack
/// \par Threads     `push` one at a time; reads of numbers already handed out need no lock
class StackPool {
 public:
  StackPool();

  [[nodiscard]] StackId push(const StackFrame& frame);
  /// The top frame; requires a stack that is not empty.
  [[nodiscard]] const StackFrame& operator[](StackId id) const noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return frames_.size(); }
  /// About how much memory the stacks take.
  [[nodiscard]] std::size_t bytes() const noexcept;

 private:
  core::StableVector<StackFrame> frames_;
  core::InternIndex index_;
};

/// Interns short arrays of words: what a keyed set has seen. Number 0 is the empty array; words
/// that an array lacks are zero.
///
/// \par Complexity  O(words) per call
/// \par Threads     `intern` one at a time; reads of numbers already handed out need no lock
template <class Word>
class WordsPool {
 public:
  using Words = std::vector<Word>;

  WordsPool() { (void)intern({}); }

  [[nodiscard]] const Words& operator[](std::uint32_t number) const noexcept {
    return words_[number];
  }
  [[nodiscard]] std::uint32_t intern(Words words) {
    while (!words.empty() && words.back() == Word{}) words.pop_back();
    std::uint64_t hash = 0;
    for (const Word word : words) hash = core::hash_combine(hash, word);
    return index_.intern(
        hash, [&](std::uint32_t id) { return words_[id] == words; },
        [&] {
          const std::size_t made = words_.emplace(std::move(words));
          bytes_ +=
              sizeof(Words) + words_[made].size() * sizeof(Word) + core::InternIndex::bytes_each;
          return static_cast<std::uint32_t>(made);
        });
  }
  [[nodiscard]] std::size_t size() const noexcept { return words_.size(); }
  /// About how much memory the arrays take.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  core::StableVector<Words> words_;
  core::InternIndex index_;
  std::size_t bytes_ = 0;
};

inline bool StackFrame::is_beside(const StackFrame& other) const noexcept {
  return node == other.node && a == other.a && b == other.b;
}

/// A frame as a number that tells frames apart.
inline std::uint64_t hash_of(const StackFrame& frame) noexcept {
  const std::uint64_t hash = core::hash_combine(frame.node.number(), frame.a);
  return core::hash_combine(core::hash_combine(hash, frame.b), frame.below);
}

/// The same of a stack of frames.
inline std::uint64_t hash_of(std::span<const StackFrame> frames) noexcept {
  std::uint64_t hash = frames.size();
  for (const StackFrame& frame : frames) hash = core::hash_combine(hash, hash_of(frame));
  return hash;
}

inline StackPool::StackPool() {
  frames_.emplace(StackFrame{});
}

inline StackId StackPool::push(const StackFrame& frame) {
  return StackId(index_.intern(
      hash_of(frame), [&](std::uint32_t id) { return id != 0 && frames_[id] == frame; },
      [&] { return static_cast<std::uint32_t>(frames_.emplace(frame)); }));
}

inline const StackFrame& StackPool::operator[](StackId id) const noexcept {
  return frames_[id.index()];
}

inline std::size_t StackPool::bytes() const noexcept {
  return frames_.size() * (sizeof(StackFrame) + core::InternIndex::bytes_each);
}

}  // namespace tooldecode::grammar
