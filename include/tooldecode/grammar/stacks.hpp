/// \file
/// StackPool: hash-consed stacks of grammar frames; a position in a text is the number of its
/// stack.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <tooldecode/core/intern_index.hpp>
#include <tooldecode/core/stable_vector.hpp>

namespace tooldecode {

/// Number of a stack; 0 is the empty stack: the text is complete.
using StackId = std::uint32_t;

/// The innermost frame of a stack and the stack below it. What `a` and `b` mean depends on the
/// node: offset, automaton state, counter, set of seen members (see Automaton).
struct StackFrame {
  std::uint32_t node                                           = 0;
  std::uint32_t a                                              = 0;
  std::uint32_t b                                              = 0;
  StackId below                                                = 0;
  friend bool operator==(const StackFrame&, const StackFrame&) = default;
};

/// Interns stacks, so that equal ones have equal numbers and share their tails.
///
/// \par Complexity  O(1) expected per push; 40 bytes per distinct stack
/// \par Threads     `push` one at a time; reads of numbers already handed out need no lock
/// \par Errors      std::bad_alloc
class StackPool {
 public:
  StackPool() { frames_.emplace(StackFrame{}); }

  [[nodiscard]] StackId push(const StackFrame& frame) {
    std::uint64_t hash = hash_combine(frame.node, frame.a);
    hash               = hash_combine(hash_combine(hash, frame.b), frame.below);
    return index_.intern(
        hash, [&](std::uint32_t id) { return id != 0 && frames_[id] == frame; },
        [&] { return static_cast<std::uint32_t>(frames_.emplace(frame)); });
  }
  /// The top frame; requires a stack that is not empty.
  [[nodiscard]] const StackFrame& operator[](StackId id) const noexcept { return frames_[id]; }

 private:
  StableVector<StackFrame> frames_;
  InternIndex index_;
};

/// Interns sets of member indices; number 0 is the empty set.
///
/// \par Complexity  O(members / 64) per call
/// \par Threads     `with` one at a time; reads of numbers already handed out need no lock
/// \par Errors      std::bad_alloc
class MemberSetPool {
 public:
  using Words = std::vector<std::uint64_t>;

  MemberSetPool() { (void)intern({}); }

  [[nodiscard]] bool contains(std::uint32_t set, std::uint32_t member) const noexcept {
    const Words& words = sets_[set];
    return member / 64 < words.size() && (words[member / 64] >> (member % 64) & 1);
  }
  /// The set with one more member, or with all of the members 0, ..., `member`.
  [[nodiscard]] std::uint32_t with(std::uint32_t set, std::uint32_t member, bool and_all_before) {
    Words words = sets_[set];
    if (words.size() <= member / 64) words.resize(member / 64 + 1);
    words[member / 64] |= std::uint64_t{1} << (member % 64);
    if (and_all_before) {
      for (std::uint32_t w = 0; w < member / 64; ++w) words[w] = ~std::uint64_t{0};
      words[member / 64] |= (std::uint64_t{1} << (member % 64)) - 1;
    }
    return intern(std::move(words));
  }
  /// The first member of `wanted` that the set lacks.
  [[nodiscard]] std::optional<std::uint32_t> find_missing(std::uint32_t set,
                                                          const Words& wanted) const noexcept {
    const Words& words = sets_[set];
    for (std::uint32_t w = 0; w < wanted.size(); ++w) {
      const std::uint64_t missing = wanted[w] & ~(w < words.size() ? words[w] : 0);
      if (missing != 0) return 64 * w + static_cast<std::uint32_t>(std::countr_zero(missing));
    }
    return std::nullopt;
  }

 private:
  std::uint32_t intern(Words words) {
    std::uint64_t hash = 0;
    for (const std::uint64_t word : words) hash = hash_combine(hash, word);
    return index_.intern(
        hash, [&](std::uint32_t id) { return sets_[id] == words; },
        [&] { return static_cast<std::uint32_t>(sets_.emplace(std::move(words))); });
  }

  StableVector<Words> sets_;
  InternIndex index_;
};

}  // namespace tooldecode
