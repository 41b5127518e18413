/// \file
/// What dfa_lengths.hpp declares.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/dfa_lengths.hpp>

namespace tooldecode::text {

TOOLDECODE_INLINE std::vector<std::uint8_t> one_of_each_column(const Dfa& dfa) {
  std::vector<std::uint8_t> bytes;
  std::vector<char> known(256, 0);
  for (unsigned b = 0; b < 256; ++b) {
    const auto byte = static_cast<std::uint8_t>(b);
    if (!std::exchange(known[dfa.column(byte)], 1)) bytes.push_back(byte);
  }
  return bytes;
}

TOOLDECODE_INLINE const std::vector<std::uint32_t>& DfaLengths::of(const Dfa& dfa) {
  std::vector<std::uint32_t>& lengths = lengths_[&dfa];
  if (lengths.empty()) {
    lengths = find(dfa);
    bytes_ += sizeof(std::uint32_t) * lengths.size();
  }
  return lengths;
}

TOOLDECODE_INLINE std::vector<std::uint32_t> DfaLengths::find(const Dfa& dfa) {
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

}  // namespace tooldecode::text
