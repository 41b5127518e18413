/// \file
/// Rules: a context-free grammar as written: any recursion, empty texts anywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/text/code_points.hpp>

namespace tooldecode::ebnf {

/// Rules as a graph of nodes over code points; `build_grammar` turns them into a Grammar.
///
/// Unlike a Grammar's nodes, these may be left-recursive, and anything may be empty, including the
/// items of a repetition.
///
/// \par Complexity  O(size of the arguments) per node
/// \par Threads     build on one thread; const members may run concurrently
/// \par Errors      Error{limit_exceeded} past `max_nodes`
class Rules {
 public:
  using Id                               = std::uint32_t;
  static constexpr std::size_t max_nodes = 50'000;

  /// Adds a part to the grammar that it receives.
  using MakePart = std::function<NodeId(Grammar&)>;

  enum class Kind : std::uint8_t {
    text,  ///< this text; may be empty
    characters,
    lexeme,  ///< the texts of a Dfa
    part,    ///< a part of the resulting Grammar, without an empty text
    pair,    ///< one part, then another
    choice,
    repeat,  ///< a part, repeated
    rule,    ///< its one part, defined later
  };
  struct Node {
    Kind kind = Kind::text;
    std::string text{};  ///< UTF-8
    text::CodePointSet set{};
    text::DfaPointer dfa{};
    MakePart make{};
    std::vector<Id> parts{};
    text::Occurrences occurrences{};
  };

  [[nodiscard]] Id text(std::string utf8) { return add({.text = std::move(utf8)}); }
  [[nodiscard]] Id characters(text::CodePointSet set);
  /// \param dfa  counts characters as units, as utf8_lexeme does
  [[nodiscard]] Id lexeme(text::DfaPointer dfa);
  /// \param make  called once for each use in the grammar
  [[nodiscard]] Id part(MakePart make);
  [[nodiscard]] Id sequence(const std::vector<Id>& parts);
  [[nodiscard]] Id choice(std::vector<Id> alternatives);
  [[nodiscard]] Id repeat(Id item, text::Occurrences occurrences);
  /// A rule that `define` defines later; matches nothing until then.
  [[nodiscard]] Id reserve() { return add({.kind = Kind::rule}); }
  void define(Id rule, Id body);

  [[nodiscard]] const Node& operator[](Id id) const { return nodes_[id]; }
  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }

  /// For each node, whether it matches the empty text. O(nodes + edges).
  [[nodiscard]] std::vector<char> nullable() const;

 private:
  Id add(Node node);

  std::vector<Node> nodes_;
};

}  // namespace tooldecode::ebnf

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/ebnf/rules.ipp>
#endif
