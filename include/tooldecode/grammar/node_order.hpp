/// \file
/// NodeOrder: the nodes below a node in dependency order.
#pragma once

#include <cstddef>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tooldecode/grammar/node.hpp>
#include <tooldecode/grammar/node_store.hpp>

namespace tooldecode::grammar {

/// Lists each node after its children, except in recursion; the root is last.
///
/// \par Complexity  O(nodes and edges), without call recursion
class NodeOrder {
 public:
  NodeOrder(const NodeStore& nodes, StoredId root)
      : NodeOrder(nodes, root, [](StoredId) { return false; }) {}
  /// Leaves out nodes that are done, and nodes reachable only through them.
  template <class IsDone>
  NodeOrder(const NodeStore& nodes, StoredId root, IsDone is_done) {
    std::unordered_map<StoredId, bool> open;  // whether it is on the path
    std::vector<std::pair<StoredId, std::size_t>> path;
    const auto visit = [&](StoredId id) {
      if (is_done(id)) return;
      const auto [at, is_new] = open.emplace(id, true);
      if (is_new) {
        path.emplace_back(id, 0);
      } else if (at->second) {
        entries_.push_back(id);
      }
    };
    visit(root);
    while (!path.empty()) {
      const StoredId id = path.back().first;
      if (const auto part = detail::part_of(nodes[id], path.back().second)) {
        ++path.back().second;
        visit(*part);
      } else {
        open[id] = false;
        nodes_.push_back(id);
        path.pop_back();
      }
    }
  }

  [[nodiscard]] const std::vector<StoredId>& nodes() const noexcept { return nodes_; }
  /// The targets of recursive edges, once per edge.
  [[nodiscard]] const std::vector<StoredId>& entries() const noexcept { return entries_; }
  [[nodiscard]] bool is_recursive() const noexcept { return !entries_.empty(); }

 private:
  std::vector<StoredId> nodes_;
  std::vector<StoredId> entries_;
};

}  // namespace tooldecode::grammar
