/// \file
/// RandomGrammar: random grammars with every kind of node, over four letters.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <tooldecode/grammar/grammar.hpp>
#include <tooldecode/text/dfa.hpp>
#include <tooldecode/text/occurrences.hpp>
#include <tooldecode/text/string_lexeme.hpp>
#include <tooldecode/text/text_dfa.hpp>

namespace tooldecode::test {

/// Makes grammars; each call makes a node of a given depth.
struct RandomGrammar {
  inline static const std::string alphabet = "ab,\"";

  /// Quoted a's and b's; their characters are counted units.
  static text::DfaPointer quoted() {
    std::vector<text::Dfa::Row> rows(3);
    rows[0].next['"'] = 1;
    rows[1].next['a'] = rows[1].next['b'] = 1;
    rows[1].next['"']                     = 2;
    rows[1].boundary                      = true;
    rows[2].accepting = rows[2].closing = true;
    return std::make_shared<const text::Dfa>(std::move(rows));
  }
  /// One or more a's: accepts, and may continue.
  static text::DfaPointer run() {
    std::vector<text::Dfa::Row> rows(2);
    rows[0].next['a'] = rows[1].next['a'] = 1;
    rows[1].accepting                     = true;
    return std::make_shared<const text::Dfa>(std::move(rows));
  }

  std::mt19937 random;
  Grammar grammar{};
  std::vector<NodeId> reserved{};

  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); }
  std::string letters() {
    std::string result;
    for (std::uint32_t i = 1 + below(2); i > 0; --i) result += alphabet[below(3)];
    return result;
  }
  text::Occurrences bounds() {
    const std::uint32_t min = below(3);
    return {min, below(3) == 0 ? text::Occurrences::unbounded : min + below(3)};
  }
  /// A few a's and b's, which may end at some of their counts only.
  text::TextDfa text() {
    std::vector<text::TextDfa::Row> rows(1 + below(4));
    for (text::TextDfa::Row& row : rows) {
      row.accepting = below(3) == 0;
      for (int c = 0; c < 2; ++c) {
        row.next.push_back(below(3) == 0 ? text::TextDfa::dead
                                         : below(static_cast<std::uint32_t>(rows.size())));
      }
    }
    return {{{{'a', 'a'}}, {{'b', 'b'}}}, std::move(rows)};
  }
  NodeId node(int depth) {
    const std::uint32_t kind = depth == 0 ? below(4) : below(11);
    switch (kind) {
      case 0:
      case 1:
        return grammar.literal(letters());
      case 2:
        return grammar.lexeme(below(2) ? quoted() : run(), {});
      case 3:
        if (below(4) == 0) return grammar.nothing();
        return below(2) ? grammar.lexeme(quoted(), bounds())
                        : grammar.lexeme(text(), bounds(), [](const text::TextDfa& some) {
                            return std::make_shared<const text::Dfa>(
                                text::string_lexeme(some, text::ValueSyntax::json, '"'));
                          });
      case 4:
        return grammar.sequence({node(depth - 1), node(depth - 1)});
      case 5:
        return grammar.choice({node(depth - 1), node(depth - 1)});
      case 6:
        return grammar.repeat(grammar.sequence({grammar.literal(letters()), node(depth - 1)}),
                              bounds(), below(2) ? grammar.empty() : grammar.literal(","));
      case 7: {
        std::vector<std::pair<std::string, NodeId>> list;
        for (std::uint32_t i = 0; i < 3; ++i) list.emplace_back(letters(), node(depth - 1));
        return grammar.trie(list);
      }
      case 8: {
        KeyedSet set{.members          = {},
                     .others           = {},
                     .separator        = grammar.literal(","),
                     .documented_order = below(2) == 0,
                     .leading          = below(3) == 0 ? below(4) : 0};
        std::vector<std::string> keys{"a", "b", "ab"};
        for (std::uint32_t i = 0; i < 3; ++i) {
          set.members.push_back({{keys[i]}, node(depth - 1), below(3) == 0});
        }
        if (below(3) == 0) set.others.push_back({quoted(), node(depth - 1)});
        if (below(3) == 0)
          set.others.push_back({run(), grammar.sequence({grammar.literal(","), node(depth - 1)})});
        if (below(4) == 0) set.count = bounds();
        if (below(4) == 0) {
          // In the documented order, a least number combined with dependences is not followed to
          // the end.
          if (set.documented_order) set.count.min = 0;
          set.dependent.emplace_back(below(3), below(3));
          set.dependent.emplace_back(below(3), below(3));
        }
        return grammar.keyed_set(set);
      }
      case 9:
        return grammar.tagged(below(5), node(depth - 1));
      default: {
        if (!reserved.empty()) return grammar.sequence({grammar.literal(letters()), reserved[0]});
        const NodeId self = grammar.reserve();
        reserved.push_back(self);
        grammar.define(self, grammar.choice({node(depth - 1), grammar.literal("b")}));
        return self;
      }
    }
  }
};

}  // namespace tooldecode::test
