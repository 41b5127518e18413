/// \file
/// fair_order: which sequences of a batch a pass reads, where it does not read all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tooldecode {

/// Where a sequence comes from; see BatchOptions::max_shared.
struct RequestOrigin {
  std::string client{};
  std::string request{};  ///< of the client; it may have several sequences
};

namespace decode {

/// A sequence that the next pass may read.
struct FairCandidate {
  const RequestOrigin* origin;
  std::uint64_t last;  ///< the number of the pass that read it last
};

/// Candidates in the order in which they get their turn.
struct FairOrder {
  std::vector<std::size_t> order;  ///< [candidates]
  std::size_t level = 0;           ///< leading entries that give every client equally many
};

/// Orders candidates so that clients take turns, and so do the requests of a client and the
/// sequences of a request. The level counts as many sequences of each client as the client with the
/// fewest has. If there is one client, its requests take the place of clients.
///
/// \par Complexity  O(candidates log candidates)
[[nodiscard]] FairOrder fair_order(std::span<const FairCandidate> candidates);

}  // namespace decode

}  // namespace tooldecode

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/decode/fair_order.ipp>
#endif
