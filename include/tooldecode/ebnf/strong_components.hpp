/// \file
/// find_strong_components: the strongly connected components of a directed graph.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <tooldecode/core/config.hpp>

namespace tooldecode::ebnf {

/// The component of each node. Edges lead to lower component numbers or stay inside a component.
///
/// \param successors  returns the targets of a node's edges, as a vector
///
/// \par Complexity  O(nodes + edges), without call recursion
/// \par Source      Tarjan 1972
template <class Successors>
[[nodiscard]] std::vector<std::uint32_t> find_strong_components(std::size_t nodes,
                                                                const Successors& successors) {
  constexpr std::uint32_t none = ~std::uint32_t{0};
  struct Visit {
    std::uint32_t node;
    std::vector<std::uint32_t> next;
  };
  std::vector<std::uint32_t> component(nodes, none), number(nodes, none), low(nodes, none);
  std::vector<std::uint32_t> open;
  std::vector<Visit> path;
  std::uint32_t visited = 0, components = 0;
  const auto enter = [&](std::uint32_t node) {
    number[node] = low[node] = visited++;
    open.push_back(node);
    path.push_back({node, successors(node)});
  };
  for (std::uint32_t root = 0; root < nodes; ++root) {
    if (number[root] == none) enter(root);
    while (!path.empty()) {
      auto& [node, next] = path.back();
      if (!next.empty()) {
        const std::uint32_t to = next.back();
        next.pop_back();
        if (number[to] == none) {
          enter(to);
        } else if (component[to] == none) {
          low[node] = std::min(low[node], number[to]);
        }
        continue;
      }
      const std::uint32_t done = node;
      path.pop_back();
      if (!path.empty()) low[path.back().node] = std::min(low[path.back().node], low[done]);
      if (low[done] != number[done]) continue;
      for (std::uint32_t member = none; member != done;) {
        member = open.back();
        open.pop_back();
        component[member] = components;
      }
      ++components;
    }
  }
  return component;
}

}  // namespace tooldecode::ebnf
