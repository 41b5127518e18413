/// \file
/// Expectations: describes in words what may follow a state of an automaton.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tooldecode/core/byte_trie.hpp>
#include <tooldecode/grammar/automaton.hpp>
#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/grammar/key_reader.hpp>
#include <tooldecode/grammar/positions.hpp>
#include <tooldecode/text/byte_set.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/number_lexeme.hpp>
#include <tooldecode/text/string_lexeme.hpp>
#include <tooldecode/vocabulary/vocabulary.hpp>

namespace tooldecode::constraint {

/// One alternative that may follow.
struct Expectation {
  enum class Kind : std::uint8_t { member, key, value, space, end };
  Kind kind;
  std::string words;
  text::ByteSet first{};  ///< first bytes; empty for the end of the text
  friend bool operator<(const Expectation& a, const Expectation& b) {
    return std::pair(a.kind, std::string_view(a.words)) <
           std::pair(b.kind, std::string_view(b.words));
  }
};

/// Lists what may follow a state, one expectation per wording.
///
/// \par Complexity  O(what may follow, with keys and enumerated values spelled out)
/// \par Threads     one at a time; takes the automaton's lock
class ExpectationFinder {
 public:
  explicit ExpectationFinder(const grammar::Automaton& automaton)
      : automaton_(automaton), walk_(automaton) {}

  [[nodiscard]] std::vector<Expectation> at(grammar::Automaton::State state);

 private:
  using Kind                             = Expectation::Kind;
  using Node                             = grammar::NodeStore::Node;
  using Index                            = core::ByteTrie::NodeIndex;
  static constexpr std::size_t max_told  = 5;
  static constexpr std::size_t max_bytes = 40;  // of one text

  void add(const grammar::StackFrame& position);

  void add_literal(const Node::Literal& node, const grammar::StackFrame& position);
  static std::string literal(std::string_view text);

  void add_lexeme(const Node::Lexeme& node, const grammar::StackFrame& position);
  static std::string string(const text::Dfa& dfa, const grammar::StackFrame& position,
                            const text::Occurrences& bounds, const text::ByteSet& first,
                            bool is_key);
  // How many more characters there may be; nullopt if any number may.
  static std::string length(const text::Occurrences& bounds, std::uint32_t done, const char* noun);
  static std::string characters(const text::ByteSet& set);

  void add_alternatives(const Node::Trie& node, const grammar::StackFrame& position);

  void add_keys(const Node::Members& node, const grammar::StackFrame& position);
  // Inside an escape, or inside a key that no member has.
  void add_rest_of_key(const Node::Members& node, const grammar::StackFrame& position);
  text::ByteSet allowed(const Node::Members& node, const grammar::StackFrame& position);
  // Whether the rest of a member's key leads to its value: the member is allowed and not yet there.
  bool may_become(const grammar::StackFrame& position, std::string_view rest);

  // The texts at and below a trie node: the nodes where they end, by value.
  using Texts = std::map<std::uint32_t, std::vector<Index>>;
  static Texts below(const core::ByteTrie& trie, Index from);
  static std::string listed(const core::ByteTrie& trie, const Texts& texts);

  static bool is_inner(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }
  // Puts a text between quotes that do not occur in it; a text with its own quotes stays as it is.
  static std::string quoted(std::string_view text);

  const grammar::Automaton& automaton_;
  grammar::Automaton::Cursor walk_;
  std::vector<Expectation> found_;
};

}  // namespace tooldecode::constraint

#ifndef TOOLDECODE_COMPILED
#include <tooldecode/constraint/expectations.ipp>
#endif
