/// \file
/// Definitions of node_order.hpp.
#pragma once

#include <cstddef>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/grammar.ipp>
#include <tooldecode/grammar/node_order.hpp>
#include <tooldecode/grammar/node_store.hpp>

namespace tooldecode::grammar {

TOOLDECODE_INLINE std::optional<StoredId> NodeOrder::part_of(const NodeStore::Node& node,
                                                             std::size_t i) {
  return detail::part_of(node, i);
}

}  // namespace tooldecode::grammar
