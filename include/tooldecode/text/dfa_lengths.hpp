/// \file
/// DfaLengths: the minimum number of bytes from each state of a DFA to acceptance.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include <tooldecode/core/heap_bytes.hpp>
#include <tooldecode/text/dfa.hpp>

namespace tooldecode::text {

/// One representative byte of each column of a DFA's table.
std::vector<std::uint8_t> one_of_each_column(const Dfa& dfa);

/// For each state of a DFA, the minimum number of bytes, at least one, to an accepting state.
///
/// \par Complexity  construction O((rows + rows of shapes x exits) x columns + rows x log rows),
///                  see Dfa: a thousand repetitions of a letter of any script have a thousand rows
///                  but half a million states. A length O(1), inside a unit O(log blocks + exits)
/// \par Threads     immutable after construction
/// \par Errors      see BuildBudget
class DfaLengths {
 public:
  /// No accepting state can be reached.
  static constexpr std::uint32_t none = std::uint32_t{1} << 30;

  /// \param dfa  must outlive this
  explicit DfaLengths(const Dfa& dfa);

  [[nodiscard]] std::uint32_t operator[](Dfa::State state) const noexcept;
  /// The greatest length other than `none`; 0 if there is none. O(states).
  [[nodiscard]] std::uint32_t longest() const noexcept;
  /// Memory of the tables.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return core::heap_bytes(rows_) + core::heap_bytes(out_) + core::heap_bytes(shapes_);
  }

 private:
  struct Shape {
    std::size_t first = 0, rows = 0, exits = 0, out = 0;
  };

  [[nodiscard]] std::size_t rows_of(std::size_t block) const noexcept;
  // Finds the bytes from each row of a shape to each of its exits.
  void find_out(Shape& shape);
  void find_rows();
  [[nodiscard]] std::uint32_t inside(const Shape& shape, const Dfa::Placed& block,
                                     std::size_t row) const noexcept;
  [[nodiscard]] std::uint32_t behind(Dfa::State row) const noexcept {
    return dfa_->accepting(row) ? 0 : rows_[row];
  }

  const Dfa* dfa_;
  std::vector<std::uint32_t> rows_;                // [rows]
  std::vector<std::uint32_t> out_;                 // of each shape: [rows, exits]
  std::unordered_map<std::size_t, Shape> shapes_;  // by first row
};

/// Caches the lengths of DFAs.
///
/// \par Complexity  each DFA is computed once; it must outlive this
/// \par Threads     one at a time
class KnownDfaLengths {
 public:
  [[nodiscard]] const DfaLengths& of(const Dfa& dfa);
  /// Memory of the tables.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_ + core::heap_bytes(lengths_); }

 private:
  std::unordered_map<const Dfa*, DfaLengths> lengths_;
  std::size_t bytes_ = 0;
};

}  // namespace tooldecode::text

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/text/dfa_lengths.ipp>
#endif
