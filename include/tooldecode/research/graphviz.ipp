/// \file
/// Definitions of graphviz.hpp.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include <tooldecode/research/graphviz.hpp>

namespace tooldecode::grammar::detail {

TOOLDECODE_INLINE std::string dot_string(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace tooldecode::grammar::detail

namespace tooldecode::grammar {

TOOLDECODE_INLINE std::string write_graphviz(const Automaton& automaton, Automaton::State from,
                                             std::size_t max_states) {
  std::map<Automaton::State, std::size_t> number{{from, 0}};
  std::vector<Automaton::State> order{from};
  std::string dot = "digraph automaton {\n  rankdir=LR;\n  begin [shape=point];\n  begin -> 0;\n";
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order.size() > max_states) {
      throw Error(Errc::limit_exceeded, "max_states", max_states,
                  "must be as many as texts reach, or more");
    }
    const std::string name = std::to_string(i);
    dot += "  " + name +
           " [shape=" + (automaton.is_accepting(order[i]) ? "doublecircle" : "circle") + "];\n";
    std::map<std::size_t, text::ByteSet> edges;
    automaton.allowed(order[i]).for_each([&](std::uint8_t byte) {
      const Automaton::State next = *automaton.step(order[i], byte);
      const auto [known, fresh]   = number.emplace(next, order.size());
      if (fresh) order.push_back(next);
      edges[known->second].insert(byte);
    });
    for (const auto& [to, bytes] : edges) {
      dot += "  " + name + " -> " + std::to_string(to) +
             " [label=" + detail::dot_string(text::byte_class(bytes)) + "];\n";
    }
  }
  return dot + "}\n";
}

}  // namespace tooldecode::grammar
