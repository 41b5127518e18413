/// \file
/// Rules: a context-free grammar as people write it: any recursion, empty texts anywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/core/config.hpp>
#include <tooldecode/core/error.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/text/code_points.hpp>
#include <tooldecode/text/dfa.hpp>

namespace tooldecode::ebnf {

/// Rules as a graph of nodes over code points; `build_grammar` makes a Grammar of them.
///
/// Unlike a Grammar's, these nodes may refer to themselves at their own left end, and anything may
/// be empty, the items of a repetition too.
///
/// \par Complexity  O(size of the arguments) per node
/// \par Threads     build on one thread; const members may run concurrently
/// \par Errors      Error{limit_exceeded} past `max_nodes`
class Rules {
 public:
  using Id                               = std::uint32_t;
  static constexpr std::size_t max_nodes = 50'000;

  /// Adds a part to the grammar that it is given.
  using MakePart = std::function<NodeId(Grammar&)>;

  enum class Kind : std::uint8_t {
    text,        ///< this text, perhaps empty
    characters,  ///< one character of a set
    lexeme,      ///< what a Dfa accepts
    part,        ///< a part of the Grammar that is made of the rules, with no empty text
    pair,        ///< one part, then the other
    choice,      ///< one of the parts
    repeat,      ///< a part, again and again
    rule,        ///< what its one part, given later, accepts
  };
  struct Node {
    Kind kind = Kind::text;
    std::string text{};               ///< UTF-8
    text::CodePointSet set{};         ///< characters
    text::DfaPointer dfa{};           ///< lexeme
    MakePart make{};                  ///< part
    std::vector<Id> parts{};          ///< children
    text::Occurrences occurrences{};  ///< repeat
  };

  [[nodiscard]] Id text(std::string utf8) { return add({.text = std::move(utf8)}); }
  [[nodiscard]] Id characters(text::CodePointSet set);
  /// \param dfa  counts characters as units, as utf8_lexeme makes it
  [[nodiscard]] Id lexeme(text::DfaPointer dfa);
  /// \param make  called once for each place that the grammar needs it in
  [[nodiscard]] Id part(MakePart make);
  [[nodiscard]] Id sequence(const std::vector<Id>& parts);
  [[nodiscard]] Id choice(std::vector<Id> alternatives);
  [[nodiscard]] Id repeat(Id item, text::Occurrences occurrences);
  /// A rule to be given its meaning later; accepts nothing until then.
  [[nodiscard]] Id reserve() { return add({.kind = Kind::rule}); }
  void define(Id rule, Id body);

  [[nodiscard]] const Node& operator[](Id id) const { return nodes_[id]; }
  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }

  /// For each node, whether it accepts the empty text. O(nodes + edges).
  [[nodiscard]] std::vector<char> nullable() const;

 private:
  Id add(Node node);

  std::vector<Node> nodes_;
};

}  // namespace tooldecode::ebnf

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/ebnf/rules.ipp>
#endif
