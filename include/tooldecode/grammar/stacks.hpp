/// \file
/// StackPool: interned stacks of grammar frames; a position in a text is the number of its stack.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <tooldecode/core/heap_bytes.hpp>
#include <tooldecode/core/id.hpp>
#include <tooldecode/core/intern_index.hpp>
#include <tooldecode/core/stable_vector.hpp>
#include <tooldecode/grammar/grammar.hpp>

namespace tooldecode::grammar {

/// Number of a stack.
using StackId = core::Id<class StackPool>;
inline constexpr StackId empty_stack{};  ///< the text is complete

/// Number of a set of written members, see MembersSeen.
using SeenId = core::Id<class MembersSeen>;

/// The innermost frame of a stack and the stack below it: a place in a node. The meaning of `a` and
/// `b` depends on the node's kind; the accessors below name it.
struct StackFrame {
  StoredId node{};
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  StackId below{};
  friend auto operator<=>(const StackFrame&, const StackFrame&) = default;
  friend bool operator==(const StackFrame&, const StackFrame&)  = default;  // nvcc wants to see it

  /// Literal: bytes read.
  [[nodiscard]] std::uint32_t offset() const noexcept { return a; }
  [[nodiscard]] std::uint32_t part() const noexcept { return a; }
  /// Trie of literals: current trie node.
  [[nodiscard]] std::uint32_t trie_node() const noexcept { return b; }
  [[nodiscard]] std::uint32_t dfa_state() const noexcept { return a; }
  /// Lexeme: counted units (characters of a string) begun so far.
  [[nodiscard]] std::uint32_t units() const noexcept { return b; }
  /// Repetition: items read, as a number of CountSets.
  [[nodiscard]] std::uint32_t counts() const noexcept { return a; }
  [[nodiscard]] SeenId seen() const noexcept { return SeenId(a); }
  /// Keyed set, in a key: the place in the key, see KeyReader.
  [[nodiscard]] std::uint32_t key() const noexcept { return b; }
  /// Keyed set or repetition, inside a child: which child, see Positions.
  [[nodiscard]] std::uint32_t stage() const noexcept { return b; }
  /// Bundle of stacks: its number in StackSets.
  [[nodiscard]] std::uint32_t bundle() const noexcept { return a; }
  /// Whether it is at the same place of the same node, whatever is below.
  [[nodiscard]] bool is_beside(const StackFrame& other) const noexcept;
};

/// A hash of a frame, equal on every machine.
[[nodiscard]] std::uint64_t hash_of(const StackFrame& frame) noexcept;

/// A hash of several frames.
[[nodiscard]] std::uint64_t hash_of(std::span<const StackFrame> frames) noexcept;

/// Interns stacks, so that equal stacks have equal numbers and share their tails.
///
/// \par Complexity  O(1) expected per push; 40 bytes per distinct stack
/// \par Threads     `push` one at a time; reading numbers that were returned needs no lock
class StackPool {
 public:
  StackPool();

  [[nodiscard]] StackId push(const StackFrame& frame);
  /// The top frame; requires a stack that is not empty.
  [[nodiscard]] const StackFrame& operator[](StackId id) const noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return frames_.size(); }
  [[nodiscard]] std::size_t bytes() const noexcept;

 private:
  core::StableVector<StackFrame> frames_;
  core::InternIndex index_;
};

/// Interns short arrays of words, such as sets of members. Number 0 is the empty array; zeros at
/// the end of an array are dropped.
///
/// \par Complexity  O(words) per call
/// \par Threads     `intern` one at a time; reading numbers that were returned needs no lock
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
          bytes_ += core::heap_bytes(words_[made]);
          return static_cast<std::uint32_t>(made);
        });
  }
  [[nodiscard]] std::size_t size() const noexcept { return words_.size(); }
  [[nodiscard]] std::size_t bytes() const noexcept {
    return bytes_ + words_.bytes() + index_.bytes();
  }

 private:
  core::StableVector<Words> words_;
  core::InternIndex index_;
  std::size_t bytes_ = 0;
};

inline bool StackFrame::is_beside(const StackFrame& other) const noexcept {
  return node == other.node && a == other.a && b == other.b;
}

/// Hash of one frame.
inline std::uint64_t hash_of(const StackFrame& frame) noexcept {
  const std::uint64_t hash = core::hash_combine(frame.node.number(), frame.a);
  return core::hash_combine(core::hash_combine(hash, frame.b), frame.below);
}

/// Hash of several frames.
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
  return frames_.bytes() + index_.bytes();
}

}  // namespace tooldecode::grammar
