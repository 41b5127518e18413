/// \file
/// Definitions of spelt_lexeme.hpp.
#pragma once

#include <tooldecode/text/spelt_lexeme.hpp>

namespace tooldecode::text::detail {

TOOLDECODE_INLINE void SpeltRows::add(std::size_t row, const Dfa::Shape& shape,
                                      const std::vector<Dfa::State>& exits) {
  std::vector<Dfa::State> made;  // rows inside come after the rows they lead to
  const auto placed = [&](std::vector<Dfa::Edge> edges) {
    for (Dfa::Edge& edge : edges) {
      edge.to = edge.to < shape.exits ? exits[edge.to] : made[edge.to - shape.exits];
    }
    return edges;
  };
  for (const std::vector<Dfa::Edge>& inside : shape.inside) {
    made.push_back(index_.intern(rows_, placed(inside)));
  }
  const std::vector<Dfa::Edge> first = placed(shape.first);
  rows_[row].edges.insert(rows_[row].edges.end(), first.begin(), first.end());
}

}  // namespace tooldecode::text::detail
