/// \file
/// DfaLengths: how many bytes it takes at least to go on from a state of a DFA to one that accepts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tooldecode/text/dfa.hpp>

namespace tooldecode::text {

/// One byte of each column of a DFA's table: what any byte leads to, one of these does.
inline std::vector<std::uint8_t> one_of_each_column(const Dfa& dfa) {
  std::vector<std::uint8_t> bytes;
  std::vector<char> known(256, 0);
  for (unsigned b = 0; b < 256; ++b) {
    const auto byte = static_cast<std::uint8_t>(b);
    if (!std::exchange(known[dfa.column(byte)], 1)) bytes.push_back(byte);
  }
  return bytes;
}

/// For each state of a DFA, the fewest bytes, one at least, to one that accepts.
///
/// \par Complexity  O(states x columns), once for each DFA, which must outlive this
/// \par Threads     one at a time
class DfaLengths {
 public:
  /// From where nothing accepts.
  static constexpr std::uint32_t none = std::uint32_t{1} << 30;

  /// [states]
  const std::vector<std::uint32_t>& of(const Dfa& dfa) {
    std::vector<std::uint32_t>& lengths = lengths_[&dfa];
    if (lengths.empty()) {
      lengths = find(dfa);
      bytes_ += sizeof(std::uint32_t) * lengths.size();
    }
    return lengths;
  }

  /// Of the tables, about.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  // Backwards from those that accept, in the order of their lengths.
  static std::vector<std::uint32_t> find(const Dfa& dfa) {
    const std::vector<std::uint8_t> bytes = one_of_each_column(dfa);
    std::vector<std::vector<Dfa::State>> before(dfa.size());
    std::vector<Dfa::State> reached;
    std::vector<std::uint32_t> lengths(dfa.size(), none);
    for (Dfa::State state = 0; state < dfa.size(); ++state) {
      for (const std::uint8_t byte : bytes) {
        const Dfa::State next = dfa.next(state, byte);
        if (next == Dfa::dead) continue;
        before[next].push_back(state);
        if (dfa.accepting(next) && lengths[state] == none) {
          lengths[state] = 1;
          reached.push_back(state);
        }
      }
    }
    for (std::size_t i = 0; i < reached.size(); ++i) {
      for (const Dfa::State state : before[reached[i]]) {
        if (lengths[state] != none) continue;
        lengths[state] = lengths[reached[i]] + 1;
        reached.push_back(state);
      }
    }
    return lengths;
  }

  std::unordered_map<const Dfa*, std::vector<std::uint32_t>> lengths_;
  std::size_t bytes_ = 0;
};

}  // namespace tooldecode::text
