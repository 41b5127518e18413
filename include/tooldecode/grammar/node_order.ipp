/// \file
/// Definitions of node_order.hpp.
#pragma once

#include <cstddef>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/node_order.hpp>
#include <tooldecode/grammar/node_store.hpp>

namespace tooldecode::grammar {

TOOLDECODE_INLINE std::optional<StoredId> NodeOrder::part_of(const NodeStore::Node& node,
                                                             std::size_t i) {
  if (i < node.children.size()) return node.children[i];
  i -= node.children.size();
  if (i < node.others.size()) return node.others[i].value;
  const bool separates =
      node.kind == Grammar::Kind::repeat || node.kind == Grammar::Kind::keyed_set;
  return separates && i == node.others.size() ? std::optional(node.separator) : std::nullopt;
}

}  // namespace tooldecode::grammar
