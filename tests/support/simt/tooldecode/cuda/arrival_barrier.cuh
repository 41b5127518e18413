/// \file
/// ArrivalBarrier in the emulator, which knows the state of each.
#pragma once

#include <cstdint>
#include <map>

#include <cuda_runtime.h>

#include <tooldecode/cuda/async_copy.cuh>

namespace tooldecode::cuda {

namespace detail {

struct ArrivalState {
  int arrivals = 0, left = 0;
  std::uint64_t phases = 0;  // that have ended
  simt::Races::Clock now, before;
};
inline std::map<const void*, ArrivalState> arrival_states;
inline const bool arrival_states_end_with_their_block = [] {
  simt::block_starts.push_back([](unsigned) { arrival_states.clear(); });
  return true;
}();

}  // namespace detail

struct ArrivalBarrier {
  std::uint64_t state;

  void begin(int arrivals) {
    detail::ArrivalState& mine = detail::arrival_states[this] = {};
    mine.arrivals = mine.left = arrivals;
  }
  void arrive(SIMT_SITE) {
    auto& mine = find(file, line);
    simt::races.tell(mine.now);
    if (--mine.left > 0) return;
    mine.left = mine.arrivals;
    ++mine.phases;
    mine.before = mine.now;
    simt::Block::active().notify(this);
  }
  void arrive_after_copies(SIMT_SITE) {
    commit_copies();
    wait_for_copies<0>();
    arrive(file, line);
  }
  void wait(int parity, SIMT_SITE) const {
    while (static_cast<int>(find(file, line).phases % 2) == parity) {
      simt::Block::active().wait_for(this, file, line);
    }
    simt::races.learn(find(file, line).before);
  }

 private:
  [[nodiscard]] detail::ArrivalState& find(const char* file, int line) const {
    const auto at = detail::arrival_states.find(this);
    if (at == detail::arrival_states.end()) {
      simt::Block::active().refuse("an arrival barrier that has not begun", file, line);
    }
    return at->second;
  }
};

}  // namespace tooldecode::cuda
