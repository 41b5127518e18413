/// \file
/// DfaLengths: how many bytes it takes at least to go on from a state of a DFA to one that accepts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include <tooldecode/text/dfa.hpp>

namespace tooldecode::text {

/// One byte of each column of a DFA's table: what any byte leads to, one of these does.
std::vector<std::uint8_t> one_of_each_column(const Dfa& dfa);

/// For each state of a DFA, the fewest bytes, one at least, to one that accepts.
///
/// \par Complexity  O(states x columns), once for each DFA, which must outlive this
/// \par Threads     one at a time
class DfaLengths {
 public:
  /// From where nothing accepts.
  static constexpr std::uint32_t none = std::uint32_t{1} << 30;

  /// [states]
  const std::vector<std::uint32_t>& of(const Dfa& dfa);

  /// Of the tables, about.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  // Backwards from those that accept, in the order of their lengths.
  static std::vector<std::uint32_t> find(const Dfa& dfa);

  std::unordered_map<const Dfa*, std::vector<std::uint32_t>> lengths_;
  std::size_t bytes_ = 0;
};

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/dfa_lengths.ipp>
#endif
